//! What several users of one remote will need at a time, and anyone may have: it is sent to the first, for whom the others wait at
//! their end.

use std::time::{Duration, SystemTime};

use farhop_bundle::{Likeness, Unasked};
use farhop_freshness::{Stored, shareable};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Failure;
use farhop_page::{Destination, Hint};
use http::StatusCode;
use tokio::time::timeout;

use super::{Bundle, Wish};
use crate::failure;
use crate::passing::{Found, Pass};
use crate::tally::COMING;

/// The shortest wait for what the origin says to another, however short the way.
const LEAST: Duration = Duration::from_millis(100);

impl Bundle {
    /// Whether the remote is being sent what will answer this, for another.
    pub(super) fn is_coming(&self, hint: &Hint, unasked: &Unasked) -> bool {
        let found = likeness(hint, unasked)
            .map(|likeness| self.carrier.coming(&self.owner, &likeness, &unasked.fields));
        matches!(found, Some(Found::Coming))
    }

    /// Lets others go by what is fetched for `wish`; nothing where that is for its user alone. Fails where it is being sent to
    /// another: as soon as that is known, which is waited for no longer than asking across the hop would take.
    pub(super) async fn pass(&self, wish: &Wish) -> Result<Option<Pass>, Failure> {
        let likeness = likeness(&wish.hint, &wish.unasked).filter(|_| wish.stale.is_none());
        let Some(likeness) = likeness else { return Ok(None) };
        let found = || self.carrier.coming(&self.owner, &likeness, &wish.unasked.fields);
        let is_coming = match found() {
            Found::Coming => true,
            Found::Awaited(awaited) => {
                let patience = self.carrier.connection.rtt().max(LEAST);
                // Whether it is over or takes too long, what is known by then counts.
                let _ = timeout(patience, awaited.over()).await;
                matches!(found(), Found::Coming)
            }
            Found::Nothing => false,
        };
        match is_coming {
            true => Err(failure::withdrawn(&COMING)),
            false => Ok(self.carrier.begin_passing(&self.owner, likeness)),
        }
    }
}

/// What others may ask for alike. Documents of frames are read along for each user.
fn likeness(hint: &Hint, unasked: &Unasked) -> Option<Likeness> {
    let is_document = hint.destination == Destination::Frame;
    Likeness::of(&unasked.url, &unasked.fields).filter(|_| !is_document)
}

/// The head of what has come for `wish`, if the remote will answer others with it.
pub(super) fn for_anyone(wish: &Wish, head: &ResponseHead) -> Option<Stored> {
    let Unasked { url, fields } = &wish.unasked;
    let may_be = head.status == StatusCode::OK
        && shareable(url.scheme() == "https", fields, head.status, &head.fields);
    let now = SystemTime::now();
    may_be.then(|| Stored::new(fields, head.status, &head.fields, now, now))
}
