//! What `farhop explain` says of pages that are not as simple as they could be.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_events::Bus;
use farhop_ground::{Explained, Ground};
use http::{HeaderMap, HeaderName};
use support::{Origin, Peer, navigate, settings};
use url::Url;

/// An origin with something of each kind.
async fn origin() -> Origin {
    Origin::start(|mut peer: Peer| async move {
        let many: String = (0..2_100).map(|number| format!("<img src=/{number}.png>")).collect();
        let to = |place: &str| {
            format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\nset-cookie: a=1\r\ncontent-length: 0\r\n\r\n")
        };
        match peer.path() {
            "/many" => peer.answer("content-type: text/html", many).await,
            "/guesses" => {
                let kinds = ["png", "woff2", "css", "js"];
                let names = kinds.map(|kind| (0..8).map(|at| format!("'/{at}.{kind}',")).collect::<String>());
                let page = format!("<link rel=icon href=data:,><script>x=[{}]</script>", names.concat());
                peer.answer("content-type: text/html", page).await;
            }
            path if path.contains('.') => peer.answer("content-type: text/plain", "").await,
            "/old" => peer.say(to("/older")).await,
            "/older" => peer.say(to("/text")).await,
            "/text" => peer.answer("content-type: text/plain; charset=utf-8", "text").await,
            "/file" => {
                peer.answer("content-type: text/html | content-disposition: attachment", "<p>").await;
            }
            "/here" => peer.say(to("/there")).await,
            "/there" => peer.say(to("/here")).await,
            "/self" => peer.say(to("/self#again")).await,
            path => {
                let next = format!("{path}x");
                peer.say(to(&next)).await;
            }
        }
        Some(peer)
    })
    .await
}

async fn explain(origin: &Origin, path: &str) -> Result<Explained, String> {
    let ground = Ground::new(settings(&[]), 1, Bus::new()).unwrap();
    let fields: HeaderMap<_> = navigate(origin, "/").fields;
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name?, value)));
    let fields: HeaderMap = fields.filter(|(name, _): &(HeaderName, _)| name != "cookie").collect();
    ground.explain(&Url::parse(&format!("http://{}{path}", origin.addr)).unwrap(), fields).await
}

#[tokio::test]
async fn a_page_that_names_more_than_is_taken_is_told_so() {
    let origin = origin().await;
    let plan = explain(&origin, "/many").await.unwrap();
    assert_eq!(plan.resources.len(), 2_000);
    let told = format!(
        "http://{}/many names more than 2000 resources: the rest is left to the browser and not in this plan",
        origin.addr
    );
    assert_eq!(plan.notes, [told]);
}

#[tokio::test]
async fn guesses_beyond_their_budget_are_told_so() {
    let plan = explain(&origin().await, "/guesses").await.unwrap();
    let left: Vec<_> = plan.resources.iter().filter_map(|one| one.left.as_deref()).collect();
    assert_eq!(left, ["the page's budget for guesses is used up"; 12]);
    assert_eq!(plan.resources.len(), 32);
}

#[tokio::test]
async fn redirects_of_the_page_and_what_is_no_page_are_told() {
    let origin = origin().await;
    let plan = explain(&origin, "/old").await.unwrap();
    let by = |path: &str| format!("redirected by http://{}{path}, which ground follows", origin.addr);
    assert_eq!(plan.notes, [by("/old"), by("/older"), "not a page: text/plain".into()]);
    assert_eq!(explain(&origin, "/file").await.unwrap().notes, ["not a page: an attachment"]);
}

#[tokio::test]
async fn a_redirect_loop_is_told_and_so_is_a_chain_without_an_end() {
    let origin = origin().await;
    let site = format!("http://{}", origin.addr);
    let loops = |from: &str, to: &str| format!("a redirect loop: {site}{from} leads back to {site}{to}");
    // With the cookie that each sets it might lead elsewhere.
    assert_eq!(explain(&origin, "/here").await, Err(loops("/here", "/there")));
    assert_eq!(explain(&origin, "/self").await, Err(loops("/self", "/self")));
    let endless = explain(&origin, "/e").await;
    assert_eq!(
        endless,
        Err(format!("it is redirected more than 10 times, in the end to {site}/exxxxxxxxxxx"))
    );
}

#[tokio::test]
async fn redirects_of_resources_are_followed_and_early_hints_read() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/" => {
                peer.say("HTTP/1.1 103 Early Hints\r\nlink: </early.js>; rel=preload; as=script\r\n\r\n").await;
                let page = "<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=/old.css><p class=a>";
                peer.answer("content-type: text/html", page).await;
            }
            "/old.css" => {
                peer.say("HTTP/1.1 301 Moved Permanently\r\nlocation: /new/a.css\r\ncontent-length: 0\r\n\r\n").await;
            }
            "/new/a.css" => peer.answer("content-type: text/css", ".a{background:url(b.png)}").await,
            _ => peer.answer("content-type: text/javascript", "").await,
        }
        Some(peer)
    })
    .await;
    let plan = explain(&origin, "/").await.unwrap();
    let site = format!("http://{}", origin.addr);
    let told = plan.resources.iter().map(|one| {
        (one.url.trim_start_matches(&*site), &*one.source, one.named_by.trim_start_matches(&*site))
    });
    let by = format!("redirect of {site}/old.css");
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("/early.js", "early hints", "document"),
            ("/old.css", "stylesheet", "document"),
            ("/new/a.css", "stylesheet", &by),
            ("/new/b.png", "css rule", "/new/a.css"),
        ]
    );
    assert!(plan.unread.is_empty(), "{:?}", plan.unread);
}
