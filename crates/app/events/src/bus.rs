//! Where events go: into the counters, to whoever subscribed, into the log.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::counters::Counters;
use crate::event::Event;
use crate::privacy::shown_url;
use crate::words::Level;

/// How many events a slow subscriber may fall behind before it misses some.
const BACKLOG: usize = 4096;

/// An event with its place in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Counts events while someone listens; a gap means that events were missed.
    pub seq: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The one place of an end that events are told to. Clones are the same bus.
#[derive(Debug, Clone)]
pub struct Bus(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    counters: Counters,
    /// There while someone listens: it keeps room for all of the backlog, 130 KB.
    subscribers: Mutex<Option<broadcast::Sender<Arc<Stamped>>>>,
    seq: AtomicU64,
    host_only: AtomicBool,
}

impl Default for Bus {
    fn default() -> Self {
        Bus::new()
    }
}

impl Bus {
    /// A bus with all counters at zero and nobody listening.
    pub fn new() -> Self {
        Bus(Arc::new(Inner {
            counters: Counters::default(),
            subscribers: Mutex::default(),
            seq: AtomicU64::new(0),
            host_only: AtomicBool::new(false),
        }))
    }

    /// Tells an event: counts it, logs it at its level, and passes it to each subscriber. Never waits.
    pub fn emit(&self, event: Event) {
        event.count(&self.0.counters);
        log(&event);
        let mut subscribers = self.subscribers();
        // Who was the last to leave took no notice of it.
        subscribers.take_if(|sender| sender.receiver_count() == 0);
        let Some(subscribers) = &*subscribers else { return };
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let seq = self.0.seq.fetch_add(1, Relaxed);
        // Fails only when the last subscriber has just left.
        let _ = subscribers.send(Arc::new(Stamped { seq, at_ms, event }));
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Every event from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription(self.subscribers().get_or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe())
    }

    fn subscribers(&self) -> MutexGuard<'_, Option<broadcast::Sender<Arc<Stamped>>>> {
        self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches the privacy mode of [`Bus::url`].
    pub fn set_host_only(&self, on: bool) {
        self.0.host_only.store(on, Relaxed);
    }

    /// A URL as events may carry it: see [`shown_url`].
    pub fn url(&self, url: &str) -> String {
        shown_url(url, self.0.host_only.load(Relaxed))
    }
}

/// The events from the moment of subscription.
#[derive(Debug)]
pub struct Subscription(broadcast::Receiver<Arc<Stamped>>);

impl Subscription {
    /// The next event; `Err` says how many were missed because the reader was slow; `None` when the bus
    /// is gone. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Arc<Stamped>, u64>> {
        match self.0.recv().await {
            Ok(stamped) => Some(Ok(stamped)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Err(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// As [`next`](Self::next), but only what has happened already: `None` when that was all.
    pub fn next_now(&mut self) -> Option<Result<Arc<Stamped>, u64>> {
        match self.0.try_recv() {
            Ok(stamped) => Some(Ok(stamped)),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(Err(missed)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }
}

fn log(event: &Event) {
    // The line is only put together when a log wants it.
    match event.level() {
        Level::Warn => tracing::warn!(target: "farhop", "{}", line(event)),
        Level::Info => tracing::info!(target: "farhop", "{}", line(event)),
        Level::Debug => tracing::debug!(target: "farhop", "{}", line(event)),
    }
}

/// `carrier_up peer=home address=192.0.2.1:4433 round_trip_ms=650`
fn line(event: &Event) -> String {
    let mut line = event.name().to_owned();
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(event) else { return line };
    for (name, value) in fields.into_iter().filter(|(name, value)| name != "event" && !value.is_null()) {
        let text = match &value {
            // Quoted where a reader could not see its end, and never with a line break of a peer's making.
            serde_json::Value::String(text) if is_plain(text) => text.clone(),
            other => other.to_string(),
        };
        line.push_str(&format!(" {name}={text}"));
    }
    line
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{AnsweredFrom, Crossing, PromiseEnd};
    use crate::{ExchangeId, Word};

    fn crossed(why: Crossing) -> Event {
        Event::RequestCrossed { exchange: ExchangeId(7), page: None, why, field: None }
    }

    fn ended(end: PromiseEnd, wasted_bytes: u64) -> Event {
        Event::PromiseEnded { promise: 1, url: "http://site.test/a".into(), end, bytes: 100, wasted_bytes }
    }

    #[test]
    fn counters_add_up_what_events_tell() {
        let bus = Bus::new();
        bus.emit(crossed(Crossing::Undiscovered));
        bus.emit(crossed(Crossing::Stale));
        bus.emit(crossed(Crossing::Stale));
        bus.emit(ended(PromiseEnd::Used, 0));
        bus.emit(ended(PromiseEnd::Lapsed, 100));
        let counters = bus.counters();
        assert_eq!(counters.requests_crossed(), 3);
        assert_eq!(counters.crossed(Crossing::Stale), 2);
        assert_eq!((counters.used(), counters.wasted_bytes()), (1, 100));
        let json = counters.snapshot();
        assert_eq!(json["requests_crossed"], 3);
        assert_eq!(json["crossed"]["undiscovered"], 1);
        assert_eq!(json["wasted_bytes"], 100);
        assert_eq!(json["promise_ends"]["lapsed"], 1);
    }

    #[test]
    fn the_snapshot_has_every_declared_counter_and_every_word() {
        let json = Bus::new().counters().snapshot();
        for (name, doc) in Counters::DECLARED {
            assert!(!json[name].is_null() && !doc.is_empty(), "{name}");
        }
        for word in AnsweredFrom::ALL {
            assert_eq!(json["answered"][word.as_str()], 0);
        }
    }

    #[tokio::test]
    async fn subscribers_hear_every_event_in_order_and_read_it_back_from_json() {
        let bus = Bus::new();
        bus.emit(crossed(Crossing::Range));
        let mut subscription = bus.subscribe();
        bus.emit(crossed(Crossing::Stale));
        bus.emit(ended(PromiseEnd::Lost, 5));
        let first = subscription.next().await.unwrap().unwrap();
        assert_eq!(first.event, crossed(Crossing::Stale), "what came before the subscription is not told");
        let second = subscription.next().await.unwrap().unwrap();
        assert_eq!(second.seq, first.seq + 1);
        let json = serde_json::to_string(&*second).unwrap();
        assert!(json.contains(r#""event":"promise_ended""#), "{json}");
        assert_eq!(serde_json::from_str::<Stamped>(&json).unwrap(), *second);
    }

    #[tokio::test]
    async fn a_bus_to_which_nobody_listens_any_more_keeps_no_room_for_them() {
        let bus = Bus::new();
        drop((bus.subscribe(), bus.subscribe()));
        bus.emit(crossed(Crossing::Range));
        assert!(bus.subscribers().is_none());
        let mut subscription = bus.subscribe();
        bus.emit(crossed(Crossing::Stale));
        assert_eq!(subscription.next().await.unwrap().unwrap().event, crossed(Crossing::Stale));
        drop(bus);
        assert_eq!(subscription.next().await, None);
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_told_how_much_it_missed() {
        let bus = Bus::new();
        let mut subscription = bus.subscribe();
        for _ in 0..BACKLOG + 10 {
            bus.emit(crossed(Crossing::Stale));
        }
        assert_eq!(subscription.next().await, Some(Err(10)));
        assert!(matches!(subscription.next().await, Some(Ok(_))));
        let rest = std::iter::from_fn(|| subscription.next_now()).map(Result::unwrap).count();
        assert_eq!(rest, BACKLOG - 1);
    }

    #[test]
    fn a_log_line_cannot_be_forged_by_what_a_peer_sends() {
        let event = Event::Aborted { exchange: ExchangeId(1), why: "gone\nanswered status=200".into() };
        assert_eq!(line(&event), r#"aborted exchange=0000000000000001 why="gone\nanswered status=200""#);
    }

    #[test]
    fn exchange_ids_keep_all_their_bits_in_json() {
        let json = serde_json::to_string(&ExchangeId(u64::MAX)).unwrap();
        assert_eq!(json, "\"ffffffffffffffff\"");
        assert_eq!(serde_json::from_str::<ExchangeId>(&json).unwrap(), ExchangeId(u64::MAX));
    }

    #[test]
    fn urls_in_events_obey_the_privacy_mode() {
        let bus = Bus::new();
        assert_eq!(bus.url("http://site.test/a"), "http://site.test/a");
        bus.set_host_only(true);
        assert_eq!(bus.url("http://site.test/a"), "http://site.test/");
    }
}
