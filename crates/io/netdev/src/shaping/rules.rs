//! The nftables table: which packet that leaves by the device waits where, and what it is marked with.

use std::fmt::Write as _;

use super::{Leaf, MarkRule, Shaping, early, media};

/// What comes in by the device passes there.
const ARRIVE: &str = "arrive";

/// Whether rules can hold this name as it is: the kernel's `dev_valid_name`, without what would end a text.
pub(super) fn is_device_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
    (1..=15).contains(&name.len()) && name.bytes().all(good)
}

/// One table for each device; what an identifier cannot hold is written as its number.
pub(super) fn table_name(interface: &str) -> String {
    let mut name = String::from("farhop_link_");
    for byte in interface.bytes() {
        match byte {
            _ if byte.is_ascii_alphanumeric() => name.push(byte.into()),
            _ => {
                let _ = write!(name, "_{byte:02x}");
            }
        }
    }
    name
}

impl Shaping {
    /// The table as `nft -f` reads it, in place of the one of its name, in one step.
    pub(super) fn table(&self) -> String {
        let name = table_name(&self.interface);
        let mut text = format!("table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n");
        early::put_governed(&mut text);
        for leaf in &self.leaves {
            put_leaf(&mut text, leaf);
        }
        text.push_str("chain rules {\n");
        if let Some((address, leaf)) = self.echo {
            let (family, protocol) = if address.is_ipv4() { ("ip", "icmp") } else { ("ip6", "ipv6-icmp") };
            let _ = writeln!(text, "{family} daddr {address} meta l4proto {protocol} goto leaf_{leaf:x}");
        }
        // RFC 4861 §7.1.1: what has crossed a router is none.
        let _ = writeln!(
            text,
            "ip6 hoplimit 255 icmpv6 type {{ nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert }} goto leaf_{:x}",
            self.neighbours
        );
        for rule in &self.rules {
            put_rule(&mut text, rule, &target(rule, &self.leaves));
        }
        let _ = writeln!(text, "goto leaf_{:x}\n}}", self.otherwise);
        media::put(&mut text, &self.media, self.media_leaf);
        let _ =
            writeln!(text, "chain leave {{\ntype filter hook postrouting priority mangle; policy accept;");
        let _ = writeln!(text, "oifname != \"{}\" accept", self.interface);
        media::put_lookups(&mut text);
        text.push_str("goto rules\n}\n");
        let _ =
            writeln!(text, "chain {ARRIVE} {{\ntype filter hook prerouting priority mangle; policy accept;");
        for rule in self.segment_rules() {
            let _ = writeln!(text, "{rule}");
        }
        text.push_str("}\n}\n");
        text
    }

    /// What puts the longest packets in the place of those that were said before, in one step; the other rules stay as they are.
    pub(super) fn segments_text(&self) -> String {
        let table = table_name(&self.interface);
        let mut text = format!("flush chain inet {table} {ARRIVE}\n");
        for rule in self.segment_rules() {
            let _ = writeln!(text, "add rule inet {table} {ARRIVE} {rule}");
        }
        text
    }

    /// What comes in by the device and begins a connection announces no longer segments than packets of so many bytes have room for.
    fn segment_rules(&self) -> Vec<String> {
        let Some(longest) = self.longest else { return Vec::new() };
        let others = format!("iifname != \"{}\" accept", self.interface);
        let most = [("ipv4", 40), ("ipv6", 60)].map(|(family, headers)| {
            let most = longest.saturating_sub(headers);
            format!(
                "meta nfproto {family} tcp flags syn tcp option maxseg size > {most} tcp option maxseg size set {most}"
            )
        });
        [others].into_iter().chain(most).collect()
    }
}

/// Whether packets are led to leaves at all; a table that was flushed has its chains and nothing in them.
pub(super) fn lead_anywhere(table: &str) -> bool {
    let after = table.lines().map(str::trim).skip_while(|line| *line != "chain leave {").skip(1);
    after.take_while(|line| *line != "}").any(|rule| !rule.is_empty() && !rule.starts_with("type filter "))
}

/// What leads a packet to its leaf, and marks it: those of its higher drop precedences by chains of their own, where they are counted
/// and some of them may be lost before they wait.
fn put_leaf(text: &mut String, leaf: &Leaf) {
    let minor = leaf.minor;
    let higher = leaf.higher.map_or_else(Vec::new, |[medium, high]| vec![(2, high), (1, medium)]);
    for (at, (precedence, codepoint)) in higher.iter().enumerate() {
        early::put_chain(text, minor, *precedence);
        let _ = writeln!(text, "chain {} {{", early::chain(minor, *precedence));
        put_higher(text, minor, &higher[..at]);
        let _ = writeln!(text, "meta priority set fa40:{minor:x}");
        for family in ["ip", "ip6"] {
            let _ = writeln!(text, "{family} dscp set {codepoint}");
        }
        let _ = writeln!(text, "counter\ngoto {}\n}}", early::losing_chain(minor, *precedence));
    }
    let _ = writeln!(text, "chain leaf_{minor:x} {{");
    put_higher(text, minor, &higher);
    let _ = writeln!(text, "meta priority set fa40:{minor:x}");
    for family in ["ip", "ip6"] {
        let _ = writeln!(text, "{family} dscp set {} accept", leaf.codepoint);
    }
    text.push_str("accept\n}\n");
}

/// What came with a higher drop precedence of the class keeps it.
fn put_higher(text: &mut String, minor: u16, higher: &[(u8, u8)]) {
    for (precedence, codepoint) in higher {
        for family in ["ip", "ip6"] {
            let _ = writeln!(text, "{family} dscp {codepoint} goto {}", early::chain(minor, *precedence));
        }
    }
}

/// Where packets of a rule go.
fn target(rule: &MarkRule, leaves: &[Leaf]) -> String {
    let has_higher = leaves.iter().any(|leaf| leaf.minor == rule.minor && leaf.higher.is_some());
    match rule.precedence {
        1 | 2 if has_higher => early::chain(rule.minor, rule.precedence),
        _ => format!("leaf_{:x}", rule.minor),
    }
}

/// Its conditions are alternatives of families and ends, which nftables has no word for: a line for each.
fn put_rule(text: &mut String, rule: &MarkRule, target: &str) {
    let protocols: &[&str] = match rule.protocol {
        Some("tcp") => &["tcp"],
        Some(_) => &["udp"],
        None => &[""],
    };
    let range = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let ports: Vec<String> = rule.ports.iter().map(range).collect();
    let ports = ports.join(", ");
    let by_port: Vec<String> = if ports.is_empty() {
        protocols
            .iter()
            .map(|it| if it.is_empty() { String::new() } else { format!("meta l4proto {it} ") })
            .collect()
    } else {
        // `th` reads both at once, and would read them of whatever has other fields there.
        let protocols = if protocols == [""] { "{ tcp, udp }" } else { protocols[0] };
        ["dport", "sport"].map(|end| format!("meta l4proto {protocols} th {end} {{ {ports} }} ")).to_vec()
    };
    let mut by_address = Vec::new();
    for (family, is_v4) in [("ip", true), ("ip6", false)] {
        let mine = rule.networks.iter().filter(|network| network.address.is_ipv4() == is_v4);
        let nets: Vec<String> =
            mine.map(|network| format!("{}/{}", network.address, network.prefix)).collect();
        if !nets.is_empty() {
            let nets = nets.join(", ");
            by_address.extend(["daddr", "saddr"].map(|end| format!("{family} {end} {{ {nets} }} ")));
        }
    }
    let marks: Vec<String> = rule.codepoints.iter().map(u8::to_string).collect();
    let by_mark: Vec<String> = match marks.join(", ") {
        marks if marks.is_empty() => vec![String::new()],
        marks => ["ip", "ip6"].map(|family| format!("{family} dscp {{ {marks} }} ")).to_vec(),
    };
    if by_address.is_empty() {
        by_address.push(String::new());
    }
    for port in &by_port {
        for address in &by_address {
            for mark in &by_mark {
                // No packet is of both families.
                if address.starts_with("ip ") && mark.starts_with("ip6 ")
                    || address.starts_with("ip6 ") && mark.starts_with("ip ")
                {
                    continue;
                }
                let _ = writeln!(text, "{address}{mark}{port}goto {target}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_was_flushed_leads_nowhere() {
        let listed = "table inet farhop_link_sat0 {\n\tchain leaf_10 {\n\t\taccept\n\t}\n\n\tchain leave {\n\t\ttype filter hook postrouting priority -150; policy accept;\n\t\toifname != \"sat0\" accept\n\t\tgoto rules\n\t}\n}\n";
        assert!(lead_anywhere(listed));
        let flushed = "table inet x {\n\tchain leave {\n\t\ttype filter hook postrouting priority -150; policy accept;\n\t}\n\tchain rules {\n\t\taccept\n\t}\n}\n";
        assert!(!lead_anywhere(flushed) && !lead_anywhere("table inet x {\n}\n"));
    }

    #[test]
    fn names_of_devices_make_names_of_tables_that_differ() {
        assert_eq!(table_name("sat0"), "farhop_link_sat0");
        assert_eq!(table_name("eth0.5"), "farhop_link_eth0_2e5");
        assert_ne!(table_name("a-b"), table_name("a_b"));
        assert!(is_device_name("wlan0@x") && !is_device_name("a\"b") && !is_device_name(""));
    }

    #[test]
    fn a_rule_is_a_line_for_each_end_and_family() {
        let mut text = String::new();
        let rule = MarkRule {
            protocol: Some("udp"),
            ports: vec![(16384, 32767)],
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            codepoints: vec![46],
            minor: 0x10,
            precedence: 0,
        };
        put_rule(&mut text, &rule, "leaf_10");
        assert_eq!(text.lines().count(), 8, "{text}");
        let line =
            "ip6 saddr { fd00::/8 } ip6 dscp { 46 } meta l4proto udp th sport { 16384-32767 } goto leaf_10";
        assert!(text.lines().any(|it| it == line), "{text}");
        let mut text = String::new();
        put_rule(
            &mut text,
            &MarkRule { ports: vec![(53, 53)], minor: 0x20, ..MarkRule::default() },
            "leaf_20",
        );
        assert_eq!(
            text,
            "meta l4proto { tcp, udp } th dport { 53 } goto leaf_20\nmeta l4proto { tcp, udp } th sport { 53 } goto leaf_20\n"
        );
    }
}
