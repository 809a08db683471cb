//! A link that changes: its classes follow, and so does what calls may hold.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::Arc;
use std::time::Duration;

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
