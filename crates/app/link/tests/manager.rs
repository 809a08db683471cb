//! Calls over the control socket: admitted, refused, released, lapsed, and taken up by the next manager.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::Arc;
use std::time::Duration;

use farhop_control::{Client, Told};
use farhop_events::Event;
use serde_json::{Value, json};

use support::{Scene, TEN, eventually, media};

#[tokio::test(start_paused = true)]
async fn the_eleventh_call_is_refused_with_a_reason_and_the_ten_are_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    for name in TEN {
        let answer = scene.call(name).await.unwrap();
        assert_eq!((&answer["admitted"], &answer["rate_bps"]), (&json!("new"), &json!(24_000)));
    }
    let reason = scene.call("k").await.unwrap_err();
    assert!(reason.starts_with("no room for it: it needs 24 kbit/s, and of the 241 kbit/s"), "{reason}");
    assert_eq!(scene.names().await, TEN);
    scene.client.call("voice_call_release", json!({"call": "c"})).await.unwrap();
    scene.call("k").await.unwrap();
    let counters = scene.bus.counters().snapshot();
    assert_eq!((&counters["calls_admitted"], &counters["calls_refused"]), (&json!(11), &json!(1)));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_between_ipv6_addresses_holds_what_its_longer_headers_take() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let mut held = async |call: &str, media: &str| {
        let args = json!({"call": call, "codec": "G.729", "media": [media]});
        scene.client.call("new_voice_call", args).await.unwrap()["rate_bps"].clone()
    };
    assert_eq!(held("a", "10.0.0.5:16384").await, 24_000);
    assert_eq!(held("b", "[2001:db8::5]:16384").await, 32_000);
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn each_call_has_a_meter_of_its_own_for_what_it_was_admitted_with() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::full(folder.path()).await;
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().metered.len() == 10).await;
    for (metered, name) in device.state.lock().unwrap().metered.iter().zip(TEN) {
        // 50 packets of 60 bytes, and a twentieth.
        assert_eq!((&metered.media[..], metered.packets, metered.bytes), (&[media(name)][..], 53, 3_150));
    }
    // Another rate is another meter, for the same media.
    let wider = json!({"call": "a", "codec": "G.729", "packet_time": "10 ms", "media": [media("a")]});
    scene.client.call("voice_call_release", json!({"call": "b"})).await.unwrap();
    scene.client.call("new_voice_call", wider).await.unwrap();
    eventually(|| device.state.lock().unwrap().metered[0].packets == 105).await;
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_killed_leaves_its_calls_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::full(folder.path()).await;
    // What it would do at its end it does not come to do.
    scene.running.abort();
    let _ = (&mut scene.running).await;
    let mut scene = Scene::start(folder.path()).await;
    assert_eq!(scene.names().await, TEN);
    assert!(scene.call("k").await.is_err(), "they hold what they held");
    assert_eq!(scene.media(), TEN.map(media), "and the kernel knows where their packets go");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_lapses_when_nobody_speaks_for_it_and_listeners_hear_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let mut events = Client::connect(&scene.socket).await.unwrap().subscribe().await.unwrap();
    scene.call("a").await.unwrap();
    scene.call("b").await.unwrap();
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media.len() == 2).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    scene.client.call("voice_call_renew", json!({"call": "b"})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(scene.names().await, ["b"]);
    eventually(|| device.state.lock().unwrap().media == [media("b")]).await;
    let mut heard = Vec::new();
    while heard.len() < 3 {
        if let Some(Told::Event(stamped)) = events.next().await.unwrap() {
            heard.push(stamped.event);
        }
    }
    assert!(
        matches!(&heard[0], Event::NewVoiceCall { call, held_bps: 24_000, .. } if call == "a"),
        "{heard:?}"
    );
    assert!(
        matches!(&heard[2], Event::VoiceCallRelease { call, lapsed: true, held_bps: 24_000, .. } if call == "a"),
        "{heard:?}"
    );
    let error = scene.client.call("voice_call_release", json!({"call": "a"})).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no call 'a'; it was released, or has lapsed");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_device_that_vanishes_is_told_once_and_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let (device, bus) = (Arc::clone(&scene.device), scene.bus.clone());
    let number = |name: &str| bus.counters().snapshot()[name].as_u64().unwrap();
    eventually(|| number("links_in_force") == 1).await;
    device.state.lock().unwrap().is_gone = true;
    eventually(|| number("links_lost") == 1).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(number("links_lost"), 1);
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["in_force"], false);
    assert!(status["trouble"].as_str().unwrap().starts_with("there is no network device 'sat0'"));
    scene.call("a").await.unwrap();
    device.state.lock().unwrap().is_gone = false;
    eventually(|| number("links_in_force") == 2).await;
    assert_eq!(scene.media(), [media("a")], "what came meanwhile is part of it");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn what_somebody_took_away_is_put_back_and_what_stands_in_its_place_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path()).await;
    let (device, bus) = (Arc::clone(&scene.device), scene.bus.clone());
    let number = |name: &str| bus.counters().snapshot()[name].as_u64().unwrap();
    eventually(|| number("links_in_force") == 1).await;
    device.state.lock().unwrap().changed = Some("its rules");
    eventually(|| number("links_in_force") == 2).await;
    assert_eq!(number("links_lost"), 1, "it is told though it is put back at once");
    {
        let mut state = device.state.lock().unwrap();
        (state.changed, state.is_foreign) = (Some("its queues"), true);
    }
    eventually(|| number("links_lost") == 2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((number("links_lost"), number("links_in_force")), (2, 2));
    device.state.lock().unwrap().is_foreign = false;
    eventually(|| number("links_in_force") == 3).await;
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn media_that_somebody_took_from_calls_are_named_again_and_calls_that_come_are_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::full(folder.path()).await;
    let (device, bus) = (Arc::clone(&scene.device), scene.bus.clone());
    let number = |name: &str| bus.counters().snapshot()[name].as_u64().unwrap();
    let all = TEN.map(media);
    eventually(|| device.state.lock().unwrap().media == all).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!((number("links_lost"), number("links_in_force")), (0, 1));
    device.state.lock().unwrap().media.clear();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(scene.media(), all, "within ten seconds");
    assert_eq!((number("links_lost"), number("links_in_force")), (1, 2));
    scene.client.call("voice_call_release", json!({"call": "a"})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(21)).await;
    assert_eq!((scene.media().len(), number("links_lost")), (9, 1));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_written_down_is_not_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    // A folder where the file would be written: not even root writes that.
    std::fs::create_dir(folder.path().join("calls.json.next")).unwrap();
    let reason = scene.call("a").await.unwrap_err();
    assert!(reason.starts_with("calls cannot be written down in "), "{reason}");
    assert!(scene.names().await.is_empty());
    std::fs::remove_dir(folder.path().join("calls.json.next")).unwrap();
    scene.call("a").await.unwrap();
    scene.running.abort();
}
