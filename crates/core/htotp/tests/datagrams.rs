//! Datagrams among streams, in virtual time: which goes next, which is dropped, and how little goes ahead while someone speaks.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::datagram::{Form, decode, encode};
use farhop_htotp::frame::{Class, Priority};
use farhop_htotp::scheduler::{MOST_WAITING, Pace, Place, Scheduler, StreamId};
use farhop_units::BitRate;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn place(class: Class, user: u64) -> Place {
    Place { class, user, priority: Priority { incremental: true, ..Priority::default() }, asked: true }
}

fn unpaced() -> Scheduler {
    Scheduler::new(ms(0), Pace::default())
}

fn push(s: &mut Scheduler, now: Duration, flow: u64, class: Class, user: u64, length: usize) {
    s.push(now, flow, place(class, user), encode(flow, Form::Plain, &vec![7; length]));
}

fn stream(s: &mut Scheduler, id: u64, class: Class, user: u64, length: usize) {
    s.open(StreamId(id), place(class, user));
    s.enqueue(StreamId(id), vec![0; length].into());
}

fn next(s: &mut Scheduler, now: Duration) -> Option<u64> {
    s.poll_datagram(now).and_then(decode).map(|(flow, ..)| flow)
}

fn all(s: &mut Scheduler, now: Duration) -> Vec<u64> {
    std::iter::from_fn(|| next(s, now)).collect()
}

#[test]
fn voice_waits_for_no_bulk() {
    let mut s = unpaced();
    for number in 0..5 {
        push(&mut s, ms(0), 100, Class::Bulk, 1, 160);
        push(&mut s, ms(0), number, Class::Expedited, 1, 160);
    }
    assert_eq!(all(&mut s, ms(1)), [0, 1, 2, 3, 4, 100, 100, 100, 100, 100]);
    assert!(!s.has_datagrams());
}

#[test]
fn what_is_late_is_dropped_and_what_is_not_goes() {
    let mut s = unpaced();
    push(&mut s, ms(0), 1, Class::Expedited, 1, 160);
    push(&mut s, ms(90), 2, Class::Expedited, 1, 160);
    assert_eq!(all(&mut s, ms(101)), [2]);
    assert_eq!((s.dropped_datagrams(), s.has_datagrams()), (1, false));
}

#[test]
fn what_is_less_urgent_makes_room_and_never_what_is_more() {
    let mut s = unpaced();
    (0..200).for_each(|_| push(&mut s, ms(0), 1, Class::Bulk, 1, 1200));
    let (fits, dropped) = (200 - s.dropped_datagrams(), s.dropped_datagrams());
    assert!((90..=MOST_WAITING as u64 / 1200).contains(&fits), "{fits}");
    push(&mut s, ms(0), 2, Class::Background, 2, 1200);
    assert_eq!(s.dropped_datagrams(), dropped + 1, "itself");
    push(&mut s, ms(0), 3, Class::Expedited, 3, 1200);
    assert_eq!(s.dropped_datagrams(), dropped + 2);
    let order = all(&mut s, ms(1));
    assert_eq!((order[0], order.len() as u64), (3, fits));
    assert!(order[1..].iter().all(|flow| *flow == 1));
}

#[test]
fn who_pours_is_the_one_who_loses() {
    let mut s = unpaced();
    (0..200).for_each(|_| push(&mut s, ms(0), 1, Class::Web, 1, 1200));
    let before = s.dropped_datagrams();
    (0..20).for_each(|_| push(&mut s, ms(0), 2, Class::Web, 2, 1200));
    assert!(s.dropped_datagrams() > before, "room was made");
    let order = all(&mut s, ms(1));
    assert_eq!(order.iter().filter(|flow| **flow == 2).count(), 20, "and not by who has little");
}

#[test]
fn users_share_a_class_whatever_their_number_of_flows() {
    let mut s = unpaced();
    (0..40).for_each(|number| push(&mut s, ms(0), number % 20, Class::Web, 1, 1200));
    (0..40).for_each(|_| push(&mut s, ms(0), 99, Class::Web, 2, 1200));
    let first = &all(&mut s, ms(1))[..40];
    let second = first.iter().filter(|flow| **flow == 99).count();
    // A turn is 16 KiB where no rate is known.
    assert!((13..=27).contains(&second), "{second} of 40");
}

#[test]
fn streams_and_datagrams_of_different_users_share_a_class() {
    let rate = BitRate::mbit(8);
    let mut s = Scheduler::new(ms(0), Pace { rate: Some(rate), ..Pace::default() });
    stream(&mut s, 1, Class::Bulk, 1, 10_000_000);
    let (mut now, mut streams, mut datagrams) = (ms(0), 0, 0);
    while now < ms(5_000) {
        push(&mut s, now, 7, Class::Bulk, 2, 1200);
        push(&mut s, now, 7, Class::Bulk, 2, 1200);
        loop {
            if let Some(datagram) = s.poll_datagram(now) {
                datagrams += datagram.len();
            } else if let Some(grant) = s.poll_grant(now) {
                streams += grant.segments.iter().map(Bytes::len).sum::<usize>();
                s.written(grant.stream);
            } else {
                break;
            }
        }
        now += ms(1);
    }
    let share = datagrams as f64 / (streams + datagrams) as f64;
    assert!((0.45..=0.55).contains(&share), "{share}");
    let used = (streams + datagrams) as f64 / rate.bytes_in(now).0 as f64;
    // The pace, and what goes ahead at first.
    assert!((0.9..=0.97).contains(&used), "{used} of the rate");
}

#[test]
fn a_flow_that_goes_on_and_on_among_pages_loses_its_place_there() {
    let mut s = unpaced();
    for second in 0..20_u64 {
        (0..100).for_each(|_| push(&mut s, ms(second * 900), 1, Class::Web, 1, 1200));
        assert_eq!(all(&mut s, ms(second * 900)).len(), 100);
    }
    let now = ms(19 * 900);
    push(&mut s, now, 1, Class::Web, 1, 1200);
    stream(&mut s, 5, Class::Web, 1, 100);
    assert_eq!(next(&mut s, now), None, "the page goes first");
    assert_eq!(s.poll_grant(now).unwrap().stream, StreamId(5));
    assert_eq!(next(&mut s, now), Some(1));
    s.written(StreamId(5));
    // After a pause it is like any other.
    push(&mut s, now + ms(2_500), 1, Class::Web, 1, 1200);
    s.enqueue(StreamId(5), vec![0; 100].into());
    assert_eq!(next(&mut s, now + ms(2_500)), Some(1));
}

#[test]
fn voice_that_pours_is_held_to_the_rate() {
    let rate = BitRate::mbit(1);
    let mut s = Scheduler::new(ms(0), Pace { rate: Some(rate), ..Pace::default() });
    let (mut now, mut sent) = (ms(0), 0);
    while now < ms(10_000) {
        (0..3).for_each(|_| push(&mut s, now, 1, Class::Expedited, 1, 1200));
        sent += all(&mut s, now).len() * 1200;
        now += ms(5);
    }
    assert!((sent as f64) < 1.05 * rate.bytes_in(now).0 as f64, "{sent}");
}

/// Goes on until `until` with all that may go, and gives the longest that a packet at the link's end of the queue waited.
fn queue(s: &mut Scheduler, now: &mut Duration, until: Duration, rate: BitRate, queue: &mut f64) -> Duration {
    let (step, mut most) = (ms(1), 0.0_f64);
    while *now < until {
        s.enqueue(StreamId(1), vec![0; 2_000].into());
        while let Some(grant) = s.poll_grant(*now) {
            // Headers take what the pace leaves to them.
            *queue += grant.segments.iter().map(Bytes::len).sum::<usize>() as f64 / 0.95;
            s.written(grant.stream);
        }
        most = most.max(*queue);
        *queue = (*queue - rate.bytes_in(step).0 as f64).max(0.0);
        *now += step;
    }
    rate.time_for(farhop_units::Bytes(most as u64))
}

#[test]
fn little_goes_ahead_of_the_link_while_someone_speaks() {
    let rate = BitRate::mbit(8);
    let mut s = Scheduler::new(ms(0), Pace { rate: Some(rate), ..Pace::default() });
    stream(&mut s, 1, Class::Bulk, 1, 100_000);
    let (mut now, mut stands) = (ms(0), 0.0);
    let before = queue(&mut s, &mut now, ms(3_000), rate, &mut stands);
    assert!(before > ms(40), "{before:?}");
    for packet in 0..100 {
        push(&mut s, now, 1, Class::Expedited, 2, 32);
        assert_eq!(all(&mut s, now), [1]);
        let stood = queue(&mut s, &mut now, ms(3_020 + packet * 20), rate, &mut stands);
        // What had gone ahead has to leave first.
        assert!(packet < 5 || stood < ms(25), "{packet}: {stood:?}");
    }
    assert!(s.is_calm());
    let after = queue(&mut s, &mut now, ms(9_000), rate, &mut stands);
    assert!(!s.is_calm() && after > ms(40), "{after:?}");
}
