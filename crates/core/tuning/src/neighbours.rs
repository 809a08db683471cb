//! What follows from the paths beyond the hop, to browsers and to origins: HTTP/2 windows that keep the hop busy, and how long
//! a connection to an origin is waited for. Pure: round trips come in ([`Trips::take`]).

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::decision::{Applies, Decision, Value, ms};
use crate::{Source, time_in_words};

/// A round trip beyond the hop where none is measured: to a browser over a bad wireless network, to an origin on another
/// continent.
pub(crate) const BEYOND: Duration = Duration::from_millis(100);
/// What a browser may send ahead on one stream at the least, and what an origin may at the least and at the most.
const BROWSER: Bytes = Bytes(256 << 10);
const ORIGIN: (Bytes, Bytes) = (Bytes(1 << 20), Bytes(16 << 20));
/// Streams of a connection that may each fill their window: uploads of a browser are few, answers of an origin are many, …
const BROWSER_STREAMS: u64 = 4;
const ORIGIN_STREAMS: u64 = 32;
/// … up to so many bytes, of which one upload may have all: it fills 1 Gbit/s over one second.
const MOST_ROOM: Bytes = Bytes(128 << 20);
/// RFC 8305 §5: how long an address is tried before the next one is tried beside it, where nothing is measured, and its
/// recommended bounds where that follows from what is.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
const ATTEMPT_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long a name, a connection and a TLS handshake are each waited for at the least: a SYN that was lost is sent again after
/// one second, two and four more.
const CONNECT: Duration = Duration::from_secs(10);

/// What a peer may send ahead of its readers over HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// On one stream.
    pub stream: Bytes,
    /// On a whole connection.
    pub connection: Bytes,
}

impl Room {
    /// For a browser's uploads, which the return link carries on at `rate`: as much as that takes in a round trip, of the hop or
    /// the browser's, as far as memory allows.
    pub fn for_browser(rate: BitRate, hop: Duration) -> Room {
        let stream = rate.bytes_in(hop.max(BEYOND)).clamp(BROWSER, MOST_ROOM);
        Room { stream, connection: Bytes(BROWSER_STREAMS * stream.0).min(MOST_ROOM) }
    }

    /// For an origin's answers, which the forward link carries on at `rate`: twice what that takes in a round trip of the origin's,
    /// so that a packet lost there does not stall it.
    pub fn for_origin(rate: BitRate, round_trip: Option<Duration>) -> Room {
        let filled = rate.bytes_in(round_trip.unwrap_or(BEYOND));
        let stream = Bytes(filled.0.saturating_mul(2)).clamp(ORIGIN.0, ORIGIN.1);
        Room { stream, connection: Bytes(ORIGIN_STREAMS * stream.0).min(MOST_ROOM) }
    }

    /// Streams that may each fill their window while none holds another up.
    pub fn streams(&self) -> usize {
        usize::try_from(self.connection.0 / self.stream.0.max(1)).unwrap_or(usize::MAX).max(1)
    }
}

/// Round trips to origins, smoothed as RFC 6298 §2 has it for those of one connection.
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

    /// How long an address of an origin is tried before the next one is tried beside it.
    pub fn attempt_delay(&self) -> Duration {
        self.long().map_or(ATTEMPT_DELAY, |long| long.clamp(ATTEMPT_DELAYS.0, ATTEMPT_DELAYS.1))
    }

    /// How long a name, a connection and a TLS handshake are each waited for.
    pub fn connect_timeout(&self) -> Duration {
        self.long().map_or(CONNECT, |long| CONNECT.max(6 * long))
    }

    /// What is decided by them. `set` is what settings say of the last.
    pub fn decisions(&self, set: Option<Duration>) -> Vec<Decision> {
        let source = if self.0.is_some() { Source::Measured } else { Source::Assumed };
        let long = match self.long() {
            Some(long) => format!("{} (measured, mean and four times the deviation)", time_in_words(long)),
            None => "nothing measured so far".into(),
        };
        let row = |parameter: &str, time: Duration, from: Source, because: String| {
            let value = Value::Ms(ms(time));
            Decision {
                parameter: parameter.into(),
                value,
                in_use: value,
                from,
                applies: Applies::Now,
                because,
            }
        };
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
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A table that a reviewer can read: an upload's window and that of its connection, in KiB, over every path.
    #[test]
    fn one_upload_of_a_browser_fills_the_return_link_as_far_as_memory_allows() {
        let rates = [64, 2_000, 50_000, 206_000, 1_000_000].map(BitRate::kbit);
        let row = |hop| {
            rates.map(|rate| {
                let room = Room::for_browser(rate, ms(hop));
                assert!(room.stream >= rate.bytes_in(ms(hop)).min(MOST_ROOM), "{rate} × {hop} ms: {room:?}");
                assert!(room.stream <= room.connection && room.connection <= MOST_ROOM, "{room:?}");
                (room.stream.0 >> 10, room.connection.0 >> 10)
            })
        };
        const MOST: u64 = 128 << 10;
        //                      64 kbit/s    2 Mbit/s     50 Mbit/s       206 Mbit/s       1 Gbit/s
        assert_eq!(row(5), [(256, 1024), (256, 1024), (610, 2441), (2514, 10_058), (12_207, 48_828)]);
        assert_eq!(row(100), row(5));
        assert_eq!(row(650), [(256, 1024), (256, 1024), (3967, 15_869), (16_345, 65_380), (79_345, MOST)]);
        assert_eq!(row(1000), [(256, 1024), (256, 1024), (6103, 24_414), (25_146, 100_585), (122_070, MOST)]);
        assert_eq!(row(2600), [(256, 1024), (634, 2539), (15_869, 63_476), (65_380, MOST), (MOST, MOST)]);
    }

    #[test]
    fn an_origin_that_is_far_away_gets_more_room_and_a_near_one_no_more_than_it_needs() {
        let room = |rate, trip| Room::for_origin(BitRate::mbit(rate), trip).stream;
        assert_eq!(room(50, Some(ms(5))), Bytes(1 << 20));
        assert_eq!(room(50, None), room(50, Some(ms(100))));
        assert_eq!(room(50, Some(ms(300))), Bytes(3_750_000));
        assert_eq!(room(1000, Some(ms(300))), Bytes(16 << 20));
        assert_eq!(Room::for_origin(BitRate::mbit(1000), Some(ms(300))).streams(), 8);
        assert_eq!(Room::for_origin(BitRate::mbit(50), None).streams(), 32);
    }

    #[test]
    fn timers_towards_origins_follow_their_round_trips_within_bounds() {
        let mut trips = Trips::default();
        assert_eq!((trips.attempt_delay(), trips.connect_timeout()), (ms(250), ms(10_000)));
        (0..100).for_each(|_| trips.take(ms(10)));
        assert_eq!((trips.attempt_delay(), trips.connect_timeout()), (ms(100), ms(10_000)));
        (0..100).for_each(|_| trips.take(ms(600)));
        assert!(trips.attempt_delay().abs_diff(ms(600)) < ms(2), "{:?}", trips.attempt_delay());
        (0..100).for_each(|_| trips.take(ms(2600)));
        assert_eq!(trips.attempt_delay(), ms(2000));
        assert!(trips.connect_timeout().abs_diff(ms(15_600)) < ms(10), "{:?}", trips.connect_timeout());
    }

    #[test]
    fn paths_of_many_lengths_are_given_time_for_the_longer_ones() {
        let mut trips = Trips::default();
        (0..100).for_each(|round| trips.take(ms(if round % 2 == 0 { 20 } else { 220 })));
        assert!(trips.attempt_delay() > ms(220), "{:?}", trips.attempt_delay());
    }
}
