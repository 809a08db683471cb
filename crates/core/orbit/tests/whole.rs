//! What a link does beyond rate, delay and a plain queue, seen from outside: in virtual time, what goes in when, what comes
//! out when.

use farhop_orbit::{
    Bursts, CoDel, Direction, Discipline, DropReason, Fate, Handovers, Label, Leg, Loss, Outage, Policer,
    Reordering, Schedule, Segment, Steps, Supply, Trace, Wifi,
};
use farhop_units::{BitRate, Bytes};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// 1 byte per microsecond, 100 ms away, room for ten packets of 1000 bytes.
fn leg() -> Leg {
    Leg { delay: 100 * MS, rate: Some(BitRate::mbit(8)), queue: Bytes(10_000), ..Leg::transparent() }
}

fn steps(steps: &[(u32, u64)]) -> Supply {
    let steps = steps.iter().map(|(at, mbit)| (*at * MS, BitRate::mbit(*mbit))).collect();
    Supply::Steps(Arc::new(Steps::new(steps, None).expect("they are in order")))
}

/// Offers packets of 1000 bytes at these milliseconds; gives number and millisecond of each arrival.
fn carry(leg: Leg, seed: u64, offered: &[u32]) -> (Vec<(usize, u128)>, Direction<usize>) {
    let (mut link, mut out) = (Direction::new(leg, seed), Vec::new());
    let mut take = |link: &mut Direction<usize>, now| {
        while let Some(sent) = link.poll_transmit(now) {
            out.push((sent.packet, sent.due.as_millis()));
        }
    };
    for (number, at) in offered.iter().enumerate() {
        take(&mut link, *at * MS);
        link.handle_packet(*at * MS, Bytes(1000), number);
    }
    while let Some(now) = link.next_wakeup() {
        take(&mut link, now);
    }
    (out, link)
}

#[test]
fn a_stretch_on_the_ground_adds_its_delay_and_loses_before_capacity_is_used() {
    let lossy =
        Segment { delay: 20 * MS, jitter: Duration::ZERO, loss: Loss::Independent(1.0), ..Segment::NONE };
    let (out, link) = carry(Leg { before: lossy.clone(), ..leg() }, 1, &[0, 0]);
    assert_eq!((out, link.counters().sent.packets, link.counters().loss_drops.packets), (vec![], 0, 2));
    let (out, link) = carry(Leg { after: lossy.clone(), ..leg() }, 1, &[0, 0]);
    assert_eq!((out, link.counters().sent.packets, link.counters().loss_drops.packets), (vec![], 2, 2));
    let quiet = Segment { loss: Loss::NONE, ..lossy };
    let leg = Leg { before: quiet.clone(), after: quiet, ..leg() };
    assert_eq!(leg.one_way(), 140 * MS);
    assert_eq!(carry(leg, 1, &[0, 0]).0, [(0, 141), (1, 142)]);
}

#[test]
fn what_the_satellite_loses_does_not_depend_on_the_ground() {
    let lossy = Leg { loss: Loss::Independent(0.3), ..leg() };
    let offered: Vec<u32> = (0..200).map(|n| n * 10).collect();
    let arrived = |leg| carry(leg, 9, &offered).0.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    let jittery = Segment { delay: 5 * MS, jitter: 3 * MS, ..Segment::NONE };
    assert_eq!(arrived(lossy.clone()), arrived(Leg { after: jittery, jitter: 9 * MS, ..lossy }));
}

#[test]
fn jitter_delays_and_keeps_the_order() {
    let jitter = 30 * MS;
    let offered: Vec<u32> = (0..300).map(|n| n * 2).collect();
    let (out, _) = carry(Leg { jitter, ..leg() }, 4, &offered);
    assert!(out.is_sorted() && out.is_sorted_by_key(|(_, at)| *at));
    let extra = |(number, at): &(usize, u128)| *at as i64 - (*number as i64 * 2 + 101);
    assert!(out.iter().map(extra).all(|extra| (0..=30).contains(&extra)));
    assert!(out.iter().map(extra).max() > Some(20), "it should be felt");
}

#[test]
fn held_up_packets_are_overtaken() {
    let reordering = Some(Reordering { share: 0.1, by: 25 * MS });
    let offered: Vec<u32> = (0..1000).map(|n| n * 10).collect();
    let (out, _) = carry(Leg { reordering, ..leg() }, 4, &offered);
    let held: Vec<_> = out.iter().filter(|(number, at)| *at != *number as u128 * 10 + 101).collect();
    assert!((70..130).contains(&held.len()), "{} of 1000 at 10 %", held.len());
    assert!(held.iter().all(|(number, at)| *at == *number as u128 * 10 + 126));
    assert!(!out.is_sorted() && out.len() == 1000);
}

#[test]
fn bursts_strike_through_the_whole_link() {
    let bursts = Bursts { enter: 0.02, leave: 0.2, good: 0.0, bad: 1.0 };
    let offered: Vec<u32> = (0..5000).collect();
    let (out, link) = carry(Leg { loss: Loss::Bursts(bursts), ..leg() }, 2, &offered);
    assert_eq!(out.len() as u64 + link.counters().loss_drops.packets, 5000);
    let longest = out.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).max();
    assert!(longest > Some(8), "independent loss of 9 % would hardly lose so many in a row");
}

#[test]
fn an_outage_loses_what_is_sent_or_would_arrive_during_it() {
    let outage = Outage { at: S, lasts: 300 * MS, every: Some(10 * S) };
    let schedule = Schedule { outages: vec![outage], ..Schedule::NOTHING };
    let (out, link) = carry(Leg { schedule, ..leg() }, 1, &[890, 910, 1100, 1290, 1310, 10_950, 11_350]);
    assert_eq!(out, [(0, 991), (4, 1411), (6, 11_451)]);
    assert_eq!(link.counters().cut_drops.packets, 4);
}

#[test]
fn a_nearer_satellite_shortens_the_way_and_nothing_is_overtaken() {
    let handovers = Handovers { every: S, gap: Duration::ZERO, delays: vec![60 * MS, 20 * MS] };
    let schedule = Schedule { handovers: Some(handovers), ..Schedule::NOTHING };
    let (out, _) = carry(Leg { schedule, ..leg() }, 1, &[0, 990, 1000, 1100, 2000]);
    assert_eq!(out, [(0, 61), (1, 1051), (2, 1051), (3, 1121), (4, 2061)]);
}

#[test]
fn a_service_plan_lets_its_burst_and_its_rate_through() {
    let policer = Some(Policer { rate: BitRate::kbit(80), burst: Bytes(3000) }); // a packet each 100 ms
    let (out, link) = carry(Leg { policer, ..leg() }, 1, &[0, 0, 0, 0, 50, 100, 200, 210]);
    assert_eq!(out.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 5, 6]);
    assert_eq!((link.counters().policer_drops.packets, link.counters().drops()), (3, 3));
    let mut link = Direction::new(Leg { policer, ..leg() }, 1);
    assert_eq!(link.handle_packet(S, Bytes(3001), ()), Fate::Dropped(DropReason::Policer));
}

#[test]
fn rates_that_change_are_met_by_what_waits() {
    let leg = Leg { supply: steps(&[(0, 8), (2, 4), (10, 8)]), ..leg() };
    assert_eq!(carry(leg, 1, &[0, 0, 0, 20]).0, [(0, 101), (1, 102), (2, 104), (3, 121)]);
}

#[test]
fn a_recorded_trace_decides_when_packets_leave() {
    let supply = Supply::Trace(Arc::new(Trace::parse("5\n15\n15\n").unwrap()));
    let leg = Leg { supply, delay: Duration::ZERO, ..leg() };
    assert_eq!(carry(leg, 1, &[0; 5]).0, [(0, 5), (1, 15), (2, 15), (3, 15), (4, 20)]);
}

#[test]
fn a_queue_that_decides_late_drops_what_finds_no_room() {
    let leg = Leg { supply: steps(&[(0, 8)]), ..leg() };
    let (out, link) = carry(leg.clone(), 1, &[0; 12]);
    assert_eq!((out.len(), link.counters().queue_drops.packets), (10, 2));
    assert_eq!(link.counters().queue_peak, Bytes(10_000));
    let plain = carry(Leg { supply: Supply::Steady, ..leg.clone() }, 1, &[0, 0, 0, 5, 5, 30]);
    assert_eq!(carry(leg, 1, &[0, 0, 0, 5, 5, 30]).0, plain.0, "as the plain queue of the same rate");
}

#[test]
fn a_cut_takes_what_leaves_a_late_queue_during_it() {
    let mut link = Direction::new(Leg { supply: steps(&[(0, 8)]), ..leg() }, 0);
    for number in 0..10 {
        link.handle_packet(Duration::ZERO, Bytes(1000), number);
    }
    link.cut(3 * MS + MS / 2);
    link.restore(6 * MS + MS / 2);
    let mut out = Vec::new();
    while let Some(now) = link.next_wakeup() {
        out.extend(link.poll_transmit(now).map(|sent| sent.packet));
    }
    assert_eq!((out, link.counters().cut_drops.packets), (vec![0, 1, 2, 6, 7, 8, 9], 3));
}

#[test]
fn a_switch_lets_go_what_waits_in_a_late_queue() {
    let mut link = Direction::new(Leg { supply: steps(&[(0, 8)]), ..leg() }, 0);
    for number in 0..5 {
        link.handle_packet(Duration::ZERO, Bytes(1000), number);
    }
    link.switch(2 * MS, Leg::transparent());
    link.handle_packet(2 * MS, Bytes(1000), 5);
    let out: Vec<_> = std::iter::from_fn(|| link.poll_transmit(2 * MS)).map(|sent| sent.packet).collect();
    assert_eq!((out, link.under_way()), ((0..6).collect(), 0));
}

/// Twice the rate for ten seconds: the share dropped, the share marked, and the last packet's wait.
fn overload(discipline: Discipline, ecn_capable: bool) -> (u64, u64, Duration) {
    let leg = Leg { discipline, queue: Bytes(1_000_000), delay: Duration::ZERO, ..leg() };
    let (mut link, mut wait, mut marked) = (Direction::new(leg, 1), Duration::ZERO, 0);
    for half in 0..20_000u32 {
        let now = half * MS / 2;
        while let Some(sent) = link.poll_transmit(now) {
            wait = sent.due - sent.packet;
            marked += u64::from(sent.marked);
        }
        link.handle_labelled(now, Bytes(1000), Label { ecn_capable, ..Label::default() }, now);
    }
    assert_eq!(link.counters().marked, marked);
    (link.counters().queue_drops.packets, marked, wait)
}

#[test]
fn controlled_delay_drops_or_marks_where_a_plain_queue_only_grows() {
    let codel = |ecn| Discipline::CoDel(CoDel { target: 5 * MS, interval: 100 * MS, ecn });
    let (dropped, marked, wait) = overload(Discipline::DropTail, true);
    assert_eq!((marked, wait), (0, S));
    assert!((8_900..9_100).contains(&dropped), "what exceeds the rate, less a queue of 1000: {dropped}");
    // Against senders that do not slow down the law only gets faster: √ of the time above target.
    let (dropped, marked, _) = overload(codel(true), false);
    assert!(marked == 0 && dropped > 1000, "{dropped}");
    let (_, marked, _) = overload(codel(true), true);
    assert!(marked > 1000, "{marked}");
    assert_eq!(overload(codel(false), true).1, 0);
    let (dropped, marked, _) = overload(Discipline::Mark(Bytes(20_000)), true);
    assert!(dropped > 8_900 && marked > 9_900, "{dropped} {marked}");
    assert_eq!(overload(Discipline::Mark(Bytes(20_000)), false).1, 0);
}

proptest! {
    /// Whatever a link is made of: what goes in comes out, waits, or is counted; two runs are the same; time does not run back.
    #[test]
    fn nothing_appears_or_vanishes_whatever_the_link_is_made_of(
        seed: u64,
        kind in 0..5u8,
        loss in 0.0..0.3f64,
        packets in prop::collection::vec((0u64..3_000, 1u64..1_500), 1..200),
    ) {
        let wifi = (kind % 2 == 0).then_some(Wifi {
            rate: BitRate::mbit(6),
            loss,
            retries: 2,
            contention: MS,
            queue: Bytes(20_000),
        });
        let ground = Segment { delay: 3 * MS, jitter: 2 * MS, loss: Loss::Independent(loss), wifi };
        let supply = match kind {
            0 => Supply::Steady,
            1 => steps(&[(0, 8), (20, 0), (30, 2)]),
            _ => Supply::Trace(Arc::new(Trace::parse("1\n1\n4\n9\n").unwrap())),
        };
        let discipline = match kind {
            3 => Discipline::Mark(Bytes(3000)),
            4 => Discipline::CoDel(CoDel { target: MS, interval: 5 * MS, ecn: true }),
            _ => Discipline::DropTail,
        };
        let leg = Leg {
            supply, discipline, jitter: 2 * MS,
            loss: Loss::Bursts(Bursts { enter: loss, leave: 0.5, good: 0.0, bad: 0.9 }),
            reordering: Some(Reordering { share: loss, by: 7 * MS }),
            policer: Some(Policer { rate: BitRate::mbit(6), burst: Bytes(20_000) }),
            before: ground.clone(), after: ground, ..leg()
        };
        let run = || {
            let (mut link, mut now, mut out) = (Direction::new(leg.clone(), seed), Duration::ZERO, Vec::new());
            for (n, (gap, size)) in packets.iter().enumerate() {
                now += Duration::from_micros(*gap);
                out.extend(std::iter::from_fn(|| link.poll_transmit(now)));
                link.handle_labelled(now, Bytes(*size), Label { ecn_capable: n % 2 == 0, ..Label::default() }, n);
            }
            let counted = packets.len() as u64 - link.counters().drops() - link.under_way() as u64;
            let delivered = out.len() as u64;
            while let Some(now) = link.next_wakeup() {
                out.extend(std::iter::from_fn(|| link.poll_transmit(now)));
            }
            (out, link.counters(), counted, delivered)
        };
        let (out, counters, counted, delivered) = run();
        prop_assert_eq!(counted, delivered);
        prop_assert_eq!(packets.len() as u64, out.len() as u64 + counters.drops());
        prop_assert!(out.is_sorted_by_key(|sent| sent.due));
        prop_assert!(out.iter().all(|sent| !sent.marked || sent.packet % 2 == 0));
        prop_assert_eq!(run(), (out, counters, counted, delivered));
    }
}
