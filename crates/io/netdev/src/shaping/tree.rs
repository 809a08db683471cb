//! The bucket and its leaves as traffic control reads them. Each line replaces what was there, so that the same plan twice
//! is the same as once, and another plan takes the place of the one before without a packet lost.

use std::collections::BTreeMap;

use super::counts::Queue;
use super::{Applied, Group, HANDLE, Leaf, LeafKind, Shaping};
use crate::Error;
use crate::host::run;

/// The one class below the root, which all leaves borrow from.
const ALL: &str = "fa40:1";
/// The class of what is dropped before it waits: whoever sends here is told no more than of a full queue, while a verdict of the
/// rules would be an error of its socket.
pub(super) const LOST: u16 = 0xf0;
/// What TCP and drivers hand over as one at most, headers included.
const LARGEST_SEGMENT: u64 = 64 << 10;
/// Nearly the most that the kernel writes into 32 bits, in bytes/s: older ones have no more.
const UNBOUNDED: &str = "32gbit";

/// The place among a queue's filters of what ARP goes by, which is ours alone.
const ARP: &str = "64064";

/// What traffic control lists of it.
pub(super) fn neighbours(interface: &str) -> Result<String, Error> {
    let listed = run("tc", &["filter", "show", "dev", interface, "parent", HANDLE])?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let place = format!(" pref {ARP} ");
    Ok(listed.lines().filter(|line| line.contains(&place)).collect::<Vec<_>>().join("\n"))
}

impl Shaping {
    /// HTB cannot change its root: it is added once.
    pub(super) fn root_line(&self) -> String {
        format!("qdisc add dev {} root handle {HANDLE} htb default {:x}", self.interface, self.otherwise)
    }

    /// What rules of nftables do not see: ARP. All else that bears no class of theirs, such as what passes a bridge or a VLAN above the
    /// device, goes by the default.
    pub(super) fn neighbours_line(&self) -> String {
        format!(
            "filter replace dev {} parent {HANDLE} protocol arp prio {ARP} handle 800::1 u32 match u32 0 0 classid {HANDLE}{:x}",
            self.interface, self.neighbours
        )
    }

    pub(super) fn class_lines(&self) -> Vec<String> {
        let Shaping { interface, rate, burst, .. } = self;
        let all = format!(
            "class replace dev {interface} parent {HANDLE} classid {ALL} htb rate {rate}bit ceil {rate}bit burst {burst}b cburst {burst}b quantum 60000"
        );
        let leaf = |leaf: &Leaf| {
            let Leaf { minor, priority, rate, ceiling, burst, quantum, .. } = leaf;
            let parent = leaf.within.map_or_else(|| ALL.to_owned(), |group| format!("{HANDLE}{group:x}"));
            format!(
                "class replace dev {interface} parent {parent} classid {HANDLE}{minor:x} htb prio {priority} rate {rate}bit ceil {ceiling}bit burst {burst}b cburst {burst}b quantum {quantum}"
            )
        };
        let group = |group: &Group| {
            let Group { minor, rate, ceiling, burst, quantum } = group;
            format!(
                "class replace dev {interface} parent {ALL} classid {HANDLE}{minor:x} htb rate {rate}bit ceil {ceiling}bit burst {burst}b cburst {burst}b quantum {quantum}"
            )
        };
        let groups = self.groups.iter().map(group);
        let lost = format!(
            "class replace dev {interface} parent {ALL} classid {HANDLE}{LOST:x} htb prio 7 rate 8000bit ceil 8000bit burst 1b cburst 1b quantum 1514"
        );
        [all].into_iter().chain(groups).chain(self.leaves.iter().map(leaf)).chain([lost]).collect()
    }

    /// `whole` is what the largest packet has, where what is larger is to be split.
    pub(super) fn leaf_lines(&self, best: LeafKind, whole: Option<u64>) -> Vec<String> {
        // Nothing has room there.
        let lost = format!("qdisc replace dev {} parent {HANDLE}{LOST:x} bfifo limit 0", self.interface);
        self.leaves.iter().flat_map(|leaf| self.lines_of(leaf, best, whole)).chain([lost]).collect()
    }

    fn lines_of(&self, leaf: &Leaf, best: LeafKind, whole: Option<u64>) -> Vec<String> {
        let interface = &self.interface;
        let kind = self.kind_of(leaf, best);
        let what = match kind {
            // RFC 8289 §4.3, §4.4: the interval is a round trip, the target a twentieth of it or more than one packet takes.
            LeafKind::FqCodel => {
                let interval = self.round_trip.as_millis().max(100);
                let packet = 1514 * 8 * 1000 / u128::from(leaf.ceiling.max(1));
                format!("target {}ms interval {interval}ms quantum 1514", (interval / 20).max(packet * 3 / 2))
            }
            LeafKind::Sfq => format!("limit {} quantum 1514", (leaf.room / 1514).clamp(8, 127)),
            // A segment that comes whole is dropped whole where there is no room for all of it.
            LeafKind::Fifo if self.splits && whole.is_none() => {
                format!("limit {}", leaf.room + LARGEST_SEGMENT)
            }
            LeafKind::Fifo => format!("limit {}", leaf.room),
        };
        let mut lines = Vec::new();
        let parent = match whole {
            // tc-tbf(8): what is larger than its bucket is split. Its own rate is beyond that of any leaf, so that nothing waits for it.
            Some(whole) => {
                let handle = splitter(leaf.minor);
                lines.push(format!(
                    "qdisc replace dev {interface} parent {HANDLE}{:x} handle {handle} tbf rate {UNBOUNDED} burst {whole}b limit {}",
                    leaf.minor, leaf.room
                ));
                // It brings a FIFO of that limit along.
                if kind == LeafKind::Fifo {
                    return lines;
                }
                format!("{handle}1")
            }
            // Without a handle: a leaf of another kind, which a newer kernel may have, can take its place.
            None => format!("{HANDLE}{:x}", leaf.minor),
        };
        lines.push(format!("qdisc replace dev {interface} parent {parent} {} {what}", kind.as_str()));
        lines
    }

    fn kind_of(&self, leaf: &Leaf, best: LeafKind) -> LeafKind {
        if leaf.fair { best } else { LeafKind::Fifo }
    }

    /// The queue that a leaf was given.
    pub(super) fn queue_of(&self, leaf: &Leaf, applied: &Applied) -> Queue<'static> {
        Queue { kind: self.kind_of(leaf, applied.kind).as_str(), splits: applied.whole.is_some() }
    }

    /// Whether all classes have their rates and ceilings in what `tc class show` says, and leaves their priorities.
    pub(super) fn has_rates(&self, classes: &str) -> bool {
        let given: BTreeMap<u16, Class> = classes.lines().filter_map(class).collect();
        let has = |minor: u16, rate: u64, ceiling: u64| {
            given
                .get(&minor)
                .is_some_and(|class| is_rate(class.rate, rate) && is_rate(class.ceiling, ceiling))
        };
        let has_priority =
            |leaf: &Leaf| given.get(&leaf.minor).is_some_and(|class| class.priority == Some(leaf.priority));
        has(1, self.rate, self.rate)
            && self.groups.iter().all(|group| has(group.minor, group.rate, group.ceiling))
            && self.leaves.iter().all(|leaf| has(leaf.minor, leaf.rate, leaf.ceiling) && has_priority(leaf))
    }
}

/// What `tc class show` says of a class.
#[derive(Debug, PartialEq, Eq)]
struct Class<'a> {
    rate: &'a str,
    ceiling: &'a str,
    /// A leaf's.
    priority: Option<u8>,
}

/// What splits segments before a leaf: the handle of that queue.
pub(super) fn splitter(minor: u16) -> String {
    format!("fb{minor:02x}:")
}

/// `class htb fa40:10 parent fa40:1 leaf fb10: prio 0 rate 145920bit ceil 1459Kbit …`: the class below our root, by its number.
fn class(line: &str) -> Option<(u16, Class<'_>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["class", "htb", id, ..] = words[..] else { return None };
    let minor = u16::from_str_radix(id.strip_prefix(HANDLE)?, 16).ok()?;
    let after =
        |word: &str| words.iter().position(|it| *it == word).and_then(|at| words.get(at + 1).copied());
    let priority = after("prio").and_then(|word| word.parse().ok());
    Some((minor, Class { rate: after("rate")?, ceiling: after("ceil")?, priority }))
}

/// Whether `text` is how traffic control writes this rate: as whole units, of bytes at the least.
fn is_rate(text: &str, rate: u64) -> bool {
    bits(text).is_some_and(|(said, unit)| said.abs_diff(rate) < unit.max(8))
}

/// A rate as traffic control writes it, such as `1178Kbit`: bits/s, and those of the unit, of which whole ones are written.
pub(super) fn bits(text: &str) -> Option<(u64, u64)> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "bit" => 1,
        "Kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        _ => return None,
    };
    Some((digits.parse::<u64>().ok()?.checked_mul(unit)?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_compared_as_far_as_they_are_written() {
        for (text, rate, is_it) in [
            ("486400bit", 486_400, true),
            ("29176bit", 29_184, false),
            ("29184bit", 29_190, true),
            ("1486Kbit", 1_486_999, true),
            ("1486Kbit", 1_487_000, false),
            ("2Mbit", 2_000_000, true),
            ("486400", 486_400, false),
            ("Kbit", 0, false),
        ] {
            assert_eq!(is_rate(text, rate), is_it, "{text}");
        }
        let line = "class htb fa40:10 parent fa40:1 leaf fb10: prio 0 rate 145920bit ceil 1459Kbit burst 729b cburst 729b ";
        let has = |rate, ceiling, priority| Class { rate, ceiling, priority };
        assert_eq!(class(line), Some((0x10, has("145920bit", "1459Kbit", Some(0)))));
        assert_eq!(
            class("class htb fa40:1 root rate 2Mbit ceil 2Mbit burst 1b cburst 1b"),
            Some((1, has("2Mbit", "2Mbit", None)))
        );
        assert_eq!(
            (class("class tbf fb60:1 parent fb60: "), class("class htb 1:10 rate 1bit ceil 1bit")),
            (None, None)
        );
    }
}
