//! Promises that race: with their page's end, with their push, and with what is held already.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_events::{Event, PromiseEnd};
use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Coding, Priority};
use farhop_transport::hop::{Gone, Incoming, Sender};
use http::Method;
use support::{
    Asked, BROWSER, PATIENCE, REFERER, UNCACHEABLE, World, answer, answer_with, failure, head, page,
    predicted, read_until, send, until, withdrawn, world,
};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A stream that has taken nothing for so long is full.
const FULL: Duration = Duration::from_millis(300);

/// What a browser asks for a document with: only such a request begins a page, and ends one.
const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

/// And what its page needs.
const WITHIN: &str = "accept: text/html,*/*\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

/// The browser has no use for an answer any more.
fn leave(client: TcpStream) {
    client.set_zero_linger().unwrap();
}

/// Loads a document that promises nothing.
async fn plain_page(world: &World) {
    let client = world.get("/", DOCUMENT).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
}

/// Loads a document that promises `/a.css`; the promise.
async fn document(world: &World) -> u64 {
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let promise = sender.promise(&predicted(&asked, "/a.css"), Priority::default()).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    promise
}

/// Begins a push with an uncacheable head and the start of a body.
async fn begin(world: &World, promise: u64) -> Sender {
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    // Whether it is wanted is what the tests ask.
    let _ = push.write(Bytes::from_static(b"promised")).await;
    push
}

/// Asks for `/a.css` as the page does and has ground answer, which fails the test if nothing crosses.
async fn is_asked(world: &World, fields: &str) {
    let client = world.get("/a.css", fields).await;
    answer_with(world, "asked").await;
    assert!(answer(client).await.contains("asked"));
}

#[tokio::test]
async fn a_push_whose_page_was_left_before_it_began_is_stopped_and_answers_nobody() {
    let world = world().await;
    let promise = document(&world).await;
    plain_page(&world).await; // the same document anew: the first load is over
    // Ground may have heard that it is not wanted, and gives no stream for it then.
    if let Some(push) = world.hop.push(promise) {
        push.answer(&head(UNCACHEABLE), Coding::Identity, None);
        assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    }
    is_asked(&world, &format!("{DOCUMENT}{REFERER}")).await;
    assert_eq!(world.bus.counters().snapshot()["promise_ends"]["page_left"], 1);
}

#[tokio::test]
async fn a_push_whose_page_is_left_still_comes_for_whoever_reads_what_the_repository_has_of_it() {
    let world = world().await;
    let promise = document(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(&[("cache-control", "private, max-age=600")]), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    // A page of this user to which it was not promised, and which has it as soon as the repository has.
    let fields = format!("{BROWSER}referer: http://site.test/other\r\ncache-control: only-if-cached\r\n");
    let (mut other, mut got) = loop {
        let (mut client, mut got) = (world.get("/a.css", &fields).await, String::new());
        read_until(&mut client, &mut got, "\r\n\r\n").await;
        if !got.starts_with("HTTP/1.1 504 ") {
            break (client, got);
        }
    };
    read_until(&mut other, &mut got, "promised").await;
    plain_page(&world).await;
    assert_eq!(world.bus.counters().snapshot()["promise_ends"]["page_left"], 1);
    push.write(Bytes::from_static(b" and more")).await.unwrap();
    push.finish(None);
    got += &answer(other).await;
    assert!(got.contains("and more"), "{got}");
    assert_eq!(world.crossed(), 2, "the two documents");
}

#[tokio::test]
async fn what_its_browser_stops_asking_for_is_given_up_and_counts_as_wasted() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let promise = document(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    let (mut client, mut got) = (world.get("/a.css", &format!("{WITHIN}{REFERER}")).await, String::new());
    read_until(&mut client, &mut got, "promised").await;
    leave(client);
    assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    until(&mut events, |event| matches!(event, Event::PageSettled { wasted_bytes: 8, used_bytes: 0, .. }))
        .await;
}

#[tokio::test]
async fn what_its_browser_stops_waiting_for_is_refused_before_it_comes() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let promise = document(&world).await;
    let client = world.get("/a.css", &format!("{WITHIN}{REFERER}")).await;
    until(&mut events, |event| matches!(event, Event::PromiseEnded { end: PromiseEnd::Used, .. })).await;
    leave(client);
    let Some(push) = world.hop.push(promise) else { return };
    assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
}

#[tokio::test]
async fn what_any_cache_may_reuse_goes_on_for_a_moment_for_the_next_page() {
    let world = world().await;
    let promise = document(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(&[("cache-control", "max-age=600")]), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    let fields = format!("{WITHIN}{REFERER}");
    let (mut client, mut got) = (world.get("/a.css", &fields).await, String::new());
    read_until(&mut client, &mut got, "promised").await;
    leave(client);
    let (mut next, mut got) = (world.get("/a.css", &fields).await, String::new());
    read_until(&mut next, &mut got, "promised").await;
    leave(next);
    assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped), "in the end");
    assert_eq!(world.crossed(), 1, "the document");
}

#[tokio::test]
async fn a_page_that_answers_a_form_is_a_page_like_any_other() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let client = world.get("/form", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    sender.promise(&predicted(&asked, "/form.css"), Priority::default()).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;

    let mut client = world.client().await;
    let form = format!(
        "{DOCUMENT}origin: http://site.test\r\n\
         referer: http://site.test/form\r\ncontent-length: 0\r\n"
    );
    send(&mut client, "POST", "/", &form).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let mut promised = RequestHead { method: Method::GET, ..predicted(&asked, "/a.css") };
    promised.fields.insert("accept", "*/*".parse().unwrap());
    for name in ["origin", "content-length"] {
        promised.fields.remove(name);
    }
    let promise = sender.promise(&promised, Priority::default()).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    begin(&world, promise).await.finish(None);
    let got = answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await;
    assert!(got.contains("promised"), "{got}");
    assert_eq!(world.crossed(), 2, "the two documents");
    // What the page with the form was promised is of no use any more.
    until(&mut events, |event| matches!(event, Event::PromiseEnded { end: PromiseEnd::PageLeft, .. })).await;
}

#[tokio::test]
async fn a_push_ahead_of_its_promise_waits_for_it() {
    let world = world().await;
    let client = world.get("/", BROWSER).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    // The client does not read: at some time nothing more fits, and the promise waits behind what is written.
    let piece = Bytes::from(vec![b'.'; 256 * 1024]);
    while timeout(FULL, sender.write(piece.clone())).await.is_ok() {}
    let promise = sender.promise(&predicted(&asked, "/a.css"), Priority::default()).unwrap();
    let mut push = begin(&world, promise).await;
    push.finish(None);
    sender.finish(None);
    answer(client).await;
    assert!(answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await.contains("promised"));
    assert_eq!(world.crossed(), 1);
}

/// A page to which `/a.css` was promised, which was pushed and is held by now; the promise.
async fn held(world: &World) -> u64 {
    let mut events = world.bus.subscribe();
    let promise = document(world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(&[("cache-control", "max-age=600")]), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    promise
}

#[tokio::test]
async fn ground_is_told_of_a_promise_that_the_repository_has_answered_for() {
    let world = world().await;
    let promise = held(&world).await;
    let got = answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await;
    assert!(got.contains("promised"), "{got}");
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("ground is told").unwrap();
        match incoming {
            Incoming::Used { promises } => break assert_eq!(promises, promise..=promise),
            Incoming::Wanted { promise, .. } => panic!("{promise} was here when it was asked for"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn ground_is_told_what_the_repository_has_answered_to_a_page() {
    let world = world().await;
    held(&world).await;
    answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await;
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("ground is told").unwrap();
        if let Incoming::AnsweredHere { entries, .. } = incoming {
            break assert!(matches!(entries[..], [(0, _)]), "{entries:?}");
        }
    }
    // What nobody's page asks for is nobody's visit, and what crosses ground has seen.
    answer(world.get("/a.css", "").await).await;
    assert!(answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await.contains("promised"));
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("ground is told").unwrap();
        if let Incoming::AnsweredHere { entries, .. } = incoming {
            break assert_eq!(entries.len(), 1, "{entries:?}");
        }
    }
}

#[tokio::test]
async fn a_promise_that_is_taken_back_sends_whoever_waits_to_ask() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let waiting = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    world.hop.push(promise).unwrap().fail(withdrawn());
    answer_with(&world, "asked after all").await;
    assert!(answer(waiting).await.contains("asked after all"));
}

#[tokio::test]
async fn what_ground_cannot_reach_is_told_to_who_asks_for_what_was_promised_of_it_and_to_nobody_else() {
    for is_waiting in [true, false] {
        let world = world().await;
        let (_, promise) = page(&world).await;
        let waiting = match is_waiting {
            true => Some(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await),
            false => None,
        };
        let mut events = world.bus.subscribe();
        world.hop.push(promise).unwrap().fail(failure());
        let asking = match waiting {
            Some(waiting) => waiting,
            None => {
                until(&mut events, |event| matches!(event, Event::PromiseEnded { .. })).await;
                world.get("/a.css", &format!("{BROWSER}{REFERER}")).await
            }
        };
        let told = answer(asking).await;
        assert!(told.starts_with("HTTP/1.1 502 ") && told.contains("error=connection_refused"), "{told}");
        assert_eq!(world.crossed(), 1, "the document alone");
        // Nobody had promised this.
        let other = world.get("/b.css", &format!("{BROWSER}{REFERER}")).await;
        answer_with(&world, "reached after all").await;
        assert!(answer(other).await.contains("reached after all"));
    }
}

#[tokio::test]
async fn what_is_asked_for_anew_is_asked_of_ground_and_what_could_not_be_reached_is_forgotten_then() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut events = world.bus.subscribe();
    world.hop.push(promise).unwrap().fail(failure());
    until(&mut events, |event| matches!(event, Event::PromiseEnded { .. })).await;
    for (asking, body) in [("cache-control: no-cache\r\n", "reached"), ("", "again")] {
        let client = world.get("/a.css", &format!("{BROWSER}{REFERER}{asking}")).await;
        let Asked { mut sender, .. } = world.asked().await;
        sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
        sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
        sender.finish(None);
        assert!(answer(client).await.contains(body));
    }
}

#[tokio::test]
async fn a_promise_of_what_is_held_fresh_is_refused_and_its_push_with_it() {
    let world = world().await;
    let client = world.get("/a.css", BROWSER).await;
    answer_with(&world, "held").await;
    answer(client).await;
    let (_, promise) = page(&world).await;
    if let Some(push) = world.hop.push(promise) {
        assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    }
    let got = answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await;
    assert!(got.contains("held"), "{got}");
    assert_eq!(world.crossed(), 2, "the file once, and the document");
    let counters = world.bus.counters().snapshot();
    assert_eq!([&counters["promised"], &counters["promise_ends"]["cancelled"]], [1, 1]);
}

#[tokio::test]
async fn a_promise_in_other_words_than_its_url_is_refused_and_answers_nobody() {
    let world = world().await;
    let client = world.get("/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let promise = sender.promise(&predicted(&asked, "/./a.css"), Priority::default()).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    if let Some(push) = world.hop.push(promise) {
        assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped));
    }
    is_asked(&world, &format!("{DOCUMENT}{REFERER}")).await;
}

#[tokio::test]
async fn a_promise_is_kept_where_what_is_held_would_not_be_used() {
    const STALE: &[(&str, &str)] = &[("content-type", "text/css"), ("cache-control", "max-age=0")];
    const VARIES: &[(&str, &str)] =
        &[("content-type", "text/css"), ("cache-control", "max-age=600"), ("vary", "referer")];
    for unusable in [STALE, VARIES] {
        let world = world().await;
        let client = world.get("/a.css", BROWSER).await;
        let Asked { mut sender, .. } = world.asked().await;
        sender.answer(&head(unusable), Coding::Identity, None);
        sender.write(Bytes::from_static(b"of another request")).await.unwrap();
        sender.finish(None);
        answer(client).await;
        let (_, promise) = page(&world).await;
        let mut push = begin(&world, promise).await;
        push.finish(None);
        let got = answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await;
        assert!(got.contains("promised"), "{got}");
        assert_eq!(world.crossed(), 2);
    }
}

/// A promised `/a.css` that has to be validated at each use, its head sent and the start of its body.
async fn begin_tagged(world: &World, caching: &'static str) -> Sender {
    let (_, promise) = page(world).await;
    let mut push = world.hop.push(promise).unwrap();
    let fields =
        [("content-type", "text/css"), ("cache-control", caching), ("etag", "\"1\""), ("set-cookie", "a=1")];
    push.answer(&head(&fields), Coding::Identity, None);
    let _ = push.write(Bytes::from_static(b"promised")).await;
    push
}

async fn asks_with(world: &World, tag: &str) -> String {
    answer(world.get("/a.css", &format!("{BROWSER}{REFERER}if-none-match: {tag}\r\n")).await).await
}

#[tokio::test]
async fn what_the_browser_holds_already_is_answered_by_the_head_of_its_promise() {
    let world = world().await;
    let _push = begin_tagged(&world, "no-cache").await;
    let got = asks_with(&world, "\"1\"").await;
    let told = ["HTTP/1.1 304 ", "Etag: \"1\"", "Cache-Control: no-cache", "Set-Cookie: a=1"];
    assert!(told.iter().all(|line| got.contains(line)), "{got}");
    assert!(!got.contains("text/css") && !got.contains("promised"), "{got}");
    assert_eq!(world.crossed(), 1, "the document");
    let counters = world.bus.counters().snapshot();
    assert_eq!([&counters["promised"], &counters["promise_ends"]["used"]], [1, 1]);
}

#[tokio::test]
async fn what_has_changed_since_the_browser_got_it_is_answered_in_full_by_its_promise() {
    let world = world().await;
    let mut push = begin_tagged(&world, "no-cache").await;
    push.finish(None);
    let got = asks_with(&world, "\"0\"").await;
    assert!(got.starts_with("HTTP/1.1 200 ") && got.contains("promised"), "{got}");
    assert_eq!(world.crossed(), 1, "the document");
}

#[tokio::test]
async fn a_push_whose_head_was_all_that_was_wanted_is_stopped_if_its_body_answers_nothing_else() {
    for caching in ["no-store", "no-cache", "max-age=0"] {
        let world = world().await;
        let push = begin_tagged(&world, caching).await;
        assert!(asks_with(&world, "\"1\"").await.starts_with("HTTP/1.1 304 "));
        assert_eq!(timeout(PATIENCE, push.gone()).await, Ok(Gone::Stopped), "{caching}");
        let counters = world.bus.counters().snapshot();
        assert_eq!(counters["promise_ends"]["used"], 1);
        is_asked(&world, &format!("{BROWSER}{REFERER}")).await;
    }
}

#[tokio::test]
async fn a_push_that_answers_others_too_goes_on_when_its_head_was_enough_for_one() {
    let world = world().await;
    let mut push = begin_tagged(&world, "max-age=600").await;
    assert!(asks_with(&world, "\"1\"").await.starts_with("HTTP/1.1 304 "));
    push.write(Bytes::from_static(b" and more")).await.unwrap();
    push.finish(None);
    let got = answer(world.get("/a.css", &format!("{BROWSER}{REFERER}")).await).await;
    assert!(got.contains("and more"), "{got}");
    assert_eq!(world.crossed(), 1, "the document");
}

#[tokio::test]
async fn a_promise_taken_back_under_a_request_with_conditions_lets_it_cross_with_them() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let waiting = world.get("/a.css", &format!("{BROWSER}{REFERER}if-none-match: \"1\"\r\n")).await;
    world.hop.push(promise).unwrap().fail(withdrawn());
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert_eq!(asked.fields["if-none-match"], "\"1\"");
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(waiting).await;
}

#[tokio::test]
async fn a_reload_is_answered_by_what_was_promised_for_it_whole_or_not() {
    for asking in ["", "cache-control: no-cache\r\n"] {
        let world = world().await;
        let client = world.get("/", &format!("{BROWSER}{asking}")).await;
        let Asked { head: asked, mut sender, .. } = world.asked().await;
        let promise = sender.promise(&predicted(&asked, "/a.css"), Priority::default()).unwrap();
        sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
        sender.finish(None);
        answer(client).await;
        let mut push = world.hop.push(promise).unwrap();
        push.answer(
            &head(&[("content-type", "text/css"), ("cache-control", "max-age=600")]),
            Coding::Identity,
            None,
        );
        push.write(Bytes::from_static(b"promised")).await.unwrap();
        // One of the two is still coming when it is asked for, the other one is held already.
        let reload = match asking {
            "" => "cache-control: max-age=0\r\n",
            hard => {
                push.finish(None);
                stored(&world).await;
                hard
            }
        };
        let client = world.get("/a.css", &format!("{BROWSER}{REFERER}{reload}")).await;
        if asking.is_empty() {
            push.write(Bytes::from_static(b" and more")).await.unwrap();
            push.finish(None);
        }
        let got = timeout(PATIENCE, answer(client)).await.unwrap();
        assert!(got.contains("promised"), "{got}");
        assert_eq!(world.crossed(), 1, "the document");
    }
}

/// Waits until something is held.
async fn stored(world: &World) {
    while world.bus.counters().snapshot()["stored"] == 0 {
        tokio::task::yield_now().await;
    }
}
