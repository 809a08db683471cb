//! Looking at what a browser loaded puts nothing on the way: what it holds no more is not fetched anew. Needs a browser; without
//! one the test says so and passes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhop_workload::browser::{Browser, Order, THROWN_AWAY};
use farhop_workload::{noise, picture};

/// Answers one request and closes; what was asked for.
fn answer(stream: TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    lines.map_while(Result::ok).find(|line| line.is_empty())?;
    let page = b"<!doctype html><title>x</title><img src=/no.bin><img src=/yes.gif>".to_vec();
    let (media, body) = match path.as_str() {
        "/" => ("text/html", page),
        "/no.bin" => ("application/octet-stream", noise(1, 5_000)),
        "/yes.gif" => ("image/gif", picture(1, 5_000)),
        _ => ("text/plain", Vec::new()),
    };
    let length = body.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    stream.write_all(&body).ok()?;
    Some(path)
}

#[test]
fn what_a_browser_threw_away_is_not_fetched_anew_to_be_looked_at() {
    let Some(browser) = Browser::at_hand(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let told = told.clone();
            std::thread::spawn(move || told.lock().unwrap().extend(answer(stream)));
        }
    });
    let order = Order { pauses: true, idle: Duration::from_millis(300), ..Order::new(&url) };
    let prepared = browser.prepare(&order).unwrap();
    let mut process = prepared.command().unwrap().spawn().unwrap();
    while !prepared.is_loaded() && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = asked.lock().unwrap().clone();
    prepared.look().unwrap();
    process.wait().unwrap();
    let load = prepared.finish().unwrap();
    assert_eq!(*asked.lock().unwrap(), before, "nothing was asked for any more");
    let of = |path: &str| load.resources.iter().find(|resource| resource.url.ends_with(path)).unwrap();
    assert_eq!((of("/yes.gif").bytes, of("/yes.gif").decoded), (Some(5_000), Some((1, 1))));
    assert_eq!(of("/no.bin").failure.as_deref(), Some(THROWN_AWAY));
}
