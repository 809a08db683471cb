//! Texts that are held serve those that are like them: told of to ground, compared with what ground means, and given to
//! nobody else.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;

use bytes::Bytes;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Priority, Resume};
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_htotp::session::Config;
use farhop_squeeze::{DeltaEncoder, compress_against};
use farhop_transport::hop::{Incoming, Sender};
use support::{Asked, BROWSER, PATIENCE, REFERER, World, answer, head, predicted, read_until, send, world};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Held, and asked about each time.
const ANYONES: &[(&str, &str)] =
    &[("content-type", "text/css"), ("cache-control", "max-age=0"), ("etag", "\"1\"")];
const ONES_OWN: &[(&str, &str)] =
    &[("content-type", "text/css"), ("cache-control", "private, max-age=0"), ("etag", "\"1\"")];
const NEVER: &[(&str, &str)] = &[("content-type", "text/css"), ("cache-control", "no-store")];

fn text(word: &str) -> Vec<u8> {
    (0..200).map(|line| format!("line {line} of {word}\n")).collect::<String>().into_bytes()
}

/// What is told of bodies next.
async fn told(world: &World) -> Word {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        if let Incoming::Mirror(word @ (Word::Holds(_) | Word::Lacks(_))) = incoming {
            return word;
        }
    }
}

async fn holds(world: &World) -> Vec<HeldBody> {
    match told(world).await {
        Word::Holds(bodies) => bodies,
        other => panic!("{other:?}"),
    }
}

async fn give(sender: &mut Sender, head: &ResponseHead, coding: Coding, resumed: Option<u64>, bytes: &[u8]) {
    sender.answer(head, coding, resumed);
    sender.write(Bytes::copy_from_slice(bytes)).await.unwrap();
    sender.finish(None);
}

/// The body that a client is given, in chunks: no length is told.
async fn given(client: TcpStream) -> Vec<u8> {
    let answer = answer(client).await;
    let (_, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    let mut body = Vec::new();
    loop {
        let (length, chunks) = rest.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunks.as_bytes()[..length]);
        rest = &chunks[length + 2..];
    }
}

/// A client fetches `/a`, which ground gives as it is.
async fn fetch(world: &World, fields: &[(&'static str, &'static str)], body: &[u8]) {
    let client = world.get("/a", "").await;
    let mut asked = world.asked().await;
    give(&mut asked.sender, &head(fields), Coding::Identity, None, body).await;
    assert_eq!(given(client).await, body);
}

#[tokio::test]
async fn what_differs_from_what_is_held_is_put_together_and_held_in_turn() {
    let mut world = world().await;
    let (mut before, after) = (text("before"), text("after"));
    fetch(&world, ANYONES, &before).await;
    assert_eq!(holds(&world).await, [HeldBody { user: None, hash: BodyHash::of(&before) }]);
    for next in [after.clone(), text("the last")] {
        let client = world.get("/a", "").await;
        let mut asked = world.asked().await;
        assert_eq!(asked.resume, None);
        let coded = compress_against(&before, &next, 9).unwrap();
        assert!(coded.len() < next.len() / 2, "{}", coded.len());
        let coding = Coding::Delta(BodyHash::of(&before));
        give(&mut asked.sender, &head(ANYONES), coding, None, &coded).await;
        assert_eq!(given(client).await, next);
        let gone = HeldBody { user: None, hash: BodyHash::of(&before) };
        assert_eq!(told(&world).await, Word::Lacks(vec![gone]), "it was replaced");
        assert_eq!(holds(&world).await, [HeldBody { user: None, hash: BodyHash::of(&next) }]);
        before = next;
    }
    world.lose_carrier().await;
    assert_eq!(holds(&world).await, [HeldBody { user: None, hash: BodyHash::of(&before) }], "told anew");
}

#[tokio::test]
async fn what_goes_on_by_itself_after_it_began_as_what_differs_is_put_together_and_held() {
    let world = world().await;
    // As good as noise: what is held says nothing of what follows it.
    let noise = |numbers: std::ops::Range<u64>| -> Vec<u8> {
        numbers.flat_map(|n| blake3::hash(&n.to_le_bytes()).to_hex().to_string().into_bytes()).collect()
    };
    let (before, block) = (noise(0..100), noise(100..1_700));
    // Said twice, further apart than what goes against so short a base refers back.
    let rest = [&block[..], &block].concat();
    let after = [&before[..], &rest].concat();
    fetch(&world, ANYONES, &before).await;
    assert_eq!(holds(&world).await.len(), 1);
    let client = world.get("/a", "").await;
    let mut asked = world.asked().await;
    let (mut encoder, mut coded) = {
        let (encoder, coded) = DeltaEncoder::begin(&before, &before, 9, 16).unwrap().unwrap();
        (encoder, coded.to_vec())
    };
    for chunk in rest.chunks(2_000) {
        coded.extend_from_slice(&encoder.chunk(chunk).unwrap());
    }
    coded.extend_from_slice(&encoder.finish(&[]).unwrap().0);
    // More than one frame.
    assert!(coded.windows(4).filter(|four| *four == [0x28, 0xb5, 0x2f, 0xfd]).count() > 1);
    give(&mut asked.sender, &head(ANYONES), Coding::Delta(BodyHash::of(&before)), None, &coded).await;
    assert_eq!(given(client).await, after);
    assert!(matches!(told(&world).await, Word::Lacks(_)), "it was replaced");
    assert_eq!(holds(&world).await, [HeldBody { user: None, hash: BodyHash::of(&after) }]);
}

#[tokio::test]
async fn what_was_just_replaced_still_serves_what_is_on_its_way() {
    let world = world().await;
    let (before, after) = (text("before"), text("after"));
    fetch(&world, ANYONES, &before).await;
    // Told of, it is known by its hash.
    assert_eq!(holds(&world).await.len(), 1);
    let clients = [world.get("/a", "").await, world.get("/a", "").await];
    let mut asked = [world.asked().await, world.asked().await];
    let coded = compress_against(&before, &after, 9).unwrap();
    for (client, asked) in clients.into_iter().zip(&mut asked) {
        let coding = Coding::Delta(BodyHash::of(&before));
        give(&mut asked.sender, &head(ANYONES), coding, None, &coded).await;
        assert_eq!(given(client).await, after);
    }
}

/// Brotli that holds the text as it is (RFC 7932 §9.2): a window of 2^16, a metablock that is not the last, with a length of 16 bits
/// and plain bytes, and an empty one.
fn brotli(text: &[u8]) -> Vec<u8> {
    let head = (text.len() as u32 - 1) << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], text, &[3]].concat()
}

#[tokio::test]
async fn what_comes_as_its_origin_coded_it_is_delivered_kept_and_told_of_as_what_it_decodes_to() {
    let world = world().await;
    let body = text("as it was coded");
    let coded = brotli(&body);
    // The last byte says no more than that nothing follows: browsers read a body without it all the same.
    for (path, coded) in [("/a", &coded[..]), ("/b", &coded[..coded.len() - 1])] {
        let client = world.get(path, "").await;
        let mut asked = world.asked().await;
        give(&mut asked.sender, &head(ANYONES), Coding::Brotli, None, coded).await;
        assert_eq!(given(client).await, body);
        assert_eq!(holds(&world).await, [HeldBody { user: None, hash: BodyHash::of(&body) }]);
    }
}

#[tokio::test]
async fn a_base_that_is_not_held_is_told_of_and_the_body_asked_for_plainly() {
    let world = world().await;
    let (before, after) = (text("before"), text("after"));
    let client = world.get("/a", "").await;
    let mut asked = world.asked().await;
    let hash = BodyHash::of(&before);
    let coded = compress_against(&before, &after, 9).unwrap();
    give(&mut asked.sender, &head(ANYONES), Coding::Delta(hash), None, &coded).await;
    let (mut lacked, mut again) = (None, None);
    while lacked.is_none() || again.is_none() {
        match timeout(PATIENCE, world.hop.accept()).await.expect("it is asked anew").unwrap() {
            Incoming::Mirror(Word::Lacks(bodies)) => lacked = Some(bodies),
            Incoming::Exchange { head, resume, sender, receiver, .. } => {
                again = Some(Asked { head, resume, sender, receiver });
            }
            _ => {}
        }
    }
    assert!(lacked.unwrap().iter().all(|body| body.hash == hash));
    let mut again = again.unwrap();
    let nothing = Resume { offset: 0, prefix: *blake3::hash(&[]).as_bytes() };
    assert_eq!((again.resume, &again.head), (Some(nothing), &asked.head));
    give(&mut again.sender, &head(ANYONES), Coding::Identity, Some(0), &after).await;
    assert_eq!(given(client).await, after);
    assert_eq!(
        holds(&world).await,
        [HeldBody { user: None, hash: BodyHash::of(&after) }],
        "it is held as ever"
    );
}

#[tokio::test]
async fn nothing_of_one_users_private_body_is_ever_a_base_for_another() {
    let world = world().await;
    let (before, after) = (text("before"), text("after"));
    fetch(&world, ONES_OWN, &before).await;
    let [held] = holds(&world).await[..] else { panic!("one body") };
    assert!(held.user.is_some());
    let mut client = world.client_at(Ipv4Addr::new(127, 0, 0, 2)).await;
    send(&mut client, "GET", "/a", "").await;
    let mut asked = world.asked().await;
    let coded = compress_against(&before, &after, 9).unwrap();
    give(&mut asked.sender, &head(ONES_OWN), Coding::Delta(held.hash), None, &coded).await;
    let mut again = world.asked().await;
    assert_eq!(again.resume.map(|resume| resume.offset), Some(0), "asked for without");
    give(&mut again.sender, &head(ONES_OWN), Coding::Identity, Some(0), b"another's").await;
    assert_eq!(given(client).await, b"another's");
}

#[tokio::test]
async fn what_is_damaged_is_cut_off_and_not_held() {
    let world = world().await;
    let (before, after) = (text("before"), text("after"));
    fetch(&world, ANYONES, &before).await;
    holds(&world).await;
    let mut client = world.get("/a", "").await;
    let mut asked = world.asked().await;
    let mut coded = compress_against(&before, &after, 9).unwrap().to_vec();
    *coded.last_mut().unwrap() ^= 1;
    give(&mut asked.sender, &head(ANYONES), Coding::Delta(BodyHash::of(&before)), None, &coded).await;
    let mut got = String::new();
    read_until(&mut client, &mut got, "\r\n\r\n").await;
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, client.read_to_end(&mut rest)).await.unwrap();
    // Without a length an end is told from a break by the last chunk.
    assert!(ended.is_err() || !String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n"), "it looks whole");
    let client = world.get("/a", "").await;
    let mut asked = world.asked().await;
    give(&mut asked.sender, &head(ANYONES), Coding::Identity, None, &after).await;
    assert_eq!(given(client).await, after);
}

#[tokio::test]
async fn a_push_against_what_is_not_held_is_given_up_and_what_it_promised_asked_for() {
    let world = world().await;
    let client = world.get("/", BROWSER).await;
    let Asked { head: document, mut sender, .. } = world.asked().await;
    let promise = sender.promise(&predicted(&document, "/a"), Priority::default()).unwrap();
    let page = head(&[("content-type", "text/html"), ("cache-control", "no-store")]);
    give(&mut sender, &page, Coding::Identity, None, b"<link rel=stylesheet href=a>").await;
    answer(client).await;
    let client = world.get("/a", &format!("{BROWSER}{REFERER}")).await;
    let push = world.hop.push(promise).unwrap();
    push.answer(&head(NEVER), Coding::Delta(BodyHash::of(b"whatever")), None);
    let mut asked = world.asked().await;
    assert_eq!((asked.head.path.as_str(), asked.resume), ("/a", None));
    give(&mut asked.sender, &head(NEVER), Coding::Identity, None, b"after all").await;
    assert_eq!(given(client).await, b"after all");
}

#[tokio::test]
async fn a_ground_that_makes_no_use_of_it_is_told_of_no_bodies() {
    let mut world = world().await;
    world.hop.close();
    world.hop = world.listener.carrier_with(Config::default()).await;
    let fresh = [("content-type", "text/css"), ("cache-control", "max-age=600")];
    for path in ["/a", "/b", "/c"] {
        let client = world.get(path, "").await;
        let mut asked = world.asked().await;
        give(&mut asked.sender, &head(&fresh), Coding::Identity, None, &text(path)).await;
        assert_eq!(given(client).await, text(path));
        loop {
            match timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap() {
                Incoming::Mirror(Word::Stored(_)) => break,
                Incoming::Mirror(Word::Holds(bodies)) => panic!("{bodies:?}"),
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn short_bodies_and_those_that_are_no_texts_are_not_told_of() {
    let world = world().await;
    let image = [("content-type", "image/png"), ("cache-control", "max-age=0"), ("etag", "\"1\"")];
    fetch(&world, &image, &text("image")).await;
    fetch(&world, ANYONES, b"short").await;
    let coded = [
        ("content-type", "text/css"),
        ("cache-control", "max-age=0"),
        ("etag", "\"1\""),
        ("content-encoding", "gzip"),
    ];
    fetch(&world, &coded, &text("coded")).await;
    fetch(&world, NEVER, &text("secret")).await;
    fetch(&world, ANYONES, &text("told")).await;
    assert_eq!(holds(&world).await, [HeldBody { user: None, hash: BodyHash::of(&text("told")) }]);
}
