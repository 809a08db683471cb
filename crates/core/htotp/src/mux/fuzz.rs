//! For fuzzing: a peer that says anything on two lanes to an end that does a little of everything. Nothing may
//! panic, and nothing may be held beyond the windows.

use bytes::{Bytes, BytesMut};

use super::{Direction, Event, Id, Mux, Role, Windows};

/// Steps that one input may take: longer ones find nothing more.
const MOST_STEPS: usize = 2_000;

/// The first byte chooses the role. Then each step is a byte: its lowest bit chooses the lane, the next two what
/// happens, the others the stream. Input is a length byte and as many bytes.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let [setup, steps @ ..] = data else { return };
    let role = if setup & 1 == 0 { Role::Ground } else { Role::Remote };
    let mut mux = Mux::new(role, Windows { stream: 1 << 10, total: 4 << 10, both: 4, one: 4 });
    mux.add_lane();
    let mut known: Vec<Id> = Vec::new();
    let mut input = steps;
    for _ in 0..MOST_STEPS {
        let [step, rest @ ..] = input else { break };
        input = rest;
        let (lane, choice) = (usize::from(step & 1), usize::from(step >> 3));
        let id = known.get(choice % known.len().max(1)).copied();
        match (step >> 1 & 3, id) {
            (0, _) => {
                let [length, after @ ..] = input else { break };
                let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
                input = after;
                if mux.handle_input(lane, bytes).is_err() {
                    break;
                }
            }
            (1, _) => {
                let direction = if choice & 1 == 0 { Direction::Both } else { Direction::One };
                known.push(mux.open(direction));
            }
            (2, Some(id)) => mux.write(id, vec![Bytes::from(vec![7; choice * 100])], choice & 1 == 0, 0),
            (3, Some(id)) if choice & 1 == 0 => mux.reset(id, 16),
            (3, Some(id)) => mux.stop(id, 16),
            _ => {}
        }
        settle(&mut mux, &mut known, choice & 2 == 0);
        check(&mux);
    }
}

fn settle(mux: &mut Mux, known: &mut Vec<Id>, reads: bool) {
    while let Some(event) = mux.poll_event() {
        match event {
            Event::Opened(id) => known.push(id),
            Event::Readable(id) if reads => while mux.read(id).is_some() {},
            Event::Stopped(id, code) => mux.reset(id, code),
            Event::Gone(id) => known.retain(|other| *other != id),
            _ => {}
        }
    }
    for lane in 0..mux.lanes() {
        mux.poll_output(lane, &mut BytesMut::new());
    }
}

fn check(mux: &Mux) {
    let incoming = || mux.streams.values().filter_map(|stream| stream.incoming.as_ref());
    let held: u64 = incoming().map(super::Incoming::held).sum();
    assert_eq!(held, mux.received - mux.read, "what waits unread is miscounted");
    assert!(held <= mux.windows.total, "{held} bytes wait unread");
    assert!(incoming().all(|incoming| incoming.held() <= mux.windows.stream));
    let theirs = mux.streams.keys().filter(|id| id.opener() != mux.role).count() as u64;
    assert!(theirs <= mux.windows.both + mux.windows.one, "{theirs} streams are open");
    for (number, lane) in mux.lanes.iter().enumerate() {
        let streams = mux.streams.values().filter(|stream| stream.lane == number).count();
        assert_eq!(streams, lane.streams, "the streams of a lane are miscounted");
        assert!(lane.ready.iter().all(|(.., id)| mux.streams.contains_key(id)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_input_is_too_much(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            super::fuzz(&data);
        }
    }
}
