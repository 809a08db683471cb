//! Media of calls, which go before all rules: each call's packets through a chain of its own, where they are counted and as many go on
//! as the call may send. What is beyond goes by the rules, as if there were no call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;

use super::rules;

/// Media whose packets are counted together, and how many of them go first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metered {
    /// Addresses and UDP ports.
    pub media: Vec<SocketAddr>,
    /// Packets in a second.
    pub packets: u64,
    /// Packets at once, after a pause.
    pub packets_at_once: u64,
    /// Bytes in a second, from the IP header on. The kernel lets a second's go at once.
    pub bytes: u64,
    /// Bytes at once besides, after a pause.
    pub bytes_at_once: u64,
}

const FAMILIES: [(&str, &str, bool); 2] = [("ip", "ipv4_addr", true), ("ip6", "ipv6_addr", false)];

/// The maps from media to chains, and those chains, as parts of a table.
pub(super) fn put(text: &mut String, media: &[Metered], leaf: u16) {
    for (family, kind, is_v4) in FAMILIES {
        let elements =
            elements(media, is_v4).map_or(String::new(), |list| format!(" elements = {{ {list} }};"));
        let _ = writeln!(text, "map media_{family} {{ type {kind} . inet_service : verdict;{elements} }}");
    }
    for (number, metered) in media.iter().enumerate() {
        let _ = writeln!(text, "chain {} {{", chain(number));
        for rule in metered.rules(leaf) {
            let _ = writeln!(text, "{rule}");
        }
        text.push_str("}\n");
    }
}

/// What leads packets to those chains.
pub(super) fn put_lookups(text: &mut String) {
    for (family, _, _) in FAMILIES {
        for (address, port) in [("daddr", "dport"), ("saddr", "sport")] {
            let _ = writeln!(text, "{family} {address} . udp {port} vmap @media_{family}");
        }
    }
}

/// What puts other media in the place of as many as were `before`, in one step.
pub(super) fn text(interface: &str, before: usize, media: &[Metered], leaf: u16) -> String {
    let table = rules::table_name(interface);
    let mut text = String::new();
    for (family, _, _) in FAMILIES {
        let _ = writeln!(text, "flush map inet {table} media_{family}");
    }
    for number in 0..before.max(media.len()) {
        let chain = chain(number);
        // One that somebody has taken away is no reason to fail.
        let _ = writeln!(text, "add chain inet {table} {chain}\nflush chain inet {table} {chain}");
        match media.get(number) {
            Some(metered) => {
                for rule in metered.rules(leaf) {
                    let _ = writeln!(text, "add rule inet {table} {chain} {rule}");
                }
            }
            None => {
                let _ = writeln!(text, "delete chain inet {table} {chain}");
            }
        }
    }
    for (family, _, is_v4) in FAMILIES {
        if let Some(list) = elements(media, is_v4) {
            let _ = writeln!(text, "add element inet {table} media_{family} {{ {list} }}");
        }
    }
    text
}

/// Whether a part of the table, as it begins in a listing, is of calls.
pub(super) fn is_block(name: &str) -> bool {
    name.starts_with("map media_") || name.starts_with("chain call_")
}

/// Packets that have left for or from each of the media since they were named; media that are counted together have one count.
pub(super) fn read_passed(table: &str) -> Vec<(SocketAddr, u64)> {
    let (mut packets, mut named) = (BTreeMap::new(), Vec::new());
    let mut chain = None;
    for line in table.lines() {
        let words: Vec<&str> =
            line.split(|it: char| it.is_whitespace() || it == ',').filter(|it| !it.is_empty()).collect();
        match words[..] {
            ["chain", name, "{"] => chain = Some(name),
            ["counter", "packets", count, ..] => {
                if let (Some(chain), Ok(count)) = (chain, count.parse::<u64>()) {
                    packets.entry(chain).or_insert(count);
                }
            }
            _ => {}
        }
        // 10.0.0.1 . 16384 : goto call_0
        named.extend(words.windows(6).filter_map(|words| match words {
            [address, ".", port, ":", "goto", chain] => {
                Some((SocketAddr::new(address.parse().ok()?, port.parse().ok()?), *chain))
            }
            _ => None,
        }));
    }
    named.into_iter().filter_map(|(media, chain)| Some((media, *packets.get(chain)?))).collect()
}

impl Metered {
    /// The rules of its chain: none of its packets comes back from there.
    fn rules(&self, leaf: u16) -> [String; 3] {
        let Metered { packets, packets_at_once, bytes, bytes_at_once, .. } = self;
        [
            "counter".into(),
            format!(
                "limit rate {packets}/second burst {packets_at_once} packets limit rate {bytes} bytes/second burst {bytes_at_once} bytes goto leaf_{leaf:x}"
            ),
            "goto rules".into(),
        ]
    }
}

fn chain(number: usize) -> String {
    format!("call_{number}")
}

fn elements(media: &[Metered], is_v4: bool) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for (number, metered) in media.iter().enumerate() {
        // An address leads to one chain.
        for media in metered.media.iter().filter(|it| it.is_ipv4() == is_v4) {
            if seen.insert(media) {
                items.push(format!("{} . {} : goto {}", media.ip(), media.port(), chain(number)));
            }
        }
    }
    (!items.is_empty()).then(|| items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_passed_is_read_as_nftables_writes_it() {
        let listed = "table inet farhop_link_sat0 {\n\tmap media_ip {\n\t\ttype ipv4_addr . inet_service : verdict\n\t\telements = { 10.0.0.1 . 16384 : goto call_0,\n\t\t\t     10.0.0.2 . 9 : goto call_1 }\n\t}\n\tmap media_ip6 {\n\t\telements = { fd00::1 . 4000 : goto call_0 }\n\t}\n\tchain leaf_50 {\n\t\tcounter packets 5 bytes 5\n\t}\n\tchain call_0 {\n\t\tcounter packets 7 bytes 420\n\t\tgoto rules\n\t}\n\tchain call_1 {\n\t\tcounter packets 0 bytes 0\n\t}\n}";
        let of = |media: &str, packets| (media.parse().unwrap(), packets);
        assert_eq!(
            read_passed(listed),
            [of("10.0.0.1:16384", 7), of("10.0.0.2:9", 0), of("[fd00::1]:4000", 7)]
        );
        assert_eq!(read_passed("elements = { x . 1 : goto call_0 }\nchain call_0 {\ncounter packets 7"), []);
    }

    #[test]
    fn media_are_named_anew_in_one_step() {
        let of = |media: &[&str]| Metered {
            media: media.iter().map(|it| it.parse().unwrap()).collect(),
            packets: 53,
            packets_at_once: 11,
            bytes: 3_150,
            bytes_at_once: 630,
        };
        let media = [of(&["10.0.0.1:16384", "[fd00::1]:4000"]), of(&["10.0.0.1:16384"])];
        let said = text("sat0", 3, &media, 0x10);
        for line in [
            "flush map inet farhop_link_sat0 media_ip",
            "add rule inet farhop_link_sat0 call_1 limit rate 53/second burst 11 packets limit rate 3150 bytes/second burst 630 bytes goto leaf_10",
            "add rule inet farhop_link_sat0 call_1 goto rules",
            "delete chain inet farhop_link_sat0 call_2",
            "add element inet farhop_link_sat0 media_ip { 10.0.0.1 . 16384 : goto call_0 }",
            "add element inet farhop_link_sat0 media_ip6 { fd00::1 . 4000 : goto call_0 }",
        ] {
            assert!(said.lines().any(|it| it == line), "{line}\nis not in\n{said}");
        }
        assert_eq!(said.matches("add element").count(), 2);
    }
}
