//! A download that begins with the carrier: the remote has just been started, ground remembers the path.

use farhop_lab_transport::{Via, bulk};

use super::{fewest, runs, warm, within};
use crate::group::Context;
use crate::{MeasureError, Row};

/// How many limits it may take.
const FACTOR: f64 = 1.10;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut hop = warm(context, "geo-hylas2")?;
    let mut before = Vec::new();
    let mut fresh = Vec::new();
    for _ in 0..runs(context) {
        before.push(hop.load(Via::Farhop, &[bulk("/2m")])?);
        hop.restart_remote()?;
        // Asked before the carrier is up: the time includes that of the process to start.
        fresh.push(hop.load_at_once(&[bulk("/2m")])?);
    }
    // One more round trip: QUIC's handshake (RFC 9000 §7).
    let limit = hop.limit(fewest(&before)) + hop.profile.rtt();
    let what = "2 MB on a fresh carrier, path known, handshake included";
    Ok(vec![within(what, &fresh, limit, FACTOR)])
}
