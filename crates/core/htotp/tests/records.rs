//! TLS records over TCP that begins slowly, in virtual time: a lane lets as many segments go as its window has, twice as many
//! each round trip, and what has come is read record by record, each once it is whole.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use bytes::BytesMut;
use farhop_htotp::mux::{Event, Id, Mux, Read, Windows};
use farhop_htotp::session::{Direction, Role};
use farhop_units::BitRate;

const WINDOWS: Windows = Windows { stream: 4 << 20, total: 16 << 20, both: 1024, one: 1024 };
/// What a segment carries at an MTU of 1,500, and at one of 1,400 over IPv6, with timestamps (RFC 7323).
const SEGMENTS: [usize; 2] = [1_448, 1_328];
/// What TLS 1.3 puts around a record: its header, the kind of its content and a tag (RFC 8446 §5.2).
const AROUND: usize = 5 + 1 + 16;
/// A record that is as long as may be holds at least this (RFC 8446 §5.1), but for a header that turned out short.
const FULL: usize = (16 << 10) - 13;

/// One lane from ground to the remote.
struct Path {
    ground: Mux,
    remote: Mux,
    segment: usize,
    /// Segments that go in this round trip.
    window: usize,
    /// Bytes that have come, with what is around them.
    came: usize,
    /// The record that is not whole at the remote, and how much of it is still to cross.
    under_way: Option<(BytesMut, usize)>,
}

impl Path {
    fn new(window: usize, segment: usize) -> Path {
        let mut path = Path {
            ground: Mux::new(Role::Ground, WINDOWS),
            remote: Mux::new(Role::Remote, WINDOWS),
            segment,
            window,
            came: 0,
            under_way: None,
        };
        // The ends know each other's windows: the handshake is over.
        let mut begin = BytesMut::new();
        path.remote.poll_output(0, &mut begin);
        path.ground.handle_input(0, &begin).unwrap();
        let mut begin = BytesMut::new();
        path.ground.poll_output(0, &mut begin);
        path.remote.handle_input(0, &begin).unwrap();
        while next(&mut path.ground) > 0 {}
        path
    }

    fn write(&mut self, length: usize, priority: i32) -> Id {
        let id = self.ground.open(Direction::One);
        self.ground.write(id, vec![vec![7; length].into()], true, priority);
        id
    }

    /// What there is goes ahead of all else, in a segment of its own.
    fn send_alone(&mut self) {
        let mut record = BytesMut::new();
        self.ground.poll_output(0, &mut record);
        self.remote.handle_input(0, &record).unwrap();
        assert!(record.len() + AROUND <= self.segment && next(&mut self.ground) == 0);
        self.window -= 1;
    }

    /// One more round trip. Nothing waits to share a segment (`TCP_NODELAY`), so that the last of a record may be short. Gives the
    /// bytes of records that have come so far, and how many of the stream can be read in addition.
    fn round_trip(&mut self, of: Id) -> (usize, usize) {
        let mut left = self.window;
        self.window *= 2;
        while left > 0 {
            if self.under_way.is_none() {
                let mut record = BytesMut::new();
                self.ground.poll_output(0, &mut record);
                if record.is_empty() {
                    break;
                }
                let length = record.len() + AROUND;
                self.under_way = Some((record, length));
            }
            let Some((record, missing)) = &mut self.under_way else { break };
            let segments = left.min(missing.div_ceil(self.segment));
            let bytes = (*missing).min(segments * self.segment);
            (left, *missing, self.came) = (left - segments, *missing - bytes, self.came + bytes);
            if *missing == 0 {
                self.remote.handle_input(0, record).unwrap();
                self.under_way = None;
            }
        }
        (self.came, self.read(of))
    }

    fn read(&mut self, of: Id) -> usize {
        let mut come = 0;
        while let Some(event) = self.remote.poll_event() {
            let Event::Readable(id) = event else { continue };
            while let Some(read) = self.remote.read(id) {
                if let Read::Data(bytes) = read
                    && id == of
                {
                    come += bytes.len();
                }
            }
        }
        come
    }
}

/// Bytes of the next record of a lane.
fn next(mux: &mut Mux) -> usize {
    let mut record = BytesMut::new();
    mux.poll_output(0, &mut record);
    record.len()
}

/// The records in which a body of so many bytes goes.
fn records(mux: &mut Mux, length: usize) -> Vec<usize> {
    let id = mux.open(Direction::One);
    mux.write(id, vec![vec![7; length].into()], true, 0);
    std::iter::from_fn(|| Some(next(mux)).filter(|record| *record > 0)).collect()
}

#[test]
fn a_document_is_read_after_one_round_trip_whatever_waits_behind_it_and_however_small_the_first_window_is() {
    for segment in SEGMENTS {
        for (window, length) in [(3, 2_200), (4, 3_500), (10, 8_000)] {
            let mut path = Path::new(window, segment);
            // What it names was promised a moment before, and is here.
            path.write(500, 1);
            path.send_alone();
            for _ in 0..40 {
                path.write(8 << 10, 0);
            }
            let document = path.write(length, 1);
            let (_, read) = path.round_trip(document);
            assert_eq!(read, length, "{window} segments of {segment} bytes");
        }
    }
}

#[test]
fn of_what_came_of_a_long_document_all_but_a_quarter_or_a_segment_is_read() {
    for segment in SEGMENTS {
        for window in [3, 10] {
            let mut path = Path::new(window, segment);
            path.ground.fit(BitRate::mbit(50));
            let document = path.write(400 << 10, 1);
            let mut read = 0;
            for _ in 0..4 {
                let (came, more) = path.round_trip(document);
                read += more;
                let around = came / 30 + 40;
                assert!(more > 0 && came <= read + around + (read / 4).max(segment), "{read} of {came}");
            }
        }
    }
}

#[test]
fn much_goes_in_full_records_where_the_link_is_fast() {
    let mut path = Path::new(10, 1_448);
    path.ground.fit(BitRate::mbit(50));
    let lengths = records(&mut path.ground, 1 << 20);
    let growing: usize = lengths.iter().take_while(|length| **length < FULL).sum();
    assert!(growing < 80 << 10, "{lengths:?}");
    let full = lengths.iter().filter(|length| **length >= FULL).count();
    assert!(full >= 58, "{lengths:?}");
}

#[test]
fn after_a_pause_records_are_short_again() {
    let mut path = Path::new(10, 1_448);
    path.ground.fit(BitRate::mbit(50));
    assert!(records(&mut path.ground, 1 << 20).iter().any(|length| *length >= FULL));
    // It has had nothing to send, nor when it was asked again: the kernel may begin slowly again.
    assert_eq!(next(&mut path.ground), 0);
    let lengths = records(&mut path.ground, 5_000);
    assert!(lengths.len() > 3 && lengths.iter().all(|length| *length + AROUND <= SEGMENTS[1]), "{lengths:?}");
}

#[test]
fn a_download_that_is_handed_over_piece_by_piece_goes_in_long_records() {
    let mut path = Path::new(10, 1_448);
    path.ground.fit(BitRate::mbit(50));
    let id = path.ground.open(Direction::One);
    let mut lengths = Vec::new();
    for _ in 0..64 {
        path.ground.write(id, vec![vec![7; 16 << 10].into()], false, 0);
        lengths.extend(std::iter::from_fn(|| Some(next(&mut path.ground)).filter(|it| *it > 0)));
    }
    assert!(lengths.len() < 200, "{lengths:?}");
}

#[test]
fn what_many_streams_say_fits_into_the_first_segment_too() {
    let mut path = Path::new(10, 1_448);
    for _ in 0..300 {
        let id = path.ground.open(Direction::Both);
        path.ground.write(id, vec![vec![7; 10].into()], false, 0);
        path.ground.reset(id, 1 << 40);
        path.ground.stop(id, 1 << 40);
    }
    let lengths: Vec<usize> =
        std::iter::from_fn(|| Some(next(&mut path.ground)).filter(|it| *it > 0)).collect();
    assert!(lengths.len() > 3 && lengths.iter().all(|length| *length + AROUND <= SEGMENTS[1]), "{lengths:?}");
}

#[test]
fn records_of_lanes_that_are_busy_together_share_the_links_time() {
    let mut ground = Path::new(10, 1_448).ground;
    (1..8).for_each(|_| _ = ground.add_lane());
    ground.fit(BitRate::mbit(10));
    for _ in 0..8 {
        let id = ground.open(Direction::One);
        ground.write(id, vec![vec![7; 1 << 20].into()], false, 0);
    }
    let mut longest = [0; 8];
    for lane in (0..8).cycle().take(400) {
        let mut record = BytesMut::new();
        ground.poll_output(lane, &mut record);
        longest[lane] = record.len().max(longest[lane]);
    }
    assert!(longest.iter().all(|length| (3_000..4_000).contains(length)), "{longest:?}");
}

#[test]
fn on_a_slow_link_and_on_one_that_is_not_known_records_stay_short() {
    for rate in [None, Some(BitRate::kbit(256)), Some(BitRate::mbit(2))] {
        let mut path = Path::new(10, 1_448);
        rate.into_iter().for_each(|rate| path.ground.fit(rate));
        let lengths = records(&mut path.ground, 1 << 20);
        assert!(lengths.iter().all(|length| *length < 4_000), "{rate:?}: {lengths:?}");
    }
}
