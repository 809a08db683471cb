//! HTTP/2 windows towards browsers and origins that keep the hop busy. Timers beyond the hop are `timers`'.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

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
}
