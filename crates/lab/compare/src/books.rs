//! What Farhop's ends tell of a load over their control sockets, and the books made of it: hints, promises, requests that
//! crossed, and what came before it was asked for.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use farhop_control::{Client, ControlError, Told};
use farhop_events::{AnsweredFrom, Event, ExchangeId, PromiseEnd, Word};
use farhop_report::{Accounts, Crossed};
use tokio::task::AbortHandle;

/// The events of one end, gathered in the background.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hearing(Arc<Mutex<Vec<Event>>>);

impl Hearing {
    /// Listens from now on, for as long as the runtime lives and the end does, or until what is given is told to abort.
    ///
    /// # Errors
    /// The end does not answer at its socket.
    pub(crate) async fn listen(&self, socket: &Path) -> Result<AbortHandle, ControlError> {
        let mut events = Client::connect(socket).await?.subscribe().await?;
        let heard = self.clone();
        let listening = tokio::spawn(async move {
            while let Ok(Some(told)) = events.next().await {
                match told {
                    Told::Event(stamped) => heard.lock().push(stamped.event),
                    // Books with holes are no books: the counters then stand alone.
                    Told::Missed(_) => break,
                }
            }
        });
        Ok(listening.abort_handle())
    }

    /// Everything heard by now, in order.
    pub(crate) fn so_far(&self) -> Vec<Event> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        // A panic elsewhere leaves the list whole: each event is one push.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of hints, promises and requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Books {
    /// As the report has it.
    pub(crate) accounts: Accounts,
    /// For each URL, request by request, whether its answer was there or on its way before it was asked for.
    pub(crate) unasked: HashMap<String, Vec<bool>>,
}

impl Books {
    /// Makes the books of what remote and ground have told.
    pub(crate) fn of(remote: &[Event], ground: &[Event]) -> Books {
        let mut books = Books::default();
        let accounts = &mut books.accounts;
        let mut urls: HashMap<ExchangeId, &str> = HashMap::new();
        for event in remote {
            match event {
                Event::RequestAccepted { exchange, url, .. } => {
                    urls.insert(*exchange, url);
                }
                Event::RequestCrossed { exchange, why, field, .. } => accounts.crossed.push(Crossed {
                    url: urls.get(exchange).copied().unwrap_or_default().to_owned(),
                    why: why.as_str().into(),
                    field: field.clone(),
                }),
                Event::Promised { .. } => accounts.promised += 1,
                Event::PromiseEnded { end, wasted_bytes, .. } => {
                    count(&mut accounts.ends, end.as_str());
                    accounts.used += u64::from(*end == PromiseEnd::Used);
                    accounts.cancelled += u64::from(*end == PromiseEnd::Cancelled);
                    accounts.wasted_bytes += wasted_bytes;
                }
                Event::Answered { url, from, .. } => {
                    let early =
                        [AnsweredFrom::PromiseEarly, AnsweredFrom::PromiseOnTheWay, AnsweredFrom::Repository];
                    books.unasked.entry(url.clone()).or_default().push(early.contains(from));
                }
                _ => {}
            }
        }
        for event in ground {
            match event {
                Event::HintSkipped { why, .. } => count(&mut accounts.skipped, why),
                Event::PageRead { hints, .. } => {
                    for (source, found) in hints {
                        *accounts.hints.entry(source.clone()).or_default() += found;
                    }
                }
                _ => {}
            }
        }
        books
    }
}

fn count(counts: &mut BTreeMap<String, u64>, word: &str) {
    *counts.entry(word.to_owned()).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_events::Crossing;

    fn accepted(exchange: u64, url: &str) -> Event {
        Event::RequestAccepted {
            exchange: ExchangeId(exchange),
            user: "10.77.1.2".into(),
            method: "GET".into(),
            url: url.into(),
        }
    }

    fn answered(exchange: u64, url: &str, from: AnsweredFrom) -> Event {
        Event::Answered {
            exchange: ExchangeId(exchange),
            user: "10.77.1.2".into(),
            method: "GET".into(),
            url: url.into(),
            status: 200,
            from,
            bytes: 10,
            upload_bytes: 0,
            first_byte_ms: 1,
            total_ms: 2,
        }
    }

    #[test]
    fn what_crossed_has_its_reason_and_what_came_early_its_url() {
        let (page, style) = ("http://a.test/", "http://a.test/a.css");
        let ended = |promise, end, wasted_bytes| Event::PromiseEnded {
            promise,
            url: style.into(),
            end,
            bytes: 100,
            wasted_bytes,
        };
        let promised = |promise| Event::Promised { promise, page: ExchangeId(1), url: style.into() };
        let remote = [
            accepted(1, page),
            Event::RequestCrossed {
                exchange: ExchangeId(1),
                page: Some(ExchangeId(1)),
                why: Crossing::Undiscovered,
                field: None,
            },
            promised(1),
            promised(2),
            accepted(2, style),
            answered(2, style, AnsweredFrom::PromiseOnTheWay),
            ended(1, PromiseEnd::Used, 0),
            ended(2, PromiseEnd::Cancelled, 100),
            accepted(3, style),
            Event::RequestCrossed {
                exchange: ExchangeId(3),
                page: Some(ExchangeId(1)),
                why: Crossing::Mismatch,
                field: Some("accept".into()),
            },
            answered(3, style, AnsweredFrom::Asked),
            answered(1, page, AnsweredFrom::Asked),
        ];
        let skipped =
            Event::HintSkipped { page: ExchangeId(1), url: "http://a.test/b".into(), why: "budget".into() };
        let read = |hints: [(&str, u64); 2]| Event::PageRead {
            page: ExchangeId(1),
            url: page.into(),
            hints: hints.map(|(source, count)| (source.to_owned(), count)).into(),
            promised: 2,
            skipped: BTreeMap::new(),
        };
        let second = read([("img", 1), ("link", 1)]);
        let books = Books::of(&remote, &[skipped.clone(), skipped, read([("img", 4), ("font", 1)]), second]);
        let accounts = &books.accounts;
        let hints: Vec<_> = accounts.hints.iter().map(|(source, count)| (source.as_str(), *count)).collect();
        assert_eq!(hints, [("font", 1), ("img", 5), ("link", 1)], "the pages of a load add up");
        assert_eq!(
            (accounts.promised, accounts.used, accounts.cancelled, accounts.wasted_bytes),
            (2, 1, 1, 100)
        );
        assert_eq!(accounts.skipped, BTreeMap::from([("budget".to_owned(), 2)]));
        let crossed: Vec<_> =
            accounts.crossed.iter().map(|c| (c.url.as_str(), c.why.as_str(), c.field.as_deref())).collect();
        assert_eq!(crossed, [(page, "undiscovered", None), (style, "mismatch", Some("accept"))]);
        assert_eq!(books.unasked[style], [true, false]);
        assert_eq!(books.unasked[page], [false]);
    }
}
