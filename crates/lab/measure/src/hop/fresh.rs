//! A download that begins with the carrier: the remote has just been started, ground remembers the path. Once with what the
//! operator knows of it, once with nothing set, where the rate comes from what was saved (Careful Resume, RFC 9959).

use farhop_compare::Tuning;
use farhop_lab_transport::{Hop, Load, Via, bulk};

use super::{fewest, runs, warm, within};
use crate::group::Context;
use crate::{MeasureError, Row};

/// How many limits it may take.
const FACTOR: f64 = 1.10;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut hop = warm(context, "geo-hylas2")?;
    let mut before = Vec::new();
    let what = "2 MB on a fresh carrier, path known, handshake included";
    let named = freshly(context, &mut hop, &mut before)?;
    hop.start("unset", &Tuning { profile: Some("auto".into()), ..Tuning::default() })?;
    hop.load(Via::Farhop, &[bulk("/10m")])?;
    let unset = freshly(context, &mut hop, &mut before)?;
    // One more round trip: QUIC's handshake (RFC 9000 §7).
    let limit = hop.limit(fewest(&before)) + hop.profile.rtt();
    Ok(vec![
        within(what, &named, limit, FACTOR),
        within(format!("{what}, nothing set: profile 'auto'"), &unset, limit, FACTOR),
    ])
}

/// Downloads, each on a carrier that has just been called; `before` each of them, one on the carrier of the one before.
fn freshly(context: &Context, hop: &mut Hop<'_>, before: &mut Vec<Load>) -> Result<Vec<Load>, MeasureError> {
    let mut fresh = Vec::new();
    for _ in 0..runs(context) {
        before.push(hop.load(Via::Farhop, &[bulk("/2m")])?);
        hop.restart_remote()?;
        // Asked before the carrier is up: the time includes that of the process to start.
        fresh.push(hop.load_at_once(&[bulk("/2m")])?);
    }
    Ok(fresh)
}
