//! What a session does about silence, in virtual time: noticed soon, borne long, and over as soon as the link is back.

mod pair;

use std::time::Duration;

use farhop_htotp::session::{Ask, Config, Event, Probe};
use pair::{GROUND, HALF, Pair, REMOTE, geo, get};
use proptest::prelude::*;

#[test]
fn silence_is_noticed_within_three_seconds_while_something_is_open_and_borne_for_two_minutes_and_a_half() {
    let mut pair = geo();
    pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
    pair.run(Duration::from_secs(1));
    pair.cut = true;
    let heard_last = pair.now;
    pair.run(Duration::from_secs(200));
    let events = pair.events(REMOTE);
    let after = |wanted| events.iter().find(|(_, e)| *e == wanted).expect("noticed").0 - heard_last;
    assert!(after(Event::Silent) <= Duration::from_secs(3), "{:?}", after(Event::Silent));
    assert_eq!(after(Event::Dead) - after(Event::Silent), Probe::default().hold);
}

/// The time between two probes, and that of the packets themselves.
const PROBES: Duration = Duration::from_millis(260);

#[test]
fn the_end_of_an_outage_is_noticed_after_a_probe_and_a_round_trip_however_long_it_was() {
    for seconds in [3, 10, 30, 60, 120] {
        let mut pair = geo();
        pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
        pair.run(Duration::from_secs(1));
        pair.cut = true;
        let sent = pair.sent(REMOTE);
        pair.run(Duration::from_secs(1 + seconds));
        pair.cut = false;
        assert_eq!(pair.sent(REMOTE), sent);
        let restored = pair.now;
        pair.run(restored + Duration::from_secs(5));
        // Ground hears the first probe that crosses, and asks back.
        let asked = pair.probed(GROUND)[0] - restored;
        assert!(asked <= HALF + PROBES, "{seconds} s: {asked:?}");
        assert!(pair.probed(REMOTE)[0] - restored <= HALF * 2 + PROBES);
        let events = pair.events(REMOTE);
        let back = events.iter().find_map(|(at, e)| matches!(e, Event::Back { .. }).then_some(*at));
        let back = back.expect("the peer is heard") - restored;
        assert!(back <= HALF * 2 + PROBES, "{seconds} s: {back:?}");
        assert!(
            events.iter().any(|(_, e)| *e == Event::Silent) && !events.iter().any(|(_, e)| *e == Event::Dead)
        );
    }
}

#[test]
fn the_shorter_the_round_trip_the_sooner_the_end_of_an_outage_is_noticed() {
    let ms = Duration::from_millis;
    for (round_trip, pause) in [(5, 25), (20, 25), (80, 80), (650, 250)] {
        let mut pair = Pair::new(ms(round_trip) / 2, None, Config::default());
        pair.remote().handle_round_trip(ms(round_trip));
        pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
        pair.run(ms(1000));
        pair.cut = true;
        pair.run(ms(9111));
        pair.cut = false;
        pair.run(ms(15_000));
        let asked = pair.probed(GROUND)[0] - ms(9111);
        let most = ms(round_trip / 2 + pause + 10);
        assert!(asked <= most, "{round_trip} ms: {asked:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the cuts: silence is told once for each that lasts, its end a probe and a round trip after the link's
    /// return, and nothing is given up that comes back in time.
    #[test]
    fn each_cut_is_told_and_each_return(cuts in proptest::collection::vec((3_000u64..20_000, 1u64..120_000), 1..6)) {
        let probe = Probe::default();
        let mut pair = geo();
        pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
        pair.run(Duration::from_secs(2));
        pair.events(REMOTE);
        for (pause, long) in cuts {
            let from = pair.now + Duration::from_millis(pause);
            pair.run(from);
            prop_assert!(pair.events(REMOTE).iter().all(|(_, e)| !matches!(e, Event::Silent | Event::Dead)));
            pair.cut = true;
            let restored = from + Duration::from_millis(long);
            pair.run(restored);
            pair.cut = false;
            pair.run(restored + HALF * 2 + PROBES);
            let events = pair.events(REMOTE);
            let times = |wanted: fn(&Event) -> bool| -> Vec<Duration> {
                events.iter().filter(|(_, e)| wanted(e)).map(|(at, _)| *at).collect()
            };
            let silent = times(|e| *e == Event::Silent);
            prop_assert_eq!(silent.len(), times(|e| matches!(e, Event::Back { .. })).len(), "{:?}", events);
            // The last word from before the cut may have been under way, and the first after it may be an answer to one.
            let certainly = probe.active + probe.patience + HALF * 2 + PROBES;
            prop_assert!(silent.len() == 1 || (silent.is_empty() && restored - from <= certainly));
            let slack = HALF * 2 + PROBES;
            prop_assert!(silent.is_empty() || silent[0] + slack >= from + probe.patience, "{:?} {:?}", silent, from);
            prop_assert!(times(|e| *e == Event::Dead).is_empty());
        }
    }
}

#[test]
fn a_peer_that_is_merely_idle_is_not_taken_for_silent() {
    let mut pair = geo();
    pair.run(Duration::from_secs(100));
    pair.remote().ask(Duration::from_secs(100), Ask::default(), &get("/"));
    pair.run(Duration::from_secs(110));
    assert!(!pair.events(REMOTE).iter().any(|(_, e)| matches!(e, Event::Silent | Event::Back { .. })));
}

#[test]
fn an_idle_carrier_stays_up_on_a_few_bytes_a_minute() {
    let mut pair = geo();
    pair.run(Duration::from_secs(5));
    let before = pair.sent(REMOTE);
    pair.run(Duration::from_secs(65));
    assert!(!pair.events(REMOTE).iter().any(|(_, e)| *e == Event::Dead));
    assert!(pair.sent(REMOTE) - before < 64, "{} bytes", pair.sent(REMOTE) - before);
}

#[test]
fn a_silence_of_one_round_trip_over_a_slow_path_is_not_death() {
    let probe = Probe { patience: Duration::from_secs(6), ..Probe::default() };
    let mut pair = Pair::new(Duration::from_millis(1300), None, Config { probe, ..Config::default() });
    pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
    pair.run(Duration::from_secs(60));
    assert!(!pair.events(REMOTE).iter().any(|(_, e)| *e == Event::Dead));
}
