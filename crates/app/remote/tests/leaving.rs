//! Documents that are asked for while a page loads: a frame of it takes nothing from it, another page ends what it was
//! promised.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_events::{Event, PromiseEnd};
use farhop_htotp::frame::{Coding, Priority};
use farhop_transport::hop::Gone;
use http::HeaderValue;
use support::{Asked, BROWSER, PATIENCE, REFERER, UNCACHEABLE, World, answer, head, predicted, until, world};
use tokio::time::timeout;

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";
const FILES: [&str; 2] = ["/a.css", "/b.css"];

/// Loads a document that promises the files.
async fn document(world: &World) -> Vec<u64> {
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let promised = FILES.map(|path| {
        let mut file = predicted(&asked, path);
        file.fields.insert("accept", HeaderValue::from_static("*/*"));
        sender.promise(&file, Priority::default()).unwrap()
    });
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    promised.into()
}

/// Asks for another document in the name of the page, and has ground answer.
async fn other(world: &World) {
    let client = world.get("/other", &format!("{DOCUMENT}{REFERER}")).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert_eq!(asked.path, "/other");
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
}

async fn push(world: &World, promise: u64) {
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
}

#[tokio::test]
async fn a_frame_that_a_script_makes_takes_nothing_from_its_page() {
    let world = world().await;
    let promised = document(&world).await;
    // The page goes on with this, whatever comes between.
    let waiting = world.get(FILES[0], &format!("{BROWSER}{REFERER}")).await;
    other(&world).await;
    push(&world, promised[1]).await;
    let got = answer(world.get(FILES[1], &format!("{BROWSER}{REFERER}")).await).await;
    assert!(got.contains("promised"), "{got}");
    push(&world, promised[0]).await;
    assert!(answer(waiting).await.contains("promised"));
    assert_eq!(world.crossed(), 2, "the page and its frame");
}

#[tokio::test]
async fn what_was_promised_to_a_page_ends_when_another_is_shown_and_the_page_is_silent() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let promised = document(&world).await;
    let left = world.hop.push(promised[0]).unwrap();
    left.answer(&head(UNCACHEABLE), Coding::Identity, None);
    other(&world).await;
    until(&mut events, |event| matches!(event, Event::PromiseEnded { end: PromiseEnd::PageLeft, .. })).await;
    assert_eq!(timeout(PATIENCE, left.gone()).await, Ok(Gone::Stopped));
}
