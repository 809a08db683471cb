//! Documents that redirects lead to: the promised step answers, and what it names belongs to the same page.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::{Coding, Priority};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_transport::hop::Gone;
use http::{HeaderValue, Method, StatusCode};
use support::{Asked, BROWSER, PATIENCE, UNCACHEABLE, World, answer, head, send, world};
use tokio::time::timeout;

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

fn leads_to(place: &'static str) -> ResponseHead {
    ResponseHead { status: StatusCode::FOUND, ..head(&[("location", place)]) }
}

/// Asks for `/`, which leads to `/en/`; gives the promise of that, and the request of both.
async fn led(world: &World) -> (RequestHead, u64) {
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let next = RequestHead { path: "/en/".into(), ..asked.clone() };
    let promise = sender.promise(&next, Priority::default()).unwrap();
    sender.answer(&leads_to("/en/#top"), Coding::Identity, None);
    sender.finish(None);
    assert!(answer(client).await.starts_with("HTTP/1.1 302 "));
    (asked, promise)
}

#[tokio::test]
async fn the_step_that_was_promised_answers_and_its_page_is_where_it_led() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let (asked, promise) = led(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    let mut style = RequestHead { path: "/a.css".into(), ..asked };
    style.fields.insert("accept", HeaderValue::from_static("*/*"));
    style.fields.remove("upgrade-insecure-requests");
    style.fields.insert("referer", HeaderValue::from_static("http://site.test/en/"));
    let nested = push.promise(&style, Priority::default()).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"the page")).await.unwrap();
    push.finish(None);
    let page = timeout(PATIENCE, answer(world.get("/en/", DOCUMENT).await)).await.unwrap();
    assert!(page.contains("the page"), "{page}");
    let mut push = world.hop.push(nested).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"the style")).await.unwrap();
    push.finish(None);
    let referer = "referer: http://site.test/en/\r\n";
    let got = answer(world.get("/a.css", &format!("{BROWSER}{referer}")).await).await;
    assert!(got.contains("the style"), "{got}");
    assert_eq!(world.crossed(), 1, "the first step");

    // What nobody foresaw is counted with it.
    let client = world.get("/other.png", &format!("{BROWSER}{referer}")).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    let mut crossed = Vec::new();
    while crossed.len() < 2 {
        let told = timeout(PATIENCE, events.next()).await.unwrap().unwrap().unwrap();
        if let Event::RequestCrossed { exchange, page, .. } = &told.event {
            crossed.push((*exchange, *page));
        }
    }
    let [(first, of_first), (second, of_second)] = crossed[..] else { unreachable!() };
    assert_ne!(first, second);
    assert_eq!([of_first, of_second], [Some(first); 2], "one page");
}

#[tokio::test]
async fn a_step_that_is_asked_for_otherwise_crosses_and_its_push_is_stopped() {
    let world = world().await;
    let (_, promise) = led(&world).await;
    let push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    let client = world.get("/en/", &format!("{DOCUMENT}cookie: a=1\r\n")).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert_eq!(asked.fields["cookie"], "a=1");
    assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"as asked for")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("as asked for"));
}

#[tokio::test]
async fn a_promise_within_tls_that_passes_through_untouched_is_refused() {
    let world = world().await;
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let next = RequestHead { scheme: "https".into(), ..asked };
    let promise = sender.promise(&next, Priority::default()).unwrap();
    sender.answer(&leads_to("https://site.test/"), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    // Ground may have heard that it is not wanted, and gives no stream for it then.
    if let Some(push) = world.hop.push(promise) {
        assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    }
    let counters = world.bus.counters().snapshot();
    assert_eq!([&counters["promised"], &counters["promise_ends"]["cancelled"]], [1, 1]);
}

/// Posts a form to `/save`, which a redirect answers that leads to `to`; `hinted` promises that already before the answer.
/// Gives the promise that was made.
async fn posted(world: &World, to: &'static str, hinted: bool) -> u64 {
    let mut client = world.client().await;
    let form = format!("{DOCUMENT}origin: http://site.test\r\ncontent-length: 0\r\n");
    send(&mut client, "POST", "/save", &form).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let mut next = RequestHead { method: Method::GET, path: to.into(), ..asked };
    for name in ["origin", "content-length"] {
        next.fields.remove(name);
    }
    let promise = sender.promise(&next, Priority::default()).unwrap();
    if hinted {
        sender.inform(&ResponseHead { status: StatusCode::EARLY_HINTS, ..head(&[("link", "</x>")]) });
    }
    sender.answer(&ResponseHead { status: StatusCode::SEE_OTHER, ..leads_to(to) }, Coding::Identity, None);
    sender.finish(None);
    assert!(answer(client).await.contains("HTTP/1.1 303 "));
    promise
}

#[tokio::test]
async fn what_a_form_leads_to_is_asked_for_once() {
    for to in ["/list", "/save"] {
        let world = world().await;
        let promise = posted(&world, to, false).await;
        let mut push = world.hop.push(promise).unwrap();
        push.answer(&head(UNCACHEABLE), Coding::Identity, None);
        push.write(Bytes::from_static(b"Saved!")).await.unwrap();
        push.finish(None);
        let page = timeout(PATIENCE, answer(world.get(to, DOCUMENT).await)).await.unwrap();
        assert!(page.contains("Saved!"), "{page}");
        assert_eq!(world.crossed(), 1, "the form");
    }
}

#[tokio::test]
async fn what_was_promised_before_the_answer_to_a_form_may_be_outdated_by_it() {
    let world = world().await;
    let promise = posted(&world, "/list", true).await;
    // Ground may have heard that it is not wanted, and gives no stream for it then.
    if let Some(push) = world.hop.push(promise) {
        push.answer(&head(UNCACHEABLE), Coding::Identity, None);
        assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    }
    let counters = world.bus.counters().snapshot();
    assert_eq!(counters["promise_ends"]["cancelled"], 1);
}
