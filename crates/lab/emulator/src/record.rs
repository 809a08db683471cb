//! What the link saw during one load: the numbers that reports print and that decide whether it was fit.

use farhop_orbit::{Counters, Way};
use std::time::Duration;

use crate::{Activity, LatenessSummary};

/// One direction during a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WayRecord {
    /// The model's counters. A packet still under way when they were reset counts as delivered only, in
    /// the record in which it arrives.
    pub counters: Counters,
    /// How late packets left.
    pub lateness: LatenessSummary,
    /// How long packets were under way beyond the delay of the link itself, on average: waiting for their turn or for
    /// capacity, being sent, jitter.
    pub waited: Duration,
    /// The longest of these.
    pub waited_most: Duration,
    /// Packets that the receiving kernel refused; they count as delivered.
    pub refused: u64,
    /// CPU time of this direction's thread.
    pub cpu: Duration,
}

/// Both directions during a load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadRecord {
    /// Gateway → terminal.
    pub forward: WayRecord,
    /// Terminal → gateway.
    pub return_: WayRecord,
    /// Distinct TCP connections, by the SYN that opened them.
    pub tcp_flows: u64,
    /// Distinct UDP flows, DNS left out.
    pub udp_flows: u64,
    /// Forward and return, span by span, where [`LinkHandle::watch`](crate::LinkHandle::watch) wants it.
    pub activity: Option<[Activity; 2]>,
    /// Since the last reset.
    pub elapsed: Duration,
    /// The longest time for which a thread of ordinary priority got no processor, while the whole machine stood still or others had it.
    pub stood_still: Duration,
    /// Whether both threads run under SCHED_FIFO; without it lateness grows under load.
    pub realtime: bool,
    /// Why a direction stopped, if one did: from then on nothing crosses.
    pub failure: Option<String>,
}

impl LoadRecord {
    /// One direction.
    pub fn way(&self, way: Way) -> &WayRecord {
        match way {
            Way::Forward => &self.forward,
            Way::Return => &self.return_,
        }
    }

    /// The later of the two directions' 99th percentiles.
    pub fn p99_lateness(&self) -> Duration {
        self.forward.lateness.p99.max(self.return_.lateness.p99)
    }
}
