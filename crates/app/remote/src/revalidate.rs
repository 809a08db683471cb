//! Asks the origin behind the client's back about what was given stale (RFC 5861 §3), once at a time for each entry.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use farhop_events::{Crossing, ExchangeId};
use farhop_freshness::RequestDirectives;
use farhop_store::Held;
use http::header::{self, HeaderName};
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::Remote;
use crate::ask::{Asking, NotAnswered, Progress};
use crate::exchange::Exchange;
use crate::held::{confirm, give_up};
use crate::promising;
use crate::request::Fetch;

/// What of a client's request is about its own copy, or about what caches may answer it with.
const OF_CLIENT: [HeaderName; 6] = [
    header::CACHE_CONTROL,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::PRAGMA,
    header::RANGE,
];

/// The entries that are being asked about, each with the exchange that was answered from it.
#[derive(Default)]
pub(crate) struct Doubts(Mutex<HashMap<u64, ExchangeId>>);

impl Doubts {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, ExchangeId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the origin is being asked about this entry since it has answered `client`.
    pub(crate) fn are_of(&self, entry: u64, client: ExchangeId) -> bool {
        self.lock().get(&entry) == Some(&client)
    }
}

/// An entry, for as long as it is being asked about.
struct Claim {
    remote: Arc<Remote>,
    entry: u64,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.remote.doubts().lock().remove(&self.entry);
    }
}

/// Begins to ask about what answers `client`, unless that is under way.
pub(crate) fn begin(remote: &Arc<Remote>, client: &Exchange, held: Held) {
    let fields = &client.fetch.head.fields;
    if let Some(awaited) = remote.validating().awaited(held.id) {
        return promising::tell_wanted(remote, Some(awaited.wanted(fields)));
    }
    // RFC 9111 §5.2.1.5: nothing that comes of such a request may be stored.
    if RequestDirectives::of(fields).no_store {
        return;
    }
    match remote.doubts().lock().entry(held.id) {
        Entry::Occupied(_) => return,
        Entry::Vacant(doubt) => {
            doubt.insert(client.id);
        }
    }
    // Of a page ground hears by this, and does its part.
    remote.holdouts().held(client.id);
    let claim = Claim { remote: Arc::clone(remote), entry: held.id };
    let exchange = behind(remote, client);
    tokio::spawn(async move { validate(&claim.remote, &exchange, &held).await });
}

/// An exchange for what `client` asked for, of which no client knows.
fn behind(remote: &Remote, client: &Exchange) -> Exchange {
    let mut head = client.fetch.head.clone();
    head.method = Method::GET;
    OF_CLIENT.iter().for_each(|name| drop(head.fields.remove(name)));
    let (uploaded, course, cut_short) = <_>::default();
    Exchange {
        id: remote.next_exchange(),
        user: client.user.clone(),
        pass: client.pass.clone(),
        client: client.client,
        caught_at: client.caught_at,
        fetch: Arc::new(Fetch { head, dictionary: None, has_body: false, ..Fetch::clone(&client.fetch) }),
        started: Instant::now(),
        uploaded,
        course,
        eagerness: client.eagerness,
        cut_short,
    }
}

async fn validate(remote: &Arc<Remote>, exchange: &Exchange, held: &Held) {
    exchange.crosses(remote, Crossing::Stale, None);
    let requested_at = SystemTime::now();
    let mut head = exchange.fetch.head.clone();
    held.head.make_conditional(&mut head.fields);
    let mut asking = Asking::new(remote, exchange, head);
    asking.keep_no_error();
    loop {
        match asking.progress().await {
            Ok(Progress::Informed(_)) | Err(NotAnswered::Lost) => {}
            Ok(Progress::Asked(asked)) => {
                // A full answer is stored as it comes; whether a 304 says anything is told by the next request.
                if asked.head.status == StatusCode::NOT_MODIFIED {
                    let (user, fetch) = (exchange.user.id, &exchange.fetch);
                    confirm(remote, user, fetch, held, &asked.head, requested_at).await;
                } else {
                    give_up(remote, &exchange.fetch.url, held, &asked.head).await;
                }
                return;
            }
            Ok(Progress::Switched(_)) | Err(NotAnswered::Trouble(_)) => return,
        }
    }
}
