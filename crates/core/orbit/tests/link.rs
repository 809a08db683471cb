//! The link's behaviour in virtual time, seen from outside: what goes in when, what comes out when.

use farhop_orbit::{Direction, DropReason, Fate, Leg, Loss, Path, Profile, Way};
use farhop_units::{BitRate, Bytes};
use proptest::prelude::*;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// 1 byte per microsecond, 100 ms away, room for ten packets of 1000 bytes.
fn leg() -> Leg {
    Leg { delay: 100 * MS, rate: Some(BitRate::mbit(8)), queue: Bytes(10_000), ..Leg::transparent() }
}

/// Jumps from wake-up to wake-up and notes when each packet came out.
fn drain<P>(link: &mut Direction<P>) -> Vec<(Duration, P)> {
    let mut out = Vec::new();
    while let Some(now) = link.next_wakeup() {
        while let Some(sent) = link.poll_transmit(now) {
            out.push((now, sent.packet));
        }
    }
    out
}

#[test]
fn a_lone_packet_arrives_after_serialisation_and_delay() {
    let mut link = Direction::new(leg(), 0);
    assert_eq!(link.handle_packet(5 * MS, Bytes(1000), 'a'), Fate::UnderWay { due: 106 * MS });
    assert_eq!(link.poll_transmit(106 * MS - Duration::from_nanos(1)), None);
    assert_eq!(drain(&mut link), [(106 * MS, 'a')]);
}

#[test]
fn packets_of_one_moment_follow_each_other_at_the_rate() {
    let mut link = Direction::new(leg(), 0);
    for name in ['a', 'b', 'c'] {
        link.handle_packet(Duration::ZERO, Bytes(1000), name);
    }
    assert_eq!(drain(&mut link), [(101 * MS, 'a'), (102 * MS, 'b'), (103 * MS, 'c')]);
}

#[test]
fn a_full_queue_drops_the_newcomer_and_frees_room_as_it_drains() {
    let mut link = Direction::new(leg(), 0);
    for n in 0..10 {
        assert!(matches!(link.handle_packet(Duration::ZERO, Bytes(1000), n), Fate::UnderWay { .. }));
    }
    let full = Fate::Dropped(DropReason::Queue);
    assert_eq!(link.handle_packet(Duration::ZERO, Bytes(1), 10), full);
    assert_eq!(link.handle_packet(MS - Duration::from_micros(2), Bytes(1000), 11), full);
    assert!(matches!(link.handle_packet(MS, Bytes(1000), 12), Fate::UnderWay { .. }));
    let counters = link.counters();
    assert_eq!((counters.sent.packets, counters.queue_drops.packets), (11, 2));
    assert_eq!(counters.queue_peak, Bytes(10_000));
}

#[test]
fn a_lost_packet_has_cost_its_capacity() {
    let mut link = Direction::new(Leg { loss: Loss::Independent(0.5), ..leg() }, 3);
    let dues: Vec<_> = (0..10)
        .filter_map(|n| match link.handle_packet(Duration::ZERO, Bytes(1000), n) {
            Fate::UnderWay { due } => Some((n, due)),
            Fate::Waiting | Fate::Dropped(_) => None,
        })
        .collect();
    assert!(!dues.is_empty() && dues.len() < 10, "seed 3 should lose some and keep some");
    for (n, due) in dues {
        assert_eq!(due, (101 + n) * MS);
    }
}

#[test]
fn loss_falls_within_its_binomial_interval() {
    let (n, p) = (100_000u64, 0.01);
    let transparent = Leg { loss: Loss::Independent(p), ..Leg::transparent() };
    let mut link = Direction::new(transparent, 7);
    for _ in 0..n {
        link.handle_packet(Duration::ZERO, Bytes(100), ());
    }
    let lost = link.counters().loss_drops.packets as f64;
    let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    assert!((lost - mean).abs() < 2.576 * deviation, "lost {lost} of {n} at {p}");
}

#[test]
fn a_cut_loses_what_arrives_during_it_and_nothing_else() {
    let mut link = Direction::new(leg(), 0);
    link.handle_packet(Duration::ZERO, Bytes(1000), "arrived before"); // due at 101 ms
    link.handle_packet(50 * MS, Bytes(1000), "in the air"); // due at 151 ms
    link.handle_packet(140 * MS, Bytes(1000), "still far away"); // due at 241 ms
    link.cut(145 * MS);
    assert_eq!(link.poll_transmit(145 * MS).map(|sent| sent.packet), Some("arrived before"));
    assert_eq!(link.handle_packet(150 * MS, Bytes(1000), "offered"), Fate::Dropped(DropReason::Cut));
    link.restore(200 * MS);
    assert_eq!(drain(&mut link), [(241 * MS, "still far away")]);
    assert_eq!(link.counters().cut_drops.packets, 2);
}

#[test]
fn polling_during_a_cut_loses_the_same_packets_as_polling_after_it() {
    let run = |polled_during: bool| {
        let mut link = Direction::new(leg(), 0);
        for n in 0..10u32 {
            link.handle_packet(n * 10 * MS, Bytes(1000), n);
        }
        link.cut(100 * MS);
        if polled_during {
            assert_eq!(link.poll_transmit(140 * MS), None);
        }
        link.restore(145 * MS);
        drain(&mut link)
    };
    assert_eq!(run(true), run(false));
    assert_eq!(run(false).len(), 5);
}

#[test]
fn a_switch_keeps_the_order_and_lets_the_queue_go() {
    let mut link = Direction::new(leg(), 0);
    for n in 0..5 {
        link.handle_packet(Duration::ZERO, Bytes(1000), n);
    }
    link.switch(2 * MS, Leg::transparent());
    link.handle_packet(2 * MS, Bytes(1000), 5);
    let out = drain(&mut link);
    assert_eq!(out, (0..6).map(|n| (2 * MS, n)).collect::<Vec<_>>());
}

#[test]
fn a_path_gives_both_directions_out_in_the_order_of_their_time() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let mut path = Path::new(&profile, 1);
    path.handle_packet(Duration::ZERO, Way::Return, Bytes(640), "request"); // 10 ms at 512 kbit/s
    path.handle_packet(Duration::ZERO, Way::Forward, Bytes(1000), "response"); // 1 ms at 8 Mbit/s
    let mut out = Vec::new();
    while let Some(now) = path.next_wakeup() {
        while let Some((way, sent)) = path.poll_transmit(now) {
            out.push((now.as_millis(), way, sent.packet));
        }
    }
    assert_eq!(out, [(326, Way::Forward, "response"), (335, Way::Return, "request")]);
}

#[test]
fn a_cut_of_one_direction_does_not_hide_the_other() {
    let mut path = Path::new(&Profile::named("geo-2m").unwrap(), 1);
    path.handle_packet(Duration::ZERO, Way::Forward, Bytes(100), "forward");
    path.handle_packet(Duration::ZERO, Way::Return, Bytes(200), "return");
    path.direction_mut(Way::Forward).cut(MS);
    let now = 400 * MS;
    assert_eq!(path.poll_transmit(now).map(|(_, sent)| sent.packet), Some("return"));
    assert_eq!(path.poll_transmit(now), None);
    assert_eq!(path.counters(Way::Forward).cut_drops.packets, 1);
}

#[test]
fn taking_the_counters_starts_them_afresh() {
    let mut link = Direction::new(leg(), 0);
    link.handle_packet(Duration::ZERO, Bytes(1000), ());
    assert_eq!(link.take_counters().sent.bytes, Bytes(1000));
    assert_eq!(link.counters().sent.bytes, Bytes(0));
    drain(&mut link);
    assert_eq!(link.counters().delivered.packets, 1);
}

proptest! {
    /// What goes in comes out, waits, or is counted as dropped; order is kept; the rate is never exceeded.
    #[test]
    fn nothing_appears_vanishes_overtakes_or_exceeds_the_rate(
        seed: u64,
        loss in 0.0..0.5f64,
        packets in prop::collection::vec((0u64..3_000, 1u64..1_500), 1..200),
    ) {
        let mut link = Direction::new(Leg { loss: Loss::Independent(loss), ..leg() }, seed);
        let (mut now, mut out) = (Duration::ZERO, Vec::new());
        for (n, (gap, size)) in packets.iter().enumerate() {
            now += Duration::from_micros(*gap);
            while let Some(sent) = link.poll_transmit(now) {
                out.push(sent);
            }
            link.handle_packet(now, Bytes(*size), n);
        }
        let under_way = link.under_way();
        let counted = link.counters();
        prop_assert_eq!(packets.len() as u64, out.len() as u64 + under_way as u64 + counted.drops());
        while let Some(sent) = link.poll_transmit(now + Duration::from_secs(1)) {
            out.push(sent);
        }
        prop_assert!(out.is_sorted_by(|a, b| a.packet < b.packet && a.due <= b.due));
        for pair in out.windows(2) {
            // One byte takes one microsecond here.
            prop_assert!(pair[1].due - pair[0].due >= Duration::from_micros(pair[1].size.0));
        }
        prop_assert!(link.counters().queue_peak <= leg().queue);
        prop_assert_eq!(link.counters().delivered.packets, out.len() as u64);
    }

    #[test]
    fn one_seed_gives_one_history(seed: u64) {
        let run = || {
            let mut link = Direction::new(Leg { loss: Loss::Independent(0.3), ..Leg::transparent() }, seed);
            (0..100).map(|n| link.handle_packet(n * MS, Bytes(100), n)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}
