//! The bucket and its leaves as traffic control reads them. Each line replaces what was there, so that the same plan twice
//! is the same as once, and another plan takes the place of the one before without a packet lost.

use super::{HANDLE, Leaf, LeafKind, Shaping};

/// The one class below the root, which all leaves borrow from.
const ALL: &str = "fa40:1";

impl Shaping {
    /// HTB cannot change its root: it is added once.
    pub(super) fn root_line(&self) -> String {
        format!("qdisc add dev {} root handle {HANDLE} htb default {:x}", self.interface, self.otherwise)
    }

    pub(super) fn class_lines(&self) -> Vec<String> {
        let Shaping { interface, rate, burst, .. } = self;
        let all = format!(
            "class replace dev {interface} parent {HANDLE} classid {ALL} htb rate {rate}bit ceil {rate}bit burst {burst}b cburst {burst}b quantum 60000"
        );
        let leaf = |leaf: &Leaf| {
            let Leaf { minor, priority, rate, ceiling, burst, quantum, .. } = leaf;
            format!(
                "class replace dev {interface} parent {ALL} classid {HANDLE}{minor:x} htb prio {priority} rate {rate}bit ceil {ceiling}bit burst {burst}b cburst {burst}b quantum {quantum}"
            )
        };
        [all].into_iter().chain(self.leaves.iter().map(leaf)).collect()
    }

    pub(super) fn leaf_lines(&self, best: LeafKind) -> Vec<String> {
        let line = |leaf: &Leaf| {
            let kind = if leaf.fair { best } else { LeafKind::Fifo };
            let what = match kind {
                // RFC 8289 §4.3, §4.4: the interval is a round trip, the target a twentieth of it or more than one packet takes.
                LeafKind::FqCodel => {
                    let interval = self.round_trip.as_millis().max(100);
                    let packet = 1514 * 8 * 1000 / u128::from(leaf.ceiling.max(1));
                    format!(
                        "target {}ms interval {interval}ms quantum 1514",
                        (interval / 20).max(packet * 3 / 2)
                    )
                }
                LeafKind::Sfq => format!("limit {} quantum 1514", (leaf.room / 1514).clamp(8, 127)),
                LeafKind::Fifo => format!("limit {}", leaf.room),
            };
            // Without a handle: a leaf of another kind, which a newer kernel may have, can take its place.
            let Shaping { interface, .. } = self;
            format!("qdisc replace dev {interface} parent {HANDLE}{:x} {} {what}", leaf.minor, kind.as_str())
        };
        self.leaves.iter().map(line).collect()
    }
}
