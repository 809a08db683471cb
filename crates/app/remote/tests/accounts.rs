//! What the remote tells of a page: what was promised and used, and why requests crossed all the same.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::collections::BTreeMap;

use bytes::Bytes;
use farhop_events::{Event, ExchangeId, Subscription};
use farhop_htotp::frame::{Coding, Priority};
use http::HeaderValue;
use support::{
    Asked, CACHEABLE, PATIENCE, UNCACHEABLE, World, answer, answer_with, head, predicted, withdrawn, world,
};
use tokio::time::timeout;

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";
/// What the page asks with for what it needs.
const FROM_PAGE: &str =
    "accept: */*\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\nreferer: http://site.test/\r\n";
const OTHER_ACCEPT: &str =
    "accept: text/css\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\nreferer: http://site.test/\r\n";

/// The first event of which `pick` makes something.
async fn next<T>(events: &mut Subscription, pick: impl Fn(&Event) -> Option<T>) -> T {
    let found = async {
        loop {
            let told = events.next().await.unwrap().unwrap();
            if let Some(picked) = pick(&told.event) {
                return picked;
            }
        }
    };
    timeout(PATIENCE, found).await.expect("the event comes")
}

/// Loads a document that promises these paths, and pushes each that has fields and a body.
async fn load(world: &World, promised: &[(&str, Option<Push>)]) {
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    for (path, push) in promised {
        let mut wish = predicted(&asked, path);
        wish.fields.insert("accept", HeaderValue::from_static("*/*"));
        let promise = sender.promise(&wish, Priority::default()).unwrap();
        let mut stream = world.hop.push(promise).unwrap();
        match push {
            Some((fields, body)) => {
                stream.answer(&head(fields), Coding::Identity, None);
                stream.write(Bytes::from_static(body.as_bytes())).await.unwrap();
                stream.finish(None);
            }
            None => stream.fail(withdrawn()),
        }
    }
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
}

type Push = (&'static [(&'static str, &'static str)], &'static str);

/// Asks and has ground answer; gives the page, the reason and the field.
async fn crossing(world: &World, path: &str, fields: &str) -> (Option<ExchangeId>, String, Option<String>) {
    let mut events = world.bus.subscribe();
    let client = world.get(path, fields).await;
    answer_with(world, "asked").await;
    assert!(answer(client).await.contains("asked"));
    let told = next(&mut events, |event| match event {
        Event::RequestCrossed { page, why, field, .. } => Some((*page, *why, field.clone())),
        _ => None,
    });
    let (page, why, field) = told.await;
    (page, serde_json::to_value(why).unwrap().as_str().unwrap().to_owned(), field)
}

/// Waits until the remote has taken this many promises to their end or into its repository.
async fn until(world: &World, counter: &str, enough: u64) {
    let reached = async {
        while world.bus.counters().snapshot().pointer(counter).and_then(|n| n.as_u64()) < Some(enough) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, reached).await.expect("the counter grows");
}

#[tokio::test]
async fn a_promise_that_differs_tells_the_field_while_it_waits_and_when_it_is_held() {
    const VARIES: &[(&str, &str)] = &[("cache-control", "max-age=600"), ("vary", "accept")];
    let world = world().await;
    load(
        &world,
        &[("/once.css", Some((UNCACHEABLE, "promised"))), ("/held.css", Some((VARIES, "promised")))],
    )
    .await;
    until(&world, "/stored", 1).await;
    for path in ["/once.css", "/held.css"] {
        let (page, why, field) = crossing(&world, path, OTHER_ACCEPT).await;
        assert_eq!((page, why.as_str()), (Some(ExchangeId(1)), "mismatch"), "{path}");
        assert_eq!(field.as_deref(), Some("accept"), "{path}");
    }
}

#[tokio::test]
async fn what_became_of_a_promise_is_the_reason_why_its_request_crosses() {
    let world = world().await;
    load(&world, &[("/failed.css", None), ("/spent.css", Some((UNCACHEABLE, "promised")))]).await;
    until(&world, "/promise_ends/withdrawn", 1).await;
    assert!(answer(world.get("/spent.css", FROM_PAGE).await).await.contains("promised"));
    let because = async |path| crossing(&world, path, FROM_PAGE).await.1;
    assert_eq!(because("/failed.css").await, "promise_withdrawn");
    assert_eq!(because("/spent.css").await, "spent");
    assert_eq!(because("/other.css").await, "undiscovered");
}

#[tokio::test]
async fn a_promise_that_was_used_while_it_came_is_spent_when_it_is_asked_for_again() {
    let world = world().await;
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let mut wish = predicted(&asked, "/once.js");
    wish.fields.insert("accept", HeaderValue::from_static("*/*"));
    let mut stream = world.hop.push(sender.promise(&wish, Priority::default()).unwrap()).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    let script = world.get("/once.js", FROM_PAGE).await;
    until(&world, "/promise_ends/used", 1).await;
    stream.answer(&head(&[("cache-control", "no-store")]), Coding::Identity, None);
    stream.write(Bytes::from_static(b"promised")).await.unwrap();
    stream.finish(None);
    assert!(answer(script).await.contains("promised"));
    assert_eq!(crossing(&world, "/once.js", FROM_PAGE).await.1, "spent");
}

#[tokio::test]
async fn a_page_that_is_left_is_told_of_with_all_that_was_promised_and_all_that_crossed() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let used = ("/used.css", Some((CACHEABLE, "used")));
    load(&world, &[used, ("/left.css", Some((UNCACHEABLE, "not used"))), ("/failed.css", None)]).await;
    until(&world, "/stored", 1).await;
    until(&world, "/promise_ends/withdrawn", 1).await;
    assert!(answer(world.get("/used.css", FROM_PAGE).await).await.contains("used"));
    crossing(&world, "/other.css", FROM_PAGE).await;
    load(&world, &[]).await; // the same document anew: the first load is over
    let settled = next(&mut events, |event| match event {
        Event::PageSettled { page, url, promised, ends, used_bytes, wasted_bytes, crossed, .. } => {
            let counts = (*promised, *used_bytes, *wasted_bytes);
            Some((*page, url.clone(), counts, ends.clone(), crossed.clone()))
        }
        _ => None,
    });
    let (page, url, counts, ends, crossed) = settled.await;
    assert_eq!((page, url.as_str(), counts), (ExchangeId(1), "http://site.test/", (3, 4, 8)));
    let ones = |words: &[&str]| -> BTreeMap<String, u64> {
        words.iter().map(|word| ((*word).to_owned(), 1)).collect()
    };
    assert_eq!(ends, ones(&["page_left", "used", "withdrawn"]));
    assert_eq!(crossed, ones(&["navigation", "undiscovered"]), "the document and /other.css");
}

#[tokio::test]
async fn a_lost_carrier_tells_how_many_exchanges_were_under_way() {
    let mut world = world().await;
    let mut events = world.bus.subscribe();
    let client = world.get("/", DOCUMENT).await;
    let asked = world.asked().await;
    world.lose_carrier().await;
    let lost = next(&mut events, |event| match event {
        Event::CarrierDown { exchanges, .. } => Some(*exchanges),
        _ => None,
    });
    assert_eq!(lost.await, 1);
    drop(asked);
    answer_with(&world, "asked again").await;
    assert!(answer(client).await.contains("asked again"));
}
