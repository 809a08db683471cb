//! A carrier whose windows turn out to be too small for its path: the remote calls the next one, which begins with what was
//! measured, and leaves the first when nothing is under way there.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::Coding;
use farhop_orbit::Profile;
use farhop_transport::path::PathPlan;
use farhop_units::BitRate;
use support::{BROWSER, REFERER, UNCACHEABLE, answer, head, page, until, world_on};
use tokio::time::sleep;

fn symmetric(delay: Duration) -> Profile {
    Profile::symmetric_delay("unknown", BitRate::mbit(100), BitRate::mbit(10), delay)
}

#[tokio::test(start_paused = true)]
async fn on_the_way_to_the_moon_the_first_carrier_is_left_for_one_that_fits() {
    let delay = Duration::from_millis(1300);
    let mut world = world_on(&symmetric(delay), PathPlan::UNKNOWN, &[]).await;
    let mut events = world.bus.subscribe();
    let second = world.listener.carrier().await;
    until(&mut events, |event| matches!(event, Event::CarrierUp { .. })).await;
    until(&mut events, |event| {
        matches!(event, Event::CarrierDown { why, exchanges: 0, .. } if why == "left for one with windows that fit the path")
    })
    .await;
    assert!(second.closed().is_none());
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.bus.counters().carriers_up(), 2, "the second fits");
}

#[tokio::test(start_paused = true)]
async fn in_low_orbit_the_first_carrier_has_room_enough() {
    let world = world_on(&symmetric(Duration::from_millis(10)), PathPlan::UNKNOWN, &[]).await;
    sleep(Duration::from_secs(120)).await;
    assert!(world.hop.closed().is_none());
    assert_eq!(world.bus.counters().carriers_up(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_promised_on_the_first_carrier_still_comes_there() {
    let delay = Duration::from_millis(1300);
    let mut world = world_on(&symmetric(delay), PathPlan::UNKNOWN, &[]).await;
    let mut events = world.bus.subscribe();
    let (_, promise) = page(&world).await;
    let _second = world.listener.carrier().await;
    until(&mut events, |event| matches!(event, Event::CarrierUp { .. })).await;
    // The page is here, and nothing else under way.
    sleep(Duration::from_secs(2)).await;
    assert!(world.hop.closed().is_none());
    let client = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
    assert!(answer(client).await.contains("promised"));
    until(&mut events, |event| matches!(event, Event::CarrierDown { exchanges: 0, .. })).await;
    assert_eq!(world.crossed(), 1, "the page alone");
}
