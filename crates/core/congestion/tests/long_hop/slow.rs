//! Slow links, on which a packet takes long: what is urgent waits for what BBR keeps in the link's queue, and for little else,
//! and the link is full all the same.

use std::time::Duration;

use farhop_congestion::Choice;
use farhop_orbit::Profile;
use farhop_units::{BitRate, Bytes};

use super::simulation::scenes::{RTT, controller};
use super::simulation::{Object, PAYLOAD, Simulation};

/// Urgent objects, each a packet, and when they are asked for: at any place within a packet and a probe.
const URGENT: usize = 60;
const FIRST: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(3_017);

#[derive(Debug)]
struct Outcome {
    /// Beyond the bare path, in packets' time, on average and at most.
    mean: f64,
    longest: f64,
    /// Of what the link can carry.
    share: f64,
}

fn urgent_beside_bulk(rate: BitRate) -> Outcome {
    let profile = Profile::symmetric_delay("slow", rate, rate, RTT / 2);
    let end = FIRST + PAUSE * URGENT as u32;
    let bulk = Object { bytes: rate.bytes_in(3 * end).0, urgent: false, at: Duration::ZERO };
    let urgent =
        (0..URGENT as u32).map(|number| Object { bytes: 500, urgent: true, at: FIRST + PAUSE * number });
    let objects: Vec<Object> = std::iter::once(bulk).chain(urgent).collect();
    let mut simulation = Simulation::new(&profile, 1);
    let flow = simulation.connect(controller(Choice::Bbr, None), RTT, &objects);
    simulation.run_until(FIRST);
    let before = simulation.delivered(flow);
    simulation.run_until(end);
    let delivered = (simulation.delivered(flow) - before) as f64;
    let packet = rate.time_for(Bytes(PAYLOAD + 28));
    let waits: Vec<f64> = (1..=URGENT)
        .filter_map(|object| simulation.took(flow, object))
        .map(|took| took.saturating_sub(RTT + packet).as_secs_f64() / packet.as_secs_f64())
        .collect();
    let carried = rate.bytes_in(end - FIRST).0 as f64 * PAYLOAD as f64 / (PAYLOAD + 28) as f64;
    Outcome {
        mean: waits.iter().sum::<f64>() / waits.len() as f64,
        longest: waits.iter().copied().fold(0.0, f64::max),
        share: delivered / carried,
    }
}

#[test]
fn what_is_urgent_waits_for_few_packets_and_the_link_is_full() {
    let rates =
        [BitRate::kbit(64), BitRate::kbit(128), BitRate::kbit(256), BitRate::kbit(512), BitRate::mbit(2)];
    let rows: Vec<String> = (rates.into_iter())
        .map(|rate| {
            let Outcome { mean, longest, share } = urgent_beside_bulk(rate);
            format!(
                "{rate}: {mean:.1} packets on average, {longest:.1} at most, link used to {:.1} %",
                share * 100.0
            )
        })
        .collect();
    let expected = [
        "64 kbit/s: 1.2 packets on average, 2.0 at most, link used to 97.2 %",
        "128 kbit/s: 2.5 packets on average, 4.4 at most, link used to 97.1 %",
        "256 kbit/s: 4.3 packets on average, 6.9 at most, link used to 97.7 %",
        "512 kbit/s: 8.9 packets on average, 14.1 at most, link used to 98.2 %",
        "2 Mbit/s: 22.1 packets on average, 40.9 at most, link used to 98.2 %",
    ];
    assert_eq!(rows, expected, "\n{}\n", rows.join("\n"));
}
