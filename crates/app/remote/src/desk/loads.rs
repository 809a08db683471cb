//! Which pages are being loaded, as far as promises go by that.

use std::time::Duration;

use farhop_bundle::{LoadId, is_attachment, leads_to};
use farhop_events::{ExchangeId, PromiseEnd};
use http::{HeaderMap, StatusCode};
use url::Url;

use super::Desk;
use crate::users::User;

/// Loads that are remembered after their page was left: promises of what it named may be on the way.
const MOST_BEGUN: usize = 256;

impl Desk {
    /// The page whose document a redirect has led to `url`, if this request, which has not begun a load, goes on there.
    pub(crate) fn led_to(&mut self, user: &User, url: &Url, request: &HeaderMap) -> Option<ExchangeId> {
        self.book.led_to(&user.name, url, request).map(|load| ExchangeId(load.0))
    }

    /// A document is asked for: what was promised to an earlier load of it ends.
    pub(crate) fn begin_load(
        &mut self,
        user: &User,
        load: ExchangeId,
        url: &Url,
        request: &HeaderMap,
        now: Duration,
    ) {
        let left = self.book.begin_load(&user.name, LoadId(load.0), url, request);
        left.into_iter().for_each(|id| self.end(id, PromiseEnd::PageLeft, now));
        if self.book.is_open(LoadId(load.0)) {
            self.books.begin(load, user, url, now);
            self.begun.push_back((LoadId(load.0), now));
            if self.begun.len() > MOST_BEGUN {
                self.begun.pop_front();
            }
        }
    }

    /// `exchange` begins, a request of `user`.
    pub(crate) fn asks(
        &mut self,
        exchange: ExchangeId,
        user: &User,
        url: &Url,
        request: &HeaderMap,
        now: Duration,
    ) {
        self.book.asks(exchange.0, &user.name, url, request, now);
    }

    /// `exchange` has ended.
    pub(crate) fn settled(&mut self, exchange: ExchangeId, now: Duration) {
        self.book.settled(exchange.0, now);
        self.stops_answering(exchange, now);
    }

    /// Whether the page of this load was open and is not any more.
    pub(super) fn is_left(&self, load: LoadId) -> bool {
        self.began(load).is_some() && !self.book.is_open(load)
    }

    pub(super) fn began(&self, load: LoadId) -> Option<Duration> {
        self.begun.iter().find(|(begun, _)| *begun == load).map(|(_, at)| *at)
    }

    /// The page to which promises beside the answer to `exchange`, a request for `url`, belong.
    pub(crate) fn page_of(
        &self,
        exchange: ExchangeId,
        user: &User,
        url: &Url,
        request: &HeaderMap,
    ) -> ExchangeId {
        ExchangeId(self.book.load_of(LoadId(exchange.0), &user.name, url, request).0)
    }

    /// The document of `page` was asked for at `url` and answered so: a redirect leads on, and the page is there; a document
    /// is shown, and the page before it may have been left.
    pub(crate) fn answered(
        &mut self,
        page: ExchangeId,
        url: &Url,
        status: StatusCode,
        fields: &HeaderMap,
        now: Duration,
    ) {
        if let Some(to) = leads_to(url, status, fields) {
            self.book.moved(LoadId(page.0), url, &to);
            self.books.moved(page, url, &to);
        } else if !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT)
            && !is_attachment(fields)
        {
            self.book.shown(LoadId(page.0), url, now);
        }
    }

    /// The origin is asked about what is held at `url`, for this page; it may be a `document`.
    pub(crate) fn note_validated(&mut self, page: ExchangeId, url: &Url, document: bool) {
        self.book.note_validated(LoadId(page.0), url, document);
    }
}
