//! What each controller makes of a real carrier: QUIC, HTOTP, its scheduler and what is remembered of the path, on the
//! in-process link in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

mod datagrams;
mod ends;
mod loss;
mod slow;
mod trickle;

use std::sync::Arc;
use std::time::Duration;

use farhop_congestion::{Choice, Phase};
use farhop_orbit::{Profile, Way};
use farhop_transport::hop::Arrival;
use farhop_transport::memory::Memory;
use farhop_transport::path::PathPlan;
use farhop_units::Bytes as Size;
use tokio::time::{Instant, sleep};

use ends::Ends;

const BULK: usize = 2_000_000;

fn hylas() -> Profile {
    Profile::named("geo-hylas2").unwrap()
}

/// The plan of someone who knows how far it is, and how fast only where `choice` has to.
fn plan(choice: Choice) -> PathPlan {
    let plan = PathPlan::for_profile(&hylas()).with_repair(0);
    if choice.searches() { PathPlan { forward: None, return_: None, ..plan } } else { plan }
}

/// Ground sends as `choice` says; the memory is ground's.
fn ends(choice: Choice, memory: Option<Arc<Memory>>) -> Ends {
    ends::ends(&hylas(), plan(choice), choice, memory, 1)
}

#[tokio::test(start_paused = true)]
async fn a_known_rate_is_kept_to_and_no_queue_forms() {
    let mut ends = ends(Choice::Rate, None);
    let carrier = ends.call().await;
    for _ in 0..2 {
        let before = ends.crossed();
        let took = carrier.fetch(BULK, 3).await;
        let limit = ends.limit(before);
        assert!(took < limit.mul_f64(1.05), "{took:?} of {limit:?}");
    }
    let counters = ends.link.counters(Way::Forward);
    assert_eq!(counters.queue_drops.packets, 0);
    // What is written 50 ms ahead arrives in bursts of the carrier's own pacer, and that is all.
    assert!(counters.queue_peak.0 < 80_000, "{:?}", counters.queue_peak);
    assert_eq!(carrier.driven().pacing, hylas().forward.rate);
}

#[tokio::test(start_paused = true)]
async fn what_is_urgent_waits_for_no_bulk_whichever_sensible_controller_drives() {
    // BBR asks now and then whether there is more, with a queue of a quarter of what is under way.
    let probe = hylas().rtt() / 4;
    for (choice, queue) in [(Choice::Rate, Duration::ZERO), (Choice::Bbr, probe)] {
        let mut ends = ends(choice, None);
        let carrier = ends.call().await;
        let bulk = carrier.ask(20 * BULK, 5);
        let reading = tokio::spawn(async move {
            let mut bulk = bulk;
            while !matches!(bulk.next().await, Arrival::Ended) {}
        });
        sleep(Duration::from_secs(25)).await;
        let took = carrier.fetch(5_000, 0).await;
        let most = hylas().rtt() + queue + Duration::from_millis(150);
        assert!(took <= most, "{choice}: {took:?} of {most:?}");
        reading.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_was_measured_is_full_sooner_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    for choice in Choice::ALL.into_iter().filter(|choice| choice.searches()) {
        let memory = Memory::open(folder.path().join(choice.name())).unwrap();
        let mut ends = ends(choice, Some(Arc::clone(&memory)));
        let carrier = ends.call().await;
        let unknown = carrier.fetch(BULK, 3).await;
        carrier.fetch(10 * BULK, 3).await;
        carrier.end().await;
        let carrier = ends.call().await;
        let known = carrier.fetch(BULK, 3).await;
        assert_eq!(carrier.driven().phase, Phase::Normal, "{choice}");
        // Westwood+ has learned little of the rate by its first loss: its filter takes many long round trips, from wherever it begins.
        let sooner = if choice == Choice::Westwood { Duration::ZERO } else { Duration::from_millis(1500) };
        assert!(known + sooner < unknown, "{choice}: {unknown:?}, then {known:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bulk_on_a_warm_carrier_takes_what_the_link_needs_and_on_a_fresh_one_about_a_tenth_more() {
    // The second has nothing but what it measured before: it starts with half of that, and holds back now and then to see how
    // far the path is.
    for (choice, warm, fresh) in [(Choice::Rate, 1.05, 1.10), (Choice::Bbr, 1.08, 1.12)] {
        warm_and_fresh(choice, warm, fresh).await;
    }
}

async fn warm_and_fresh(choice: Choice, most_warm: f64, most_fresh: f64) {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::open(folder.path().join("paths")).unwrap();
    let mut ends = ends(choice, Some(memory));
    let carrier = ends.call().await;
    carrier.fetch(10 * BULK, 3).await;
    let before = ends.crossed();
    let warm = carrier.fetch(BULK, 3).await;
    let warm_limit = ends.limit(before);
    assert!(warm < warm_limit.mul_f64(most_warm), "{choice}: {warm:?} of {warm_limit:?}");
    carrier.end().await;
    let (start, before) = (Instant::now(), ends.crossed());
    let carrier = ends.call().await;
    carrier.fetch(BULK, 3).await;
    // The client's first packet is a full one.
    let hello = hylas().return_.rate.unwrap().time_for(Size(1228));
    let (fresh, limit) = (start.elapsed(), hello + hylas().rtt() + ends.limit(before));
    assert!(fresh < limit.mul_f64(most_fresh), "{choice}: {fresh:?} of {limit:?}");
}
