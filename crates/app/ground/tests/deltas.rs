//! Texts that have changed, or are like others, cross as what differs from what the remote has said that it holds.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhop_events::Event;
use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Coding, Resume};
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_htotp::session::Ask;
use farhop_squeeze::HopDecoder;
use farhop_transport::hop::{Arrival, Incoming, Receiver};
use support::{Origin, Pair, Peer, event, get, navigate, noise};

/// An origin whose bodies the test changes: what it says with them, and they by path.
struct Changing {
    origin: Origin,
    bodies: Arc<Mutex<std::collections::HashMap<String, Vec<u8>>>>,
}

impl Changing {
    async fn start(fields: &'static str) -> Changing {
        let bodies: Arc<Mutex<std::collections::HashMap<String, Vec<u8>>>> = Arc::default();
        let served = Arc::clone(&bodies);
        let origin = Origin::start(move |mut peer: Peer| {
            let body = served.lock().unwrap().get(peer.path()).cloned();
            async move {
                let kind = if peer.path().ends_with(".css") { "text/css" } else { "text/html" };
                peer.answer(&format!("content-type: {kind}|{fields}"), body.unwrap()).await;
                Some(peer)
            }
        })
        .await;
        Changing { origin, bodies }
    }

    fn put(&self, path: &str, body: &[u8]) {
        self.bodies.lock().unwrap().insert(path.into(), body.to_vec());
    }
}

const ANYONES: &str = "cache-control: max-age=60";
const ONES_OWN: &str = "cache-control: private, max-age=60";

/// Words that a coder does not find elsewhere in the text, with one line in twenty from another seed.
fn text(changed: u64) -> Vec<u8> {
    let mut state = 0_u64;
    (0..400_u64)
        .map(|line| {
            state = state.wrapping_add(1);
            let seed = if line % 20 == 7 { changed * 1_000_003 } else { 0 };
            let word = |n: u64| (state * 31 + n + seed).wrapping_mul(6_364_136_223_846_793_005) >> 30;
            format!("<p>{:x} {:x} {:x}\n", word(1), word(2), word(3))
        })
        .collect::<String>()
        .into_bytes()
}

/// What came, and how many bytes of body it took.
struct Came {
    coding: Coding,
    crossed: usize,
    body: Vec<u8>,
}

/// Takes an answer, with these bodies as bases.
async fn take(receiver: &mut Receiver, bases: &[&[u8]]) -> Came {
    let mut came = Came { coding: Coding::Identity, crossed: 0, body: Vec::new() };
    let mut decoder = None;
    loop {
        match receiver.next().await {
            Arrival::Answered { coding, .. } => {
                came.coding = coding;
                decoder = match coding {
                    Coding::Identity => None,
                    Coding::Zstd => Some(HopDecoder::default()),
                    Coding::Dictionary(_) => panic!("none was taken"),
                    Coding::Brotli => Some(HopDecoder::brotli()),
                    Coding::Gzip => Some(HopDecoder::gzip()),
                    Coding::Delta(hash) => {
                        let base = bases.iter().find(|base| BodyHash::of(base) == hash);
                        Some(HopDecoder::against(base.expect("the base is one that is held")).unwrap())
                    }
                };
            }
            Arrival::Body(bytes) => {
                came.crossed += bytes.len();
                let Some(decoder) = &mut decoder else {
                    came.body.extend_from_slice(&bytes);
                    continue;
                };
                decoder.feed(bytes);
                while let Some(piece) = decoder.pull().unwrap() {
                    came.body.extend_from_slice(&piece);
                }
            }
            Arrival::Ended => {
                assert!(decoder.is_none_or(|decoder| decoder.is_complete()));
                return came;
            }
            Arrival::Informed(_) | Arrival::Promised { .. } | Arrival::Trailers(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn ask(pair: &Pair, user: u64, head: &RequestHead, resume: Option<Resume>, bases: &[&[u8]]) -> Came {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1000);
    let exchange = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let ask = Ask { exchange, user, resume, ..Ask::default() };
    let (mut sender, mut receiver) = pair.hop.ask(ask, head);
    sender.finish(None);
    take(&mut receiver, bases).await
}

/// Waits until ground knows of so many texts that they are held.
async fn held(pair: &Pair, count: u64) {
    while pair.ground.status()["texts"]["held"].as_u64() != Some(count) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn tell(pair: &Pair, user: Option<u64>, body: &[u8], count: u64) {
    pair.hop.tell_mirror(Word::Holds(vec![HeldBody { user, hash: BodyHash::of(body) }]));
    held(pair, count).await;
}

#[tokio::test]
async fn a_changed_text_crosses_as_what_differs_from_what_the_remote_holds() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start(ANYONES).await);
    let (before, after) = (text(1), text(2));
    let head = get(&site.origin, "/page");
    site.put("/page", &before);
    let cold = ask(&pair, 7, &head, None, &[]).await;
    assert_eq!((cold.coding, &cold.body), (Coding::Zstd, &before));
    assert!(pair.hop.takes_bodies());
    let unknown = ask(&pair, 7, &head, None, &[]).await;
    assert_eq!(unknown.coding, Coding::Zstd, "the remote has not said that it holds it");
    tell(&pair, None, &before, 1).await;
    site.put("/page", &after);
    let mut told = pair.bus.subscribe();
    let changed = ask(&pair, 7, &head, None, &[&before]).await;
    assert_eq!((changed.coding, &changed.body), (Coding::Delta(BodyHash::of(&before)), &after));
    assert!(changed.crossed * 8 < cold.crossed, "{} of {}", changed.crossed, cold.crossed);
    // It is counted a moment after it has come.
    let is_counted = |event: &Event| matches!(event, Event::Fetched { spared_bytes: 1.., .. }).then_some(());
    event(&mut told, is_counted).await;
    let counted = |counter: &str| pair.bus.counters().snapshot()[counter].as_u64().unwrap();
    assert_eq!(counted("deltas"), 1);
    assert!(counted("bytes_spared_by_deltas") > cold.crossed as u64 / 2);
    // What came so is a base in turn, and the old one none when the remote lacks it.
    pair.hop.tell_mirror(Word::Lacks(vec![HeldBody { user: None, hash: BodyHash::of(&before) }]));
    held(&pair, 0).await;
    assert_eq!(ask(&pair, 7, &head, None, &[]).await.coding, Coding::Zstd);
    tell(&pair, None, &after, 1).await;
    site.put("/page", &before);
    assert_eq!(ask(&pair, 7, &head, None, &[&after]).await.coding, Coding::Delta(BodyHash::of(&after)));
}

#[tokio::test]
async fn nothing_of_one_users_private_body_is_ever_a_base_for_another() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start(ONES_OWN).await);
    let (before, after) = (text(1), text(2));
    let head = get(&site.origin, "/page");
    site.put("/page", &before);
    ask(&pair, 7, &head, None, &[]).await;
    tell(&pair, Some(7), &before, 1).await;
    // Whatever a remote says: ground knows whom it was given to.
    tell(&pair, None, &before, 1).await;
    site.put("/page", &after);
    assert_eq!(ask(&pair, 8, &head, None, &[]).await.coding, Coding::Zstd);
    assert_eq!(ask(&pair, 7, &head, None, &[&before]).await.coding, Coding::Delta(BodyHash::of(&before)));
}

#[tokio::test]
async fn what_is_anyones_but_held_for_one_user_is_no_base_for_another() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start(ANYONES).await);
    let (before, after) = (text(1), text(2));
    let head = get(&site.origin, "/page");
    site.put("/page", &before);
    ask(&pair, 7, &head, None, &[]).await;
    tell(&pair, Some(7), &before, 1).await;
    site.put("/page", &after);
    assert_eq!(ask(&pair, 8, &head, None, &[]).await.coding, Coding::Zstd);
}

#[tokio::test]
async fn a_page_of_the_same_template_crosses_as_what_differs_and_one_of_another_origin_does_not() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start(ANYONES).await);
    let (before, after) = (text(1), text(2));
    site.put("/news/1-first", &before);
    site.put("/news/2-second", &after);
    ask(&pair, 7, &get(&site.origin, "/news/1-first"), None, &[]).await;
    tell(&pair, None, &before, 1).await;
    let like = ask(&pair, 8, &get(&site.origin, "/news/2-second"), None, &[&before]).await;
    assert_eq!((like.coding, &like.body), (Coding::Delta(BodyHash::of(&before)), &after));
    let elsewhere = Changing::start(ANYONES).await;
    elsewhere.put("/news/1-first", &after);
    let head = get(&elsewhere.origin, "/news/1-first");
    assert_eq!(ask(&pair, 7, &head, None, &[]).await.coding, Coding::Zstd);
}

#[tokio::test]
async fn what_gains_nothing_crosses_by_itself() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start(ANYONES).await);
    let before = text(1);
    let head = get(&site.origin, "/page");
    site.put("/page", &before);
    ask(&pair, 7, &head, None, &[]).await;
    tell(&pair, None, &before, 1).await;
    let noise = noise(20_000);
    site.put("/page", &noise);
    let came = ask(&pair, 7, &head, None, &[&before]).await;
    assert_eq!((came.coding, &came.body), (Coding::Identity, &noise));
    assert_eq!(came.crossed, noise.len());
}

#[tokio::test]
async fn what_resumes_is_sent_against_nothing_even_from_its_first_byte() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start(ANYONES).await);
    let (before, after) = (text(1), text(2));
    let head = get(&site.origin, "/page");
    site.put("/page", &before);
    ask(&pair, 7, &head, None, &[]).await;
    tell(&pair, None, &before, 1).await;
    site.put("/page", &after);
    for offset in [0, 100] {
        let prefix = *blake3::hash(&after[..offset]).as_bytes();
        let resume = Some(Resume { offset: offset as u64, prefix });
        let came = ask(&pair, 7, &head, resume, &[]).await;
        assert_eq!((came.coding, &came.body[..]), (Coding::Zstd, &after[offset..]));
    }
}

#[tokio::test]
async fn nothing_is_kept_where_settings_say_so() {
    let (pair, site) = (
        Pair::new(&["squeeze.deltas=0 B", "squeeze.dictionaries=0 B"]).await,
        Changing::start(ANYONES).await,
    );
    site.put("/page", &text(1));
    ask(&pair, 7, &get(&site.origin, "/page"), None, &[]).await;
    assert!(!pair.hop.takes_bodies());
    assert_eq!(pair.ground.status()["texts"]["kept"], 0);
}

#[tokio::test]
async fn a_text_that_is_pushed_crosses_as_what_differs_too() {
    let (pair, site) = (Pair::new(&[]).await, Changing::start("cache-control: max-age=0").await);
    let (before, after) = (text(1), text(2));
    site.put("/", b"<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=a.css>");
    for (style, bases) in [(&before, &[][..]), (&after, &[&before[..]][..])] {
        site.put("/a.css", style);
        ask(&pair, 7, &navigate(&site.origin, "/"), None, &[]).await;
        let came = loop {
            if let Some(Incoming::Push { mut receiver, .. }) = pair.hop.accept().await {
                break take(&mut receiver, bases).await;
            }
        };
        assert_eq!(&came.body, style);
        assert_eq!(matches!(came.coding, Coding::Delta(_)), !bases.is_empty());
        tell(&pair, None, style, if bases.is_empty() { 1 } else { 2 }).await;
    }
}

#[tokio::test]
async fn a_long_text_that_comes_in_pieces_is_a_base_for_the_next() {
    let whole = || [text(1), text(3), text(4), text(5), text(6), text(7)].concat();
    let origin = Origin::start(move |mut peer: Peer| async move {
        let fields = format!("content-type: text/html\r\n{ANYONES}\r\nconnection: close");
        peer.say(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
        for piece in whole().chunks(20_000) {
            peer.say(piece).await;
        }
        None
    })
    .await;
    let (pair, whole) = (Pair::new(&[]).await, whole());
    let cold = ask(&pair, 7, &get(&origin, "/1"), None, &[]).await;
    assert_eq!((cold.coding, &cold.body), (Coding::Zstd, &whole));
    tell(&pair, None, &whole, 1).await;
    let again = ask(&pair, 7, &get(&origin, "/2"), None, &[&whole]).await;
    assert_eq!((again.coding, &again.body), (Coding::Delta(BodyHash::of(&whole)), &whole));
    assert!(again.crossed < 100, "{}", again.crossed);
}

/// Slower than what is gathered may come, and over sooner than a text of known length is waited for.
#[tokio::test]
async fn a_text_that_is_said_word_by_word_is_not_gathered_though_there_is_a_base() {
    let origin = Origin::start(move |mut peer: Peer| async move {
        let body = text(1);
        let slowly = peer.path() == "/slow";
        let length = if peer.path() == "/known" {
            format!("content-length: {}\r\n", body.len())
        } else {
            String::new()
        };
        let kind = if peer.path() == "/lines" { "application/x-ndjson" } else { "text/html" };
        let fields = format!("content-type: {kind}\r\n{length}{ANYONES}\r\nconnection: close");
        peer.say(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
        for piece in body.chunks(body.len().div_ceil(2)) {
            peer.say(piece).await;
            if slowly {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        None
    })
    .await;
    let (pair, body) = (Pair::new(&[]).await, text(1));
    assert_eq!(ask(&pair, 7, &get(&origin, "/known"), None, &[]).await.body, body);
    tell(&pair, None, &body, 1).await;
    for (path, coding) in
        [("/known", Coding::Delta(BodyHash::of(&body))), ("/slow", Coding::Zstd), ("/lines", Coding::Zstd)]
    {
        let came = ask(&pair, 7, &get(&origin, path), None, &[&body]).await;
        assert_eq!((came.coding, &came.body), (coding, &body), "{path}");
    }
}

/// What has a base is waited for, but not for ever, and what it names is promised meanwhile, once.
#[tokio::test]
async fn a_page_that_stands_still_is_streamed_by_itself_and_read_along_once() {
    let more = Arc::new(tokio::sync::Notify::new());
    let gate = Arc::clone(&more);
    let origin = Origin::start(move |mut peer: Peer| {
        let gate = Arc::clone(&gate);
        async move {
            if peer.path() == "/a.css" {
                peer.answer("content-type: text/css|cache-control: no-store", "a { color: red }").await;
                return Some(peer);
            }
            let fields = format!("content-type: text/html\r\n{ANYONES}\r\nconnection: close");
            peer.say(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n<link rel=stylesheet href=/a.css>")).await;
            peer.say(text(1)).await;
            if peer.path() == "/2" {
                gate.notified().await;
            }
            peer.say(text(2)).await;
            None
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let page = [&b"<link rel=stylesheet href=/a.css>"[..], &text(1), &text(2)].concat();
    assert_eq!(ask(&pair, 7, &navigate(&origin, "/1"), None, &[]).await.body, page);
    tell(&pair, None, &page, 1).await;
    let ask = Ask { exchange: 5, user: 7, ..Ask::default() };
    let (mut sender, mut receiver) = pair.hop.ask(ask, &navigate(&origin, "/2"));
    sender.finish(None);
    let first = receiver.next().await;
    assert!(matches!(first, Arrival::Promised { .. }), "{first:?}");
    // The head comes though the origin has said nothing more.
    let second = receiver.next().await;
    assert!(matches!(second, Arrival::Answered { coding: Coding::Zstd, .. }), "{second:?}");
    more.notify_one();
    let (mut decoder, mut body) = (HopDecoder::default(), Vec::new());
    loop {
        match receiver.next().await {
            Arrival::Body(bytes) => decoder.feed(bytes),
            Arrival::Ended => break,
            other => panic!("{other:?}"),
        }
        while let Some(piece) = decoder.pull().unwrap() {
            body.extend_from_slice(&piece);
        }
    }
    assert_eq!(body, page);
}

/// An origin that says the beginning of what `/` holds, and the rest when it is told to, or a moment later.
async fn halting(bodies: Arc<Mutex<Vec<u8>>>, first: usize, more: Arc<tokio::sync::Notify>) -> Origin {
    Origin::start(move |mut peer: Peer| {
        let (bodies, more) = (Arc::clone(&bodies), Arc::clone(&more));
        async move {
            let body = bodies.lock().unwrap().clone();
            let fields = format!("content-type: text/html\r\n{ANYONES}\r\nconnection: close");
            peer.say(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
            peer.say(&body[..first]).await;
            more.notified().await;
            for piece in body[first..].chunks(3_000) {
                peer.say(piece).await;
            }
            None
        }
    })
    .await
}

/// Asks for `/` of an origin that halts after `first` bytes until those have come, with this base.
async fn ask_halting(
    pair: &Pair,
    origin: &Origin,
    more: &tokio::sync::Notify,
    first: usize,
    base: &[u8],
) -> Came {
    let ask = Ask { exchange: 1, user: 7, ..Ask::default() };
    let (mut sender, mut receiver) = pair.hop.ask(ask, &get(origin, "/"));
    sender.finish(None);
    let mut came = Came { coding: Coding::Identity, crossed: 0, body: Vec::new() };
    let (mut decoder, mut halts) = (None, true);
    loop {
        match receiver.next().await {
            Arrival::Answered { coding, .. } => {
                came.coding = coding;
                decoder = match coding {
                    Coding::Zstd => Some(HopDecoder::default()),
                    Coding::Delta(hash) if hash == BodyHash::of(base) => {
                        Some(HopDecoder::against(base).unwrap())
                    }
                    other => panic!("{other:?}"),
                };
            }
            Arrival::Body(bytes) => {
                came.crossed += bytes.len();
                let decoder = decoder.as_mut().unwrap();
                decoder.feed(bytes);
                while let Some(piece) = decoder.pull().unwrap() {
                    came.body.extend_from_slice(&piece);
                }
                if came.body.len() >= first && std::mem::take(&mut halts) {
                    more.notify_one();
                }
            }
            Arrival::Ended => {
                assert!(decoder.unwrap().is_complete());
                return came;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_page_whose_head_is_sent_ahead_crosses_as_what_differs_while_it_comes() {
    const FIRST: usize = 3_000;
    let (before, after) = (text(1), text(2));
    // From somewhere on it is another page.
    let other = [&before[..6_000], &noise(20_000)].concat();
    let bodies = Arc::new(Mutex::new(before.clone()));
    let more = Arc::new(tokio::sync::Notify::new());
    let origin = halting(Arc::clone(&bodies), FIRST, Arc::clone(&more)).await;
    let pair = Pair::undoing(&["squeeze.zstd_level=9"]).await;
    let cold = ask_halting(&pair, &origin, &more, FIRST, &[]).await;
    assert_eq!((cold.coding, &cold.body), (Coding::Zstd, &before));
    tell(&pair, None, &before, 1).await;
    for (body, most) in [(&after, cold.crossed / 4), (&other, 20_000 + 300)] {
        bodies.lock().unwrap().clone_from(body);
        let came = ask_halting(&pair, &origin, &more, FIRST, &before).await;
        assert_eq!(came.coding, Coding::Delta(BodyHash::of(&before)));
        assert!(came.body == *body, "every byte");
        assert!(came.crossed < most, "{} of {most}", came.crossed);
    }
    // What begins like nothing that is held goes by itself.
    let strange = noise(9_000);
    bodies.lock().unwrap().clone_from(&strange);
    let came = ask_halting(&pair, &origin, &more, FIRST, &before).await;
    assert_eq!((came.coding, &came.body), (Coding::Zstd, &strange));
}

#[tokio::test]
async fn of_a_long_text_that_comes_slowly_all_that_is_here_crosses_before_the_rest_comes() {
    const FIRST: usize = 300_000;
    let page = |versions: std::ops::Range<u64>| versions.flat_map(text).collect::<Vec<u8>>();
    let before = page(0..50);
    let after = [page(0..20), text(1_000), page(21..50)].concat();
    assert!((FIRST + 100_000..1 << 20).contains(&after.len()), "{}", after.len());
    let bodies = Arc::new(Mutex::new(before.clone()));
    let more = Arc::new(tokio::sync::Notify::new());
    let origin = halting(Arc::clone(&bodies), FIRST, Arc::clone(&more)).await;
    let pair = Pair::undoing(&["squeeze.zstd_level=9"]).await;
    let cold = ask_halting(&pair, &origin, &more, FIRST, &[]).await;
    assert!(cold.body == before);
    tell(&pair, None, &before, 1).await;
    bodies.lock().unwrap().clone_from(&after);
    let came = ask_halting(&pair, &origin, &more, FIRST, &before).await;
    assert_eq!(came.coding, Coding::Delta(BodyHash::of(&before)));
    assert!(came.body == after && came.crossed * 2 < cold.crossed, "{} of {}", came.crossed, cold.crossed);
}

#[tokio::test]
async fn a_remote_that_reads_deltas_of_one_frame_alone_gets_what_comes_slowly_by_itself() {
    const FIRST: usize = 3_000;
    let bodies = Arc::new(Mutex::new(text(1)));
    let more = Arc::new(tokio::sync::Notify::new());
    let origin = halting(Arc::clone(&bodies), FIRST, Arc::clone(&more)).await;
    let pair = Pair::lasting(&[]).await;
    ask_halting(&pair, &origin, &more, FIRST, &[]).await;
    tell(&pair, None, &text(1), 1).await;
    bodies.lock().unwrap().clone_from(&text(2));
    let came = ask_halting(&pair, &origin, &more, FIRST, &[]).await;
    assert_eq!((came.coding, &came.body), (Coding::Zstd, &text(2)));
}
