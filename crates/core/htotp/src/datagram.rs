//! Datagrams of flows beside the streams of a carrier (RFC 9221): how they are told from each other, and which goes next.
//! What is late is dropped, and the more urgent class goes first: voice waits for no bulk. Handed the time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::frame::Class;
use crate::varint;

/// The first byte: a question for a sign of life is a zero by itself.
const FLOW: u8 = 1;
/// Bytes that wait at most, of all classes: half a second of 2 Mbit/s.
pub const MOST_WAITING: usize = 128 * 1024;
const CLASSES: usize = 6;

/// How long a datagram of this class may wait for the carrier. Speech that is later than a listener's buffer is worth
/// nothing (G.114: 150 ms are not noticed), and whoever sends the rest has sent it again by then.
pub fn patience(class: Class) -> Duration {
    Duration::from_millis(match class {
        Class::Expedited => 100,
        Class::Interactive => 250,
        Class::Web => 500,
        Class::Streaming | Class::Bulk => 1000,
        Class::Background => 2000,
    })
}

/// Bytes that the number of a flow takes in front of what it carries.
pub fn overhead(flow: u64) -> usize {
    1 + varint::size(flow)
}

/// A datagram as it crosses.
pub fn encode(flow: u64, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(payload.len() + 9);
    out.put_u8(FLOW);
    varint::put(&mut out, flow);
    out.put_slice(payload);
    out.freeze()
}

/// The flow that a datagram is of, and what it carries; `None` for what is no flow's.
pub fn decode(mut datagram: Bytes) -> Option<(u64, Bytes)> {
    if datagram.first() != Some(&FLOW) {
        return None;
    }
    let mut rest = datagram.split_off(1);
    let flow = varint::take(&mut rest)?;
    Some((flow, rest))
}

/// What waits to be sent.
#[derive(Debug, Default)]
pub struct Outbox {
    queues: [VecDeque<Waiting>; CLASSES],
    waiting: usize,
    /// Datagrams that were too late, …
    pub late: u64,
    /// … and those that there was no room for.
    pub crowded_out: u64,
}

#[derive(Debug)]
struct Waiting {
    datagram: Bytes,
    until: Duration,
}

impl Outbox {
    /// Adds a datagram, as [`encode`] gives it. Where there is no room the oldest of the least urgent class goes, if that is less
    /// urgent than this one, and else this one.
    pub fn push(&mut self, now: Duration, class: Class, datagram: Bytes) {
        while self.waiting + datagram.len() > MOST_WAITING {
            let last =
                self.queues.iter().rposition(|queue| !queue.is_empty()).filter(|last| *last > class as usize);
            let Some(gone) = last.and_then(|last| self.queues[last].pop_front()) else {
                self.crowded_out += 1;
                return;
            };
            self.waiting -= gone.datagram.len();
            self.crowded_out += 1;
        }
        self.waiting += datagram.len();
        self.queues[class as usize].push_back(Waiting { datagram, until: now + patience(class) });
    }

    /// The next that is to be sent, if it is at least as urgent as `floor`.
    pub fn poll(&mut self, now: Duration, floor: Option<Class>) -> Option<Bytes> {
        for (class, queue) in self.queues.iter_mut().enumerate() {
            while let Some(next) = queue.front() {
                let is_late = next.until < now;
                if !is_late && floor.is_some_and(|floor| class > floor as usize) {
                    break;
                }
                let next = queue.pop_front()?;
                self.waiting -= next.datagram.len();
                if !is_late {
                    return Some(next.datagram);
                }
                self.late += 1;
            }
        }
        None
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn of(flow: u64) -> Bytes {
        encode(flow, &[7; 160])
    }

    fn flow(datagram: Option<Bytes>) -> Option<u64> {
        decode(datagram?).map(|(flow, _)| flow)
    }

    #[test]
    fn voice_waits_for_no_bulk_and_bulk_for_what_is_more_urgent_on_streams() {
        let mut outbox = Outbox::default();
        for number in 0..5 {
            outbox.push(ms(0), Class::Bulk, of(100 + number));
            outbox.push(ms(0), Class::Expedited, of(number));
        }
        let order: Vec<_> = std::iter::from_fn(|| flow(outbox.poll(ms(1), Some(Class::Web)))).collect();
        assert_eq!(order, [0, 1, 2, 3, 4]);
        let order: Vec<_> = std::iter::from_fn(|| flow(outbox.poll(ms(1), None))).collect();
        assert_eq!(order, [100, 101, 102, 103, 104]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn what_is_late_is_dropped_and_what_is_not_goes() {
        let mut outbox = Outbox::default();
        outbox.push(ms(0), Class::Expedited, of(1));
        outbox.push(ms(90), Class::Expedited, of(2));
        assert_eq!(flow(outbox.poll(ms(101), None)), Some(2));
        assert_eq!((outbox.late, outbox.is_empty()), (1, true));
    }

    #[test]
    fn what_is_less_urgent_makes_room_and_never_what_is_more() {
        let mut outbox = Outbox::default();
        let large = |flow| encode(flow, &[0; 1200]);
        let fits = (MOST_WAITING / large(1).len()) as u64;
        (0..fits).for_each(|_| outbox.push(ms(0), Class::Bulk, large(1)));
        outbox.push(ms(0), Class::Background, large(2));
        assert_eq!(outbox.crowded_out, 1, "itself");
        outbox.push(ms(0), Class::Expedited, large(3));
        assert_eq!(outbox.crowded_out, 2);
        let order: Vec<_> = std::iter::from_fn(|| flow(outbox.poll(ms(1), None))).collect();
        assert_eq!((order[0], order.len() as u64), (3, fits));
        assert!(order[1..].iter().all(|flow| *flow == 1));
    }

    proptest! {
        #[test]
        fn a_datagram_reads_as_it_was_written(flow in 0..varint::MAX, payload: Vec<u8>) {
            let encoded = encode(flow, &payload);
            prop_assert_eq!(encoded.len(), payload.len() + overhead(flow));
            prop_assert_eq!(decode(encoded), Some((flow, payload.into())));
        }

        #[test]
        fn no_datagram_is_too_much(bytes: Vec<u8>) {
            let _ = decode(bytes.into());
        }
    }
}
