//! Delay that varies, and links so slow that a packet takes long: neither is a queue, and neither makes one.

use std::time::Duration;

use farhop_congestion::{Choice, Saved};
use farhop_orbit::{Profile, Way};
use farhop_units::{BitRate, Bytes};

use crate::simulation::scenes::{LONG, controller};
use crate::simulation::{Object, Simulation};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn geo() -> Profile {
    let mut profile = Profile::symmetric_delay("geo", BitRate::mbit(8), BitRate::mbit(2), ms(250));
    profile.forward.queue = Bytes(600_000);
    profile
}

/// `bytes` under way; each way takes up to `jitter` ms longer.
fn begun(choice: Choice, saved: Option<Saved>, jitter: u64, seed: u64, bytes: u64) -> Simulation {
    let mut simulation = Simulation::new(&geo(), seed).jittered(ms(jitter), seed);
    simulation.add(controller(choice, saved), geo().rtt(), bytes);
    simulation
}

/// Seconds that 4 MB take on fresh connections, in order.
fn fresh(choice: Choice, saved: Option<Saved>, jitter: u64) -> Vec<f64> {
    let took = |seed| {
        let mut simulation = begun(choice, saved, jitter, seed, 4_000_000);
        simulation.run_until(LONG);
        simulation.took(0, 0).unwrap_or(LONG).as_secs_f64()
    };
    let mut all: Vec<f64> = (1..=9).map(took).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn a_delay_that_varies_does_not_end_the_search_for_the_rate() {
    let steady = fresh(Choice::Bbr, None, 0);
    assert!(steady[8] <= 7.2, "{steady:?}");
    for jitter in [30, 60, 120] {
        let (bbr, cubic) = (fresh(Choice::Bbr, None, jitter), fresh(Choice::Cubic, None, jitter));
        let median = cubic[4];
        let most = [1.15 * median, 1.5 * median];
        assert!(bbr[4] <= most[0] && bbr[8] <= most[1], "{jitter} ms: {bbr:?}, cubic {cubic:?}");
    }
}

#[test]
fn nor_does_it_keep_what_is_known_of_the_path_from_being_used() {
    for jitter in [0, 60, 120] {
        let mut earlier = begun(Choice::Bbr, None, jitter, 77, 20_000_000);
        earlier.run_until(LONG);
        let saved = earlier.controller(0).observed();
        let took = fresh(Choice::Bbr, saved, jitter);
        assert!(took[8] <= 6.5, "{jitter} ms: {took:?} from {saved:?}");
    }
}

#[test]
fn a_long_transfer_fills_the_link_and_no_more_queue_than_the_delay_varies_by() {
    for (jitter, most_kb) in [(0, 160), (30, 220), (60, 350), (120, 480)] {
        for seed in 1..=3 {
            let mut simulation = begun(Choice::Bbr, None, jitter, seed, 1_000_000_000);
            simulation.run_until(ms(20_000));
            let before = simulation.delivered(0);
            simulation.path().0.take_counters(Way::Forward);
            simulation.run_until(ms(80_000));
            let used = (simulation.delivered(0) - before) as f64 / 60e6;
            let peak = simulation.path().0.counters(Way::Forward).queue_peak.0 / 1000;
            assert!(used >= 0.9 && peak <= most_kb, "{jitter} ms, seed {seed}: {used:.3}, {peak} KB");
        }
    }
}

#[test]
fn on_a_slow_link_what_is_urgent_waits_for_a_few_packets() {
    for (kbit, packets) in [(64, 5), (256, 10)] {
        let rate = BitRate::kbit(kbit);
        let profile = Profile::symmetric_delay("slow", rate, rate, ms(300));
        let mut simulation = Simulation::new(&profile, 1);
        simulation.add(controller(Choice::Bbr, None), profile.rtt(), 100_000_000);
        let bound = profile.rtt() + rate.time_for(Bytes(packets * 1228));
        for number in 1..=20 {
            simulation.ask(0, Object { bytes: 500, urgent: true, at: ms(10_000 + 7_300 * number) });
        }
        simulation.run_until(ms(20_000));
        simulation.path().0.take_counters(Way::Forward);
        simulation.run_until(ms(180_000));
        let used = simulation.path().0.counters(Way::Forward).delivered.bytes.0 as f64;
        assert!(used >= 0.9 * rate.bytes_in(ms(160_000)).0 as f64, "{rate}: {used} bytes");
        let waits: Vec<Option<Duration>> = (1..=20).map(|object| simulation.took(0, object)).collect();
        let late = waits.iter().flatten().filter(|took| **took > bound).count();
        assert!(late == 0 && waits.iter().all(Option::is_some), "{rate}, {bound:?}: {waits:?}");
    }
}

#[test]
fn on_shorter_paths_a_delay_that_varies_by_more_than_it_is_long_costs_little() {
    for (delay, mbit, jitter) in [(15, 20, 30), (15, 20, 60), (75, 20, 60)] {
        let rate = BitRate::mbit(mbit);
        let mut profile = Profile::symmetric_delay("short", rate, BitRate::mbit(mbit / 4), ms(delay));
        profile.forward.queue = rate.bytes_in(ms(150));
        let started = |choice, seed| {
            let mut simulation = Simulation::new(&profile, seed).jittered(ms(jitter), seed);
            simulation.add(controller(choice, None), profile.rtt(), rate.bytes_in(ms(4_000)).0);
            simulation
        };
        let took = |choice, seed| {
            let mut simulation = started(choice, seed);
            simulation.run_until(LONG);
            simulation.took(0, 0).unwrap_or(LONG).as_secs_f64()
        };
        let cubic = took(Choice::Cubic, 1);
        let all = [1, 2, 3].map(|seed| took(Choice::Bbr, seed));
        assert!(
            all.iter().all(|took| *took <= 1.3 * cubic),
            "{delay} ms, {jitter} ms: {all:?}, cubic {cubic}"
        );

        let mut simulation = started(Choice::Bbr, 4);
        simulation.ask(0, Object { bytes: 1_000_000_000, urgent: false, at: Duration::ZERO });
        simulation.run_until(ms(5_000));
        let before = simulation.delivered(0);
        simulation.path().0.take_counters(Way::Forward);
        simulation.run_until(ms(20_000));
        let used = (simulation.delivered(0) - before) as f64 / rate.bytes_in(ms(15_000)).0 as f64;
        let counters = simulation.path().0.counters(Way::Forward);
        let lost = counters.queue_drops.packets as f64 / counters.sent.packets as f64;
        assert!(used >= 0.85 && lost <= 0.03, "{delay} ms, {jitter} ms: {used:.2}, {lost:.3}");
    }
}

#[test]
fn a_rate_that_falls_leaves_no_queue_and_one_that_comes_back_is_found() {
    let mut slow = geo();
    slow.forward.rate = Some(BitRate::mbit(2));
    // In cruises, probes, and while the smallest round trip is measured anew.
    for seed in 1..=6 {
        let fall = 20_000 + 1_100 * seed;
        let jitter = 30 * (seed % 4);
        let mut simulation = begun(Choice::Bbr, None, jitter, seed, 1_000_000_000);
        simulation.run_until(ms(fall));
        let (path, now) = simulation.path();
        path.switch(now, &slow);
        simulation.run_until(ms(fall + 15_000));
        let before = simulation.delivered(0);
        simulation.path().0.take_counters(Way::Forward);
        simulation.run_until(ms(fall + 35_000));
        let used = (simulation.delivered(0) - before) as f64 / 20.0 / 250_000.0;
        let peak = simulation.path().0.counters(Way::Forward).queue_peak.0 / 1000;
        let (path, now) = simulation.path();
        path.switch(now, &geo());
        simulation.run_until(ms(fall + 50_000));
        let before = simulation.delivered(0);
        simulation.run_until(ms(fall + 60_000));
        let again = (simulation.delivered(0) - before) as f64 / 10.0 / 1e6;
        assert!(
            used >= 0.9 && peak <= 150 && again >= 0.85,
            "seed {seed}, {jitter} ms: {used:.2} of the slow link, {peak} KB; then {again:.2} of the quick one"
        );
    }
}
