//! What is dropped before it waits: of an assured class (RFC 2597) some of the packets of its higher drop precedences, as many as the
//! caller says from moment to moment. The kernel's queue that knows drop precedences (GRED) goes by a mark that nothing but its own filters
//! can set and keeps no flows apart, so that what waits is left to the leaf, and this to the rules that lead there.
//!
//! The caller has to say it again and again: a few seconds after the last word nothing is dropped any more, whatever has become of him.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::tree::LOST;
use super::{HANDLE, Hold, counts, gone, list, require, rules};
use crate::Error;
use crate::host::{feed, run};

/// How long a word holds.
const HOLDS: &str = "3s";
/// The highest of all drop precedences, counted from 0.
const HIGHEST: u8 = 2;

/// How a leaf stands that has drop precedences. Bytes are counted from any beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    /// The leaf's number.
    pub minor: u16,
    /// Bytes that have left.
    pub left: u64,
    /// Bytes that wait.
    pub waiting: u64,
    /// Bytes that came with the medium and the high drop precedence, dropped or not.
    pub higher: [u64; 2],
}

/// What of a leaf is dropped before it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Losing {
    /// The leaf's number.
    pub minor: u16,
    /// Hundredths of the packets of the medium and of the high drop precedence.
    pub higher: [u8; 2],
}

/// Says what is dropped from now on, for a few seconds, in one step; leaves that are not named keep what was said of them.
///
/// # Errors
/// Nothing of ours is in force there, `nft` is missing or refuses, or the kernel's nftables has no `numgen`.
pub fn set_losing(hold: &Hold, losing: &[Losing]) -> Result<(), Error> {
    require()?;
    let interface = hold.interface();
    feed("nft", &["-f", "-"], &losing_text(interface, losing)).map_err(|error| gone(interface, error))
}

/// How the leaves stand that have drop precedences.
///
/// # Errors
/// Nothing of ours is in force there, or `tc` or `nft` is missing or refuses.
pub fn crowds(interface: &str) -> Result<Vec<Crowd>, Error> {
    let offered = read_offered(&list(interface)?);
    let classes = run("tc", &["-s", "class", "show", "dev", interface])?;
    let leaves = counts::read(&String::from_utf8_lossy(&classes.stdout), "", true).leaves;
    let crowd = |leaf: &counts::LeafCounts| {
        let higher = *offered.get(&leaf.minor)?;
        Some(Crowd { minor: leaf.minor, left: leaf.bytes, waiting: leaf.waiting, higher })
    };
    Ok(leaves.iter().filter_map(crowd).collect())
}

/// Who speaks for what is dropped, for as long as he has spoken lately.
pub(super) fn put_governed(text: &mut String) {
    text.push_str("set governed { type ifname; flags timeout; }\n");
}

/// Where nothing is dropped yet.
pub(super) fn put_chain(text: &mut String, minor: u16, precedence: u8) {
    let _ = writeln!(text, "chain {} {{\naccept\n}}", losing_chain(minor, precedence));
}

/// Packets of a leaf and of such a precedence are marked and counted there.
pub(super) fn chain(minor: u16, precedence: u8) -> String {
    format!("higher_{minor:x}_{precedence}")
}

/// And some of them are lost there.
pub(super) fn losing_chain(minor: u16, precedence: u8) -> String {
    format!("losing_{minor:x}_{precedence}")
}

/// Whether what is lost is said in a chain of this name.
pub(super) fn is_losing_chain(name: &str) -> bool {
    name.starts_with("losing_")
}

/// Whether nftables lists such a rule for what is said there: `accept`, or `oifname @governed … meta priority set fa40:f0`.
pub(super) fn is_told(rule: &str) -> bool {
    let to = rule.rsplit_once("meta priority set ").map(|(before, class)| (before.trim_end(), class));
    let class = to.and_then(|(_, class)| u16::from_str_radix(class.strip_prefix(HANDLE)?, 16).ok());
    let is_share = |before: &str| {
        let rest = before.strip_prefix("oifname @governed").map(str::trim);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("numgen random mod 100 < "))
    };
    rule == "accept" || class == Some(LOST) && to.is_some_and(|(before, _)| is_share(before))
}

fn losing_text(interface: &str, losing: &[Losing]) -> String {
    let table = rules::table_name(interface);
    let mut text = format!(
        "flush set inet {table} governed\nadd element inet {table} governed {{ \"{interface}\" timeout {HOLDS} }}\n"
    );
    for Losing { minor, higher } in losing {
        for (precedence, hundredths) in (1u8..).zip(higher) {
            let chain = losing_chain(*minor, precedence);
            let lost = format!("meta priority set {HANDLE}{LOST:x}");
            let rule = match hundredths {
                0 => "accept".into(),
                1..=99 => format!("oifname @governed numgen random mod 100 < {hundredths} {lost}"),
                _ => format!("oifname @governed {lost}"),
            };
            let _ = writeln!(text, "flush chain inet {table} {chain}\nadd rule inet {table} {chain} {rule}");
        }
    }
    text
}

/// What came with higher drop precedences, by leaf: `counter packets 7 bytes 420` in chains of their names.
fn read_offered(table: &str) -> BTreeMap<u16, [u64; 2]> {
    let mut offered: BTreeMap<u16, [u64; 2]> = BTreeMap::new();
    let mut chain = None;
    for line in table.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["chain", name, "{"] => chain = of_chain(name),
            ["counter", "packets", _, "bytes", bytes] => {
                if let (Some((minor, place)), Ok(bytes)) = (chain, bytes.parse()) {
                    offered.entry(minor).or_default()[place] = bytes;
                }
            }
            _ => {}
        }
    }
    offered
}

/// `higher_50_2`: the leaf, and the place of its precedence among the higher ones.
fn of_chain(name: &str) -> Option<(u16, usize)> {
    let (minor, precedence) = name.strip_prefix("higher_")?.split_once('_')?;
    let precedence: u8 = precedence.parse().ok().filter(|it| (1..=HIGHEST).contains(it))?;
    Some((u16::from_str_radix(minor, 16).ok()?, usize::from(precedence) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said_in_one_step_and_for_a_while() {
        let text = losing_text(
            "sat0",
            &[Losing { minor: 0x50, higher: [0, 35] }, Losing { minor: 0x20, higher: [7, 100] }],
        );
        for line in [
            "add element inet farhop_link_sat0 governed { \"sat0\" timeout 3s }",
            "add rule inet farhop_link_sat0 losing_50_1 accept",
            "add rule inet farhop_link_sat0 losing_50_2 oifname @governed numgen random mod 100 < 35 meta priority set fa40:f0",
            "add rule inet farhop_link_sat0 losing_20_1 oifname @governed numgen random mod 100 < 7 meta priority set fa40:f0",
            "add rule inet farhop_link_sat0 losing_20_2 oifname @governed meta priority set fa40:f0",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }

    #[test]
    fn what_came_is_read_as_nftables_writes_it() {
        let text = "table inet farhop_link_sat0 {\n\tchain losing_50_2 {\n\t\taccept\n\t}\n\n\tchain higher_50_2 {\n\t\tmeta priority set fa40:50\n\t\tip dscp set 0x0e\n\t\tcounter packets 7 bytes 420\n\t\tgoto losing_50_2\n\t}\n\n\tchain higher_50_1 {\n\t\tcounter packets 1 bytes 60\n\t}\n\tchain others {\n\t\tcounter packets 9 bytes 9\n\t}\n}\n";
        assert_eq!(read_offered(text), BTreeMap::from([(0x50, [60, 420])]));
        assert_eq!(
            (of_chain("higher_50_0"), of_chain("higher_x_1"), of_chain("leaf_50")),
            (None, None, None)
        );
    }
}
