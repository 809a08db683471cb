//! What traffic control says of leaves, read from its text.

use super::tree::{LOST, bits, splitter};
use super::{HANDLE, LeafKind};

/// The kind of queue that splits segments.
const SPLITTER: &str = "tbf";

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
    /// Its guaranteed rate in bits/s, as far as traffic control writes it: four digits at the least.
    pub rate: u64,
    /// And its ceiling.
    pub ceiling: u64,
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
    let queues = Queues::read(queues);
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
                    rate: after("rate").and_then(bits).map_or(0, |(rate, _)| rate),
                    ceiling: after("ceil").and_then(bits).map_or(0, |(rate, _)| rate),
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
            // The class above them all is nobody's leaf, and neither is a class of a leaf's own queue.
            ["class", ..] => leaves.push(LeafCounts::default()),
            _ => {}
        }
    }
    leaves.retain(|leaf| leaf.minor > 1 && leaf.minor != LOST);
    for leaf in &mut leaves {
        leaf.kind = queues.of(leaf.minor).map(|queue| queue.kind.to_owned()).unwrap_or_default();
    }
    leaves.sort_by_key(|leaf| leaf.minor);
    Shaped { leaves, has_rules }
}

/// What waits at a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queue<'a> {
    /// Its kind.
    pub(super) kind: &'a str,
    /// Whether segments are split before it.
    pub(super) splits: bool,
}

/// `tc qdisc show`: each queue's parent, and its kind.
pub(super) struct Queues<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Queues<'a> {
    pub(super) fn read(text: &'a str) -> Queues<'a> {
        let queue = |line: &'a str| match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["qdisc", kind, _, "parent", parent, ..] => Some((parent, kind)),
            _ => None,
        };
        Queues(text.lines().filter_map(queue).collect())
    }

    fn below(&self, parent: &str) -> Option<&'a str> {
        self.0.iter().find(|(of, _)| *of == parent).map(|(_, kind)| *kind)
    }

    /// The queue of a leaf, where it has one.
    pub(super) fn of(&self, minor: u16) -> Option<Queue<'a>> {
        let kind = self.below(&format!("{HANDLE}{minor:x}"))?;
        if kind != SPLITTER {
            return Some(Queue { kind, splits: false });
        }
        // Its own FIFO is not shown.
        let kind = self.below(&format!("{}1", splitter(minor))).unwrap_or(LeafKind::Fifo.as_str());
        Some(Queue { kind, splits: true })
    }
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
class htb fa40:10 parent fa40:1 leaf fa50: prio 0 rate 145920bit ceil 1459Kbit burst 729b cburst 729b 
 Sent 6000 bytes 100 pkt (dropped 2, overlimits 7 requeues 0) 
 backlog 12Kb 9p requeues 0
 lended: 100 borrowed: 0 giants: 0
 tokens: 1 ctokens: 1
class fq_codel 8001:2d2 parent 8001: 
 (dropped 12, overlimits 0 requeues 0) 
 backlog 24Kb 16p requeues 0
";
        let plain = "qdisc htb fa40: root refcnt 2\nqdisc bfifo fa50: parent fa40:10 limit 12112b\n";
        let split =
            "qdisc htb fa40: root refcnt 2\nqdisc tbf fb10: parent fa40:10 rate 32Gbit burst 0b lat 4us\n";
        let shaped = read(classes, plain, true);
        assert_eq!(read(classes, split, true), shaped, "what splits has a FIFO of its own");
        let leaf = LeafCounts {
            minor: 0x10,
            kind: "bfifo".into(),
            rate: 145_920,
            ceiling: 1_459_000,
            bytes: 6000,
            packets: 100,
            dropped: 2,
            waiting: 12 << 10,
        };
        assert_eq!(shaped, Shaped { leaves: vec![leaf], has_rules: true });
    }

    #[test]
    fn a_leaf_that_splits_has_the_queue_below_what_splits() {
        let text = "qdisc tbf fb50: parent fa40:50 rate 32Gbit\nqdisc fq_codel 8001: parent fb50:1 limit 10240p\nqdisc sfq 8002: parent fa40:60 limit 127p\n";
        let queues = Queues::read(text);
        assert_eq!(queues.of(0x50), Some(Queue { kind: "fq_codel", splits: true }));
        assert_eq!(queues.of(0x60), Some(Queue { kind: "sfq", splits: false }));
        assert_eq!(queues.of(0x10), None);
    }
}
