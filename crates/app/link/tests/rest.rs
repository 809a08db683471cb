//! Calls over HTTP: the same calls, with the statuses that say what became of them.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use support::Scene;

/// Asks once; the status and what was said.
async fn ask(folder: &Path, line: &str, body: &str) -> (u16, String, Value) {
    let mut stream = UnixStream::connect(folder.join("link.http")).await.unwrap();
    let length = body.len();
    let text = format!(
        "{line} HTTP/1.1\r\nHost: link\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), serde_json::from_str(body).unwrap())
}

fn call(name: &str) -> String {
    json!({"call": name, "codec": "G.729", "packet_time": "20 ms"}).to_string()
}

#[tokio::test(start_paused = true)]
async fn calls_are_made_listed_renewed_and_released() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut scene = Scene::start(at).await;
    let (status, head, made) = ask(at, "POST /calls", &call("pbx/a-1")).await;
    assert_eq!((status, &made["admitted"], &made["rate_bps"]), (201, &json!("new"), &json!(24_000)));
    assert!(head.contains("content-type: application/json"), "{head}");
    assert_eq!(ask(at, "POST /calls", &call("pbx/a-1")).await.0, 200, "the same again speaks for it");
    assert_eq!(scene.names().await, ["pbx/a-1"], "it is the same call for everybody");
    assert_eq!(ask(at, "GET /calls", "").await.2[0]["call"], "pbx/a-1");
    assert_eq!(ask(at, "GET /status", "").await.2["held_bps"], 24_000);
    assert_eq!(ask(at, "PUT /calls/pbx%2Fa-1", "").await.2["lease_s"], 60);
    assert_eq!(ask(at, "DELETE /calls/pbx%2Fa-1", "").await.0, 200);
    assert_eq!(ask(at, "DELETE /calls/pbx%2Fa-1", "").await.0, 404);
    assert_eq!(ask(at, "GET /counters", "").await.2["calls_released"], 1);
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_no_call_is_told_from_a_refusal_and_from_what_is_wrong_here() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let scene = Scene::start(at).await;
    let media: Vec<String> = (0..9).map(|port| format!("10.0.0.5:{}", 4000 + port)).collect();
    let crowded = json!({"call": "k", "codec": "G.729", "media": media}).to_string();
    let refused = || scene.bus.counters().snapshot()["calls_refused"].as_u64().unwrap();
    for (body, word) in [
        (crowded, "8 addresses of media at most"),
        (r#"{"call":"k","rate":"0 bit/s"}"#.into(), "a call of 0 bit/s is none"),
    ] {
        let (status, _, said) = ask(at, "POST /calls", &body).await;
        assert_eq!(status, 400, "{said}");
        assert!(said["error"].as_str().unwrap().contains(word), "{said}");
    }
    // A folder where the file would be written: not even root writes that.
    std::fs::create_dir(at.join("calls.json.next")).unwrap();
    let (status, _, said) = ask(at, "POST /calls", &call("k")).await;
    assert_eq!(status, 500, "{said}");
    assert_eq!(refused(), 0, "nobody has refused anything");
    std::fs::remove_dir(at.join("calls.json.next")).unwrap();
    let (status, ..) = ask(at, "POST /calls", r#"{"call":"k","rate":"1 Mbit/s"}"#).await;
    assert_eq!((status, refused()), (409, 1));
    for line in ["PUT /calls/a%20b", "DELETE /calls/a%20b"] {
        let (status, _, said) = ask(at, line, "").await;
        assert_eq!(status, 400, "{line}: {said}");
    }
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_has_its_status_and_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let scene = Scene::start(at).await;
    for name in support::TEN {
        assert_eq!(ask(at, "POST /calls", &call(name)).await.0, 201);
    }
    for (line, body, wanted, word) in [
        ("POST /calls", call("k"), 409, "no room for it"),
        ("POST /calls", "{".into(), 400, "no JSON"),
        ("POST /calls", r#"{"call":"k"}"#.into(), 400, "name its codec or its rate"),
        ("POST /calls", "x".repeat(20_000), 413, "16384 bytes"),
        ("PUT /calls", String::new(), 405, "'/calls' takes GET, POST"),
        ("GET /calls/a", String::new(), 405, "takes PUT, DELETE"),
        ("GET /", String::new(), 404, "there are /status"),
        ("DELETE /calls/%ff", String::new(), 400, "UTF-8"),
    ] {
        let (status, head, said) = ask(at, line, &body).await;
        assert_eq!(status, wanted, "{line} {body}: {said}");
        assert!(said["error"].as_str().unwrap().contains(word), "{said}");
        assert_eq!(head.contains("\r\nallow: "), status == 405, "{head}");
    }
    scene.running.abort();
}
