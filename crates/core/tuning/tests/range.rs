//! Every path between low orbit and the moon, and between a modem and a fibre: what is decided for it stays within its bounds.

use std::time::Duration;

use farhop_tuning::{
    ASSUMED_RATE, End, MOST, Measured, Parameters, Path, Report, RoundTrip, Sending, Set, Share, Source,
    Totals, Tuner, repairs,
};
use farhop_units::{BitRate, Bytes};
use proptest::prelude::*;

const UNSET: Set = Set { end: End::Remote, round_trip: None, forward: None, return_: None, repairs: true };

fn set(end: End, rtt: Duration, rate: BitRate) -> Set {
    Set { end, round_trip: Some(rtt), forward: Some(rate), return_: Some(rate), repairs: true }
}

fn seen(rtt: Duration, rate: BitRate) -> Measured {
    Measured {
        round_trip: Some(RoundTrip { least: rtt, spread: Duration::ZERO }),
        receiving: Some(rate),
        sending: Some(rate),
        ..Measured::default()
    }
}

fn fit(set: &Set, measured: &Measured) -> Parameters {
    Parameters::new(set, &Path::new(set, measured))
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Ground), Just(End::Remote)]
}

prop_compose! {
    /// Spread evenly over the magnitudes, not over the numbers.
    fn paths()(rtt in 5f64.ln()..2600f64.ln(), rate in 64e3f64.ln()..1e9f64.ln()) -> (Duration, BitRate) {
        (Duration::from_secs_f64(rtt.exp() / 1e3), BitRate(rate.exp() as u64))
    }
}

/// No window is too small for the path, and none larger than any path needs.
fn fills(parameters: &Parameters, rtt: Duration, rate: BitRate) {
    let bdp = rate.bytes_in(rtt);
    for window in [parameters.stream_window, parameters.carrier_window, parameters.send_most] {
        assert!(window >= bdp, "{window} is below the {bdp} that fill {rate} × {rtt:?}");
        assert!(window <= MOST);
    }
}

/// What holds for whatever is decided afresh.
fn is_sound(parameters: &Parameters, rtt: Duration, rate: BitRate) {
    fills(parameters, rtt, rate);
    let bdp = rate.bytes_in(rtt);
    // Memory beyond what an unknown path gets is taken only where the path needs it.
    assert!(parameters.carrier_window <= Bytes(256 << 20).max(Bytes(bdp.0 * 2)));
    assert!(parameters.stream_window <= parameters.carrier_window.max(Bytes(bdp.0 * 2)));
    assert!((1 << 8..=1 << 16).contains(&parameters.streams));
    assert!((9..=64).contains(&parameters.ack_packets));
    assert!(parameters.ack_delay <= Duration::from_millis(25).max(rtt / 16));
    assert!(parameters.keep_alive < Duration::from_secs(30), "a router may have forgotten");
    assert!(parameters.handshake > 2 * rtt, "nobody can answer in time");
    let cut = Duration::from_secs(120);
    assert!(parameters.outage >= cut + 5 * parameters.handshake, "a cut of two minutes ends requests");
    assert!(parameters.outage <= Duration::from_secs(200));
    assert!(parameters.ahead >= 2 * rtt + Duration::from_secs(6), "a tunnel comes too late");
    assert!((Bytes(1 << 20)..=Bytes(32 << 20)).contains(&parameters.socket_buffer));
    assert!(parameters.socket_buffer.0 >= (2 * bdp.0).min(32 << 20) || rate <= ASSUMED_RATE);
    assert!(parameters.initial_round_trip > rtt.min(Duration::from_millis(330)));
    assert!(parameters.idle > Duration::from_secs(170), "a session holds on for longer");
    assert!((3..=128).contains(&parameters.packet_threshold));
}

proptest! {
    #[test]
    fn a_path_that_is_set_gets_what_fills_it(end in ends(), (rtt, rate) in paths()) {
        is_sound(&fit(&set(end, rtt, rate), &Measured::default()), rtt, rate);
    }

    #[test]
    fn a_path_that_is_measured_gets_what_fills_it(end in ends(), (rtt, rate) in paths()) {
        is_sound(&fit(&Set { end, ..UNSET }, &seen(rtt, rate)), rtt, rate);
    }

    #[test]
    fn what_settings_say_wins(end in ends(), (rtt, rate) in paths(), (other, elsewhere) in paths()) {
        let set = set(end, rtt, rate);
        prop_assert_eq!(fit(&set, &seen(other, elsewhere)), fit(&set, &Measured::default()));
    }

    #[test]
    fn more_rate_and_more_distance_never_make_a_window_smaller(
        end in ends(), (rtt, rate) in paths(), (more_rtt, more_rate) in paths(),
    ) {
        let least = fit(&set(end, rtt, rate), &Measured::default());
        let most = fit(&set(end, rtt.max(more_rtt), rate.max(more_rate)), &Measured::default());
        prop_assert!(least.stream_window <= most.stream_window);
        prop_assert!(least.carrier_window <= most.carrier_window);
        prop_assert!(least.send_window <= most.send_window);
        prop_assert!(least.send_most <= most.send_most);
        prop_assert!(least.streams <= most.streams);
        prop_assert!(least.packet_threshold <= most.packet_threshold);
        prop_assert!(least.keep_alive <= most.keep_alive);
        prop_assert!(least.handshake <= most.handshake);
        prop_assert!(least.neighbours.stream <= most.neighbours.stream);
    }

    /// A path that changes all the time: each of these in turn, as an end would see it.
    #[test]
    fn whatever_came_before_no_window_is_too_small(end in ends(), legs in prop::collection::vec(paths(), 1..12)) {
        let mut tuner = Tuner::new(Set { end, ..UNSET }, Measured::default());
        let (mut now, mut totals) = (Duration::ZERO, Totals::default());
        for (rtt, rate) in legs {
            // A handover is believed after two minutes; each leg lasts long enough.
            for _ in 0..40 {
                let step = Duration::from_secs(5);
                now += step;
                let bytes = rate.bytes_in(step);
                totals.received += bytes;
                totals.received_packets += (bytes.0 / 1250).max(16);
                totals.round_trip = Some((rtt, totals.round_trip.map_or(rtt, |(_, least)| least.min(rtt))));
                tuner.hear(Report { arriving: rate, lost: Share(0) });
                tuner.observe(now, &totals, 0);
            }
            let least = tuner.measured().round_trip.unwrap().least;
            let seen = tuner.measured().receiving.unwrap();
            prop_assert!(seen.0 as f64 >= rate.0 as f64 * 0.99);
            fills(tuner.parameters(), least, rate);
        }
    }
}

/// A table that a reviewer can read: what nobody set and nobody has measured, and what follows once it has been.
#[test]
fn the_first_parameters_fit_50_mbit_over_a_geostationary_satellite_and_take_bounded_memory() {
    let first = fit(&UNSET, &Measured::default());
    is_sound(&first, Duration::from_millis(600), ASSUMED_RATE);
    assert_eq!((first.stream_window, first.carrier_window), (Bytes(4_687_500), Bytes(256 << 20)));
    assert!(first.carrier_window.0 / first.stream_window.0 > 40, "streams that nobody reads stop no others");
    assert_eq!((first.send_window, first.send_most), (Bytes(1_250_000), Bytes(8 << 20)));
    assert_eq!(first.handshake, Duration::from_secs(8));
    let row = |rtt: u64, rate| {
        let it = fit(&UNSET, &seen(Duration::from_millis(rtt), rate));
        (it.stream_window.0 / 1000, it.streams, it.ack_packets, it.packet_threshold, it.keep_alive.as_secs())
    };
    //                                                stream  streams ack lost alive
    assert_eq!(row(5, BitRate::mbit(1)), (1048, 1024, 9, 3, 5));
    assert_eq!(row(40, BitRate::mbit(300)), (3000, 1024, 15, 128, 5));
    assert_eq!(row(600, BitRate::kbit(64)), (4687, 1024, 39, 128, 5));
    assert_eq!(row(600, BitRate::mbit(1000)), (93750, 18310, 64, 128, 5));
    assert_eq!(row(2600, BitRate::mbit(1000)), (406250, 65536, 64, 128, 15));
}

#[test]
fn a_little_more_or_less_changes_nothing_and_a_lot_does_at_once() {
    let mut tuner = Tuner::new(UNSET, seen(Duration::from_millis(600), BitRate::mbit(100)));
    let mut now = Duration::ZERO;
    let mut totals = Totals::default();
    let mut carry = |tuner: &mut Tuner, rate: BitRate, seconds: u64| {
        let mut changes = 0;
        for _ in 0..seconds {
            now += Duration::from_secs(1);
            totals.received += rate.bytes_in(Duration::from_secs(1));
            totals.received_packets += 1000;
            totals.round_trip = Some((Duration::from_millis(620), Duration::from_millis(600)));
            changes += u32::from(tuner.observe(now, &totals, 0));
        }
        changes
    };
    assert_eq!(carry(&mut tuner, BitRate::mbit(110), 20), 0);
    assert_eq!(tuner.parameters().stream_window, Bytes(15_000_000));
    assert_eq!(carry(&mut tuner, BitRate::mbit(150), 20), 1);
    assert_eq!(tuner.parameters().stream_window, Bytes(22_500_000));
    assert_eq!(tuner.first().stream_window, Bytes(15_000_000), "QUIC does not change it under way");
}

#[test]
fn a_carrier_is_outgrown_where_its_streams_could_use_half_as_much_again_and_the_next_one_is_not() {
    //                       round trip, ms; rate, Mbit/s; outgrown
    for (rtt, rate, outgrown) in [(5, 1000, false), (600, 40, false), (600, 100, true), (2600, 2, true)] {
        let (rtt, rate) = (Duration::from_millis(rtt), BitRate::mbit(rate));
        let mut tuner = Tuner::new(UNSET, Measured::default());
        let observe = |tuner: &mut Tuner| {
            let mut totals = Totals { round_trip: Some((rtt, rtt)), ..Totals::default() };
            for second in 1..=10 {
                totals.received += rate.bytes_in(Duration::from_secs(1));
                totals.received_packets += 1000;
                tuner.observe(Duration::from_secs(second), &totals, 0);
            }
        };
        observe(&mut tuner);
        assert_eq!(tuner.has_outgrown(), outgrown, "{rate} over {rtt:?}");
        let mut next = Tuner::new(UNSET, tuner.measured());
        observe(&mut next);
        assert!(!next.has_outgrown(), "{rate} over {rtt:?}, on the next carrier");
    }
}

#[test]
fn a_way_that_grows_long_under_way_is_no_reason_for_another_carrier_until_it_is_made_use_of() {
    let mut tuner = Tuner::new(UNSET, Measured::default());
    let mut totals = Totals::default();
    let mut carry = |tuner: &mut Tuner, seconds: std::ops::Range<u64>, round_trip: u64, rate: BitRate| {
        for second in seconds {
            let round_trip = Duration::from_millis(round_trip);
            totals.round_trip = Some((round_trip, round_trip));
            totals.received += rate.bytes_in(Duration::from_secs(1));
            totals.received_packets += 1000;
            tuner.observe(Duration::from_secs(second), &totals, 0);
        }
    };
    carry(&mut tuner, 1..10, 5, BitRate(100_000));
    assert!(!tuner.has_outgrown());
    carry(&mut tuner, 10..200, 2700, BitRate(100_000));
    assert!(tuner.parameters().stream_window > tuner.first().stream_window, "as if it were the moon");
    assert!(!tuner.has_outgrown(), "nothing that large has come");
    carry(&mut tuner, 200..300, 2700, BitRate::mbit(12));
    assert!(tuner.has_outgrown());
}

#[test]
fn room_for_streams_grows_with_those_that_are_open() {
    let mut tuner = Tuner::new(UNSET, Measured::default());
    let mut limits = Vec::new();
    for open in [10, 600, 1_500, 5_000, 40_000, 10] {
        tuner.observe(Duration::ZERO, &Totals::default(), open);
        limits.push(tuner.parameters().streams);
    }
    assert_eq!(limits, [1024, 1024, 3000, 10_000, 65_536, 1024]);
}

#[test]
fn ground_gives_a_carrier_of_which_nothing_is_known_no_more_streams_than_a_page_needs() {
    let ground = Set { end: End::Ground, ..UNSET };
    assert_eq!(fit(&ground, &Measured::default()).streams, 256);
    let wide = seen(Duration::from_millis(600), BitRate::mbit(100));
    assert_eq!(fit(&ground, &wide).streams, 1831);
}

#[test]
fn the_peer_is_told_what_is_new_and_not_more_often_than_it_helps() {
    let mut tuner = Tuner::new(UNSET, Measured::default());
    let (mut totals, mut reports) = (Totals::default(), Vec::new());
    for tenth in 1..=600u64 {
        let now = Duration::from_millis(100 * tenth);
        totals.received += BitRate::mbit(8).bytes_in(Duration::from_millis(100));
        totals.received_packets += 80;
        totals.sent_packets += 20;
        totals.lost_packets += u64::from(tenth % 10 == 0 && tenth > 300);
        tuner.observe(now, &totals, 0);
        reports.extend(tuner.poll_report(now).map(|report| (tenth, report)));
    }
    let (first, later) = reports.split_first().unwrap();
    assert_eq!(first.1, Report { arriving: BitRate::mbit(8), lost: Share(0) });
    // Five of a thousand packets are lost from the middle on: half a per cent, told when it shows and not again.
    assert!(later.len() <= 1, "{reports:?}");
}

#[test]
fn every_decision_has_its_reason_in_a_sentence_that_names_what_it_follows_from() {
    let tuner = Tuner::new(UNSET, seen(Duration::from_millis(648), BitRate::kbit(7_912)));
    let told = tuner.told(None);
    let stream = &told.decided[0];
    assert_eq!((stream.parameter.as_str(), stream.value.to_string()), ("stream window", "5.06 MB".into()));
    assert_eq!(
        stream.because,
        "50 Mbit/s (assumed) × 648 ms (measured) = 4.05 MB fill the path; a quarter more keeps it full, 1 MiB at the least"
    );
    assert!(
        told.decided.iter().all(|decision| decision.because.len() > 20 && !decision.because.ends_with('.'))
    );
    assert_eq!(told.measured.forward_bps, Some(7_912_000));
}

#[test]
fn the_controller_and_what_it_makes_of_the_path_are_told_with_the_rest() {
    let tuner = Tuner::new(UNSET, Measured::default());
    let sending =
        Sending { controller: "bbr", kept: None, window: Bytes(641_000), send_window: Bytes(690_000) };
    let row = |sending: &Sending, parameter: &str| {
        let rows = tuner.told(Some(sending)).decided;
        rows.into_iter().find(|row| row.parameter == parameter).unwrap()
    };
    assert_eq!(row(&sending, "send window").in_use.to_string(), "690 KB");
    let searched = row(&sending, "in flight");
    assert_eq!((searched.value.to_string(), searched.from), ("641 KB".into(), Source::Measured));
    assert_eq!(searched.because, "bbr: what it takes the path to carry in a round trip; no rate is kept to");
    let kept = row(&Sending { controller: "rate", kept: Some(BitRate::mbit(8)), ..sending }, "in flight");
    assert_eq!(kept.from, Source::Set);
    assert_eq!(kept.because, "rate: what is sent keeps to 8 Mbit/s; this is more than fills the path");
    assert!(tuner.told(None).decided.iter().all(|row| row.parameter != "in flight"), "not yet known");
}

#[test]
fn socket_buffers_follow_what_is_seen_beyond_the_assumed_rate_and_nothing_below_it() {
    let moon = Duration::from_millis(2600);
    let buffer = |measured: &Measured| fit(&UNSET, measured).socket_buffer;
    let unknown = buffer(&Measured::default());
    assert_eq!(unknown, Bytes(7_500_000));
    assert_eq!(buffer(&seen(moon, BitRate::mbit(2))), unknown);
    assert_eq!(buffer(&seen(Duration::from_millis(600), BitRate::mbit(100))), Bytes(15_000_000));
    assert_eq!(buffer(&seen(moon, BitRate::mbit(1000))), Bytes(32 << 20));
}

/// Ground at 600 ms: packets after which it asks to be told, and how soon, in microseconds.
#[test]
fn acknowledgements_spare_a_return_link_that_is_said_to_be_narrow_and_no_other() {
    let ground = Set { end: End::Ground, ..UNSET };
    let rtt = Duration::from_millis(600);
    let asks = |set: &Set, measured: &Measured| {
        let it = fit(set, measured);
        (it.ack_packets, it.ack_delay.as_micros())
    };
    for back in [None, Some(64), Some(1000)] {
        // What was seen may be all that was wanted.
        let measured = Measured {
            receiving: back.map(BitRate::kbit),
            sending: Some(BitRate::mbit(8)),
            ..seen(rtt, BitRate(0))
        };
        assert_eq!(asks(&ground, &measured), (39, 25_000), "{back:?}");
    }
    let set = |forward, back| {
        let set = Set { forward: Some(BitRate::mbit(forward)), return_: Some(BitRate::kbit(back)), ..ground };
        asks(&set, &Measured { round_trip: seen(rtt, BitRate(0)).round_trip, ..Measured::default() })
    };
    assert_eq!(set(8, 512), (9, 25_000));
    assert_eq!(set(8, 64), (25, 37_500));
    assert_eq!(set(20, 256), (43, 25_000));
}

#[test]
fn what_repairs_take_is_told_with_the_loss_that_calls_for_it() {
    let said = |share, loss, most| {
        let row = repairs(share, loss, most);
        format!("{} {}", row.value, row.because)
    };
    assert_eq!(
        said(0.081, 0.012, 0.25),
        "8.1 % 1.2 % of the packets are lost (measured); what makes that good but for rare runs, 25 % at the most (fec_most)"
    );
    assert_eq!(
        said(0.0, 0.0, 0.25),
        "0 % 0 % of the packets are lost (measured): nothing is repaired below 0.1 %, and 25 % at the most (fec_most)"
    );
    assert!(said(0.0, 0.5, 0.25).contains("more than 25 % of repairs"));
    assert!(said(0.0, 0.0, 0.0).contains("fec is off"));
}
