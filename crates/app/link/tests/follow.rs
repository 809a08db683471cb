//! A link that changes: its classes follow, and so does what calls may hold.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::Arc;
use std::time::Duration;

use farhop_link::Config;
use farhop_units::BitRate;
use serde_json::Value;

use support::{Scene, TEN, eventually};

#[tokio::test(start_paused = true)]
async fn the_classes_follow_the_rate_of_the_link_and_calls_their_share() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start_following(folder.path()).await;
    let device = Arc::clone(&scene.device);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(device.state.lock().unwrap().rates.is_empty(), "there is no queue");
    for name in &TEN[..7] {
        scene.call(name).await.unwrap();
    }
    device.state.lock().unwrap().carries = 300_000;
    eventually(|| device.state.lock().unwrap().rates.last().is_some_and(|rate| *rate <= 300_000)).await;
    // 47 % of it are less than six calls: those that are there go on, and there is no room for another.
    let reason = scene.call("h").await.unwrap_err();
    assert!(reason.starts_with("no room for it"), "{reason}");
    assert_eq!(scene.names().await, TEN[..7]);
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert!(status["shaped_bps"].as_u64().unwrap() <= 310_000, "{status}");
    assert_eq!(status["follow"], "");
    device.state.lock().unwrap().carries = 512_000;
    eventually(|| device.state.lock().unwrap().rates.last().is_some_and(|rate| *rate > 495_000)).await;
    scene.call("h").await.unwrap();
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn shorter_packets_come_with_a_lower_rate_and_nobody_is_accused_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { rate: BitRate::mbit(1), ..support::config(folder.path()) };
    let scene = Scene::start_following_with(folder.path(), config).await;
    let device = Arc::clone(&scene.device);
    device.state.lock().unwrap().carries = 1_000_000;
    let number = |name: &str| scene.bus.counters().snapshot()[name].as_u64().unwrap();
    eventually(|| number("links_in_force") == 1).await;
    assert_eq!(device.state.lock().unwrap().longest, None, "a usual packet leaves soon enough");
    device.state.lock().unwrap().carries = 400_000;
    eventually(|| device.state.lock().unwrap().rates.last().is_some_and(|rate| *rate <= 400_000)).await;
    let longest = device.state.lock().unwrap().longest;
    assert!(longest.is_some_and(|bytes| bytes < 900), "with the rate, not later: {longest:?}");
    tokio::time::sleep(Duration::from_secs(25)).await;
    device.state.lock().unwrap().carries = 1_000_000;
    eventually(|| device.state.lock().unwrap().longest.is_none()).await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!((number("links_lost"), number("links_in_force")), (0, 1));
    scene.running.abort();
}
