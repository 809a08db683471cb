//! How old a response is (RFC 9111 §4.2.3).

use crate::directives::{MAX_SECONDS, delta_seconds};
use crate::fields;
use http::{HeaderMap, header};
use std::time::{Duration, SystemTime};

/// Age when the response arrived: `corrected_initial_age`.
pub(crate) fn initial_age(
    response: &HeaderMap,
    requested_at: SystemTime,
    received_at: SystemTime,
) -> Duration {
    // RFC 9110 §6.6.1: a response without Date is dated when it was received.
    let date = fields::date(response, &header::DATE, received_at).unwrap_or(received_at);
    let apparent = received_at.duration_since(date).unwrap_or(Duration::ZERO);
    let delay = received_at.duration_since(requested_at).unwrap_or(Duration::ZERO);
    // RFC 9111 §5.1: of a list the first member counts, an invalid value is ignored.
    let said =
        fields::members(response, &header::AGE).next().and_then(delta_seconds).unwrap_or(Duration::ZERO);
    apparent.max(said.saturating_add(delay))
}

/// How far a clock may be set back before what came later than now is not trusted any more.
const SLIPS: Duration = Duration::from_secs(10);
/// The greatest age that there is: nothing is fresh for longer.
pub(crate) const OLDEST: Duration = Duration::from_secs(MAX_SECONDS);

/// Age now: initial age and resident time. A clock that was set back a little makes nothing younger than it was. What came
/// much later than now was dated by a clock that was wrong, or is judged by one: nobody knows how old it is, so that it has to
/// be taken to be as old as can be.
pub(crate) fn current_age(
    response: &HeaderMap,
    requested_at: SystemTime,
    received_at: SystemTime,
    now: SystemTime,
) -> Duration {
    if received_at.duration_since(now).is_ok_and(|ahead| ahead > SLIPS) {
        return OLDEST;
    }
    let resident = now.duration_since(received_at).unwrap_or(Duration::ZERO);
    let age = initial_age(response, requested_at, received_at).saturating_add(resident);
    // RFC 9111 §1.2.2: what overflows MUST be considered to be 2^31 s.
    age.min(OLDEST)
}
