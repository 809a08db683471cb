//! Pages that were read a moment ago, for what their browser asks for although nobody foresaw it: that may tell what it
//! will ask for next. Pure but for the clock's time, which is handed in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhop_events::ExchangeId;
use http::{HeaderMap, header};
use tokio::time::Instant;
use url::Url;

use crate::allowance::Allowance;
use crate::owner::Owner;
use crate::reading::Reading;

/// How long a page is remembered: what its scripts ask for when they begin comes within seconds.
const KEPT: Duration = Duration::from_secs(30);
/// Pages remembered for one carrier; each holds up to a few megabytes of what was read.
const MOST: usize = 32;

/// See the module.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Entry>>);

struct Entry {
    owner: Owner,
    read: Read,
    at: Instant,
}

/// A page that was read.
#[derive(Clone)]
pub(crate) struct Read {
    pub(crate) page: ExchangeId,
    pub(crate) url: Url,
    pub(crate) reading: Arc<Reading>,
    pub(crate) allowance: Allowance,
}

impl Recent {
    /// `owner` has opened this page, whose reading begins.
    pub(crate) fn note(&self, owner: &Owner, mut read: Read, now: Instant) {
        read.url.set_fragment(None);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Loads of one document do not go on side by side.
        let again = |entry: &Entry| entry.owner == *owner && entry.read.url == read.url;
        entries.retain(|entry| now < entry.at + KEPT && !again(entry));
        if entries.len() >= MOST {
            entries.pop_front();
        }
        entries.push_back(Entry { owner: owner.clone(), read, at: now });
    }

    /// The page for which `owner` asks with these fields, as far as `Referer` says: it names the page, or, of what a
    /// stylesheet or module asks for, a file of the same origin; the page opened last, then.
    pub(crate) fn page_of(&self, owner: &Owner, request: &HeaderMap, now: Instant) -> Option<Read> {
        let referer = Url::parse(request.get(header::REFERER)?.to_str().ok()?).ok()?;
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = || entries.iter().rev().filter(|entry| entry.owner == *owner && now < entry.at + KEPT);
        let named = own().find(|entry| entry.read.url == referer);
        let found = named.or_else(|| own().find(|entry| entry.read.url.origin() == referer.origin()));
        found.map(|entry| entry.read.clone())
    }
}
