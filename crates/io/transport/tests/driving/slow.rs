//! What is urgent on a slow link, on which a packet takes a fifth of a second: it waits for about one that has left already,
//! and for no backlog, whether the rate is known or measured.

use std::time::Duration;

use farhop_congestion::Choice;
use farhop_htotp::scheduler::Pace;
use farhop_orbit::Profile;
use farhop_transport::hop::Arrival;
use farhop_transport::path::PathPlan;
use farhop_units::{BitRate, Bytes as Size};
use tokio::time::sleep;

use crate::ends::{Carrier, ends};

const RATE: BitRate = BitRate::kbit(64);
/// What is urgent, and what it takes with all headers.
const URGENT: usize = 500;
const CROSSES: Size = Size(620);

fn slow() -> Profile {
    Profile::symmetric_delay("slow", RATE, RATE, Duration::from_millis(300))
}

/// The longest that something urgent takes, of several asked for after the bulk was `head` old.
async fn longest(carrier: &Carrier, head: Duration) -> Duration {
    let mut bulk = carrier.ask(3_000_000, 5);
    let reading = tokio::spawn(async move { while !matches!(bulk.next().await, Arrival::Ended) {} });
    sleep(head).await;
    let mut longest = Duration::ZERO;
    for number in 0..12 {
        // At any place within a packet.
        sleep(Duration::from_millis(3_000 + 17 * number)).await;
        longest = longest.max(carrier.fetch(URGENT, 0).await);
    }
    reading.abort();
    longest
}

#[tokio::test(start_paused = true)]
async fn at_64_kbit_s_what_is_urgent_waits_for_about_a_packet() {
    let packet = RATE.time_for(Size(1480));
    let least = slow().rtt() + RATE.time_for(CROSSES);
    let unknown = PathPlan::UNKNOWN.with_repair(0);
    let known = PathPlan::for_profile(&slow()).with_repair(0);
    // Who keeps to the rate has one packet on the way to the link. BBR keeps some beside what fills the path, so that the
    // link never stands still while acknowledgements are held back, and looks for more now and then.
    for (plan, choice, most) in [(known, Choice::Rate, 1), (unknown, Choice::Bbr, 4)] {
        let mut ends = ends(&slow(), plan, choice, None, 1);
        let carrier = ends.call().await;
        let took = longest(&carrier, Duration::from_secs(20)).await;
        let most = least + most * packet + Pace::default().ahead;
        assert!(took <= most, "{choice}: {took:?} of {most:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_download_over_an_unknown_slow_path_leaves_no_backlog_before_what_is_urgent() {
    // The first flight, ten packets sent before anything is known, and what doubling adds to it.
    let start = RATE.time_for(Size(4 * 12_000));
    let mut ends = ends(&slow(), PathPlan::UNKNOWN.with_repair(0), Choice::Bbr, None, 1);
    let carrier = ends.call().await;
    let took = longest(&carrier, Duration::from_millis(500)).await;
    let most = slow().rtt() + RATE.time_for(CROSSES) + start;
    assert!(took <= most, "{took:?} of {most:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_urgent_beside_a_download_on_a_slow_lossy_link_seldom_waits_for_a_packet_to_be_sent_again() {
    const OBJECTS: u64 = 60;
    let rate = BitRate::kbit(512);
    let profile = Profile::symmetric_delay("lossy", rate, rate, Duration::from_millis(300));
    // What is sent again takes a round trip more at least.
    let late = profile.rtt() + rate.time_for(Size(7_000)) + profile.rtt();
    let mut times = Vec::new();
    for seed in 1..=3 {
        let mut ends = ends(&profile, PathPlan::for_profile(&profile), Choice::Rate, None, seed);
        let carrier = ends.call().await;
        ends.link.switch(&profile.clone().with_loss(0.02, 0.02));
        carrier.fetch(1_000_000, 3).await;
        let mut bulk = carrier.ask(100_000_000, 5);
        let reading = tokio::spawn(async move { while !matches!(bulk.next().await, Arrival::Ended) {} });
        for number in 0..OBJECTS {
            sleep(Duration::from_millis(2_000 + 17 * number)).await;
            times.push(carrier.fetch(5_000, 0).await);
        }
        reading.abort();
    }
    let waited = times.iter().filter(|took| **took > late).count();
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    // One object in eight loses a packet of its own or of its request. If nobody told the repair layer where they end, ten would wait.
    assert!(waited <= 7, "{waited} of {}; {mean:?} on average", times.len());
}
