//! What traffic control says of leaves, read from its text.

/// What is in force at a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaped {
    /// The leaves, by their numbers.
    pub leaves: Vec<LeafCounts>,
    /// Whether the rules stand as well; somebody may have flushed them.
    pub has_rules: bool,
}

/// What a leaf has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeafCounts {
    /// Its number below the root.
    pub minor: u16,
    /// The kind of its queue; empty where it has none of its own.
    pub kind: String,
    /// Its guaranteed rate and its ceiling, as traffic control writes them.
    pub rate: String,
    /// As above.
    pub ceiling: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Bytes that wait now.
    pub waiting: u64,
}

/// Reads `tc -s class show` and `tc qdisc show`.
pub(super) fn read(classes: &str, queues: &str, has_rules: bool) -> Shaped {
    let mut leaves: Vec<LeafCounts> = Vec::new();
    for line in classes.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |word: &str| {
            let place = words.iter().position(|it| it.trim_start_matches('(') == word)?;
            words.get(place + 1).map(|it| it.trim_end_matches([',', ')']))
        };
        match words[..] {
            ["class", "htb", id, "parent", ..] => {
                let minor = id.split_once(':').and_then(|(_, minor)| u16::from_str_radix(minor, 16).ok());
                leaves.push(LeafCounts {
                    minor: minor.unwrap_or(0),
                    rate: after("rate").unwrap_or_default().into(),
                    ceiling: after("ceil").unwrap_or_default().into(),
                    ..LeafCounts::default()
                });
            }
            // Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
            ["Sent", bytes, "bytes", packets, "pkt", ..] => {
                if let Some(leaf) = leaves.last_mut() {
                    leaf.bytes = bytes.parse().unwrap_or(0);
                    leaf.packets = packets.parse().unwrap_or(0);
                    leaf.dropped = after("dropped").and_then(|it| it.parse().ok()).unwrap_or(0);
                }
            }
            ["backlog", bytes, ..] => {
                if let Some(leaf) = leaves.last_mut() {
                    leaf.waiting = size(bytes);
                }
            }
            // The class above them all is nobody's leaf.
            ["class", "htb", _, "root", ..] => leaves.push(LeafCounts::default()),
            _ => {}
        }
    }
    leaves.retain(|leaf| leaf.minor > 1);
    for leaf in &mut leaves {
        let parent = format!("fa40:{:x}", leaf.minor);
        let kind = queues.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["qdisc", kind, _, "parent", of, ..] if of == parent => Some(kind.to_owned()),
            _ => None,
        });
        leaf.kind = kind.unwrap_or_default();
    }
    leaves.sort_by_key(|leaf| leaf.minor);
    Shaped { leaves, has_rules }
}

/// `1514b`, `12Kb`: as traffic control writes sizes, in units of 1024.
fn size(text: &str) -> u64 {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "Kb" => 1 << 10,
        "Mb" => 1 << 20,
        _ => 1,
    };
    digits.parse::<u64>().unwrap_or(0).saturating_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_traffic_control_writes_them() {
        let classes = "\
class htb fa40:1 root rate 486400bit ceil 486400bit burst 121b cburst 121b 
 Sent 9999 bytes 9 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
class htb fa40:10 parent fa40:1 leaf fa50: prio 0 rate 145920bit ceil 145920bit burst 729b cburst 729b 
 Sent 6000 bytes 100 pkt (dropped 2, overlimits 7 requeues 0) 
 backlog 12Kb 9p requeues 0
 lended: 100 borrowed: 0 giants: 0
 tokens: 1 ctokens: 1
";
        let queues = "qdisc htb fa40: root refcnt 2\nqdisc bfifo fa50: parent fa40:10 limit 12112b\n";
        let shaped = read(classes, queues, true);
        let leaf = LeafCounts {
            minor: 0x10,
            kind: "bfifo".into(),
            rate: "145920bit".into(),
            ceiling: "145920bit".into(),
            bytes: 6000,
            packets: 100,
            dropped: 2,
            waiting: 12 << 10,
        };
        assert_eq!(shaped, Shaped { leaves: vec![leaf], has_rules: true });
    }
}
