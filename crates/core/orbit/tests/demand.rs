//! Capacity on demand, against figures worked out by hand. One slot is 100 bytes, and a superframe of 50 ms has 20 of them:
//! 320 kbit/s. Both ways take 300 ms, the centre a superframe: 13 superframes from a request to its answer.

use farhop_orbit::{Class, Direction, Entitlement, Label, Leg, OnDemand, Others, Signalling, Supply, Volume};
use farhop_units::{BitRate, Bytes};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const NOTHING: Entitlement =
    Entitlement { cra: BitRate(0), rbdc: BitRate(0), volume: Volume::None, fca: false };

fn link(entitlement: Entitlement) -> OnDemand {
    OnDemand {
        superframe: 50 * MS,
        capacity: BitRate::kbit(320),
        slot: Bytes(100),
        header: Bytes(0),
        control_round: 650 * MS,
        entitlement,
        rbdc_timeout: 3,
        signalling: Signalling { loss: 0.0, contention: None, size: Bytes(0) },
        terminals: 1,
        others: None,
    }
}

fn direction(link: OnDemand) -> Direction<u64> {
    link.check().expect("it can be shared");
    let supply = Supply::OnDemand(Arc::new(link));
    Direction::new(
        Leg {
            delay: 300 * MS,
            rate: Some(BitRate::kbit(320)),
            supply,
            queue: Bytes(100_000),
            ..Leg::transparent()
        },
        1,
    )
}

/// Shortly before a time, so that what begins then finds the packet.
fn before(millis: u32) -> Duration {
    millis * MS - Duration::from_micros(1)
}

/// Offers packets (before that ms, terminal, bytes) and gives how long each was under way after that beyond the delay, in µs, by number.
fn waits(link: OnDemand, offered: &[(u32, u16, u64)]) -> Vec<Option<u128>> {
    let mut direction = direction(link);
    let mut waits = vec![None; offered.len()];
    let mut take = |direction: &mut Direction<u64>, now| {
        while let Some(sent) = direction.poll_transmit(now) {
            let number = sent.packet as usize;
            waits[number] = Some((sent.due - offered[number].0 * MS - 300 * MS).as_micros());
        }
    };
    for (number, (at, terminal, bytes)) in offered.iter().enumerate() {
        take(&mut direction, before(*at));
        let label = Label { terminal: *terminal, ..Label::default() };
        direction.handle_labelled(before(*at), Bytes(*bytes), label, number as u64);
    }
    // What is never given anything is not waited for.
    for now in (offered.last().map_or(0, |last| last.0)..30_000).step_by(10) {
        take(&mut direction, now * MS);
    }
    waits
}

#[test]
fn a_constant_rate_is_there_unasked() {
    let cra = Entitlement { cra: BitRate::kbit(32), ..NOTHING }; // 2 slots a superframe, of 2.5 ms each
    assert_eq!(waits(link(cra), &[(100, 0, 100), (1000, 0, 500)]), [Some(2_500), Some(102_500)]);
    // A packet that comes after the slots of its superframe waits for the next.
    assert_eq!(waits(link(cra), &[(105, 0, 100)]), [Some(47_500)]);
    // 24 kbit/s save up one slot and a half: two in every other superframe.
    let slower = Entitlement { cra: BitRate::kbit(24), ..NOTHING };
    assert_eq!(waits(link(slower), &[(50, 0, 600)]), [Some(152_500)]);
}

#[test]
fn a_volume_comes_one_control_round_after_it_was_asked_for() {
    for volume in [Volume::Added, Volume::Absolute] {
        let link = link(Entitlement { volume, ..NOTHING });
        // Asked for at 1000 ms, given 13 superframes later, 1000 bytes in 10 slots.
        assert_eq!(waits(link.clone(), &[(1000, 0, 1000)]), [Some(675_000)], "{volume:?}");
        // What comes just after a superframe began is asked for in the next.
        assert_eq!(waits(link.clone(), &[(1001, 0, 100)]), [Some(701_500)], "{volume:?}");
        // Nothing is given twice, and what comes later is asked for besides.
        assert_eq!(
            waits(link, &[(1000, 0, 1000), (1040, 0, 1000)]),
            [Some(675_000), Some(685_000)],
            "{volume:?}"
        );
    }
}

#[test]
fn a_rate_that_is_in_force_spares_the_control_round() {
    let rbdc = Entitlement { rbdc: BitRate::kbit(160), ..NOTHING };
    // 100 bytes every 50 ms: after a control round a slot or two in each superframe, and no more waiting.
    let steady: Vec<(u32, u16, u64)> = (0..80).map(|n| (1000 + n * 50, 0, 100)).collect();
    let waits = waits(link(rbdc), &steady);
    assert_eq!(waits[0], Some(652_500), "the first one waits for its request");
    assert!(waits[60..].iter().all(|wait| wait.is_some_and(|wait| wait <= 50_000)), "{waits:?}");
}

#[test]
fn a_rate_is_no_longer_given_when_it_is_no_longer_asked_for() {
    let rbdc = Entitlement { rbdc: BitRate::kbit(320), ..NOTHING };
    // All requests lost but those of the first superframe would leave 3 superframes of capacity; here none is lost, and the last
    // asks for nothing. Asked at 1000 ms: (1000 + 100 + 1000) ÷ 13 → 162 bytes, 2 slots from 1650 ms on.
    let mut direction = direction(link(rbdc));
    direction.handle_packet(before(1000), Bytes(1000), 0);
    direction.poll_transmit(1649 * MS);
    assert_eq!(direction.counters().given, Bytes(0));
    direction.poll_transmit(1651 * MS);
    assert_eq!(direction.counters().given, Bytes(200));
    direction.poll_transmit(6000 * MS);
    let after = direction.counters().given;
    direction.poll_transmit(20_000 * MS);
    assert_eq!(direction.counters().given, after, "it ends");
}

#[test]
fn a_rate_that_was_asked_for_and_never_taken_back_runs_out() {
    // The centre hears one request and nothing more: signalling dies after it.
    let rbdc = Entitlement { rbdc: BitRate::kbit(320), ..NOTHING };
    let given = |loss| {
        let mut link = link(rbdc);
        link.signalling.loss = loss;
        let mut direction = direction(link);
        for at in (1000..60_000).step_by(50) {
            direction.handle_packet(at * MS, Bytes(100), 0);
            while direction.poll_transmit(at * MS).is_some() {}
        }
        direction.counters().given.0
    };
    let all = given(0.0);
    let most_lost = given(0.9);
    // A request holds for 3 superframes: with 9 of 10 lost there is one in force with probability 1 − 0.9³ = 0.27.
    let share = most_lost as f64 / all as f64;
    assert!(all > 100 * 1000 && (0.1..0.9).contains(&share), "{most_lost} of {all}");
}

#[test]
fn a_lost_volume_is_asked_for_again_at_once_where_requests_are_absolute() {
    let wait = |volume| {
        let mut lossy = link(Entitlement { volume, ..NOTHING });
        lossy.signalling.loss = 0.5;
        let offered: Vec<(u32, u16, u64)> = (0..20).map(|n| (1000 + n * 1400, 0, 100)).collect();
        let waits: Vec<u128> = waits(lossy, &offered).into_iter().flatten().collect();
        waits.iter().sum::<u128>() / waits.len() as u128 / 1000
    };
    let (absolute, added) = (wait(Volume::Absolute), wait(Volume::Added));
    // One more superframe for each loss, against two control rounds.
    assert!((650..800).contains(&absolute), "{absolute} ms");
    assert!(added > 1200, "{added} ms");
}

#[test]
fn what_is_left_is_given_unasked() {
    let fca = Entitlement { fca: true, ..NOTHING };
    assert_eq!(waits(link(fca), &[(100, 0, 2000)]), [Some(50_000)]);
    // Two terminals halve it; the slots of one come after those of the other, in turn.
    let two = OnDemand { terminals: 2, ..link(fca) };
    assert_eq!(waits(two, &[(100, 0, 1000), (100, 1, 1000)]), [Some(25_000), Some(50_000)]);
}

#[test]
fn categories_add_up() {
    let mixed = Entitlement { cra: BitRate::kbit(32), volume: Volume::Added, ..NOTHING };
    // 200 bytes leave at once in the two slots of CRA; of 4,000, CRA carries 2,600 in a control round, and 1,400 are asked for:
    // 14 slots beside CRA's 2, all done in the superframe of the answer.
    assert_eq!(waits(link(mixed), &[(1000, 0, 200)]), [Some(5_000)]);
    let [Some(wait)] = waits(link(mixed), &[(1000, 0, 4000)])[..] else { panic!("it arrives") };
    assert!((650_000..=700_000).contains(&wait), "{wait} µs");
}

#[test]
fn more_urgent_classes_go_first_and_fragments_are_continued() {
    let mut direction = direction(link(Entitlement { cra: BitRate::kbit(32), ..NOTHING }));
    for (number, class) in [(0, Class::BestEffort), (1, Class::Assured), (2, Class::Expedited)] {
        direction.handle_labelled(1 * MS, Bytes(250), Label { class, ..Label::default() }, number);
    }
    let order: Vec<u64> =
        (0..2000).flat_map(|now| direction.poll_transmit(now * MS)).map(|sent| sent.packet).collect();
    assert_eq!(order, [2, 1, 0]);
}

#[test]
fn headers_of_fragments_cost_their_share() {
    let cra = Entitlement { cra: BitRate::kbit(32), ..NOTHING };
    let costly = OnDemand { header: Bytes(20), ..link(cra) };
    // 80 bytes a slot: 160 in a superframe. 500 bytes take four superframes, 20 of them in the last one's first slot.
    assert_eq!(waits(costly, &[(1000, 0, 500)]), [Some(152_500)]);
}

#[test]
fn who_announces_spares_the_control_round() {
    let mut direction = direction(link(Entitlement { volume: Volume::Added, ..NOTHING }));
    direction.announce(before(1000), 0, Bytes(1000));
    direction.handle_packet(1600 * MS, Bytes(1000), 0);
    let arrival = (1600..4000).find(|now| direction.poll_transmit(*now * MS).is_some());
    assert_eq!(arrival, Some(1650 + 25 + 300), "as if it had come at 1000 ms");
}

/// From a packet's arrival at its terminal to its arrival at the gateway, in ms, when `tell` says beforehand what will come.
fn under_way(volume: Volume, at: u32, tell: impl Fn(&mut Direction<u64>)) -> Option<u32> {
    let mut direction = direction(link(Entitlement { volume, ..NOTHING }));
    tell(&mut direction);
    direction.handle_packet(before(at), Bytes(1000), 0);
    (at..at + 3000).find(|now| direction.poll_transmit(*now * MS).is_some()).map(|now| now - at)
}

#[test]
fn who_is_beside_the_centre_spares_the_terminals_way_to_it() {
    for volume in [Volume::Added, Volume::Absolute] {
        // Told before 1000 ms, the table goes out at once: 350 ms later, at 1350 ms, the slots are there.
        let foretold = |direction: &mut Direction<u64>| direction.foretell(before(1000), 0, Bytes(1000));
        assert_eq!(under_way(volume, 1350, foretold), Some(25 + 300), "{volume:?}");
        // The packet itself would have been asked for at 1350 ms and had its slots 650 ms later.
        assert_eq!(under_way(volume, 1350, |_| {}), Some(650 + 25 + 300), "{volume:?}");
        // A terminal that is told at the same time has them when its request has crossed: 300 ms later.
        let announced = |direction: &mut Direction<u64>| direction.announce(before(1000), 0, Bytes(1000));
        assert_eq!(under_way(volume, 1350, announced), Some(300 + 25 + 300), "{volume:?}");
    }
}

#[test]
fn what_is_said_again_is_not_given_again() {
    for volume in [Volume::Added, Volume::Absolute] {
        let given = |times: u32, at_centre: bool| {
            let mut direction = direction(link(Entitlement { volume, ..NOTHING }));
            for time in 0..times {
                let now = before(1000 + 10 * time);
                direction.poll_transmit(now);
                if at_centre {
                    direction.foretell(now, 0, Bytes(1000));
                } else {
                    direction.announce(now, 0, Bytes(1000));
                }
            }
            direction.poll_transmit(1400 * MS);
            direction.handle_packet(before(1660), Bytes(1000), 0);
            direction.poll_transmit(5000 * MS);
            direction.counters().given
        };
        for at_centre in [false, true] {
            assert_eq!(given(5, at_centre), given(1, at_centre), "{volume:?}, at the centre: {at_centre}");
        }
        // Nothing said: what the packet needs, and no more.
        assert_eq!(given(0, true), Bytes(1000), "{volume:?}");
    }
}

#[test]
fn what_is_announced_and_never_comes_runs_out() {
    let mut direction = direction(link(Entitlement { volume: Volume::Absolute, ..NOTHING }));
    direction.announce(before(1000), 0, Bytes(1000));
    direction.poll_transmit(20_000 * MS);
    let given = direction.counters().given;
    assert!(given > Bytes(0), "it was asked for");
    direction.poll_transmit(60_000 * MS);
    assert_eq!(direction.counters().given, given, "but not for ever");
}

#[test]
fn others_take_their_share() {
    let entitlement = Entitlement { volume: Volume::Absolute, ..NOTHING };
    let offered: Vec<(u32, u16, u64)> = (0..40).map(|n| (5000 + n * 200, 0, 400)).collect();
    let mean = |terminals| {
        let others = Some(Others { terminals, rate: BitRate::kbit(64) });
        let waits: Vec<u128> =
            waits(OnDemand { others, ..link(entitlement) }, &offered).into_iter().flatten().collect();
        waits.iter().sum::<u128>() / waits.len() as u128 / 1000
    };
    // Four slots in four superframes: there are enough for each of ten, but not for each of forty.
    let (alone, ten, forty) = (mean(0), mean(9), mean(39));
    assert!(alone < 700 && ten < 900 && forty > 2 * ten, "{alone} {ten} {forty}");
}

#[test]
fn requests_that_pick_the_same_slot_are_lost() {
    let entitlement = Entitlement { volume: Volume::Absolute, ..NOTHING };
    let offered: Vec<(u32, u16, u64)> =
        (0..8).flat_map(|n| (0..4).map(move |terminal| (1000 + n * 3000, terminal, 100))).collect();
    let mean = |contention| {
        let mut link = OnDemand { terminals: 4, ..link(entitlement) };
        link.signalling.contention = contention;
        let waits: Vec<u128> = waits(link, &offered).into_iter().flatten().collect();
        assert_eq!(waits.len(), offered.len(), "all get through in the end");
        waits.iter().sum::<u128>() / waits.len() as u128 / 1000
    };
    let (own, many, few) = (mean(None), mean(Some(64)), mean(Some(4)));
    assert!((650..=665).contains(&own) && many < few && few > own + 25, "{own} {many} {few}");
}

#[test]
fn requests_take_their_part_of_the_link() {
    // Requests of 40 bytes: two slots of twenty are kept free for five of them.
    let all = Entitlement { fca: true, ..NOTHING };
    let signalling = Signalling { loss: 0.0, contention: Some(5), size: Bytes(40) };
    let contended = OnDemand { signalling, ..link(all) };
    assert_eq!(waits(contended.clone(), &[(1000, 0, 1800)]), [Some(45_000)], "eighteen slots of 2.5 ms");
    assert_eq!(waits(contended, &[(1000, 0, 1801)]), [Some(52_500)]);
    // Slots of their own for four terminals take as much, and eighteen go round.
    let own = Signalling { contention: None, ..signalling };
    let four = OnDemand { signalling: own, terminals: 4, ..link(all) };
    let sent = waits(four, &[(1000, 0, 400), (1000, 1, 400), (1000, 2, 400), (1000, 3, 400)]);
    assert!(sent.iter().all(|wait| wait.is_some_and(|wait| wait <= 45_000)), "{sent:?}");
    // Who contends and has slots says beside its packets what it asks for: 40 of the 200 bytes of the constant rate.
    let volume = Entitlement { cra: BitRate::kbit(32), volume: Volume::Absolute, ..NOTHING };
    let offered = [(1000, 0, 160), (1000, 0, 40), (1000, 0, 4_000)];
    let first_two = |signalling| waits(OnDemand { signalling, ..link(volume) }, &offered)[..2].to_vec();
    assert_eq!(first_two(own), [Some(5_000), Some(5_000)]);
    assert_eq!(first_two(signalling), [Some(5_000), Some(52_500)]);
    let of = |size| OnDemand { signalling: Signalling { size: Bytes(size), ..own }, ..link(all) };
    assert!(of(1_900).check().is_ok() && of(2_000).check().is_err(), "one slot is left, or none");
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let sound = link(Entitlement { cra: BitRate::kbit(32), ..NOTHING });
    let refused = |link: OnDemand| link.check().unwrap_err().to_string();
    assert!(refused(OnDemand { slot: Bytes(5000), ..sound.clone() }).ends_with("this one has 0"));
    assert!(refused(OnDemand { header: Bytes(100), ..sound.clone() }).starts_with("a slot has room"));
    assert!(refused(OnDemand { terminals: 11, ..sound.clone() }).starts_with("the constant rates"));
    assert!(
        refused(OnDemand { entitlement: NOTHING, ..sound }).starts_with("a terminal is entitled to nothing")
    );
}

#[test]
fn an_idle_link_answers_within_a_superframe_of_the_analytic_delay() {
    for (superframe, round) in [(26_500, 24), (45_000, 15), (50_000, 13)] {
        for volume in [Volume::Added, Volume::Absolute] {
            let superframe = Duration::from_micros(superframe);
            let shared = OnDemand {
                superframe,
                control_round: 600 * MS + superframe,
                ..link(Entitlement { volume, ..NOTHING })
            };
            assert_eq!(shared.round(), round);
            let pings: Vec<(u32, u16, u64)> = (0..15).map(|n| (1000 + n * 1777, 0, 84)).collect();
            let (least, most) =
                (superframe.as_micros() * u128::from(round), superframe.as_micros() * u128::from(round + 1));
            for wait in waits(shared, &pings).into_iter().flatten() {
                // To the next superframe, the control round, and a slot.
                assert!(
                    (least..=most + 2_600).contains(&wait),
                    "{wait} µs of {least} to {most} at {superframe:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Capacity is conserved, packets are, terminals keep their own order, and two runs are one.
    #[test]
    fn no_superframe_carries_more_than_it_has(
        seed: u64,
        categories in (0..3u64, 0..3u64, 0..3u8, any::<bool>()),
        loss in 0.0..0.5f64,
        contention in prop::option::of(1..20u32),
        size in 0..40u64,
        packets in prop::collection::vec((0u64..60_000, 0..3u16, 1u64..1_500), 1..150),
    ) {
        let (cra, rbdc, volume, fca) = categories;
        let entitlement = Entitlement {
            cra: BitRate::kbit(16 * cra),
            rbdc: BitRate::kbit(160 * rbdc),
            volume: [Volume::None, Volume::Added, Volume::Absolute][usize::from(volume)],
            fca,
        };
        let shared = OnDemand {
            terminals: 3,
            header: Bytes(4),
            signalling: Signalling { loss, contention, size: Bytes(size) },
            others: Some(Others { terminals: 2, rate: BitRate::kbit(40) }),
            ..link(entitlement)
        };
        prop_assume!(shared.check().is_ok());
        let leg = Leg { rate: Some(BitRate::kbit(320)), queue: Bytes(20_000), supply: Supply::OnDemand(Arc::new(shared)), ..Leg::transparent() };
        let run = || {
            let (mut link, mut now, mut out) = (Direction::new(leg.clone(), seed), Duration::ZERO, Vec::new());
            for (n, (gap, terminal, size)) in packets.iter().enumerate() {
                now += Duration::from_micros(*gap);
                out.extend(std::iter::from_fn(|| link.poll_transmit(now)));
                link.handle_labelled(now, Bytes(*size), Label { terminal: *terminal, ..Label::default() }, n);
            }
            for _ in 0..400 {
                now += 50 * MS;
                out.extend(std::iter::from_fn(|| link.poll_transmit(now)));
            }
            (out, link.counters(), link.under_way(), now)
        };
        let (out, counters, under_way, end) = run();
        prop_assert_eq!(packets.len() as u64, out.len() as u64 + under_way as u64 + counters.drops());
        for terminal in 0..3 {
            prop_assert!(out.iter().filter(|sent| packets[sent.packet].1 == terminal).is_sorted_by_key(|sent| sent.packet));
        }
        let frames = end.as_millis() as u64 / 50 + 1;
        // Twenty slots, and what requests take of them: with slots of their own, those of five terminals.
        let most = 2000 - (contention.map_or(5, u64::from) * size).div_ceil(100) * 100;
        prop_assert!(counters.given.0 <= frames * most && counters.sent.bytes <= counters.given);
        let mut by_frame = std::collections::HashMap::<u128, u64>::new();
        for sent in &out {
            // Its last fragment's superframe; slots end within theirs.
            *by_frame.entry((sent.due - Duration::from_nanos(1)).as_millis() / 50).or_default() += sent.size.0.min(100);
        }
        prop_assert!(by_frame.values().all(|bytes| *bytes <= most));
        let (again, ..) = run();
        prop_assert_eq!(again, out);
    }
}
