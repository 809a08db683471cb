//! Dictionaries are trained on what anyone may have, offered once they would have paid, given to who asks for them, and
//! used for who holds them.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_component::{DICTIONARIES, ask as ask_component};
use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Class, Coding};
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_htotp::session::Ask;
use farhop_squeeze::{HopDecoder, decompress};
use farhop_transport::hop::{Arrival, Incoming};
use support::{Origin, Pair, Peer, get};

/// No texts to send others against, and all the processor time there can be: how long work takes says nothing here.
const SETTINGS: &[&str] = &["squeeze.deltas=0 B", "squeeze.cpu=6400 %"];

/// A site of pages that have most in common; the path says whose they are.
async fn site() -> Origin {
    Origin::start(|mut peer: Peer| async move {
        let control = match peer.path().split('/').nth(1).unwrap() {
            "own" => "private, max-age=60",
            "never" => "no-store",
            _ => "max-age=60",
        };
        let number = peer.path().rsplit('/').next().unwrap().parse().unwrap();
        peer.answer(&format!("content-type: text/html|cache-control: {control}"), page(number)).await;
        Some(peer)
    })
    .await
}

fn page(number: u64) -> Vec<u8> {
    let line = |at: u64| {
        let word = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("<li class=c{at}><a href=/item/{word:x}>{:x}</a>\n", word.rotate_left(17))
    };
    let common: String = (0..80).map(line).collect();
    let own: String =
        (0..20).map(|at| format!("<p>{:x}\n", (number * 1_000 + at).wrapping_mul(2_654_435_761))).collect();
    format!("{common}{own}").into_bytes()
}

struct Came {
    coding: Coding,
    crossed: usize,
    body: Vec<u8>,
}

/// Asks, with this dictionary at hand.
async fn ask(pair: &Pair, user: u64, head: &RequestHead, dictionary: Option<&[u8]>) -> Came {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1000);
    let exchange = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (mut sender, mut receiver) = pair.hop.ask(Ask { exchange, user, ..Ask::default() }, head);
    sender.finish(None);
    let mut came = Came { coding: Coding::Identity, crossed: 0, body: Vec::new() };
    let mut decoder = None;
    loop {
        match receiver.next().await {
            Arrival::Answered { coding, .. } => {
                came.coding = coding;
                decoder = match coding {
                    Coding::Identity => None,
                    Coding::Zstd => Some(HopDecoder::default()),
                    Coding::Dictionary(hash) => {
                        let bytes = dictionary.filter(|bytes| BodyHash::of(bytes) == hash);
                        Some(HopDecoder::with_dictionary(bytes.expect("it is the one that is held")).unwrap())
                    }
                    Coding::Delta(_) => panic!("no text is held"),
                    Coding::Brotli => Some(HopDecoder::brotli()),
                    Coding::Gzip => Some(HopDecoder::gzip()),
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
            Arrival::Ended => return came,
            Arrival::Informed(_) | Arrival::Promised { .. } | Arrival::Trailers(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn counted(pair: &Pair, counter: &str) -> u64 {
    pair.bus.counters().snapshot()[counter].as_u64().unwrap()
}

async fn soon(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Asks for page after page until ground offers a dictionary.
async fn offered(pair: &Pair, origin: &Origin, folder: &str) -> (BodyHash, u64) {
    for number in 0.. {
        ask(pair, 7, &get(origin, &format!("/{folder}/{number}")), None).await;
        tokio::select! {
            incoming = pair.hop.accept() => match incoming.unwrap() {
                Incoming::Dictionary { hash, length } => return (hash, length),
                _ => continue,
            },
            // It is trained aside.
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
    unreachable!()
}

async fn fetch(pair: &Pair, hash: BodyHash) -> Option<Vec<u8>> {
    let tunnel = DICTIONARIES.tunnel(1, 0, Class::Background);
    ask_component(&pair.hop, tunnel, Bytes::copy_from_slice(&hash.0), 1 << 20).await
}

#[tokio::test]
async fn a_dictionary_is_trained_offered_given_and_used_and_no_more_when_it_is_lacked() {
    let (pair, origin) = (Pair::new(SETTINGS).await, site().await);
    let cold = ask(&pair, 7, &get(&origin, "/all/100"), None).await;
    assert_eq!((cold.coding, &cold.body), (Coding::Zstd, &page(100)));
    let (hash, length) = offered(&pair, &origin, "all").await;
    assert_eq!(counted(&pair, "dictionaries_trained"), 1);
    assert_eq!(counted(&pair, "bodies_taught"), 0, "the remote does not hold it");
    let coded = fetch(&pair, hash).await.unwrap();
    assert_eq!(coded.len() as u64, length);
    let dictionary = decompress(coded.into(), 1 << 20).unwrap();
    assert_eq!(BodyHash::of(&dictionary), hash);
    assert_eq!(counted(&pair, "dictionaries_sent"), 1);
    pair.hop.tell_mirror(Word::Holds(vec![HeldBody { user: None, hash }]));
    let mut number = 1000;
    // Until it has heard.
    let taught = loop {
        number += 1;
        let came = ask(&pair, 8, &get(&origin, &format!("/all/{number}")), Some(&dictionary)).await;
        assert_eq!(came.body, page(number));
        if came.coding == Coding::Dictionary(hash) {
            break came;
        }
        assert_eq!(came.coding, Coding::Zstd);
    };
    assert!(taught.crossed * 2 < cold.crossed, "{} of {}", taught.crossed, cold.crossed);
    // What is one user's, or nobody may keep, learns from what is everyone's, too.
    for path in ["/own/7000", "/never/7001"] {
        let came = ask(&pair, 9, &get(&origin, path), Some(&dictionary)).await;
        assert_eq!(came.coding, Coding::Dictionary(hash), "{path}");
        assert_eq!(came.body, page(path.rsplit('/').next().unwrap().parse().unwrap()));
    }
    soon(|| counted(&pair, "bodies_taught") >= 3).await;
    assert!(counted(&pair, "bytes_spared_by_dictionaries") as usize > cold.crossed);
    // Another origin's pages are not coded with it, however alike they are.
    let other = site().await;
    assert_eq!(ask(&pair, 7, &get(&other, "/all/1"), Some(&dictionary)).await.coding, Coding::Zstd);
    pair.hop.tell_mirror(Word::Lacks(vec![HeldBody { user: None, hash }]));
    while ask(&pair, 8, &get(&origin, "/all/2000"), Some(&dictionary)).await.coding != Coding::Zstd {}
}

#[tokio::test]
async fn what_is_one_users_or_must_not_be_kept_never_trains() {
    let (pair, origin) = (Pair::new(SETTINGS).await, site().await);
    for number in 0..40 {
        ask(&pair, 7, &get(&origin, &format!("/own/{number}")), None).await;
        ask(&pair, 7, &get(&origin, &format!("/never/{number}")), None).await;
    }
    assert_eq!(pair.ground.status()["dictionaries"]["bytes"], 0);
    assert_eq!(counted(&pair, "dictionaries_trained"), 0);
}

#[tokio::test]
async fn who_asks_for_what_there_is_not_is_told_so() {
    let pair = Pair::new(SETTINGS).await;
    assert_eq!(fetch(&pair, BodyHash([7; BodyHash::LENGTH])).await, None);
    let tunnel = DICTIONARIES.tunnel(2, 0, Class::Background);
    let question = Bytes::from_static(b"no hash");
    assert_eq!(ask_component(&pair.hop, tunnel, question, 1 << 20).await, None);
}

#[tokio::test]
async fn nothing_is_learnt_where_settings_say_so() {
    let (pair, origin) = (Pair::new(&["squeeze.dictionaries=0 B"]).await, site().await);
    for number in 0..40 {
        ask(&pair, 7, &get(&origin, &format!("/all/{number}")), None).await;
    }
    assert_eq!(pair.ground.status()["dictionaries"]["bytes"], 0);
}
