//! What is held and stale, and ground has validated before the browser asks for it.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;

use bytes::Bytes;
use farhop_bundle::sameness;
use farhop_events::Event;
use farhop_htotp::frame::{Coding, Priority};
use farhop_htotp::mirror::{Validators, Word};
use farhop_htotp::session::Config;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_transport::hop::{Incoming, Sender};
use http::StatusCode;
use support::{
    Asked, BROWSER, PATIENCE, REFERER, UNCACHEABLE, World, answer, failure, head, predicted, send, until,
    world,
};
use tokio::time::timeout;

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";
const AGENT: &str = "user-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";
const STALE: &[(&str, &str)] =
    &[("cache-control", "max-age=0"), ("etag", "\"a\""), ("vary", "accept-language")];

fn not_modified(fields: &[(&'static str, &'static str)]) -> ResponseHead {
    ResponseHead { status: StatusCode::NOT_MODIFIED, ..head(fields) }
}

/// Lets `/a.css` be fetched and held with these fields; gives its validators as they are told.
async fn hold(world: &World, fields: &[(&'static str, &'static str)]) -> Validators {
    hold_for(world, AGENT, fields).await
}

/// The same for a request with these.
async fn hold_for(world: &World, asked: &str, fields: &[(&'static str, &'static str)]) -> Validators {
    let client = world.get("/a.css", asked).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(fields), Coding::Identity, None);
    sender.write(Bytes::from_static(b"what is held")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("what is held"));
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        if let Incoming::Mirror(Word::Validators(told)) = incoming {
            let [told] = &told[..] else { panic!("one entry: {told:?}") };
            return told.clone();
        }
    }
}

/// Ground says that it asks the origin about `entry` with this request.
fn validate(sender: &Sender, entry: u64, request: &RequestHead) -> u64 {
    sender.validate(entry, sameness(&request.fields), request, Priority::default()).unwrap()
}

/// A client at this address loads a page along with which `entry` is validated; gives the number to answer under.
async fn page_at(world: &World, address: Ipv4Addr, entry: u64) -> u64 {
    let mut client = world.client_at(address).await;
    send(&mut client, "GET", "/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let promise = validate(&sender, entry, &predicted(&asked, "/a.css"));
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    promise
}

async fn page(world: &World, entry: u64) -> u64 {
    page_at(world, Ipv4Addr::LOCALHOST, entry).await
}

/// What the page's browser gets for `/a.css`, which it asks for as ground expects, while nothing of that crosses.
async fn given(world: &World) -> String {
    let crossed = world.crossed();
    let fields = format!("{DOCUMENT}{REFERER}").replace("upgrade-insecure-requests: 1\r\n", "");
    let given = answer(world.get("/a.css", &fields).await).await;
    assert_eq!(world.crossed(), crossed, "nothing crosses: {given}");
    given
}

/// Asks for `/a.css`, which crosses, with this condition.
async fn crosses(world: &World, condition: Option<&str>) {
    let client = world.get("/a.css", &format!("{AGENT}{REFERER}")).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert_eq!(asked.path, "/a.css");
    let said = asked.fields.get("if-none-match").map(|tag| tag.to_str().unwrap());
    assert_eq!(said, condition);
    if condition.is_some() {
        sender.answer(&not_modified(&[("etag", "\"a\"")]), Coding::Identity, None);
        sender.finish(None);
        return assert!(answer(client).await.contains("what is held"));
    }
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"asked")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("asked"));
}

fn confirm(mut push: Sender, fields: &[(&'static str, &'static str)]) {
    push.answer(&not_modified(fields), Coding::Identity, None);
    push.finish(None);
}

#[tokio::test]
async fn what_is_held_is_told_with_its_validators_once() {
    let world = world().await;
    let told = hold(&world, STALE).await;
    assert_eq!((&told.tag[..], told.modified), (&b"\"a\""[..], 0));
    let promise = page(&world, told.number).await;
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600")]);
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        match incoming {
            Incoming::Mirror(Word::Stored(entries)) => {
                assert_eq!((entries.len(), entries[0].number), (1, told.number));
                assert!((590..=600).contains(&entries[0].fresh_s));
                break;
            }
            Incoming::Mirror(Word::Validators(again)) => panic!("{again:?} were told before"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_ground_has_validated_answers_without_a_crossing_and_is_fresh_from_then_on() {
    let world = world().await;
    let entry = hold(&world, STALE).await.number;
    let promise = page(&world, entry).await;
    // The browser asks before anything is known, and waits.
    let waiting = world.get("/a.css", &format!("{AGENT}{REFERER}")).await;
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600"), ("x-new", "1")]);
    let got = answer(waiting).await;
    assert!(got.contains("what is held") && got.contains("X-New: 1"), "{got}");
    let got = given(&world).await;
    assert!(got.contains("what is held") && got.contains("max-age=600"), "{got}");
    assert_eq!(world.crossed(), 2, "the entry, when it was fetched, and the page");
}

/// Ground hears that this is wanted, and how urgently.
async fn is_wanted(world: &World, promise: u64) -> Priority {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        match incoming {
            Incoming::Wanted { promise: wanted, priority } if wanted == promise => return priority,
            Incoming::Exchange { head, .. } => panic!("{head:?} crosses"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn ground_hears_of_who_waits_since_it_may_hold_its_question_back_until_then() {
    let world = world().await;
    let entry = hold(&world, STALE).await.number;
    let promise = page(&world, entry).await;
    let waiting = world.get("/a.css", &format!("{AGENT}{REFERER}priority: u=1\r\n")).await;
    assert_eq!(is_wanted(&world, promise).await, Priority { urgency: 1, incremental: false });
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600")]);
    assert!(answer(waiting).await.contains("what is held"));
}

#[tokio::test]
async fn ground_hears_of_what_is_given_stale_while_it_may_hold_its_question_back() {
    let world = world().await;
    let renewed = [("cache-control", "max-age=0, stale-while-revalidate=600"), ("etag", "\"a\"")];
    let entry = hold(&world, &renewed).await.number;
    let promise = page(&world, entry).await;
    assert!(given(&world).await.contains("what is held"));
    is_wanted(&world, promise).await;
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600")]);
}

#[tokio::test]
async fn what_has_the_same_strong_validator_is_validated_along_with_it() {
    let world = world().await;
    let [english, german] = ["en", "de"].map(|language| format!("{AGENT}accept-language: {language}\r\n"));
    let entry = hold_for(&world, &english, STALE).await.number;
    // The same for all, by a date of long ago: where both fit the other is used.
    let old = ("date", "Sun, 02 Mar 2014 10:00:00 GMT");
    hold_for(&world, &german, &[("cache-control", "max-age=0"), ("etag", "\"a\""), old]).await;
    let promise = page(&world, entry).await;
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600"), ("etag", "\"a\"")]);
    let crossed = world.crossed();
    for asked in [english, german] {
        let got = answer(world.get("/a.css", &asked).await).await;
        assert!(got.contains("what is held") && got.contains("max-age=600"), "{asked}: {got}");
    }
    assert_eq!(world.crossed(), crossed);
}

#[tokio::test]
async fn what_has_to_be_validated_whenever_it_is_used_answers_the_page_that_it_was_validated_for_once() {
    let world = world().await;
    let entry = hold(&world, &[("cache-control", "no-cache"), ("etag", "\"a\"")]).await.number;
    let promise = page(&world, entry).await;
    confirm(world.hop.push(promise).unwrap(), &[]);
    // The origin may have another answer to who accepts something else.
    crosses(&world, Some("\"a\"")).await;
    assert!(given(&world).await.contains("what is held"));
    crosses(&world, Some("\"a\"")).await;
}

#[tokio::test]
async fn where_nothing_comes_of_it_the_browsers_request_crosses() {
    let world = world().await;
    let entry = hold(&world, STALE).await.number;
    let promise = page(&world, entry).await;
    world.hop.push(promise).unwrap().fail(failure());
    crosses(&world, Some("\"a\"")).await;
    for wrong in [("etag", "\"b\""), ("vary", "accept-language, cookie"), ("vary", "*")] {
        let promise = page(&world, entry).await;
        confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600"), wrong]);
        crosses(&world, Some("\"a\"")).await;
    }
}

#[tokio::test]
async fn what_has_changed_is_promised_where_its_confirmation_was_awaited() {
    let world = world().await;
    let entry = hold(&world, STALE).await.number;
    let mut client = world.client().await;
    send(&mut client, "GET", "/", DOCUMENT).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let predicted = predicted(&asked, "/a.css");
    let word = validate(&sender, entry, &predicted);
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
    let fields = format!("{DOCUMENT}{REFERER}").replace("upgrade-insecure-requests: 1\r\n", "");
    let waiting = world.get("/a.css", &fields).await;
    let word = world.hop.push(word).unwrap();
    let promise = word.promise(&predicted, Priority::default()).unwrap();
    word.fail(failure());
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(&[("cache-control", "max-age=600"), ("etag", "\"b\"")]), Coding::Identity, None);
    push.write(Bytes::from_static(b"what is new")).await.unwrap();
    push.finish(None);
    assert!(answer(waiting).await.contains("what is new"));
    assert_eq!(world.crossed(), 2);
}

#[tokio::test]
async fn nothing_is_validated_that_is_not_held_or_is_anothers() {
    let world = world().await;
    let own = [("cache-control", "private, max-age=0"), ("etag", "\"a\"")];
    let entry = hold(&world, &own).await.number;
    for (address, entry) in [(Ipv4Addr::new(127, 0, 0, 2), entry), (Ipv4Addr::LOCALHOST, entry + 1)] {
        let promise = page_at(&world, address, entry).await;
        loop {
            let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
            if let Incoming::Unwanted { promises } = incoming {
                assert_eq!(promises, promise..=promise);
                break;
            }
        }
    }
    let promise = page(&world, entry).await;
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "private, max-age=600")]);
    assert!(given(&world).await.contains("what is held"), "its own user's");
}

#[tokio::test]
async fn a_word_of_the_origin_that_forbids_to_keep_it_is_obeyed() {
    let world = world().await;
    let entry = hold(&world, STALE).await.number;
    let promise = page(&world, entry).await;
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "no-store")]);
    crosses(&world, None).await;
}

#[tokio::test]
async fn who_waits_asks_when_the_carrier_is_lost() {
    let mut world = world().await;
    let entry = hold(&world, STALE).await.number;
    page(&world, entry).await;
    let waiting = world.get("/a.css", &format!("{AGENT}{REFERER}")).await;
    world.lose_carrier().await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert_eq!(asked.fields["if-none-match"], "\"a\"");
    sender.answer(&not_modified(&[("etag", "\"a\"")]), Coding::Identity, None);
    sender.finish(None);
    assert!(answer(waiting).await.contains("what is held"));
}

const FRESH_PAGE: &[(&str, &str)] =
    &[("content-type", "text/html"), ("cache-control", "max-age=600"), ("etag", "\"p\"")];

/// A world that holds the page at `/`, fresh, and whose ground makes use of being told of that.
async fn holding_a_page() -> World {
    let mut world = world().await;
    world.hop.close();
    world.hop = world.listener.carrier_with(Config { held_pages: true, ..Config::default() }).await;
    fetch(&world, "/", DOCUMENT, FRESH_PAGE).await;
    world
}

/// Lets this be fetched, with these fields.
async fn fetch(world: &World, path: &str, fields: &str, answered: &[(&'static str, &'static str)]) {
    let client = world.get(path, fields).await;
    assert_eq!(world.give(200, answered, "what is held").await.head.path, path);
    assert!(answer(client).await.contains("what is held"));
}

/// The request for the page at `/` with which ground is told that it is answered here.
async fn told(world: &World) -> Asked {
    let asked = world.asked().await;
    assert_eq!(asked.head.path, "/");
    asked
}

/// The page's own request, as its browser sent it.
fn of_browser(asked: &Asked) -> RequestHead {
    let mut head = asked.head.clone();
    assert!(head.fields.remove("farhop-held").is_some());
    head
}

#[tokio::test]
async fn ground_is_told_of_a_page_that_is_answered_here_and_what_it_promises_then_answers() {
    let world = holding_a_page().await;
    let mut events = world.bus.subscribe();
    let crossed = world.crossed();
    let fields = format!("{DOCUMENT}if-none-match: \"else\"\r\nfarhop-held: a client says\r\n");
    assert!(answer(world.get("/", &fields).await).await.contains("what is held"));
    assert_eq!(world.crossed(), crossed, "the page is here");
    let mut asked = told(&world).await;
    let entry = asked.head.fields["farhop-held"].to_str().unwrap().parse::<u64>();
    assert!(entry.is_ok() && !asked.head.fields.contains_key("if-none-match"), "{:?}", asked.head);
    let document = of_browser(&asked);
    let promise = asked.sender.promise(&predicted(&document, "/a.css"), Priority::default()).unwrap();
    asked.sender.answer(&not_modified(&[]), Coding::Identity, None);
    asked.sender.finish(None);
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
    until(&mut events, |event| matches!(event, Event::Promised { .. })).await;
    assert!(given(&world).await.contains("promised"));
    // What is held is as it was.
    assert!(answer(world.get("/", DOCUMENT).await).await.contains("what is held"));
    told(&world).await;
    assert_eq!(world.crossed(), crossed);
}

#[tokio::test]
async fn what_ground_validates_for_a_page_that_is_answered_here_answers_it() {
    let world = holding_a_page().await;
    fetch(&world, "/a.css", AGENT, STALE).await;
    let told_of = loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        if let Incoming::Mirror(Word::Validators(all)) = incoming
            && let Some(own) = all.iter().find(|own| own.tag[..] == b"\"a\""[..])
        {
            break own.number;
        }
    };
    answer(world.get("/", DOCUMENT).await).await;
    let asked = told(&world).await;
    let promise = validate(&asked.sender, told_of, &predicted(&of_browser(&asked), "/a.css"));
    confirm(world.hop.push(promise).unwrap(), &[("cache-control", "max-age=600")]);
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a word comes").unwrap();
        if let Incoming::Mirror(Word::Stored(entries)) = incoming
            && entries.iter().any(|own| own.number == told_of && own.fresh_s > 0)
        {
            break;
        }
    }
    assert!(given(&world).await.contains("what is held"));
}

#[tokio::test]
async fn ground_is_told_of_pages_alone_and_only_if_it_makes_use_of_that() {
    let world = holding_a_page().await;
    fetch(&world, "/a.css", BROWSER, &[("content-type", "text/css"), ("cache-control", "max-age=600")]).await;
    fetch(
        &world,
        "/download",
        DOCUMENT,
        &[("content-type", "application/zip"), ("cache-control", "max-age=600")],
    )
    .await;
    answer(world.get("/a.css", BROWSER).await).await;
    answer(world.get("/download", DOCUMENT).await).await;
    answer(world.get("/", BROWSER).await).await;
    fetch(&world, "/next", BROWSER, UNCACHEABLE).await;
    let old = support::world().await;
    fetch(&old, "/", DOCUMENT, FRESH_PAGE).await;
    answer(old.get("/", DOCUMENT).await).await;
    fetch(&old, "/next", BROWSER, UNCACHEABLE).await;
}

#[tokio::test]
async fn ground_is_told_of_a_page_to_which_a_redirect_leads() {
    let world = holding_a_page().await;
    let mut events = world.bus.subscribe();
    let client = world.get("/from", DOCUMENT).await;
    world.give(302, &[("location", "/"), ("cache-control", "no-store")], "").await;
    assert!(answer(client).await.starts_with("HTTP/1.1 302 "));
    assert!(answer(world.get("/", DOCUMENT).await).await.contains("what is held"));
    let mut asked = told(&world).await;
    let promise =
        asked.sender.promise(&predicted(&of_browser(&asked), "/a.css"), Priority::default()).unwrap();
    asked.sender.answer(&not_modified(&[]), Coding::Identity, None);
    asked.sender.finish(None);
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
    until(&mut events, |event| matches!(event, Event::Promised { .. })).await;
    assert!(given(&world).await.contains("promised"));
}

#[tokio::test]
async fn of_a_page_without_validators_ground_is_told_by_its_date() {
    let world = holding_a_page().await;
    let dated: &[(&str, &str)] = &[
        ("content-type", "text/html"),
        ("cache-control", "max-age=2147483648"),
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    fetch(&world, "/dated", DOCUMENT, dated).await;
    assert!(answer(world.get("/dated", DOCUMENT).await).await.contains("what is held"));
    let asked = world.asked().await;
    let said = asked.head.fields["farhop-held"].to_str().unwrap();
    assert!(said.ends_with(";dated=784111777"), "{said}");
}

#[tokio::test]
async fn of_a_page_that_is_given_while_it_is_asked_about_ground_hears_by_the_question_and_others_by_a_word() {
    let world = holding_a_page().await;
    let renewed: &[(&str, &str)] = &[
        ("content-type", "text/html"),
        ("cache-control", "max-age=0, stale-while-revalidate=600"),
        ("etag", "\"r\""),
    ];
    fetch(&world, "/renewed", DOCUMENT, renewed).await;
    let mut events = world.bus.subscribe();
    let visit = async || {
        assert!(answer(world.get("/renewed", DOCUMENT).await).await.contains("what is held"));
        world.asked().await
    };
    let question = visit().await;
    assert_eq!(question.head.fields["if-none-match"], "\"r\"");
    assert!(!question.head.fields.contains_key("farhop-held"));
    // What ground promises beside the question is of the page that was given.
    let mut document = question.head.clone();
    document.fields.remove("if-none-match");
    let mut style = predicted(&document, "/a.css");
    style.fields.insert("referer", "http://site.test/renewed".parse().unwrap());
    let promise = question.sender.promise(&style, Priority::default()).unwrap();
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
    until(&mut events, |event| matches!(event, Event::Promised { .. })).await;
    let fields = format!("{DOCUMENT}referer: http://site.test/renewed\r\n");
    let fields = fields.replace("upgrade-insecure-requests: 1\r\n", "");
    assert!(answer(world.get("/a.css", &fields).await).await.contains("promised"));
    let other = visit().await;
    assert!(other.head.fields.contains_key("farhop-held"), "it is asked about for another: {:?}", other.head);
}
