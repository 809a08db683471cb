//! Cacheable promises that are whole and that no browser has taken whole: the repository answers for them, and their first use is
//! still looked for.

use std::collections::BTreeMap;
use std::time::Duration;

use farhop_bundle::PromiseId;
use farhop_events::ExchangeId;
use url::Url;

use super::Wire;
use crate::books;
use crate::users::User;

/// The oldest count as unused beyond.
pub(super) const MOST: usize = 8192;

/// They count as used when they are asked for within this time; later uses are the repository's.
const ACCOUNTED: Duration = Duration::from_secs(10);

/// A promise that the repository answers for.
pub(super) struct Handed {
    pub(super) promise: PromiseId,
    pub(super) wire: Wire,
    pub(super) user: User,
    pub(super) page: ExchangeId,
    pub(super) url: Url,
    pub(super) bytes: u64,
    /// It has answered a request, but its browser gave that up before it was whole.
    pub(super) given_up: bool,
}

impl Handed {
    pub(super) fn entry(&self) -> books::Entry<'_> {
        books::Entry { promise: self.promise, page: self.page, url: &self.url, bytes: self.bytes }
    }
}

/// By their entry in the repository, with when they count as unused.
#[derive(Default)]
pub(super) struct HandedOver(BTreeMap<u64, (Handed, Duration)>);

impl HandedOver {
    /// Adds one; gives the oldest where there are too many.
    pub(super) fn insert(&mut self, stored: u64, handed: Handed, now: Duration) -> Option<Handed> {
        self.0.insert(stored, (handed, now + ACCOUNTED));
        let oldest = if self.0.len() > MOST { self.0.pop_first() } else { None };
        oldest.map(|(_, (handed, _))| handed)
    }

    /// Takes out what `stored` was promised as.
    pub(super) fn take(&mut self, stored: u64) -> Option<Handed> {
        self.0.remove(&stored).map(|(handed, _)| handed)
    }

    /// What is held of `url` for `user`.
    pub(super) fn find(&self, user: &User, url: &Url) -> Option<u64> {
        let mut all = self.0.iter();
        all.find(|(_, (handed, _))| handed.user == *user && handed.url == *url).map(|(stored, _)| *stored)
    }

    /// Takes out those that nobody has asked for in time.
    pub(super) fn lapse(&mut self, now: Duration) -> impl Iterator<Item = Handed> {
        self.0.extract_if(.., move |_, (_, lapses)| *lapses <= now).map(|(_, (handed, _))| handed)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
