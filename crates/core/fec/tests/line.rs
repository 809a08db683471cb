//! Two layers over a lossy path in virtual time: what they bring back, at what cost, and when they keep still.

mod support;

use std::time::Duration;

use support::{Bottleneck, DELAY, Pair};

fn compare(actual: &[String], expected: &[&str]) {
    assert_eq!(actual, expected, "\n{}\n", actual.join("\n"));
}

#[test]
fn without_loss_nothing_is_repaired_reported_or_held() {
    let mut pair = Pair::new(0.0, 1.0, 1);
    pair.bulk(2000);
    let (near, far) = (pair.near.counters(), pair.far.counters());
    assert_eq!((pair.missing(0), near.sent.sources, near.sent.repairs, near.sent.share), (0, 2000, 0, 0.0));
    assert_eq!((far.received.sources, far.received.lost), (2000, 0));
    assert!(!format!("{:?}", pair.far).contains("rows: 1"));
}

#[test]
fn losses_are_made_good_for_a_share_that_follows_them() {
    let mut rows = Vec::new();
    for (loss, burst) in [(0.01, 1.0), (0.03, 1.0), (0.10, 1.0), (0.01, 4.0), (0.03, 3.0)] {
        let mut pair = Pair::new(loss, burst, 1);
        pair.bulk(2_000); // learns
        let (before, from) = (pair.near.counters().sent, pair.next());
        pair.bulk(20_000);
        let after = pair.near.counters().sent;
        let missing = pair.missing(from) as f64 / 200.0;
        let cost = (after.repair_bytes - before.repair_bytes) as f64
            / (after.source_bytes - before.source_bytes) as f64;
        let mut waits: Vec<Duration> = (pair.arrived.iter())
            .filter(|(number, _, recovered)| *number >= from && *recovered)
            .map(|(number, at, _)| *at - pair.sent[number].0 - DELAY)
            .collect();
        waits.sort_unstable();
        let wait = |share: f64| waits[(waits.len() as f64 * share) as usize].as_millis();
        rows.push(format!(
            "{:4.1} % lost in runs of {burst}: {missing:.3} % stay lost, {:4.1} % repairs, brought back after {} ms, 99 % within {}",
            loss * 100.0,
            cost * 100.0,
            wait(0.5),
            wait(0.99),
        ));
    }
    compare(
        &rows,
        &[
            " 1.0 % lost in runs of 1: 0.000 % stay lost,  4.8 % repairs, brought back after 14 ms, 99 % within 56",
            " 3.0 % lost in runs of 1: 0.000 % stay lost,  9.6 % repairs, brought back after 0 ms, 99 % within 70",
            "10.0 % lost in runs of 1: 0.000 % stay lost, 22.5 % repairs, brought back after 0 ms, 99 % within 98",
            " 1.0 % lost in runs of 4: 0.160 % stay lost, 12.1 % repairs, brought back after 42 ms, 99 % within 168",
            " 3.0 % lost in runs of 3: 0.000 % stay lost, 18.0 % repairs, brought back after 42 ms, 99 % within 224",
        ],
    );
}

#[test]
fn the_end_of_a_short_burst_is_protected_at_once() {
    let mut pair = Pair::new(0.03, 1.0, 7);
    pair.bulk(3_000);
    let from = pair.next();
    let before = pair.near.counters().sent;
    // 500 objects of 5 KB, each alone.
    for _ in 0..500 {
        pair.send(4, 1300, 1100);
        pair.run_until(pair.now + Duration::from_millis(400));
    }
    pair.run_until(pair.now + 4 * DELAY);
    let after = pair.near.counters().sent;
    let late = (pair.arrived.iter())
        .filter(|(number, at, _)| {
            *number >= from && *at > pair.sent[number].0 + DELAY + Duration::from_millis(30)
        })
        .count();
    let repairs = after.repairs - before.repairs;
    let missing = pair.missing(from);
    // One object in nine loses a packet, one in a hundred two of its four and its repair. A second repair for each would
    // cost more than a quarter; the next object's brings back some.
    assert!(
        missing + late <= 20,
        "of 2000 packets, some 60 of them lost, {missing} stay lost and {late} are late"
    );
    let bytes =
        (after.repair_bytes - before.repair_bytes) as f64 / (after.source_bytes - before.source_bytes) as f64;
    assert!(repairs <= 650 && bytes < 0.30, "{repairs} repairs, {bytes}");
}

#[test]
fn repairs_end_when_losses_do_and_come_back_with_them() {
    let mut pair = Pair::new(0.02, 1.0, 3);
    pair.bulk(3_000);
    assert!(pair.near.counters().sent.share > 0.05);
    pair.set_loss(0.0, 1.0, 0);
    pair.bulk(15_000);
    let quiet = pair.near.counters().sent;
    assert_eq!(quiet.share, 0.0, "{quiet:?}");
    pair.bulk(2_000);
    assert_eq!(pair.near.counters().sent.repairs, quiet.repairs);
    pair.set_loss(0.02, 1.0, 4);
    pair.bulk(1_000);
    assert!(pair.near.counters().sent.share > 0.03);
}

#[test]
fn a_direction_that_has_carried_little_goes_by_the_other() {
    let mut pair = Pair::new(0.02, 1.0, 6);
    pair.bulk(2_000);
    // The far end has sent nothing, and can know no more.
    let told = pair.far.counters().sent;
    assert!(told.sources == 0 && told.share > 0.05, "{told:?}");
}

/// 8 Mbit/s, and a queue of a round trip's bytes and a little less.
const BOTTLENECK: Bottleneck = Bottleneck { rate: 1e6, limit: 600_000.0, free: Duration::ZERO };

fn stream(pair: &mut Pair, batches: usize, pause: Duration) {
    for _ in 0..batches {
        pair.send(10, 1400, 1400);
        pair.run_until(pair.now + pause);
    }
}

#[test]
fn what_ones_own_queue_drops_asks_for_no_repairs_in_either_direction() {
    let mut pair = Pair::new(0.0, 1.0, 1);
    pair.bottleneck = Some(BOTTLENECK);
    // A controller's saw teeth: a quarter more than the link takes, then a tenth less.
    for _ in 0..12 {
        stream(&mut pair, 240, Duration::from_micros(11_200));
        stream(&mut pair, 440, Duration::from_micros(15_500));
    }
    let (near, far) = (pair.near.counters(), pair.far.counters());
    assert!(near.sent.lost > 300, "{near:?}");
    assert_eq!((near.sent.repairs, near.sent.share, far.sent.share), (0, 0.0, 0.0));
}

#[test]
fn what_is_lost_at_random_is_repaired_over_a_queue_of_a_quarter_of_a_round_trip() {
    let mut pair = Pair::new(0.01, 1.0, 1);
    pair.bottleneck = Some(BOTTLENECK);
    pair.send(110, 1400, 1400);
    stream(&mut pair, 200, Duration::from_millis(15));
    assert!(pair.near.counters().sent.share > 0.03);
}

#[test]
fn a_path_that_has_lost_before_is_repaired_from_the_first_burst_on() {
    let mut missing = 0;
    for seed in 0..40 {
        let mut pair = Pair::new(0.01, 1.0, seed);
        pair.near.remember(0.01);
        pair.send(100, 1400, 1400);
        pair.run_until(pair.now + 4 * DELAY);
        missing += pair.missing(0);
        let repairs = pair.near.counters().sent.repairs;
        assert!((4..=10).contains(&repairs), "seed {seed}: {repairs}");
    }
    assert!(missing <= 8, "{missing} of some 40 lost stay lost");
}

#[test]
fn the_cost_stays_within_its_bound_whatever_is_sent() {
    let mut pair = Pair::new(0.15, 3.0, 5);
    pair.bulk(3_000);
    let before = pair.near.counters().sent;
    // Lone packets of all sizes, each of which would like a repair of its own.
    for round in 0..2_000 {
        let len = 80 + round % 1300;
        pair.send(1, len, len);
        pair.run_until(pair.now + Duration::from_millis(150));
    }
    let after = pair.near.counters().sent;
    let sent = (after.source_bytes - before.source_bytes) as f64;
    let repairs = (after.repair_bytes - before.repair_bytes) as f64;
    assert!(repairs < 0.26 * sent + 24e3 && repairs > 0.2 * sent, "{repairs} for {sent}");
}

#[test]
fn packets_that_overtake_each_other_are_neither_lost_nor_repaired() {
    let mut pair = Pair::new(0.0, 1.0, 6);
    pair.reorder = Some((0.05, Duration::from_millis(15)));
    pair.bulk(5_000);
    assert_eq!((pair.missing(0), pair.near.counters().sent.lost), (0, 0));
}

#[test]
fn over_a_path_that_loses_and_reorders_all_that_arrives_is_right() {
    let mut missing = Vec::new();
    for seed in 0..20 {
        let mut pair = Pair::new(0.03, 2.0, seed);
        pair.reorder = Some((0.1, Duration::from_millis(20)));
        pair.bulk(1_000);
        let from = pair.next();
        pair.bulk(2_000);
        // Pair::take has compared each packet with what was sent.
        missing.push(pair.missing(from));
    }
    missing.sort_unstable();
    println!("{missing:?}");
    assert!(missing[10] == 0 && missing.iter().sum::<usize>() < 60, "of some 60 lost in each: {missing:?}");
}

#[test]
fn damaged_datagrams_do_no_harm_beyond_themselves() {
    for seed in 0..20 {
        let mut pair = Pair::new(0.03, 1.0, seed);
        pair.bulk(1_000);
        let from = pair.next();
        pair.meddle = Some(|datagram, rng| {
            if rng.chance(0.05) {
                let at = rng.next_u64() as usize % datagram.len();
                datagram[at] ^= (1 + rng.next_u64() % 255) as u8;
            }
            if rng.chance(0.01) {
                datagram.truncate(1 + rng.next_u64() as usize % datagram.len());
            }
        });
        pair.bulk(1_000);
        assert!(pair.missing(from) < 150, "seed {seed}: {}", pair.missing(from));
        pair.meddle = None;
        let healthy = pair.next();
        pair.bulk(2_000);
        assert!(pair.missing(healthy) < 10, "seed {seed}: {}", pair.missing(healthy));
    }
}

#[test]
fn an_outage_leaves_nothing_behind() {
    let mut pair = Pair::new(0.01, 1.0, 8);
    pair.bulk(2_000);
    pair.set_loss(1.0 - 1e-9, 1.0, 0);
    pair.bulk(1_000);
    pair.set_loss(0.01, 1.0, 9);
    pair.bulk(4_000);
    let from = pair.next();
    pair.bulk(2_000);
    let share = pair.near.counters().sent.share;
    assert!(pair.missing(from) < 5 && (0.02..0.2).contains(&share), "{} {share}", pair.missing(from));
}

#[test]
fn a_cut_where_nothing_was_lost_before_asks_for_no_repairs() {
    // Cuts of a full path, of one that stands still but for QUIC's probes, and of one that carries little.
    for (batches, packets, pause_ms) in [(200, 10, 14), (6, 1, 1500), (4, 3, 900)] {
        let mut pair = Pair::new(0.0, 1.0, 12);
        pair.bulk(2_000);
        pair.set_loss(1.0 - 1e-9, 1.0, 0);
        for _ in 0..batches {
            pair.send(packets, 1400, 1400);
            pair.run_until(pair.now + Duration::from_millis(pause_ms));
        }
        pair.set_loss(0.0, 1.0, 0);
        pair.bulk(2_000);
        let told = pair.near.counters().sent;
        assert_eq!((told.lost, told.repairs), (0, 0), "{batches} batches: {told:?}");
    }
}

#[test]
fn an_end_that_has_fallen_silent_wakes_nobody() {
    let mut pair = Pair::new(0.02, 1.0, 10);
    pair.bulk(2_000);
    pair.run_until(pair.now + Duration::from_secs(10));
    assert_eq!((pair.near.next_wakeup(), pair.far.next_wakeup()), (None, None));
}
