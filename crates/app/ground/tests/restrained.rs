//! Pages for which the remote wants less fetched unasked, to compare or since more has made their site slower.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_htotp::RequestHead;
use farhop_htotp::head::UNASKED;
use http::HeaderValue;
use support::{Origin, Pair, Peer, navigate, pushed};

async fn site(mut peer: Peer) -> Option<Peer> {
    match peer.path() {
        "/" => {
            peer.answer(
                "content-type: text/html",
                "<link rel=icon href=data:,><link rel=stylesheet href=/a.css>",
            )
            .await
        }
        "/early" => {
            peer.say("HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload; as=style\r\n\r\n").await;
            peer.answer(
                "content-type: text/html",
                "<link rel=icon href=data:,><link rel=stylesheet href=/a.css>",
            )
            .await;
        }
        "/moved" => peer.say("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n").await,
        _ => peer.answer("content-type: text/css", "a{}").await,
    }
    Some(peer)
}

fn restrained(origin: &Origin, path: &str, unasked: &'static str) -> RequestHead {
    let mut head = navigate(origin, path);
    head.fields.insert(UNASKED, HeaderValue::from_static(unasked));
    head
}

#[tokio::test]
async fn for_a_page_for_which_nothing_is_wanted_nothing_is_fetched_and_no_origin_hears_of_it() {
    let origin = Origin::start(site).await;
    let pair = Pair::new(&[]).await;
    for path in ["/", "/early", "/moved"] {
        let reply = pair.get(&restrained(&origin, path, "nothing")).await;
        assert!(reply.whole && reply.promises.is_empty(), "{path}: {:?}", reply.promised_paths());
    }
    assert_eq!(origin.paths(), ["/", "/early", "/moved"]);
    let reply = pair.get(&navigate(&origin, "/moved")).await;
    assert_eq!(reply.promised_paths(), ["/"], "the next one is as all others");
    assert!(origin.requests().iter().all(|head| !head.contains("farhop-unasked")));
}

#[tokio::test]
async fn what_a_page_names_is_fetched_as_its_browser_would_ask_for_it() {
    let origin = Origin::start(site).await;
    let pair = Pair::new(&[]).await;
    for unasked in ["named", "all", "a word of a later version"] {
        let reply = pair.get(&restrained(&origin, "/", unasked)).await;
        assert_eq!(reply.promised_paths(), ["/a.css"], "{unasked}");
        assert!(!reply.promises[0].1.fields.contains_key(UNASKED));
        assert!(pushed(&pair).await.1.whole);
    }
}
