//! What the remote holds is a base for what changes, also after a restart.

use std::time::Duration;

use crate::support::{Pair, get, gzip};
use farhop_htotp::RequestHead;
use farhop_htotp::frame::Coding;
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_squeeze::HopDecoder;
use farhop_transport::hop::Arrival;
use tokio::time::sleep;

use crate::site::{Place, Site, ask_and_keep};

/// A text of so many lines, of which each fiftieth tells its version.
fn text(lines: u64, version: u64) -> Vec<u8> {
    let word = |line: u64| (line * line + if line % 50 == 7 { version } else { 0 }) << 20;
    (0..lines).map(|line| format!("<p>{:x}\n", word(line))).collect::<String>().into_bytes()
}

/// What came against `base`, and the bytes that it took.
async fn ask_against(pair: &Pair, head: &RequestHead, base: &[u8]) -> (Vec<u8>, usize) {
    let (mut sender, mut receiver) = pair.ask(head, None);
    sender.finish(None);
    let (mut decoder, mut came, mut crossed) = (None, Vec::new(), 0);
    loop {
        match receiver.next().await {
            Arrival::Answered { coding, .. } => {
                assert_eq!(coding, Coding::Delta(BodyHash::of(base)), "of {} bytes", base.len());
                decoder = Some(HopDecoder::against(base).unwrap());
            }
            Arrival::Body(bytes) => {
                crossed += bytes.len();
                let decoder = decoder.as_mut().unwrap();
                decoder.feed(bytes);
                while let Some(piece) = decoder.pull().unwrap() {
                    came.extend_from_slice(&piece);
                }
            }
            Arrival::Ended => return (came, crossed),
            other => panic!("{other:?}"),
        }
    }
}

/// Tells ground that the remote holds it for everyone, and waits until ground knows so many that it has not itself.
async fn tell_unknown(pair: &Pair, body: &[u8], count: u64) {
    pair.hop.tell_mirror(Word::Holds(vec![HeldBody { user: None, hash: BodyHash::of(body) }]));
    while pair.ground.status()["texts"]["unknown"] != count {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_the_remote_holds_is_a_base_again_after_a_restart() {
    let (place, site) = (Place::new(), Site::start().await);
    // In one chunk of the disk, and in several, of which the later ones are read when it is gone from the store already.
    let texts =
        [("/0", 2_000), ("/1", 9_000), ("/2", 15_000), ("/3", 20_000), ("/4", 30_000), ("/5", 40_000)];
    let put = |path, lines, version| {
        let (coding, body) = match lines {
            2_000 => ("gzip", gzip(&text(lines, version))),
            _ => ("identity", text(lines, version)),
        };
        let fields = format!("cache-control: no-cache|etag: \"{version}\"|content-type: text/html");
        site.put(path, &format!("{fields}|content-encoding: {coding}"), &body);
    };
    let pair = place.start().await;
    let mut cold = Vec::new();
    for (path, lines) in texts {
        put(path, lines, 1);
        cold.push(ask_and_keep(&pair, 7, &get(&site.origin, path)).await);
    }
    place.stop(pair).await;
    let pair = place.start().await;
    for ((path, lines), cold) in texts.into_iter().zip(cold) {
        assert!(cold.body == text(lines, 1));
        tell_unknown(&pair, &cold.body, 1).await;
        put(path, lines, 2);
        let (came, crossed) = ask_against(&pair, &get(&site.origin, path), &cold.body).await;
        assert!(came == text(lines, 2));
        assert!(crossed * 4 < cold.crossed, "{crossed} of {}", cold.crossed);
    }
}

#[tokio::test]
async fn what_has_left_grounds_memory_is_a_base_again_as_long_as_both_disks_hold_it() {
    let (place, site) = (Place::new(), Site::start().await);
    let put = |path, lines, version| {
        // Neither is like the other.
        let kind = if path == "/other" { "css" } else { "html" };
        let fields = format!("cache-control: no-cache|etag: \"{version}\"|content-type: text/{kind}");
        site.put(path, &fields, &text(lines, version));
    };
    let pair = place.start_with(&["squeeze.deltas=100 kB"]).await;
    put("/text", 4_000, 1);
    let head = get(&site.origin, "/text");
    let cold = ask_and_keep(&pair, 7, &head).await;
    pair.hop.tell_mirror(Word::Holds(vec![HeldBody { user: None, hash: BodyHash::of(&cold.body) }]));
    while pair.ground.status()["texts"]["held"] != 1 {
        sleep(Duration::from_millis(5)).await;
    }
    put("/other", 6_000, 1);
    ask_and_keep(&pair, 7, &get(&site.origin, "/other")).await;
    assert_eq!(pair.ground.status()["texts"]["held"], 0, "there is no room for both");
    put("/text", 4_000, 2);
    let (came, crossed) = ask_against(&pair, &head, &cold.body).await;
    assert!(came == text(4_000, 2));
    assert!(crossed * 4 < cold.crossed, "{crossed} of {}", cold.crossed);
}
