//! Paths that are other than they were a moment ago, and shorter ones than a satellite's.

use std::time::Duration;

use farhop_congestion::{Choice, Saved};
use farhop_orbit::{Profile, Way};
use farhop_units::{BitRate, Bytes};

use crate::simulation::scenes::{LONG, controller};
use crate::simulation::{Object, Simulation};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A link of so many Mbit/s and this round trip, whose queue holds what fills the path so many times.
fn link(mbit: u64, rtt: Duration, queues: f64) -> Profile {
    let rate = BitRate::mbit(mbit);
    let mut profile = Profile::symmetric_delay("link", rate, rate, rtt / 2);
    profile.forward.queue = Bytes((queues * rate.bytes_in(rtt).0 as f64) as u64);
    profile
}

fn on(profile: &Profile) -> Simulation {
    let mut simulation = Simulation::new(profile, 1);
    simulation.add(controller(Choice::Bbr, None), profile.rtt(), 0);
    simulation
}

fn ask(simulation: &mut Simulation, bytes: u64, at: Duration) {
    simulation.ask(0, Object { bytes, urgent: false, at });
}

fn dropped(simulation: &mut Simulation) -> u64 {
    simulation.path().0.counters(Way::Forward).queue_drops.packets
}

#[test]
fn what_follows_a_download_that_ended_in_the_search_overflows_no_queue() {
    let mut simulation = on(&link(8, ms(650), 1.0));
    ask(&mut simulation, 2_000_000, ms(0));
    simulation.run_until(ms(12_000));
    let window = simulation.controller(0).window().0;
    assert!(dropped(&mut simulation) == 0 && window <= 800_000, "{window} bytes for what comes next");
    ask(&mut simulation, 10_000_000, ms(12_000));
    simulation.run_until(LONG);
    let (took, dropped) = (simulation.took(0, 2), dropped(&mut simulation));
    // A search that nothing has ended goes on, by what it costs any other.
    assert!(took <= Some(ms(12_000)) && dropped <= 150, "{took:?}, {dropped} packets dropped");
}

#[test]
fn a_way_that_becomes_longer_is_filled_within_a_few_round_trips() {
    for (before, mbit) in [(200, 20), (200, 8), (300, 8), (500, 8)] {
        // After a few bytes, where all is still to be found out, and in the middle of things.
        for (bytes, most) in [(4_000, 8_000), (8_000_000, 4_500)] {
            let mut simulation = on(&link(mbit, ms(before), 1.0));
            ask(&mut simulation, bytes, ms(0));
            simulation.run_until(ms(20_000));
            let (path, now) = simulation.path();
            path.switch(now, &link(8, ms(650), 1.0));
            ask(&mut simulation, 2_000_000, ms(20_000));
            simulation.run_until(LONG);
            let (took, dropped) = (simulation.took(0, 2), dropped(&mut simulation));
            let case = format!("{mbit} Mbit/s, {before} ms, after {bytes} bytes");
            assert!(took <= Some(ms(most)) && dropped <= 150, "{case}: {took:?}, {dropped} dropped");
        }
    }
}

/// What is kept back of acknowledgements is far less there than 25 ms bring.
#[test]
fn a_short_way_is_filled_without_what_its_queue_cannot_take() {
    for (mbit, rtt) in [(100, 5), (50, 5), (100, 20), (20, 40)] {
        for queues in [1.0, 4.0] {
            let mut simulation = on(&link(mbit, ms(rtt), queues));
            let bytes = 600_000 * mbit;
            ask(&mut simulation, bytes, ms(0));
            simulation.run_until(LONG);
            let took = simulation.took(0, 1).map_or(f64::INFINITY, |took| took.as_secs_f64());
            let ratio = took / (8.0 * bytes as f64 / (mbit as f64 * 1e6));
            let lost = dropped(&mut simulation) as f64 / (bytes as f64 / 1200.0);
            assert!(
                ratio <= 1.08 && lost <= 0.03,
                "{mbit} Mbit/s, {rtt} ms, {queues} queues: {ratio:.3} × the limit, {:.1} % dropped",
                lost * 100.0
            );
        }
    }
}

/// Acknowledgements wait in the queue that an upload's search fills, and nobody tells that delay from one of the search's own:
/// alone the downloads take 13 seconds.
#[test]
fn an_upload_that_begins_with_downloads_holds_up_their_search_by_some_seconds() {
    let mut profile = Profile::symmetric_delay("link", BitRate::mbit(20), BitRate::mbit(5), ms(300));
    profile.forward.queue = BitRate::mbit(20).bytes_in(ms(600));
    let mut simulation = on(&profile);
    for _ in 0..4 {
        ask(&mut simulation, 5_000_000, ms(0));
    }
    let upload = Object { bytes: 4_000_000, urgent: false, at: ms(0) };
    let upload = simulation.connect_on(Way::Return, controller(Choice::Bbr, None), profile.rtt(), &[upload]);
    simulation.run_until(LONG);
    let (down, up) = (simulation.took(0, 4), simulation.took(upload, 0));
    assert!(down <= Some(ms(21_000)) && up <= Some(ms(10_500)), "{down:?}, {up:?}");
}

/// What a carrier that ended within its search leaves, or one of yesterday, is no end of the next one's search.
#[test]
fn what_is_little_known_of_a_path_makes_nothing_slower_than_knowing_nothing() {
    let profile = link(20, ms(600), 1.0);
    let took = |saved: Option<Saved>| {
        let mut simulation = Simulation::new(&profile, 1);
        simulation.add(controller(Choice::Bbr, saved), profile.rtt(), 3_000_000);
        simulation.run_until(LONG);
        let took = simulation.took(0, 0).unwrap_or(LONG);
        (took, simulation.controller(0).observed())
    };
    let (unknown, _) = took(None);
    let mut cut_off = on(&profile);
    ask(&mut cut_off, 12_000_000, ms(0));
    cut_off.run_until(ms(4_000));
    let little = cut_off.controller(0).observed().expect("enough has crossed");
    assert_eq!(little.full, None, "the search was not at its end");
    let mut long = on(&profile);
    ask(&mut long, 40_000_000, ms(0));
    long.run_until(LONG);
    let full = long.controller(0).observed().expect("enough has crossed");
    assert!(full.full.is_some());
    for age in [0, 4, 8, 12, 16] {
        let aged = |saved: Saved| saved.aged(Duration::from_secs(3600 * age)).expect("younger than a day");
        for saved in [little, full].map(aged) {
            let (known, _) = took(Some(saved));
            assert!(known <= unknown, "{age} h, {saved:?}: {known:?}, with nothing known {unknown:?}");
        }
    }
}
