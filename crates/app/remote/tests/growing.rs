//! Responses whose length nobody tells, or whose carrier is lost while they come, are held like others once they are whole.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use farhop_orbit::Profile;
use farhop_transport::hop::Sender;
use farhop_transport::path::PathPlan;
use http::header;
use support::{UNCACHEABLE, World, answer, head, read_until, until, world, world_on};
use tokio::net::{TcpSocket, TcpStream};

const TAGGED: &[(&str, &str)] = &[("cache-control", "max-age=600"), ("etag", "\"1\"")];

/// A remote with its store in this folder, whose memory has no room for what is long.
async fn narrow_world(folder: &Path) -> World {
    narrow_world_of(folder, "500 kB", Duration::ZERO).await
}

/// The same, where the disk takes what is so long, and both ends are told of so long a way.
async fn narrow_world_of(folder: &Path, entry: &str, rtt: Duration) -> World {
    let set = |name: &str, file: &str| format!("store.{name}={:?}", folder.join(file));
    let (directory, key) = (set("directory", "store"), set("key", "store.key"));
    let entry = format!("store.entry={entry:?}");
    let sizes = ["repository.size=\"1 MB\"", "repository.entry=\"100 kB\"", &*entry];
    let plan = PathPlan { rtt, ..PathPlan::UNKNOWN };
    world_on(&Profile::named("none").unwrap(), plan, &[&[&*directory, &*key], &sizes[..]].concat()).await
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

/// What the client has is this much of the body.
async fn has(client: &mut TcpStream, got: &mut String, so_far: &str) {
    read_until(client, got, &so_far[so_far.len() - 20..]).await;
    assert!(got.contains(&so_far[so_far.len() - 20..]), "it has ended");
}

/// The client goes away at once.
fn leave(client: TcpStream) {
    client.set_zero_linger().unwrap();
}

/// Gives the head and the first half of this body, which tells its length.
async fn give_half(sender: &mut Sender, body: &str) {
    sender.answer(&of_length(Some(body.len())), Coding::Identity, None);
    write(sender, &body[..body.len() / 2]).await;
}

#[tokio::test]
async fn what_is_too_long_for_memory_comes_to_all_who_ask_as_it_arrives_and_crosses_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = narrow_world_of(folder.path(), "500 kB", Duration::from_secs(30)).await;
    let body = text(300_000);
    let (half, crossed) = (&body[..150_000], world.crossed());
    let mut clients = vec![world.get("/long", "").await];
    let mut asked = world.asked().await;
    // One asks before the head is there, one later.
    clients.push(world.get("/long", "").await);
    let other = world.get("/other", "cookie: a=1\r\n").await;
    assert_eq!(world.give(200, UNCACHEABLE, "another").await.head.path, "/other");
    answer(other).await;
    give_half(&mut asked.sender, &body).await;
    let mut got = vec![String::new(); 3];
    has(&mut clients[0], &mut got[0], half).await;
    clients.push(world.get("/long", "").await);
    for (client, got) in clients.iter_mut().zip(&mut got) {
        has(client, got, half).await;
    }
    let part = answer(world.get("/long", "range: bytes=140000-140007\r\n").await).await;
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with(&body[140_000..140_008]), "{part}");
    write(&mut asked.sender, &body[150_000..]).await;
    asked.sender.finish(None);
    for (mut client, mut got) in clients.into_iter().zip(got) {
        read_until(&mut client, &mut got, "").await;
        assert!(body_of(&got) == body);
    }
    assert_eq!(world.crossed() - crossed, 2, "with the other one");
}

#[tokio::test]
async fn when_the_first_leaves_what_is_long_comes_for_those_who_follow_and_for_nobody_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let world = narrow_world(folder.path()).await;
    let mut events = world.bus.subscribe();
    let body = text(300_000);
    let (mut first, mut got) = (world.get("/long", "").await, String::new());
    let mut asked = world.asked().await;
    give_half(&mut asked.sender, &body).await;
    has(&mut first, &mut got, &body[..150_000]).await;
    let (mut second, mut got) = (world.get("/long", "").await, String::new());
    has(&mut second, &mut got, &body[..150_000]).await;
    leave(first);
    until(&mut events, |event| matches!(event, Event::Failed { .. })).await;
    write(&mut asked.sender, &body[150_000..]).await;
    asked.sender.finish(None);
    read_until(&mut second, &mut got, "").await;
    assert!(body_of(&got) == body);
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    is_held(&world, "/long", &body).await;

    // Of this more is lacking than what is on its way anyway.
    let body = text(450_000);
    let (mut only, mut got) = (world.get("/left", "").await, String::new());
    let mut asked = world.asked().await;
    asked.sender.answer(&of_length(Some(body.len())), Coding::Identity, None);
    write(&mut asked.sender, &body[..50_000]).await;
    has(&mut only, &mut got, &body[..50_000]).await;
    leave(only);
    asked.sender.gone().await;
    fetch(&world, "/left", "asked for again").await;
}

#[tokio::test]
async fn what_is_nearly_whole_when_its_only_client_leaves_becomes_so() {
    let folder = tempfile::tempdir().unwrap();
    let world = narrow_world(folder.path()).await;
    let mut events = world.bus.subscribe();
    let body = text(300_000);
    let (mut only, mut got) = (world.get("/long", "").await, String::new());
    let mut asked = world.asked().await;
    give_half(&mut asked.sender, &body).await;
    has(&mut only, &mut got, &body[..150_000]).await;
    leave(only);
    until(&mut events, |event| matches!(event, Event::Failed { .. })).await;
    write(&mut asked.sender, &body[150_000..]).await;
    asked.sender.finish(None);
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    is_held(&world, "/long", &body).await;
}

#[tokio::test]
async fn who_does_not_read_holds_up_nobody_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let world = narrow_world_of(folder.path(), "64 MB", Duration::ZERO).await;
    let body = text(16 << 20);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut slow = socket.connect(world.running.addresses()[0]).await.unwrap();
    support::send(&mut slow, "GET", "/long", "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&of_length(Some(body.len())), Coding::Identity, None);
    write(&mut asked.sender, &body[..100_000]).await;
    let mut quick = world.get("/long", "").await;
    let mut got = String::new();
    has(&mut quick, &mut got, &body[..100_000]).await;
    let ground = async {
        write(&mut asked.sender, &body[100_000..]).await;
        asked.sender.finish(None);
    };
    tokio::join!(ground, read_until(&mut quick, &mut got, ""));
    assert!(body_of(&got) == body);
    assert!(body_of(&answer(slow).await) == body);
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn when_the_carrier_is_lost_the_first_asks_for_the_rest_for_all_and_without_it_each_for_itself() {
    for first_leaves in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut world = narrow_world(folder.path()).await;
        let mut events = world.bus.subscribe();
        let body = text(300_000);
        let (half, rest) = body.split_at(150_000);
        let (mut first, mut first_got) = (world.get("/long", "").await, String::new());
        let mut asked = world.asked().await;
        give_half(&mut asked.sender, &body).await;
        has(&mut first, &mut first_got, half).await;
        let (mut second, mut got) = (world.get("/long", "").await, String::new());
        has(&mut second, &mut got, half).await;
        let mut first = Some(first);
        if let Some(first) = first.take_if(|_| first_leaves) {
            leave(first);
            until(&mut events, |event| matches!(event, Event::Failed { .. })).await;
        }
        world.lose_carrier().await;
        let mut asked = world.asked().await;
        assert_eq!(asked.resume.unwrap().offset, 150_000);
        asked.sender.answer(&of_length(Some(body.len())), Coding::Identity, Some(150_000));
        write(&mut asked.sender, rest).await;
        asked.sender.finish(None);
        read_until(&mut second, &mut got, "").await;
        assert!(body_of(&got) == body);
        if let Some(mut first) = first {
            read_until(&mut first, &mut first_got, "").await;
            assert!(body_of(&first_got) == body);
            until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
            is_held(&world, "/long", &body).await;
        }
        assert_eq!(world.crossed(), 2);
    }
}

#[tokio::test]
async fn who_follows_what_turns_out_to_be_too_long_goes_on_with_what_ground_has() {
    let folder = tempfile::tempdir().unwrap();
    let world = narrow_world(folder.path()).await;
    let body = text(600_000);
    let (mut first, mut first_got) = (world.get("/long", "").await, String::new());
    let mut asked = world.asked().await;
    asked.sender.answer(&of_length(None), Coding::Identity, None);
    write(&mut asked.sender, &body[..200_000]).await;
    has(&mut first, &mut first_got, &body[..200_000]).await;
    let (mut second, mut got) = (world.get("/long", "").await, String::new());
    has(&mut second, &mut got, &body[..200_000]).await;
    write(&mut asked.sender, &body[200_000..]).await;
    asked.sender.finish(None);
    let mut again = world.asked().await;
    let at = again.resume.unwrap().offset;
    again.sender.answer(&of_length(None), Coding::Identity, Some(at));
    write(&mut again.sender, &body[at as usize..]).await;
    again.sender.finish(None);
    for (mut client, mut got) in [(first, first_got), (second, got)] {
        read_until(&mut client, &mut got, "").await;
        assert!(body_of(&got) == body);
    }
}
