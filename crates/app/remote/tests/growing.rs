//! Responses whose length nobody tells, or whose carrier is lost while they come, are held like others once they are whole.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::path::Path;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use farhop_transport::hop::Sender;
use http::header;
use support::{World, answer, head, read_until, until, world, world_with};

const TAGGED: &[(&str, &str)] = &[("cache-control", "max-age=600"), ("etag", "\"1\"")];

/// A remote with its store in this folder, whose memory has no room for what is long.
async fn narrow_world(folder: &Path) -> World {
    let set = |name: &str, file: &str| format!("store.{name}={:?}", folder.join(file));
    let (directory, key) = (set("directory", "store"), set("key", "store.key"));
    let sizes = ["repository.size=\"1 MB\"", "repository.entry=\"100 kB\"", "store.entry=\"500 kB\""];
    world_with(&[&[&*directory, &*key], &sizes[..]].concat()).await
}

/// So many bytes, of which no two places are alike for long.
fn text(length: usize) -> String {
    let mut text: String = (0..length / 8).map(|line| format!("{line:7}\n")).collect();
    text.extend(std::iter::repeat_n('.', length - text.len()));
    text
}

fn of_length(length: Option<usize>) -> ResponseHead {
    let mut head = head(TAGGED);
    head.fields.extend(length.map(|length| (header::CONTENT_LENGTH, length.into())));
    head
}

async fn write(sender: &mut Sender, text: &str) {
    for piece in text.as_bytes().chunks(10_000) {
        sender.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
}

/// A client fetches a path, and ground answers with this body, whose length it does not tell.
async fn fetch(world: &World, path: &str, body: &str) {
    let client = world.get(path, "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&of_length(None), Coding::Identity, None);
    write(&mut asked.sender, body).await;
    asked.sender.finish(None);
    assert!(body_of(&answer(client).await) == body);
}

/// What an answer's body is, without its framing.
fn body_of(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return rest.into();
    }
    let mut body = String::new();
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&behind[..size]);
        rest = behind[size..].strip_prefix("\r\n").unwrap();
    }
    body
}

/// It answers, and nothing crosses for that.
async fn is_held(world: &World, path: &str, body: &str) {
    let crossed = world.crossed();
    let got = answer(world.get(path, "").await).await;
    assert!(got.starts_with("HTTP/1.1 200 ") && body_of(&got) == body, "{}", &got[..got.len().min(300)]);
    let part = answer(world.get(path, "range: bytes=8-15\r\n").await).await;
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with(&body[8..16]), "{part}");
    assert_eq!(world.crossed(), crossed);
}

#[tokio::test]
async fn what_tells_no_length_and_is_too_long_for_memory_is_kept_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let first = narrow_world(folder.path()).await;
    let mut events = first.bus.subscribe();
    let long = text(300_000);
    fetch(&first, "/long", &long).await;
    until(&mut events, |event| matches!(event, Event::Stored { bytes: 300_000, .. })).await;
    is_held(&first, "/long", &long).await;
    fetch(&first, "/longer", &text(600_000)).await;
    fetch(&first, "/longer", "asked for again").await;
    first.running.stop().await;
    is_held(&narrow_world(folder.path()).await, "/long", &long).await;
}

/// A client fetches a body of which the second half comes on another carrier, after ground has compared the first.
async fn fetch_in_two(world: &mut World, body: &str, lengths: [Option<usize>; 2]) {
    let (before, after) = body.split_at(body.len() / 2);
    let mut client = world.get("/cut", "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&of_length(lengths[0]), Coding::Identity, None);
    write(&mut asked.sender, before).await;
    let mut got = String::new();
    read_until(&mut client, &mut got, &before[before.len() - 20..]).await;
    world.lose_carrier().await;
    let mut asked = world.asked().await;
    let resume = asked.resume.expect("it goes on");
    assert_eq!(
        (resume.offset, resume.prefix),
        (before.len() as u64, *blake3::hash(before.as_bytes()).as_bytes())
    );
    asked.sender.answer(&of_length(lengths[1]), Coding::Identity, Some(resume.offset));
    write(&mut asked.sender, after).await;
    asked.sender.finish(None);
    read_until(&mut client, &mut got, "").await;
    assert!(body_of(&got) == body);
}

#[tokio::test]
async fn what_goes_on_after_its_carrier_was_lost_is_held_whole() {
    // In memory, without a disk; on disk from the beginning; and what turns out to be too long after the cut, and before it.
    let kinds = [
        (false, 1_000, true),
        (false, 80_000, false),
        (true, 300_000, true),
        (true, 160_000, false),
        (true, 300_000, false),
    ];
    for (has_disk, length, tells) in kinds {
        let folder = tempfile::tempdir().unwrap();
        let mut first = if has_disk { narrow_world(folder.path()).await } else { world().await };
        let mut events = first.bus.subscribe();
        let body = text(length);
        fetch_in_two(&mut first, &body, [tells.then_some(length); 2]).await;
        until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
        is_held(&first, "/cut", &body).await;
        first.running.stop().await;
        if has_disk {
            is_held(&narrow_world(folder.path()).await, "/cut", &body).await;
        }
    }
}

#[tokio::test]
async fn what_goes_on_is_held_whichever_of_its_heads_tells_its_length() {
    for lengths in [[Some(300_000), None], [None, Some(300_000)]] {
        let folder = tempfile::tempdir().unwrap();
        let mut first = narrow_world(folder.path()).await;
        let mut events = first.bus.subscribe();
        let body = text(300_000);
        fetch_in_two(&mut first, &body, lengths).await;
        until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
        is_held(&first, "/cut", &body).await;
    }
}
