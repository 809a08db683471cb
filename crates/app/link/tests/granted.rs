//! A link whose capacity is granted on demand: its classes follow what is granted, as it is told or as the modem says.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhop_capacity::{Answer, Question};
use farhop_link::{Config, GrantTerms};
use serde_json::{Value, json};
use tokio::net::UdpSocket;

use support::{Scene, TEN, config, eventually};

#[tokio::test(start_paused = true)]
async fn what_is_granted_is_sent_at_until_it_counts_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let device = Arc::clone(&scene.device);
    let last = || device.state.lock().unwrap().rates.last().copied();
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["source"], &status["shaped_bps"]), (&json!("profile geo-hylas2"), &json!(512_000)));
    let answer = scene.client.call("capacity_granted", json!({"rate": "300 kbit/s", "lasts": "60 s"})).await;
    assert_eq!(answer.unwrap(), json!({"sent_bps": 300_000, "lasts_s": 60}));
    eventually(|| last() == Some(300_000)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["source"], &status["shaped_bps"]), (&json!("granted"), &json!(300_000)));
    // 47 % of it are five calls.
    for name in &TEN[..5] {
        scene.call(name).await.unwrap();
    }
    assert!(scene.call("f").await.unwrap_err().starts_with("no room for it"));
    // Never more than the link has, and never too little to ask for more with.
    for (rate, sent) in [("9 Mbit/s", 512_000), ("0 bit/s", 25_600)] {
        scene.client.call("capacity_granted", json!({"rate": rate, "lasts": "10 s"})).await.unwrap();
        eventually(|| last() == Some(sent)).await;
    }
    eventually(|| last() == Some(512_000)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["source"], "profile geo-hylas2");
    assert_eq!(scene.names().await.len(), 5, "calls go on");
    for (args, word) in [
        (json!({}), "is written like"),
        (json!({"rate": "fast"}), "fast"),
        (json!({"rate": "1 kbit/s", "lasts": "2 days"}), "2 days"),
        (json!({"rate": "1 kbit/s", "lasts": "25 h"}), "a day at most"),
    ] {
        let line = scene.client.call("capacity_granted", args).await.unwrap_err().to_string();
        assert!(line.contains(word), "{line}");
    }
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn who_measures_its_rate_is_told_of_no_grants() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start_following(folder.path()).await;
    let line = scene.client.call("capacity_granted", json!({"rate": "300 kbit/s"})).await.unwrap_err();
    assert!(line.to_string().contains("is measured"), "{line}");
    scene.running.abort();
}

#[tokio::test]
async fn a_modem_is_asked_what_it_grants_and_told_what_waits_here() {
    let folder = tempfile::tempdir().unwrap();
    let modem = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = modem.local_addr().unwrap().to_string();
    let grants = GrantTerms { modem: Some(address), terminal: Some(4), ahead: 32_000, least: 5 };
    // A modem that grants as much as was expected last, in a second.
    let expected = Arc::new(Mutex::new(0));
    let its = Arc::clone(&expected);
    tokio::spawn(async move {
        let mut buffer = [0; 300];
        loop {
            let (length, from) = modem.recv_from(&mut buffer).await.unwrap();
            let question = Question::parse(&buffer[..length]).unwrap();
            assert_eq!(question.terminal(), Some(4));
            let answer = match question {
                Question::Tell(tell) => {
                    Answer::Granted { number: tell.number, rate: *its.lock().unwrap() * 8 }
                }
                Question::Expect(expect) => {
                    *its.lock().unwrap() = expect.bytes;
                    Answer::Noted { number: expect.number }
                }
            };
            modem.send_to(answer.to_string().as_bytes(), from).await.unwrap();
        }
    });
    let mut scene = Scene::start_with(folder.path(), Config { grants, ..config(folder.path()) }).await;
    let device = Arc::clone(&scene.device);
    let last = || device.state.lock().unwrap().rates.last().copied();
    eventually(|| last() == Some(25_600)).await;
    device.state.lock().unwrap().waiting = 20_000;
    eventually(|| last() == Some(160_000)).await;
    device.state.lock().unwrap().waiting = 90_000;
    eventually(|| last() == Some(256_000)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["source"], &status["follow"]), (&json!("granted"), &json!("")));
    device.state.lock().unwrap().waiting = 0;
    eventually(|| last() == Some(25_600)).await;
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_modem_that_says_nothing_is_named_and_the_rate_stays() {
    let folder = tempfile::tempdir().unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let grants = GrantTerms { modem: Some(address.clone()), terminal: None, ahead: 32_000, least: 5 };
    let mut scene = Scene::start_with(folder.path(), Config { grants, ..config(folder.path()) }).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["follow"], format!("{address} does not say what is granted"));
    assert!(scene.device.state.lock().unwrap().rates.is_empty());
    scene.running.abort();
}
