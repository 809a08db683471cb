//! The contracted rate. Each table is what a reviewer compares: a change in behaviour is a change of a row.

use std::time::Duration;

use farhop_congestion::{Contract, Paced};
use farhop_orbit::{Profile, Way};
use farhop_units::{BitRate, Bytes};

use crate::simulation::Simulation;

const MEGABYTE: u64 = 1_000_000;
const LONG: Duration = Duration::from_secs(600);

fn contract(profile: &Profile) -> Contract {
    Contract { rate: profile.forward.rate.expect("a profile with a rate"), rtt: profile.rtt() }
}

fn paced(contract: Contract) -> Box<Paced> {
    Box::new(Paced::new(contract, Bytes(1200)))
}

fn seconds(at: u64) -> Duration {
    Duration::from_secs(at)
}

/// Seconds until `bytes` are acknowledged, packets the queue dropped, KB of queue at its peak.
fn transfer(profile: &Profile, contract: Contract, bytes: u64) -> (f64, u64, u64) {
    let mut simulation = Simulation::new(profile, 1);
    simulation.add(paced(contract), contract.rtt, bytes);
    simulation.run_until(LONG);
    let took = simulation.took(0, 0).expect("the transfer ends").as_secs_f64();
    let counters = simulation.path().0.counters(Way::Forward);
    ((took * 100.0).round() / 100.0, counters.queue_drops.packets, counters.queue_peak.0 / 1000)
}

fn compare(actual: &[String], expected: &[&str]) {
    assert_eq!(actual, expected, "\n{}\n", actual.join("\n"));
}

#[test]
fn a_transfer_takes_little_longer_than_the_link_needs() {
    let mut rows = Vec::new();
    for (name, queue_kb, loss) in [
        ("geo-hylas2", 600, 0.0),
        ("geo-hylas2", 200, 0.0),
        ("geo-hylas2", 100, 0.0),
        ("geo-hylas2", 600, 0.01),
        ("geo-hylas2", 600, 0.03),
        ("geo-20m", 1500, 0.0),
        ("geo-20m", 1500, 0.01),
        ("geo-2m", 150, 0.0),
        ("geo-256k", 64, 0.0),
    ] {
        let mut profile = Profile::named(name).expect("a known profile").with_loss(loss, 0.0);
        profile.forward.queue = Bytes(queue_kb * 1000);
        let contract = contract(&profile);
        let bytes = if name == "geo-256k" { MEGABYTE / 4 } else { 2 * MEGABYTE };
        let limit = contract.rtt + contract.rate.time_for(Bytes(bytes));
        let (took, drops, peak) = transfer(&profile, contract, bytes);
        rows.push(format!(
            "{name:10} queue {queue_kb:4} KB  loss {:1} %  limit {:5.2} s  took {took:5.2} s  {drops:3} dropped  {peak:3} KB queued",
            loss * 100.0,
            limit.as_secs_f64(),
        ));
    }
    compare(
        &rows,
        &[
            "geo-hylas2 queue  600 KB  loss 0 %  limit  2.65 s  took  2.70 s    0 dropped    1 KB queued",
            "geo-hylas2 queue  200 KB  loss 0 %  limit  2.65 s  took  2.70 s    0 dropped    1 KB queued",
            "geo-hylas2 queue  100 KB  loss 0 %  limit  2.65 s  took  2.70 s    0 dropped    1 KB queued",
            "geo-hylas2 queue  600 KB  loss 1 %  limit  2.65 s  took  3.31 s    0 dropped    1 KB queued",
            "geo-hylas2 queue  600 KB  loss 3 %  limit  2.65 s  took  3.36 s    0 dropped    1 KB queued",
            "geo-20m    queue 1500 KB  loss 0 %  limit  1.40 s  took  1.42 s    0 dropped    1 KB queued",
            "geo-20m    queue 1500 KB  loss 1 %  limit  1.40 s  took  2.00 s    0 dropped    1 KB queued",
            "geo-2m     queue  150 KB  loss 0 %  limit  8.60 s  took  8.79 s    0 dropped    1 KB queued",
            "geo-256k   queue   64 KB  loss 0 %  limit  8.41 s  took  8.62 s    0 dropped    1 KB queued",
        ],
    );
}

/// Share of packets that the queue dropped since the counters were last taken, in per cent.
fn dropped(simulation: &mut Simulation) -> f64 {
    let counters = simulation.path().0.take_counters(Way::Forward);
    let offered = counters.sent.packets + counters.queue_drops.packets;
    100.0 * counters.queue_drops.packets as f64 / offered as f64
}

#[test]
fn a_rate_that_is_not_there_is_found_out() {
    let mut rows = Vec::new();
    for (promised, real) in [(8, 6), (8, 4), (8, 2), (8, 1), (20, 2)] {
        let delay = Duration::from_millis(300);
        let profile = Profile::symmetric_delay("real", BitRate::mbit(real), BitRate::mbit(1), delay);
        let contract = Contract { rate: BitRate::mbit(promised), rtt: profile.rtt() };
        let mut simulation = Simulation::new(&profile, 1);
        simulation.add(paced(contract), contract.rtt, 1000 * MEGABYTE);
        simulation.run_until(seconds(10));
        let (early, delivered) = (dropped(&mut simulation), simulation.delivered(0));
        simulation.run_until(seconds(70));
        let late = dropped(&mut simulation);
        let used = (simulation.delivered(0) - delivered) as f64 / real as f64 / 60.0 / 125_000.0;
        rows.push(format!(
            "{promised:2} Mbit/s promised, {real} there: first 10 s {early:4.1} % dropped, next 60 s {late:4.1} %, {:2.0} % used",
            used * 100.0
        ));
    }
    compare(
        &rows,
        &[
            " 8 Mbit/s promised, 6 there: first 10 s  0.0 % dropped, next 60 s  0.0 %, 98 % used",
            " 8 Mbit/s promised, 4 there: first 10 s 10.6 % dropped, next 60 s  0.0 %, 98 % used",
            " 8 Mbit/s promised, 2 there: first 10 s 39.6 % dropped, next 60 s  0.0 %, 98 % used",
            " 8 Mbit/s promised, 1 there: first 10 s 64.7 % dropped, next 60 s  0.0 %, 98 % used",
            "20 Mbit/s promised, 2 there: first 10 s 70.6 % dropped, next 60 s  0.0 %, 98 % used",
        ],
    );
}

#[test]
fn a_rate_that_comes_back_is_used_again() {
    let slow =
        Profile::symmetric_delay("slow", BitRate::mbit(2), BitRate::mbit(1), Duration::from_millis(300));
    let full =
        Profile::symmetric_delay("full", BitRate::mbit(8), BitRate::mbit(1), Duration::from_millis(300));
    let contract = contract(&full);
    let mut simulation = Simulation::new(&slow, 1);
    simulation.add(paced(contract), contract.rtt, 1000 * MEGABYTE);
    simulation.run_until(seconds(30));
    let (path, now) = simulation.path();
    path.switch(now, &full);
    let mut rates = Vec::new();
    let mut before = simulation.delivered(0);
    for end in [40, 50, 60, 70, 80] {
        simulation.run_until(seconds(end));
        let mbit = (simulation.delivered(0) - before) as f64 * 8.0 / 10.0 / 1e6;
        rates.push(format!("{mbit:.1}"));
        before = simulation.delivered(0);
    }
    // Mbit/s in each ten seconds after the link got its rate back; 7.8 fill it, headers apart.
    assert_eq!(rates, ["3.7", "7.8", "7.8", "7.8", "7.8"]);
}

#[test]
fn an_outage_costs_its_length_and_a_few_round_trips() {
    let mut rows = Vec::new();
    for outage_ms in [0, 300, 1_000, 5_000] {
        let profile = Profile::named("geo-hylas2").expect("a known profile");
        let contract = contract(&profile);
        let mut simulation = Simulation::new(&profile, 1);
        simulation.add(paced(contract), contract.rtt, 10 * MEGABYTE);
        simulation.run_until(seconds(4));
        let (path, now) = simulation.path();
        path.cut(now);
        let outage = Duration::from_millis(outage_ms);
        simulation.run_until(seconds(4) + outage);
        let (path, now) = simulation.path();
        path.restore(now);
        simulation.run_until(LONG);
        let took = simulation.took(0, 0).expect("the transfer ends").saturating_sub(outage);
        rows.push(format!(
            "{outage_ms:5} ms of outage: 10 MB took {:5.2} s more than it",
            took.as_secs_f64()
        ));
    }
    compare(
        &rows,
        &[
            "    0 ms of outage: 10 MB took 10.88 s more than it",
            "  300 ms of outage: 10 MB took 11.50 s more than it",
            " 1000 ms of outage: 10 MB took 12.33 s more than it",
            " 5000 ms of outage: 10 MB took 14.88 s more than it",
        ],
    );
}

#[test]
fn two_senders_that_were_promised_the_same_link_share_it() {
    let profile = Profile::named("geo-hylas2").expect("a known profile");
    let contract = contract(&profile);
    let mut simulation = Simulation::new(&profile, 1);
    simulation.add(paced(contract), contract.rtt, 1000 * MEGABYTE);
    simulation.run_until(seconds(10));
    simulation.add(paced(contract), contract.rtt, 1000 * MEGABYTE);
    simulation.run_until(seconds(30));
    let before = [simulation.delivered(0), simulation.delivered(1)];
    simulation.run_until(seconds(90));
    let mbit = [0, 1].map(|sender| (simulation.delivered(sender) - before[sender]) as f64 * 8.0 / 60.0 / 1e6);
    let drops = dropped(&mut simulation);
    assert!(mbit[0] + mbit[1] > 7.0, "{mbit:?}");
    assert!(mbit[0].min(mbit[1]) > 1.5, "{mbit:?}");
    assert!(drops < 3.0, "{drops} %");
}
