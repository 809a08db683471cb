//! Hours of the day outside of which a class may use less.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::Arc;
use std::time::Duration;

use farhop_diffserv::{Ceiling, Patient, Queue, Share, Shares};
use farhop_link::{Config, FollowTerms, Window};
use farhop_units::BitRate;
use serde_json::{Value, json};

use support::{Scene, config, eventually};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_has_the_link_at_night_only() {
    let folder = tempfile::tempdir().unwrap();
    let windows = vec![Window { queue: Queue::Le, hours: (22 * HOUR, 6 * HOUR), outside: 5 }];
    let mut scene = Scene::start_with(folder.path(), Config { windows, ..config(folder.path()) }).await;
    let device = Arc::clone(&scene.device);
    let ceilings = || device.state.lock().unwrap().ceilings.clone();
    // It is midnight.
    eventually(|| ceilings() == [512_000]).await;
    device.state.lock().unwrap().time = 6 * HOUR;
    eventually(|| ceilings() == [512_000, 25_600]).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    let hours = json!({"class": "LE", "service": "background", "hours": "22:00-06:00", "is_within": false, "most_bps": 25_600});
    assert_eq!(status["hours"], json!([hours]));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ceilings().len(), 2, "once");
    device.state.lock().unwrap().time = 22 * HOUR;
    eventually(|| ceilings() == [512_000, 25_600, 512_000]).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(
        (&status["hours"][0]["is_within"], &status["hours"][0]["most_bps"]),
        (&json!(true), &json!(512_000))
    );
    scene.call("a").await.unwrap();
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_what_nobody_waits_for_has_a_ceiling_and_hours_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let night = Some((22 * 60, 6 * 60));
    let ceiling = |of, rate, hours| Ceiling { of, rate, hours, outside: BitRate::kbit(8) };
    let ceilings = vec![
        ceiling(Patient::Backups, None, night),
        ceiling(Patient::PeerToPeer, Some(BitRate::kbit(100)), night),
        ceiling(Patient::Updates, Some(BitRate::kbit(200)), None),
    ];
    let mut scene = Scene::start_with(folder.path(), Config { ceilings, ..config(folder.path()) }).await;
    let device = Arc::clone(&scene.device);
    let kinds = || device.state.lock().unwrap().kinds.clone();
    // It is midnight: updates, backups, peer to peer.
    eventually(|| kinds() == [200_000, 512_000, 100_000]).await;
    device.state.lock().unwrap().time = 6 * HOUR;
    eventually(|| kinds() == [200_000, 8_000, 8_000]).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    let told = |service: &str, most: u64| json!({"class": "LE", "service": service, "hours": "22:00-06:00", "is_within": false, "most_bps": most});
    assert_eq!(status["hours"], json!([told("backups", 8_000), told("peer-to-peer", 8_000)]));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn an_hour_that_cannot_be_put_into_force_is_a_trouble_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let windows = vec![Window { queue: Queue::Le, hours: (22 * HOUR, 6 * HOUR), outside: 5 }];
    let mut scene = Scene::start_with(folder.path(), Config { windows, ..config(folder.path()) }).await;
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().ceilings == [512_000]).await;
    device.state.lock().unwrap().is_foreign = true;
    device.state.lock().unwrap().time = 7 * HOUR;
    let bus = scene.bus.clone();
    eventually(|| bus.counters().snapshot()["links_lost"] == 1).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["in_force"], false);
    device.state.lock().unwrap().is_foreign = false;
    eventually(|| device.state.lock().unwrap().ceilings == [512_000, 25_600]).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["in_force"], true, "{status}");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn however_slow_the_link_becomes_its_classes_follow_at_every_hour() {
    let folder = tempfile::tempdir().unwrap();
    let shares = [47, 10, 15, 10, 10, 6, 2].map(|guaranteed| Share { guaranteed, ceiling: 100 });
    let windows = vec![Window { queue: Queue::Af1, hours: (22 * HOUR, 6 * HOUR), outside: 1 }];
    let echo = "192.0.2.1".parse().unwrap();
    let follow = Some(FollowTerms { echo, least: 1, queue: Duration::from_millis(40) });
    let shares = Shares::new(shares).unwrap();
    let config = config(folder.path());
    let mut scene = Scene::start_with(folder.path(), Config { shares, windows, follow, ..config }).await;
    let device = Arc::clone(&scene.device);
    device.state.lock().unwrap().time = 23 * HOUR;
    // The round trip of the empty path is known before a queue builds.
    tokio::time::sleep(Duration::from_secs(5)).await;
    device.state.lock().unwrap().carries = 3_000;
    // 1 % of it, of which each of the seven has 1 kbit/s.
    eventually(|| device.state.lock().unwrap().rates.last() == Some(&7_000)).await;
    let applied = device.state.lock().unwrap().applied;
    device.state.lock().unwrap().time = 7 * HOUR;
    eventually(|| device.state.lock().unwrap().applied > applied).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["in_force"], &status["follow"]), (&true.into(), &"".into()), "{status}");
    assert_eq!(scene.bus.counters().snapshot()["links_lost"], 0);
    scene.running.abort();
}
