//! A download that begins with the carrier: the remote has just been started, ground remembers the path.

use super::{Hop, Via, bulk, fewest, within};
use crate::group::Context;
use crate::{MeasureError, Row};

/// How many limits it may take.
const FACTOR: f64 = 1.10;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut hop = Hop::up(context, "geo-hylas2")?;
    let mut warm = Vec::new();
    let mut fresh = Vec::new();
    for _ in 0..hop.runs() {
        warm.push(hop.load(Via::Farhop, &[bulk("/2m")])?);
        hop.restart_remote()?;
        // Asked before the carrier is up: the time includes that of the process to start.
        fresh.push(hop.load_at_once(&[bulk("/2m")])?);
    }
    // One more round trip: QUIC's handshake (RFC 9000 §7).
    let limit = hop.limit(fewest(&warm)) + hop.profile.rtt();
    let what = "2 MB on a fresh carrier, path known, handshake included";
    Ok(vec![within(what, &fresh, limit, FACTOR)])
}
