//! Two ends over lanes that deliver what they please when they please, each in order: what is written on a
//! stream is read from it, streams wait for windows and for nothing else, and what breaks the rules is named.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use farhop_htotp::mux::{Event, Frame, Id, Mux, MuxError, Read, Spread, Windows};
use farhop_htotp::session::{Direction, Role, URGENT};
use proptest::prelude::*;

const WINDOWS: Windows = Windows { stream: 256 << 10, total: 4 << 20, both: 1024, one: 1024 };

/// What an end's app has seen of a stream.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Seen {
    bytes: Vec<u8>,
    ended: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
    gone: bool,
}

struct End {
    mux: Mux,
    seen: BTreeMap<Id, Seen>,
    opened: Vec<Id>,
    closed: Option<(u64, String)>,
    /// Nothing is read while it is set.
    lazy: bool,
    unread: Vec<Id>,
}

impl End {
    fn new(role: Role, lanes: usize, windows: Windows, spread: Spread) -> End {
        let mut mux = Mux::new(role, windows).spreading(spread);
        for _ in 1..lanes {
            mux.add_lane();
        }
        End { mux, seen: BTreeMap::new(), opened: Vec::new(), closed: None, lazy: false, unread: Vec::new() }
    }

    fn settle(&mut self) {
        while let Some(event) = self.mux.poll_event() {
            match event {
                Event::Opened(id) => self.opened.push(id),
                Event::Readable(id) if self.lazy => self.unread.push(id),
                Event::Readable(id) => self.read(id),
                Event::Stopped(id, code) => {
                    self.seen.entry(id).or_default().stopped = Some(code);
                    self.mux.reset(id, code);
                }
                Event::Written(_) => {}
                Event::Gone(id) => self.seen.entry(id).or_default().gone = true,
                Event::Closed { code, reason } => self.closed = Some((code, reason)),
            }
        }
    }

    fn read(&mut self, id: Id) {
        while let Some(read) = self.mux.read(id) {
            let seen = self.seen.entry(id).or_default();
            match read {
                Read::Data(bytes) => seen.bytes.extend_from_slice(&bytes),
                Read::End => seen.ended = true,
                Read::Reset(code) => seen.reset = Some(code),
            }
        }
    }

    fn wake(&mut self) {
        self.lazy = false;
        for id in std::mem::take(&mut self.unread) {
            self.read(id);
        }
        self.settle();
    }
}

/// Both ends and what is between them, per way and lane.
struct Pair {
    ends: [End; 2],
    wires: [Vec<VecDeque<u8>>; 2],
}

impl Pair {
    fn new(lanes: usize) -> Pair {
        Pair::spreading(lanes, Spread::RoundRobin)
    }

    fn spreading(lanes: usize, spread: Spread) -> Pair {
        let end = |role| End::new(role, lanes, WINDOWS, spread);
        Pair {
            ends: [end(Role::Remote), end(Role::Ground)],
            wires: [(); 2].map(|()| vec![VecDeque::new(); lanes]),
        }
    }

    fn remote(&mut self) -> &mut End {
        &mut self.ends[0]
    }

    fn ground(&mut self) -> &mut End {
        &mut self.ends[1]
    }

    /// An end's lane takes one piece.
    fn send(&mut self, end: usize, lane: usize) -> usize {
        let mut out = BytesMut::new();
        self.ends[end].mux.poll_output(lane, &mut out);
        self.ends[end].settle();
        self.wires[end][lane].extend(&out);
        out.len()
    }

    /// The other end gets at most so many bytes of a lane.
    fn deliver(&mut self, from: usize, lane: usize, most: usize) {
        let wire = &mut self.wires[from][lane];
        let bytes: Vec<u8> = wire.drain(..most.min(wire.len())).collect();
        self.ends[1 - from].mux.handle_input(lane, &bytes).unwrap();
        self.ends[1 - from].settle();
    }

    /// Everything that can cross does.
    fn run(&mut self) {
        loop {
            let mut moved = 0;
            for end in 0..2 {
                for lane in 0..self.wires[end].len() {
                    moved += self.send(end, lane) + self.wires[end][lane].len();
                    self.deliver(end, lane, usize::MAX);
                }
            }
            if moved == 0 {
                return;
            }
        }
    }
}

fn body(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 251 + seed) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_whatever_the_lanes_do(
        lanes in 1usize..5,
        by_priority in any::<bool>(),
        streams in proptest::collection::vec((0usize..2, 0usize..700_000, any::<bool>()), 1..12),
        turns in proptest::collection::vec((0usize..2, 0usize..4, 1usize..40_000, any::<bool>()), 0..300),
    ) {
        let mut pair = Pair::spreading(lanes, if by_priority { Spread::Priority } else { Spread::RoundRobin });
        let mut written = Vec::new();
        let mut turns = turns.into_iter();
        for (number, (end, length, both)) in streams.iter().enumerate() {
            // Half of them open when others have come far already.
            for (end, lane, most, widens) in turns.by_ref().take(if number % 2 == 0 { 0 } else { 30 }) {
                if widens {
                    pair.ends[end].mux.widen(40 * most as u64, 400 * most as u64);
                }
                pair.send(end, lane % lanes);
                pair.deliver(end, lane % lanes, most);
            }
            let direction = if *both { Direction::Both } else { Direction::One };
            let id = pair.ends[*end].mux.open(direction);
            let bytes = body(*length, number);
            pair.ends[*end].mux.write(id, vec![Bytes::from(bytes.clone())], true, URGENT + 1 - number as i32 % 3);
            written.push((*end, id, bytes));
        }
        for (end, lane, most, _) in turns {
            pair.send(end, lane % lanes);
            pair.deliver(end, lane % lanes, most);
        }
        pair.run();
        for (end, id, bytes) in written {
            let seen = &pair.ends[1 - end].seen[&id];
            prop_assert!(seen.bytes == bytes && seen.ended, "{id:?}: {} of {} bytes", seen.bytes.len(), bytes.len());
        }
    }
}

#[test]
fn a_stream_that_nobody_reads_stops_at_its_window_and_no_other() {
    let mut pair = Pair::new(2);
    pair.ground().lazy = true;
    let id = pair.remote().mux.open(Direction::One);
    let bytes = body(1 << 20, 0);
    pair.remote().mux.write(id, vec![bytes.clone().into()], true, 0);
    pair.run();
    assert_eq!(pair.remote().mux.waiting().count(), 0, "it waits for its reader, not for its lane");

    pair.ground().lazy = false;
    let other = pair.remote().mux.open(Direction::One);
    pair.remote().mux.write(other, vec![bytes.clone().into()], true, 0);
    pair.run();
    assert_eq!(pair.ground().seen[&other].bytes.len(), bytes.len());
    assert!(!pair.ground().seen.contains_key(&id));

    pair.ground().wake();
    pair.run();
    let seen = &pair.ground().seen[&id];
    assert!(seen.bytes == bytes && seen.ended && seen.gone);
}

/// Bytes that reach a reader who is asleep.
fn unread(pair: &mut Pair, id: Id) -> usize {
    pair.run();
    pair.ground().wake();
    pair.ground().lazy = true;
    pair.ground().seen[&id].bytes.len()
}

#[test]
fn windows_grow_under_way_for_streams_that_are_open_and_for_those_to_come() {
    let mut pair = Pair::new(2);
    pair.ground().lazy = true;
    let bytes = Bytes::from(body(3 << 20, 0));
    let open = pair.remote().mux.open(Direction::One);
    pair.remote().mux.write(open, vec![bytes.clone()], true, 0);
    pair.run();
    pair.ground().mux.widen(1 << 20, 64 << 20);
    assert_eq!(unread(&mut pair, open), 1 << 20);

    let fresh = pair.remote().mux.open(Direction::One);
    pair.remote().mux.write(fresh, vec![bytes.clone()], true, 0);
    assert_eq!(unread(&mut pair, fresh), 1 << 20);

    pair.ground().mux.widen(1, 1);
    assert_eq!(pair.ground().mux.windows(), Windows { stream: 1 << 20, total: 64 << 20, ..WINDOWS });
    pair.ground().lazy = false;
    pair.run();
    assert!([open, fresh].iter().all(|id| pair.ground().seen[id].bytes == bytes));
}

#[test]
fn streams_take_turns_on_the_lanes_and_the_most_urgent_goes_first() {
    let mut pair = Pair::new(3);
    for priority in 0..6 {
        let id = pair.remote().mux.open(Direction::One);
        pair.remote().mux.write(id, vec![body(10, 0).into()], true, priority);
    }
    let sent: Vec<usize> = (0..3).map(|lane| pair.send(0, lane)).collect();
    assert!(sent.iter().all(|bytes| *bytes > 20), "{sent:?}");
    (0..3).for_each(|lane| pair.deliver(0, lane, usize::MAX));
    let arrived: Vec<u64> = pair.ground().opened.iter().map(|id| id.0 >> 2).collect();
    assert_eq!(arrived, [3, 0, 4, 1, 5, 2]);
}

/// Whether what is urgent arrives though only the first lane delivers, while downloads fill them all.
fn urgent_passes(spread: Spread) -> bool {
    let mut pair = Pair::spreading(4, spread);
    pair.run();
    let downloads = (0..10).map(|_| (URGENT - 1, 3_000_000));
    let urgent = (0..10).map(|_| (URGENT, 500));
    let mut opened = Vec::new();
    for (priority, length) in downloads.chain(urgent) {
        let id = pair.remote().mux.open(Direction::Both);
        pair.remote().mux.write(id, vec![body(length, 0).into()], true, priority);
        opened.push(id);
    }
    for _ in 0..10 {
        pair.send(0, 0);
        pair.deliver(0, 0, usize::MAX);
    }
    opened[10..].iter().all(|id| pair.ground().seen.get(id).is_some_and(|seen| seen.ended))
}

#[test]
fn by_priority_no_download_holds_up_what_is_urgent_and_in_turn_it_may() {
    assert!(urgent_passes(Spread::Priority));
    assert!(!urgent_passes(Spread::RoundRobin));
}

#[test]
fn by_priority_downloads_share_the_lanes_that_are_left() {
    let mut pair = Pair::spreading(3, Spread::Priority);
    pair.run();
    for _ in 0..4 {
        let id = pair.remote().mux.open(Direction::One);
        pair.remote().mux.write(id, vec![body(10, 0).into()], true, URGENT - 5);
    }
    let sent: Vec<usize> = (0..3).map(|lane| pair.send(0, lane)).collect();
    assert_eq!((sent[0], sent[1]), (0, sent[2]));
    assert!(sent[1] > 20, "{sent:?}");
    // A single lane takes all.
    let mut pair = Pair::spreading(1, Spread::Priority);
    let id = pair.remote().mux.open(Direction::One);
    pair.remote().mux.write(id, vec![body(10, 0).into()], true, URGENT - 5);
    pair.run();
    assert!(pair.ground().seen[&id].ended);
}

#[test]
fn by_priority_a_stream_that_is_stopped_before_it_has_written_is_stopped_where_it_goes() {
    let mut pair = Pair::spreading(2, Spread::Priority);
    pair.run();
    let id = pair.remote().mux.open(Direction::Both);
    pair.remote().mux.stop(id, 0x10);
    pair.remote().mux.write(id, vec![body(10, 0).into()], true, URGENT - 5);
    pair.run();
    assert_eq!(pair.ground().seen[&id].stopped, Some(0x10));
    assert!(pair.ground().seen[&id].ended);
}

#[test]
fn more_streams_than_the_peer_takes_wait_for_others_to_end() {
    let mut pair = Pair::new(2);
    let most = WINDOWS.both as usize;
    let ids: Vec<Id> = (0..most + 10).map(|_| pair.remote().mux.open(Direction::Both)).collect();
    for id in &ids {
        pair.remote().mux.write(*id, vec![Bytes::from_static(b"?")], true, 0);
    }
    pair.run();
    assert_eq!(pair.ground().opened.len(), most);
    let first: Vec<Id> = pair.ground().opened[..most / 2].to_vec();
    for id in first {
        pair.ground().mux.write(id, vec![Bytes::from_static(b"!")], true, 0);
    }
    pair.run();
    assert_eq!(pair.ground().opened.len(), ids.len());
}

#[test]
fn a_reset_is_told_and_frees_what_waits() {
    let mut pair = Pair::new(1);
    pair.ground().lazy = true;
    let id = pair.remote().mux.open(Direction::Both);
    pair.remote().mux.write(id, vec![body(2 << 20, 0).into()], true, 0);
    pair.run();
    pair.remote().mux.reset(id, 0x11);
    pair.run();
    pair.ground().wake();
    assert_eq!(pair.ground().seen[&id].reset, Some(0x11));
    pair.ground().mux.write(id, vec![], true, 0);
    pair.run();
    assert!(pair.ground().seen[&id].gone && pair.remote().seen[&id].gone);
}

#[test]
fn a_stop_reaches_the_sender_even_before_its_stream_was_known() {
    let mut pair = Pair::new(1);
    let id = pair.remote().mux.open(Direction::Both);
    pair.remote().mux.stop(id, 0x10);
    pair.run();
    assert_eq!(pair.ground().seen[&id].stopped, Some(0x10));
    pair.remote().mux.reset(id, 0x10);
    pair.run();
    assert!(pair.ground().seen[&id].gone && pair.remote().seen[&id].gone);
}

#[test]
fn what_comes_for_a_stopped_stream_is_dropped_and_costs_no_window() {
    let mut pair = Pair::new(1);
    for _ in 0..40 {
        let id = pair.remote().mux.open(Direction::One);
        pair.remote().mux.write(id, vec![body(200_000, 0).into()], true, 0);
        pair.send(0, 0);
        pair.deliver(0, 0, usize::MAX);
        pair.ground().mux.stop(id, 0x10);
        pair.run();
        assert!(pair.ground().seen[&id].gone);
    }
}

#[test]
fn the_end_of_a_carrier_says_why() {
    let mut pair = Pair::new(2);
    pair.run();
    pair.ground().mux.close(7, "going down");
    pair.run();
    assert_eq!(pair.remote().closed, Some((7, "going down".into())));
    let id = pair.ground().mux.open(Direction::One);
    pair.ground().mux.write(id, vec![Bytes::from_static(b"late")], true, 0);
    assert_eq!(pair.send(1, 0) + pair.send(1, 1), 0, "nothing follows it");
}

/// What an end says to these frames on its first lane, and then on its second.
fn judged(first: &[Frame], second: &[Frame]) -> Result<(), MuxError> {
    let mut end = End::new(Role::Ground, 2, WINDOWS, Spread::RoundRobin);
    for (lane, frames) in [(0, first), (1, second)] {
        for frame in frames {
            end.mux.handle_input(lane, &frame.encode())?;
        }
    }
    Ok(())
}

#[test]
fn what_breaks_the_rules_is_refused() {
    let begin = Frame::Begin(WINDOWS);
    let data = |id, length| Frame::Data { stream: Id(id), bytes: vec![0; length].into() };
    let last = |id| Frame::Last { stream: Id(id), bytes: Bytes::new() };
    let refused = |kind| Err(MuxError::Misplaced(kind));
    assert_eq!(judged(&[data(0, 1)], &[]), refused(0x05), "before the first word");
    assert_eq!(
        judged(std::slice::from_ref(&begin), std::slice::from_ref(&begin)),
        refused(0x01),
        "on another lane than the first"
    );
    assert_eq!(
        judged(std::slice::from_ref(&begin), &[Frame::Join([0; 32])]),
        refused(0x03),
        "on a lane that has joined"
    );
    assert_eq!(
        judged(&[begin.clone(), data(1, 1)], &[]),
        refused(0x05),
        "on a stream that ground never opened"
    );
    assert_eq!(judged(&[begin.clone(), last(0), data(0, 1)], &[]), refused(0x05), "after the end");
    assert_eq!(judged(&[begin.clone(), data(0, 1)], &[data(0, 1)]), refused(0x05), "on another lane");
    let full: Vec<Frame> = std::iter::once(begin.clone()).chain((0..5).map(|_| data(0, 60_000))).collect();
    assert_eq!(judged(&full, &[]), Err(MuxError::Overrun));
    let many: Vec<Frame> =
        std::iter::once(begin).chain((0..=WINDOWS.both).map(|count| data(count << 2, 1))).collect();
    assert_eq!(judged(&many, &[]), Err(MuxError::TooManyStreams));
}
