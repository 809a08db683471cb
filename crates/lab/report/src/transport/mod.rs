//! What downloads over carriers of every kind brought, as data: route by route, under each condition, beside what the link
//! allows. Its JSON is an interface: `schema/transport.json` describes it and a test holds both together.

mod html;
mod table;

pub use html::transport_html;
pub use table::transport_table;

use serde::{Deserialize, Serialize};

use crate::{Calibration, Leg, Spread};

/// The JSON schema of [`Transports`].
pub const TRANSPORT_SCHEMA: &str = include_str!("../../schema/transport.json");

/// Everything that one run of `farhop lab transport` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transports {
    /// What was downloaded.
    pub workloads: Vec<Named>,
    /// On which ways.
    pub routes: Vec<Named>,
    /// One result per link.
    pub links: Vec<LinkResult>,
    /// How it was measured.
    pub method: Vec<String>,
    /// What a reader must be told: loads repeated, programs that are not there, bounds that could not be had.
    pub notes: Vec<String>,
}

/// A name and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// As command line and results have it.
    pub name: String,
    /// In words.
    pub words: String,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// The profile's name.
    pub profile: String,
    /// Round trip of the idle link, in seconds.
    pub rtt_s: f64,
    /// Gateway to terminal, the way of the downloads; queue and loss as the profile has them.
    pub forward: Leg,
    /// Terminal to gateway.
    #[serde(rename = "return")]
    pub return_: Leg,
    /// The link as measured before the first load.
    pub calibration: Calibration,
    /// Under each condition, every workload.
    pub conditions: Vec<Condition>,
}

/// A queue and a loss, under which everything was downloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Bytes that may wait on the forward way.
    pub queue_bytes: u64,
    /// Share of packets lost at random, each way.
    pub loss: f64,
    /// Every workload.
    pub results: Vec<WorkloadResult>,
}

/// One workload on every route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadResult {
    /// The workload's name.
    pub workload: String,
    /// Seconds below which it cannot be: round trip + wire bytes ÷ rate; none where no load without loss counted.
    pub limit_s: Option<f64>,
    /// Those wire bytes, layer 3 up: the fewest that any route took for it without loss.
    pub limit_bytes: Option<u64>,
    /// One cell for each route.
    pub cells: Vec<Cell>,
}

/// One workload on one route under one condition. Numbers that are not a spread are medians.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cell {
    /// The route's name.
    pub route: String,
    /// Whether the machine has what the route needs; without it nothing was loaded.
    pub present: bool,
    /// Loads that ended with every byte right.
    pub runs: u32,
    /// From the first request to the last byte, in seconds; none when no load ended.
    pub time_s: Option<Spread>,
    /// The median time as a multiple of the limit.
    pub ratio: Option<f64>,
    /// Bytes sent on the forward way, repair and what was sent twice included.
    pub forward_bytes: f64,
    /// Bytes on the return way.
    pub return_bytes: f64,
    /// Packets on the return way.
    pub return_packets: f64,
    /// Packets that found the forward queue full.
    pub queue_drops: f64,
    /// Whether the link was late in a load that counts, however often it was repeated: an indication, not a measurement.
    pub late: bool,
    /// What went wrong in loads that did not end right, one line each.
    pub failures: Vec<String>,
}

impl Cell {
    /// Whether it goes through Farhop.
    pub fn is_farhop(&self) -> bool {
        self.route.starts_with("farhop")
    }
}

impl Condition {
    /// `no loss, 600 KB of queue`
    pub fn in_words(&self) -> String {
        let loss = match self.loss {
            0.0 => "no loss".to_owned(),
            loss => format!("{} % lost both ways", (loss * 1e6).round() / 1e4),
        };
        format!("{loss}, {} KB of queue", self.queue_bytes / 1000)
    }

    /// The cell of a workload on a route.
    pub fn cell(&self, workload: &str, route: &str) -> Option<&Cell> {
        let result = self.results.iter().find(|result| result.workload == workload)?;
        result.cells.iter().find(|cell| cell.route == route)
    }

    /// The least multiple of the limit that any route needs for a workload.
    fn best(&self, workload: &str) -> Option<f64> {
        let result = self.results.iter().find(|result| result.workload == workload)?;
        result.cells.iter().filter_map(|cell| cell.ratio).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_told_without_the_dust_of_binary_fractions() {
        let condition = |loss| Condition { queue_bytes: 600_000, loss, results: Vec::new() }.in_words();
        assert_eq!(condition(0.0), "no loss, 600 KB of queue");
        assert_eq!(condition(0.03), "3 % lost both ways, 600 KB of queue");
        assert_eq!(condition(0.0007), "0.07 % lost both ways, 600 KB of queue");
    }
}
