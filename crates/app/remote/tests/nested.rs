//! What pushes promise in turn, what the browser asks for first, and the end of a page for all of it.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Coding, Priority};
use farhop_transport::hop::{Incoming, Sender};
use http::HeaderValue;
use support::{Asked, BROWSER, PATIENCE, REFERER, UNCACHEABLE, World, answer, head, predicted, world};
use tokio::time::timeout;

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";
const LATE: Priority = Priority { urgency: 4, incremental: true };

/// What the browser will ask for within the page.
fn needed(document: &RequestHead, path: &str) -> RequestHead {
    let mut head = predicted(document, path);
    head.fields.insert("accept", HeaderValue::from_static("*/*"));
    head
}

/// A page whose stylesheet is being pushed and has promised a font; gives the font's promise.
async fn nested(world: &World) -> (u64, Sender) {
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let style = sender.promise(&needed(&asked, "/a.css"), Priority::default()).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    let mut push = world.hop.push(style).unwrap();
    let font = push.promise(&needed(&asked, "/b.woff2"), LATE).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"@font-face{}")).await.unwrap();
    (font, push)
}

async fn incoming(world: &World, mut is_it: impl FnMut(&Incoming) -> bool) -> Incoming {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("ground is told").unwrap();
        if is_it(&incoming) {
            return incoming;
        }
    }
}

#[tokio::test]
async fn what_a_push_promised_answers_and_is_told_to_be_wanted_before_it_comes() {
    let world = world().await;
    let (font, mut style) = nested(&world).await;
    style.finish(None);
    // The style has to be there for the promise in it to be known.
    let css = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    let css = timeout(PATIENCE, answer(css)).await.unwrap();
    assert!(css.contains("@font-face{}"));
    let client = world.get("/b.woff2", &format!("{BROWSER}{REFERER}priority: u=2\r\n")).await;
    // The stylesheet may have been wanted before.
    let told =
        incoming(&world, |it| matches!(it, Incoming::Wanted { promise, .. } if *promise == font)).await;
    let Incoming::Wanted { priority, .. } = told else { unreachable!() };
    assert_eq!(priority, Priority { urgency: 2, incremental: false });
    let mut push = world.hop.push(font).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"wOF2")).await.unwrap();
    push.finish(None);
    assert!(timeout(PATIENCE, answer(client)).await.unwrap().contains("wOF2"));
    assert_eq!(world.crossed(), 1, "only the document");
}

#[tokio::test]
async fn with_its_page_what_a_push_promised_is_given_up_and_the_push_with_it() {
    let world = world().await;
    let (font, style) = nested(&world).await;
    let client = world.get("/", DOCUMENT).await; // the same document anew
    let told = async {
        incoming(&world, |it| matches!(it, Incoming::Unwanted { promises } if promises.contains(&font))).await
    };
    let (_, gone) = tokio::join!(told, timeout(PATIENCE, style.gone()));
    assert!(gone.is_ok(), "the push is stopped in its middle");
    assert!(world.hop.push(font).is_none());
    drop(client);
}
