//! Calls that announce themselves by SIP: admitted, given back, kept for as long as they speak, and never mistaken for others'.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use support::{Scene, TEN, eventually};

/// A packet of IPv4 and UDP between phone and exchange, with this in it.
fn packet(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 5, 192, 0, 2, 1];
    for number in [5060, 5060, u16::try_from(8 + content.len()).unwrap(), 0] {
        bytes.extend(u16::to_be_bytes(number));
    }
    bytes.extend(content);
    bytes
}

fn message(first: &str, call: &str, sequence: &str, sdp: &str) -> Vec<u8> {
    let kind = if sdp.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    let length = sdp.len();
    packet(
        format!(
            "{first}\r\nCall-ID: {call}\r\nCSeq: {sequence}\r\n{kind}Content-Length: {length}\r\n\r\n{sdp}"
        )
        .as_bytes(),
    )
}

/// A packet of IPv4 and TCP between phone and exchange, whose first byte has this number.
fn segment(number: usize, flags: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 5, 192, 0, 2, 1];
    bytes.extend([40_000u16.to_be_bytes(), 5060u16.to_be_bytes()].concat());
    bytes.extend(u32::try_from(number).unwrap().to_be_bytes());
    bytes.extend([0, 0, 0, 0, 5 << 4, flags, 1, 0, 0, 0, 0, 0]);
    bytes.extend(content);
    bytes
}

/// What is said in datagrams, in a row.
fn stream(datagrams: &[Vec<u8>]) -> Vec<u8> {
    datagrams.iter().flat_map(|packet| packet[28..].to_vec()).collect()
}

fn sdp(address: &str) -> String {
    format!("v=0\r\nc=IN IP4 {address}\r\nm=audio 16384 RTP/AVP 18\r\na=ptime:20\r\n")
}

fn invite(call: &str) -> Vec<u8> {
    message("INVITE sip:b@example.org SIP/2.0", call, "1 INVITE", &sdp("10.0.0.5"))
}

fn answer(call: &str) -> Vec<u8> {
    message("SIP/2.0 200 OK", call, "1 INVITE", &sdp("192.0.2.9"))
}

fn bye(call: &str) -> Vec<u8> {
    message("BYE sip:b@example.org SIP/2.0", call, "2 BYE", "")
}

impl Scene {
    /// Packets that pass the device.
    async fn pass(&self, packets: &[Vec<u8>]) {
        let device = Arc::clone(&self.device);
        eventually(|| device.state.lock().unwrap().passes.is_some()).await;
        let passes = self.device.state.lock().unwrap().passes.clone().unwrap();
        for packet in packets {
            passes.send(packet.clone()).await.unwrap();
        }
    }

    /// Waits until so many of this counter's have been.
    async fn until(&self, counter: &str, number: u64) {
        let bus = self.bus.clone();
        eventually(|| bus.counters().snapshot()[counter] == number).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_announces_itself_holds_its_rate_until_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    scene.pass(&[invite("a@phone"), answer("a@phone")]).await;
    let media = ["192.0.2.9:16384", "10.0.0.5:16384"].map(|it| it.parse().unwrap());
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media == media).await;
    let calls = scene.client.call("calls", Value::Null).await.unwrap();
    assert_eq!((&calls[0]["call"], &calls[0]["rate_bps"]), (&json!("sip/a@phone"), &json!(24_000)));
    scene.pass(&[bye("a@phone")]).await;
    scene.until("calls_released", 1).await;
    assert!(scene.names().await.is_empty());
    assert_eq!(scene.bus.counters().snapshot()["calls_lapsed"], 0);
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["sip"], "", "it is heard");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_announces_itself_on_a_connection_holds_its_rate_until_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    // What is none of SIP's is told of once, and the rest of it passed over.
    scene.pass(&[segment(0, 2, b""), segment(1, 16, b"\x16\x03\x01"), segment(4, 16, b"\x17\x03")]).await;
    let (begin, end) = (stream(&[invite("a@phone"), answer("a@phone")]), stream(&[bye("a@phone")]));
    // In pieces, the second of which passes first, and the first twice.
    let pieces = [segment(100, 16, &begin[..50]), segment(150, 16, &begin[50..])];
    scene.pass(&[segment(99, 2, b""), pieces[1].clone(), pieces[0].clone(), pieces[0].clone()]).await;
    let media = ["192.0.2.9:16384", "10.0.0.5:16384"].map(|it| it.parse().unwrap());
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media == media).await;
    assert_eq!(scene.names().await, ["sip/a@phone"]);
    scene.pass(&[segment(100 + begin.len(), 16, &end)]).await;
    scene.until("calls_released", 1).await;
    assert!(scene.names().await.is_empty());
    scene.until("sip_ignored", 1).await;
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_comes_again_and_one_of_another_branch_take_no_place_from_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let invite = |call, sequence| message("INVITE sip:b SIP/2.0", call, sequence, &sdp("10.0.0.5"));
    let answer =
        |call, code: &str, sequence, sdp: &str| message(&format!("SIP/2.0 {code}"), call, sequence, sdp);
    // Who calls is asked for, and over a long path asked for again.
    let asked = answer("a", "407 Proxy Authentication Required", "1 INVITE", "");
    scene.pass(&[invite("a", "1 INVITE"), asked.clone(), invite("a", "2 INVITE"), asked]).await;
    scene.pass(&[answer("a", "200 OK", "2 INVITE", &sdp("192.0.2.9"))]).await;
    // One branch is busy, another answers.
    scene.pass(&[invite("b", "1 INVITE"), answer("b", "486 Busy Here", "1 INVITE", "")]).await;
    scene.pass(&[answer("b", "200 OK", "1 INVITE", &sdp("192.0.2.10"))]).await;
    let media = "192.0.2.10:16384".parse().unwrap();
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media.contains(&media)).await;
    assert_eq!(scene.names().await, ["sip/a", "sip/b"]);
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_change_that_fails_leaves_a_call_its_place_and_its_rate() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    scene.pass(&[invite("a"), answer("a")]).await;
    let wider = sdp("10.0.0.6").replace("AVP 18", "AVP 0");
    scene.pass(&[message("INVITE sip:b SIP/2.0", "a", "2 INVITE", &wider)]).await;
    let media = ["192.0.2.9:16384", "10.0.0.5:16384", "10.0.0.6:16384"].map(|it| it.parse().unwrap());
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media == media).await;
    let calls = scene.client.call("calls", Value::Null).await.unwrap();
    assert_eq!(calls[0]["rate_bps"], 80_000);
    scene.pass(&[message("SIP/2.0 488 Not Acceptable Here", "a", "2 INVITE", "")]).await;
    eventually(|| device.state.lock().unwrap().media == media[..2]).await;
    let calls = scene.client.call("calls", Value::Null).await.unwrap();
    assert_eq!((&calls[0]["call"], &calls[0]["rate_bps"]), (&json!("sip/a"), &json!(24_000)));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn every_stream_of_a_call_holds_its_rate_with_what_proves_it_true() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let two = |address| format!("{}m=audio 16386 RTP/SAVP 18\r\n", sdp(address));
    scene.pass(&[message("INVITE sip:b SIP/2.0", "a", "1 INVITE", &two("10.0.0.5"))]).await;
    scene.pass(&[message("SIP/2.0 200 OK", "a", "1 INVITE", &two("192.0.2.9"))]).await;
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media.len() == 4).await;
    let calls = scene.client.call("calls", Value::Null).await.unwrap();
    assert_eq!((&calls[0]["codec"], &calls[0]["rate_bps"]), (&json!("G.729"), &json!(52_000)));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn calls_that_announce_themselves_are_admitted_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    for name in TEN {
        scene.pass(&[invite(name)]).await;
    }
    scene.until("calls_admitted", 10).await;
    scene.pass(&[invite("k"), answer("k")]).await;
    // Told at its offer, and again at its answer, which might have been for less.
    scene.until("calls_refused", 2).await;
    assert_eq!(scene.names().await.len(), 10);
    // The end of one that was never admitted releases nothing.
    scene.pass(&[bye("k"), bye("a"), invite("l")]).await;
    scene.until("calls_admitted", 11).await;
    assert_eq!(scene.bus.counters().snapshot()["calls_released"], 1);
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_refused_is_admitted_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::full(folder.path()).await;
    scene.pass(&[invite("k"), answer("k"), invite("l"), answer("l")]).await;
    scene.until("calls_refused", 4).await;
    // It speaks on, and all that is said of it has been said. Before the others lapse one of them ends.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(scene.bus.counters().snapshot()["calls_refused"], 4, "it is told once");
    scene.client.call("voice_call_release", json!({"call": "c"})).await.unwrap();
    scene.until("calls_admitted", 11).await;
    let names = scene.names().await;
    assert!(names.contains(&"sip/k".to_owned()) && !names.contains(&"sip/l".to_owned()), "{names:?}");
    let media = "192.0.2.9:16384".parse().unwrap();
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media.contains(&media)).await;
    // One that is over wants nothing any more.
    scene.pass(&[bye("l"), bye("k")]).await;
    scene.until("calls_released", 2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.bus.counters().snapshot()["calls_admitted"], 11);
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn whoever_speaks_is_kept_and_whose_end_did_not_pass_lapses() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let other = message("INVITE sip:b SIP/2.0", "b", "1 INVITE", &sdp("10.0.0.6"));
    let other_answer = message("SIP/2.0 200 OK", "b", "1 INVITE", &sdp("192.0.2.10"));
    scene.pass(&[invite("a"), answer("a"), other.clone(), other_answer.clone()]).await;
    scene.until("calls_admitted", 2).await;
    // A lease is a minute. One speaks on, of the other nothing passes any more.
    for second in 0..200 {
        let media = ["10.0.0.5:16384", "192.0.2.10:16384"].map(|it| it.parse().unwrap());
        scene.device.state.lock().unwrap().passed = vec![(media[0], second), (media[1], 7)];
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(scene.names().await, ["sip/a"]);
    assert_eq!(scene.bus.counters().snapshot()["calls_lapsed"], 1);
    // It is announced anew, and nothing of before stands in its way.
    scene.pass(&[other, other_answer]).await;
    scene.until("calls_admitted", 3).await;
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn the_next_manager_hears_of_the_end_of_calls_that_an_earlier_one_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    scene.pass(&[invite("a"), answer("a")]).await;
    scene.until("calls_admitted", 1).await;
    scene.running.abort();
    let _ = (&mut scene.running).await;
    let mut scene = Scene::start(folder.path()).await;
    assert_eq!(scene.names().await, ["sip/a"]);
    scene.pass(&[bye("a")]).await;
    scene.until("calls_released", 1).await;
    assert!(scene.names().await.is_empty());
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_long_name_is_one_and_the_next_manager_knows_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let long = "x".repeat(255);
    scene.pass(&[invite(&long), answer(&long)]).await;
    scene.until("calls_admitted", 1).await;
    assert!(scene.names().await[0].starts_with("sip/xxxx"));
    scene.running.abort();
    let _ = (&mut scene.running).await;
    let mut scene = Scene::start(folder.path()).await;
    scene.pass(&[bye(&long)]).await;
    scene.until("calls_released", 1).await;
    assert!(scene.names().await.is_empty());
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_between_hosts_by_name_is_counted_and_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let named = sdp("phone.example.org");
    scene.pass(&[message("INVITE sip:b SIP/2.0", "a", "1 INVITE", &named)]).await;
    scene.pass(&[message("SIP/2.0 200 OK", "a", "1 INVITE", &named)]).await;
    scene.until("sip_unplaced", 1).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["sip_unplaced"], &status["held_bps"]), (&json!(1), &json!(0)));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn garbage_is_counted_and_ends_nothing_and_no_message_ends_a_call_of_another_source() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    scene.call("a").await.unwrap();
    let cut = invite("c")[..40].to_vec();
    scene.pass(&[packet(b"GET / HTTP/1.1"), vec![0xff; 2000], Vec::new(), cut, packet(&[0; 4])]).await;
    scene.pass(&[packet(b"\r\n\r\n"), bye("a"), bye("sip/a"), invite("a b")]).await;
    scene.pass(&[invite("b")]).await;
    scene.until("calls_admitted", 2).await;
    // What keeps a way open is none.
    scene.until("sip_ignored", 5).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["sip_ignored"], &status["sip_unplaced"]), (&json!(5), &json!(0)));
    assert_eq!(scene.names().await, ["a", "sip/b"]);
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_device_that_comes_back_is_listened_to_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    scene.pass(&[invite("a")]).await;
    scene.until("calls_admitted", 1).await;
    {
        let mut state = scene.device.state.lock().unwrap();
        (state.is_gone, state.passes) = (true, None);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert!(status["sip"].as_str().unwrap().starts_with("there is no network device 'sat0'"), "{status}");
    scene.device.state.lock().unwrap().is_gone = false;
    scene.pass(&[bye("a")]).await;
    scene.until("calls_released", 1).await;
    scene.running.abort();
}
