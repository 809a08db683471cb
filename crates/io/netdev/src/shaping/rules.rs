//! The nftables table: which packet that leaves by the device waits where, and what it is marked with.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use super::{Leaf, MarkRule, Shaping, early};

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
        for (family, kind, is_v4) in [("ip", "ipv4_addr", true), ("ip6", "ipv6_addr", false)] {
            let elements = elements(&self.media, is_v4);
            let elements = elements.map_or(String::new(), |list| format!(" elements = {{ {list} }};"));
            let _ = writeln!(text, "set media_{family} {{ type {kind} . inet_service; counter;{elements} }}");
        }
        early::put_governed(&mut text);
        for leaf in &self.leaves {
            put_leaf(&mut text, leaf);
        }
        let _ =
            writeln!(text, "chain leave {{\ntype filter hook postrouting priority mangle; policy accept;");
        let _ = writeln!(text, "oifname != \"{}\" accept", self.interface);
        for family in ["ip", "ip6"] {
            for (address, port) in [("daddr", "dport"), ("saddr", "sport")] {
                let media = format!("{family} {address} . udp {port} @media_{family}");
                let _ = writeln!(text, "{media} goto leaf_{:x}", self.media_leaf);
            }
        }
        if let Some((address, leaf)) = self.echo {
            let (family, protocol) = if address.is_ipv4() { ("ip", "icmp") } else { ("ip6", "ipv6-icmp") };
            let _ = writeln!(text, "{family} daddr {address} meta l4proto {protocol} goto leaf_{leaf:x}");
        }
        for rule in &self.rules {
            put_rule(&mut text, rule, &target(rule, &self.leaves));
        }
        let _ = writeln!(text, "goto leaf_{:x}\n}}", self.otherwise);
        if let Some(longest) = self.longest {
            put_segments(&mut text, &self.interface, longest);
        }
        text.push_str("}\n");
        text
    }
}

/// How many rules each chain of a table has, as we write it or as nftables lists it: each is a line.
pub(super) fn by_chain(table: &str) -> BTreeMap<&str, usize> {
    let mut chains = BTreeMap::new();
    let mut chain = None;
    for line in table.lines().map(str::trim) {
        match line.strip_prefix("chain ").and_then(|rest| rest.strip_suffix('{')) {
            Some(name) => {
                chain = Some(name.trim());
                chains.insert(name.trim(), 0);
            }
            None if line == "}" => chain = None,
            None if line.is_empty() || line.starts_with("type filter ") => {}
            None => {
                if let Some(rules) = chain.and_then(|chain| chains.get_mut(chain)) {
                    *rules += 1;
                }
            }
        }
    }
    chains
}

/// Whether packets are led to leaves at all; a table that was flushed has its chains and nothing in them.
pub(super) fn lead_anywhere(table: &str) -> bool {
    by_chain(table).get("leave").is_some_and(|rules| *rules > 0)
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

/// What comes in by the device and begins a connection announces no longer segments than packets of so many bytes have room for.
fn put_segments(text: &mut String, interface: &str, longest: u16) {
    let _ = writeln!(text, "chain arrive {{\ntype filter hook prerouting priority mangle; policy accept;");
    let _ = writeln!(text, "iifname != \"{interface}\" accept");
    for (family, headers) in [("ipv4", 40), ("ipv6", 60)] {
        let most = longest.saturating_sub(headers);
        let _ = writeln!(
            text,
            "meta nfproto {family} tcp flags syn tcp option maxseg size > {most} tcp option maxseg size set {most}"
        );
    }
    text.push_str("}\n");
}

/// Its conditions are alternatives of families and ends, which nftables has no word for: a line for each.
fn put_rule(text: &mut String, rule: &MarkRule, target: &str) {
    let protocols: &[&str] = match rule.protocol {
        Some("tcp") => &["tcp"],
        Some(_) => &["udp"],
        None => &[""],
    };
    let ports: Vec<String> = rule.ports.iter().map(|(first, last)| format!("{first}-{last}")).collect();
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

/// What puts other media in the place of those named before.
pub(super) fn media_text(interface: &str, media: &[SocketAddr]) -> String {
    let name = table_name(interface);
    let mut text = String::new();
    for (family, is_v4) in [("ip", true), ("ip6", false)] {
        let _ = writeln!(text, "flush set inet {name} media_{family}");
        if let Some(list) = elements(media, is_v4) {
            let _ = writeln!(text, "add element inet {name} media_{family} {{ {list} }}");
        }
    }
    text
}

fn elements(media: &[SocketAddr], is_v4: bool) -> Option<String> {
    let mut items: Vec<String> = media
        .iter()
        .filter(|it| it.is_ipv4() == is_v4)
        .map(|it| format!("{} . {}", it.ip(), it.port()))
        .collect();
    items.sort();
    items.dedup(); // two calls may share a gateway's port
    (!items.is_empty()).then(|| items.join(", "))
}

/// Packets that have left for or from each of the media since they were named: `10.0.0.1 . 16384 counter packets 7 bytes 420`.
pub(super) fn read_passed(text: &str) -> Vec<(SocketAddr, u64)> {
    let words: Vec<&str> =
        text.split(|it: char| it.is_whitespace() || it == ',').filter(|it| !it.is_empty()).collect();
    let of = |words: &[&str]| match words {
        [address, ".", port, "counter", "packets", packets] => {
            let media = SocketAddr::new(address.parse().ok()?, port.parse().ok()?);
            Some((media, packets.parse().ok()?))
        }
        _ => None,
    };
    words.windows(6).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_passed_is_read_as_nftables_writes_it() {
        let text = "table inet farhop_link_sat0 {\n\tset media_ip {\n\t\ttype ipv4_addr . inet_service\n\t\tcounter\n\t\telements = { 10.0.0.1 . 16384 counter packets 7 bytes 420,\n\t\t\t     10.0.0.2 . 9 counter packets 0 bytes 0 }\n\t}\n\tset media_ip6 {\n\t\telements = { fd00::1 . 4000 counter packets 1 bytes 80 }\n}\n}";
        let of = |media: &str, packets| (media.parse().unwrap(), packets);
        assert_eq!(
            read_passed(text),
            [of("10.0.0.1:16384", 7), of("10.0.0.2:9", 0), of("[fd00::1]:4000", 1)]
        );
        assert_eq!(read_passed("elements = { x . 1 counter packets 7 bytes 0 }"), []);
    }

    #[test]
    fn rules_are_counted_as_nftables_lists_them() {
        let listed = "table inet farhop_link_sat0 {\n\tset media_ip {\n\t\ttype ipv4_addr . inet_service\n\t\tcounter\n\t}\n\n\tchain leaf_10 {\n\t\tmeta priority set fa40:10\n\t\tip dscp set 46 accept\n\t\taccept\n\t}\n\n\tchain leave {\n\t\ttype filter hook postrouting priority -150; policy accept;\n\t\toifname != \"sat0\" accept\n\t\tgoto leaf_10\n\t}\n}\n";
        assert_eq!(by_chain(listed), BTreeMap::from([("leaf_10", 3), ("leave", 2)]));
        assert!(lead_anywhere(listed));
        let flushed = "table inet x {\n\tchain leave {\n\t\ttype filter hook postrouting priority -150; policy accept;\n\t}\n}\n";
        assert!(!lead_anywhere(flushed) && !lead_anywhere("table inet x {\n}\n"));
    }

    #[test]
    fn who_begins_a_connection_is_heard_to_take_shorter_segments() {
        let mut text = String::new();
        put_segments(&mut text, "sat0", 1_000);
        assert_eq!(by_chain(&text), BTreeMap::from([("arrive", 3)]));
        for line in [
            "meta nfproto ipv4 tcp flags syn tcp option maxseg size > 960 tcp option maxseg size set 960",
            "meta nfproto ipv6 tcp flags syn tcp option maxseg size > 940 tcp option maxseg size set 940",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
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
            "meta l4proto { tcp, udp } th dport { 53-53 } goto leaf_20\nmeta l4proto { tcp, udp } th sport { 53-53 } goto leaf_20\n"
        );
    }

    #[test]
    fn media_are_named_anew_in_one_step() {
        let media = ["10.0.0.1:16384", "10.0.0.1:16384", "[fd00::1]:4000"].map(|it| it.parse().unwrap());
        assert_eq!(
            media_text("sat0", &media),
            "flush set inet farhop_link_sat0 media_ip\nadd element inet farhop_link_sat0 media_ip { 10.0.0.1 . 16384 }\n\
             flush set inet farhop_link_sat0 media_ip6\nadd element inet farhop_link_sat0 media_ip6 { fd00::1 . 4000 }\n"
        );
    }
}
