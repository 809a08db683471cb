//! Promises that their browser has stopped asking for before they were whole: a page that is closed, stopped or left gives up all its
//! requests, and what they were to be answered with would fill the link for nobody.

use std::time::Duration;

use farhop_bundle::{LoadId, PromiseId};
use farhop_events::ExchangeId;

use super::{Desk, Entry, Promised};
use crate::books;

/// How long what any shared cache could reuse goes on without anyone: the next page of a site asks for the same within moments.
const GRACE: Duration = Duration::from_secs(2);

impl Desk {
    /// `exchange` is answered with the head alone: it needs no more of its promise, which goes on for others.
    pub(crate) fn needs_no_body(&mut self, exchange: ExchangeId) {
        self.answering.remove(&exchange);
    }

    /// `exchange` has ended. What it was being answered with and is not whole, nobody takes any more.
    pub(super) fn stops_answering(&mut self, exchange: ExchangeId, now: Duration) {
        let Some(id) = self.answering.remove(&exchange) else { return };
        if self.answering.values().any(|other| *other == id) {
            return;
        }
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.is_unfinished()) else { return };
        // If all that its page waits for ends so, the page is gone.
        self.book.doubt(LoadId(entry.page.0));
        match self.book.is_reusable(id) {
            true => entry.deserted = Some(now),
            false => self.give_up(id, now),
        }
    }

    /// Gives up what was deserted, and that nobody has asked for since.
    pub(super) fn give_up_deserted(&mut self, now: Duration) {
        let over = |entry: &Entry| entry.deserted.is_some_and(|since| since + GRACE <= now);
        let all = self.entries.iter().filter(|(_, entry)| over(entry) && entry.is_unfinished());
        for id in all.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.give_up(id, now);
        }
    }

    fn give_up(&mut self, id: PromiseId, now: Duration) {
        self.book.withdraw(id);
        let Some(entry) = self.forget(id) else { return };
        // Whoever takes it in gives it up, which stops the push.
        let bytes = entry.bytes();
        entry.state.send_replace(Promised::Gone);
        self.books.given_up(&books::Entry { promise: id, page: entry.page, url: &entry.url, bytes }, now);
    }
}

impl Entry {
    /// Whether more of it is to come.
    fn is_unfinished(&self) -> bool {
        match &*self.state.borrow() {
            Promised::Awaited => true,
            Promised::Coming { body, .. } => !body.is_whole() && !body.is_broken(),
            Promised::Gone => false,
        }
    }
}
