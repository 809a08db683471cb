//! Paths that are other than they were a moment ago, and shorter ones than a satellite's.

use std::time::Duration;

use farhop_congestion::Choice;
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
fn a_second_download_on_a_new_path() {
    let geo = link(8, ms(650), 1.0);
    let mut simulation = on(&geo);
    ask(&mut simulation, 2_000_000, ms(0));
    simulation.run_until(ms(12_000));
    let first = dropped(&mut simulation);
    println!("window {}, {:?} first took {:?}", simulation.controller(0).window().0, simulation.controller(0), simulation.took(0, 1));
    for at in 0..12 {
        ask(&mut simulation, if at == 0 { 10_000_000 } else { 1 }, ms(12_000));
    }
    simulation.run_until(LONG);
    println!("second: dropped {first} then {}, peak {} took {:?}", dropped(&mut simulation), simulation.path().0.counters(Way::Forward).queue_peak.0, simulation.took(0, 2));
}

#[test]
fn a_longer_way() {
    for (before, rate) in [(200, 20), (200, 8), (300, 8), (500, 8)] {
        let near = link(rate, ms(before), 1.0);
        for warm in [false, true] {
            let mut simulation = on(&near);
            ask(&mut simulation, if warm { 8_000_000 } else { 4_000 }, ms(0));
            simulation.run_until(ms(20_000));
            let (path, now) = simulation.path();
            path.switch(now, &link(8, ms(650), 1.0));
            ask(&mut simulation, 2_000_000, ms(20_000));
            simulation.run_until(LONG);
            println!("{before} ms {rate} warm {warm}: {:?} dropped {}", simulation.took(0, 2), dropped(&mut simulation));
        }
    }
}

#[test]
fn a_short_way() {
    for (mbit, rtt, queues) in [(100, 5, 1.0), (100, 5, 10.0), (100, 20, 1.0), (50, 5, 1.0), (20, 40, 1.0), (20, 40, 4.0)] {
        let leo = link(mbit, ms(rtt), queues);
        let mut simulation = on(&leo);
        ask(&mut simulation, 60_000_000, ms(0));
        simulation.run_until(LONG);
        println!("{mbit} Mbit/s {rtt} ms, {queues}: {:?}, dropped {} of 50000, peak {} KB, window {} KB", simulation.took(0, 1), dropped(&mut simulation), simulation.path().0.counters(Way::Forward).queue_peak.0/1000, simulation.controller(0).window().0/1000);
    }
}
