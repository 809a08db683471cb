//! Timers beyond the hop, towards browsers and towards origins: each follows the round trips that are measured there. Pure:
//! those come in ([`Trips::take`]). What none of them waits for, as people do and servers' computing, settings say.

use std::time::Duration;

use crate::decision::{Applies, Decision, Value, ms};
use crate::{Source, time_in_words};

/// RFC 8305 §5: how long an address is tried before the next one is tried beside it, where nothing is measured, and its
/// recommended bounds where that follows from what is.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
const ATTEMPT_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long a name, a connection and a TLS handshake are each waited for at the least: a SYN that was lost is sent again after
/// one second, two and four more.
const CONNECT: Duration = Duration::from_secs(10);
/// How many long round trips a message and its answer are given: two that are lost are sent again after one and three.
const PATIENCE: u32 = 6;
/// How long after its last word an HTTP/2 connection to an origin is taken to be there; the second where nothing is measured.
const BELIEVED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How many long round trips its answer to a PING is waited for: TCP sends again after one, and twice as long each time (RFC 6298
/// §5.5), six times in so many. Browsers wait 10 s (Chromium).
const RETRIES: u32 = 64;
const ANSWERS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// How long a client may take for a handshake or a head at the least, …
const HEAD: Duration = Duration::from_secs(30);
/// … and one that is being left is listened to, at the least and at the most.
const LINGER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(15));

/// Round trips of many connections, smoothed as RFC 6298 §2 has it for those of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trips(Option<(Duration, Duration)>);

impl Trips {
    /// One was measured.
    pub fn take(&mut self, trip: Duration) {
        self.0 = Some(match self.0 {
            None => (trip, trip / 2),
            Some((smoothed, variation)) => {
                ((7 * smoothed + trip) / 8, (3 * variation + smoothed.abs_diff(trip)) / 4)
            }
        });
    }

    /// The smoothed round trip, and how much single ones differ from it.
    pub fn measured(&self) -> Option<(Duration, Duration)> {
        self.0
    }

    /// What hardly any takes longer than.
    fn long(&self) -> Option<Duration> {
        self.0.map(|(smoothed, variation)| smoothed + 4 * variation)
    }

    fn source(&self) -> Source {
        if self.0.is_some() { Source::Measured } else { Source::Assumed }
    }

    fn long_in_words(&self) -> String {
        match self.long() {
            Some(long) => format!("{} (measured, mean and four times the deviation)", time_in_words(long)),
            None => "nothing measured so far".into(),
        }
    }

    /// How long an address of an origin is tried before the next one is tried beside it.
    pub fn attempt_delay(&self) -> Duration {
        self.long().map_or(ATTEMPT_DELAY, |long| long.clamp(ATTEMPT_DELAYS.0, ATTEMPT_DELAYS.1))
    }

    /// How long a name, a connection and a TLS handshake are each waited for.
    pub fn connect_timeout(&self) -> Duration {
        self.patience(CONNECT)
    }

    /// How long a message and its answer are waited for, and so long at the least.
    pub fn patience(&self, least: Duration) -> Duration {
        self.long().map_or(least, |long| least.max(PATIENCE * long))
    }

    /// How long an HTTP/2 connection to an origin may have been silent before a request asks whether it is there still.
    pub fn believed(&self) -> Duration {
        self.long().map_or(BELIEVED.1, |long| (PATIENCE * long).clamp(BELIEVED.0, BELIEVED.1))
    }

    /// How long its answer to that is waited for before it counts as gone.
    pub fn answer_timeout(&self) -> Duration {
        self.long().map_or(ANSWERS.1, |long| (RETRIES * long).clamp(ANSWERS.0, ANSWERS.1))
    }

    /// How long a client may take for a TLS handshake, an HTTP/2 preface or a request head that it has begun.
    pub fn head_timeout(&self) -> Duration {
        self.patience(HEAD)
    }

    /// How long a client whose connection is being closed is still listened to, so that its last answer is not lost to a reset
    /// (RFC 9112 §9.6), and a request that it has sent meanwhile gets its refusal (RFC 9113 §6.8).
    pub fn linger(&self) -> Duration {
        self.patience(LINGER.0).min(LINGER.1)
    }

    /// What ground decides by them as those of ways to origins. `set` is what settings say of connecting.
    pub fn towards_origins(&self, set: Option<Duration>) -> Vec<Decision> {
        let (source, long) = (self.source(), self.long_in_words());
        let connect = match set {
            Some(set) => row("origin connect timeout", set, Source::Set, "what [origin] connect says".into()),
            None => row(
                "origin connect timeout",
                self.connect_timeout(),
                source,
                format!("six times a long round trip to origins, 10 s at the least: {long}"),
            ),
        };
        vec![
            row(
                "origin next address after",
                self.attempt_delay(),
                source,
                format!("a long round trip to origins, between 100 ms and 2 s (RFC 8305 §5): {long}"),
            ),
            connect,
            row(
                "origin asked after",
                self.believed(),
                source,
                format!(
                    "HTTP/2: a request on a connection that was silent for six times a long round trip to origins, between 1 and 10 s, asks whether it is there (PING): {long}"
                ),
            ),
            row(
                "origin gone after",
                self.answer_timeout(),
                source,
                format!(
                    "what TCP takes to send that again six times, 64 long round trips to origins, between 10 and 60 s: {long}"
                ),
            ),
        ]
    }

    /// What the remote decides by them as those of ways to its clients. `set` is what settings say of a head.
    pub fn towards_browsers(&self, set: Option<Duration>) -> Vec<Decision> {
        let (source, long) = (self.source(), self.long_in_words());
        let head = match set {
            Some(set) => row("browser head timeout", set, Source::Set, "what [timeouts] head says".into()),
            None => row(
                "browser head timeout",
                self.head_timeout(),
                source,
                format!("six times a long round trip to clients, 30 s at the least: {long}"),
            ),
        };
        vec![
            head,
            row(
                "browser heard out for",
                self.linger(),
                source,
                format!("six times a long round trip to clients, between 2 and 15 s: {long}"),
            ),
        ]
    }
}

/// All of them are in force at once.
fn row(parameter: &str, time: Duration, from: Source, because: String) -> Decision {
    let value = Value::Ms(ms(time));
    Decision { parameter: parameter.into(), value, in_use: value, from, applies: Applies::Now, because }
}

/// Whether an HTTP/2 connection to an origin is there still. A connection that a middlebox has forgotten takes requests without a
/// word, for minutes: so one that was silent for a while is asked (PING, RFC 9113 §6.7) along with the next request, as browsers
/// do. An origin that computes for long is not asked, since nothing else leaves meanwhile.
///
/// ```text
///         a request after a silence       no word in time
/// there ────────────────────────────▶ asked ─────────────▶ gone
///   ▲ ◀──────────── any word ───────────┘
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Liveness {
    heard: Duration,
    asked: Option<Duration>,
}

impl Liveness {
    /// It came to be at `now`, on any clock.
    pub fn new(now: Duration) -> Liveness {
        Liveness { heard: now, asked: None }
    }

    /// Something came.
    pub fn handle_word(&mut self, now: Duration) {
        *self = Liveness::new(now);
    }

    /// A request leaves; true where a PING is to go along.
    pub fn handle_request(&mut self, now: Duration, trips: &Trips) -> bool {
        let asks = self.asked.is_none() && now.saturating_sub(self.heard) >= trips.believed();
        if asks {
            self.asked = Some(now);
        }
        asks
    }

    /// When it counts as gone unless something comes; none while it was not asked.
    pub fn next_wakeup(&self, trips: &Trips) -> Option<Duration> {
        self.asked.map(|asked| asked + trips.answer_timeout())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// All connections take this long.
    fn trips(trip: u64) -> Trips {
        let mut trips = Trips::default();
        (0..100).for_each(|_| trips.take(ms(trip)));
        trips
    }

    /// A table that a reviewer can read: every timer in milliseconds, over round trips from a neighbour's to the moon's. The
    /// smoothing leaves less than a millisecond in each.
    #[test]
    fn timers_beyond_the_hop_follow_their_round_trips_within_bounds() {
        let timers = |trips: Trips| {
            [
                trips.attempt_delay(),
                trips.connect_timeout(),
                trips.believed(),
                trips.answer_timeout(),
                trips.head_timeout(),
                trips.linger(),
            ]
            .map(|time| time.as_millis())
        };
        //                                       next    connect  asked    gone     head     linger
        assert_eq!(timers(Trips::default()), [250, 10_000, 10_000, 60_000, 30_000, 2_000]);
        assert_eq!(timers(trips(1)), [100, 10_000, 1_000, 10_000, 30_000, 2_000]);
        assert_eq!(timers(trips(20)), [100, 10_000, 1_000, 10_000, 30_000, 2_000]);
        assert_eq!(timers(trips(200)), [200, 10_000, 1_200, 12_800, 30_000, 2_000]);
        assert_eq!(timers(trips(600)), [600, 10_000, 3_600, 38_400, 30_000, 3_600]);
        assert_eq!(timers(trips(2600)), [2_000, 15_600, 10_000, 60_000, 30_000, 15_000]);
        assert_eq!(timers(trips(6000)), [2_000, 36_000, 10_000, 60_000, 36_000, 15_000]);
    }

    #[test]
    fn a_way_that_becomes_longer_is_followed() {
        let mut way = trips(10);
        (0..100).for_each(|_| way.take(ms(600)));
        assert!(way.attempt_delay().abs_diff(ms(600)) < ms(2), "{:?}", way.attempt_delay());
        assert!(way.linger().abs_diff(ms(3600)) < ms(12), "{:?}", way.linger());
    }

    #[test]
    fn paths_of_many_lengths_are_given_time_for_the_longer_ones() {
        let mut trips = Trips::default();
        (0..100).for_each(|round| trips.take(ms(if round % 2 == 0 { 20 } else { 220 })));
        assert!(trips.attempt_delay() > ms(220), "{:?}", trips.attempt_delay());
    }

    #[test]
    fn what_settings_say_is_shown_in_place_of_what_is_measured() {
        let shown = |rows: Vec<Decision>, name: &str| {
            let row = rows.into_iter().find(|row| row.parameter == name).unwrap();
            (row.value, row.from)
        };
        let (way, set) = (trips(600), Some(ms(5000)));
        let head = |set| shown(way.towards_browsers(set), "browser head timeout");
        assert_eq!(
            [head(set), head(None)],
            [(Value::Ms(5e3), Source::Set), (Value::Ms(3e4), Source::Measured)]
        );
        let connect = |set| shown(way.towards_origins(set), "origin connect timeout");
        assert_eq!(connect(set), (Value::Ms(5e3), Source::Set));
        assert_eq!(connect(None).1, Source::Measured);
        assert_eq!(
            shown(Trips::default().towards_browsers(None), "browser heard out for").1,
            Source::Assumed
        );
    }

    #[test]
    fn a_connection_is_asked_by_the_first_request_after_a_silence_and_gone_if_it_says_nothing() {
        let way = trips(200);
        let mut connection = Liveness::new(ms(0));
        assert!(!connection.handle_request(ms(1_100), &way), "it has spoken a moment ago");
        assert_eq!(connection.next_wakeup(&way), None);
        assert!(connection.handle_request(ms(1_300), &way));
        assert!(!connection.handle_request(ms(1_400), &way), "once is enough");
        let due = connection.next_wakeup(&way).unwrap();
        assert!(due.abs_diff(ms(1_300 + 12_800)) < ms(100), "from the first one on: {due:?}");
    }

    #[test]
    fn any_word_is_an_answer() {
        let way = trips(200);
        let mut connection = Liveness::new(ms(0));
        assert!(connection.handle_request(ms(5_000), &way));
        connection.handle_word(ms(6_000));
        assert_eq!(connection.next_wakeup(&way), None);
        assert!(!connection.handle_request(ms(6_500), &way));
        assert!(connection.handle_request(ms(9_000), &way), "it may be gone by now");
    }
}
