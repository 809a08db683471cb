//! Some loads of a site's pages are done with less fetched unasked, once there is something to compare them with.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use http::StatusCode;
use support::{REFERER, UNCACHEABLE, World, answer, head, send, world_with};

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

/// A user loads a page, and what it needs; gives what ground was told of how much may be fetched for it.
async fn load(world: &World, user: u8) -> Option<String> {
    load_in(world, user, |_| 0).await
}

/// The same, where what it needs comes after so many `seconds`, by what ground was told.
async fn load_in(world: &World, user: u8, seconds: impl Fn(Option<&str>) -> u64) -> Option<String> {
    let mut told = None;
    for (path, fields) in [("/", DOCUMENT), ("/a.css", REFERER)] {
        let mut client = world.client_at(Ipv4Addr::new(127, 0, 0, user)).await;
        // What a client says of it is nothing that ground is told.
        send(&mut client, "GET", path, &format!("{fields}farhop-unasked: named\r\n")).await;
        let mut asked = world.asked().await;
        let said = asked.head.fields.get("farhop-unasked").map(|word| word.to_str().unwrap().to_owned());
        if path == "/" {
            told = said;
        } else {
            assert_eq!(said, None, "of a document only");
            pass(seconds(told.as_deref())).await;
        }
        asked.sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
        asked.sender.write(Bytes::from_static(b"x")).await.unwrap();
        asked.sender.finish(None);
        answer(client).await;
    }
    told
}

/// Lets all that was loaded be quiet for long enough, and taken in.
async fn be_quiet() {
    pass(6).await;
}

/// Lets so many seconds pass.
async fn pass(seconds: u64) {
    tokio::time::pause();
    for _ in 0..seconds {
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    tokio::time::resume();
}

#[tokio::test]
async fn one_load_in_so_many_is_done_with_less_once_there_are_some_to_compare_it_with() {
    let world = world_with(&["evidence.holdouts=\"50 %\""]).await;
    let mut events = world.bus.subscribe();
    for user in 1..=10 {
        assert_eq!(load(&world, user).await, None, "the first ones are all alike");
    }
    be_quiet().await;
    let mut told = Vec::new();
    for user in 11..=30 {
        told.push(load(&world, user).await);
    }
    let less: Vec<&str> = told.iter().flatten().map(String::as_str).collect();
    assert_eq!(less.len(), 10, "{told:?}");
    assert_eq!(less.iter().filter(|word| **word == "nothing").count(), 5, "{less:?}");
    assert_eq!(less.iter().filter(|word| **word == "named").count(), 5, "{less:?}");
    support::until(&mut events, |event| matches!(event, Event::Restrained { .. })).await;
    assert_eq!(world.bus.counters().restrained(), 10);
}

/// A user asks for a page, and is led on to `/en/`; gives what ground was told of both.
async fn led(world: &World, user: u8) -> [Option<String>; 2] {
    let mut told = [None, None];
    for (step, path) in ["/", "/en/"].into_iter().enumerate() {
        let mut client = world.client_at(Ipv4Addr::new(127, 0, 0, user)).await;
        send(&mut client, "GET", path, DOCUMENT).await;
        let mut asked = world.asked().await;
        told[step] = asked.head.fields.get("farhop-unasked").map(|word| word.to_str().unwrap().to_owned());
        let answered = match path {
            "/" => ResponseHead {
                status: StatusCode::FOUND,
                ..head(&[("location", "/en/"), ("cache-control", "no-store")])
            },
            _ => head(UNCACHEABLE),
        };
        asked.sender.answer(&answered, Coding::Identity, None);
        asked.sender.finish(None);
        answer(client).await;
    }
    told
}

#[tokio::test]
async fn the_document_to_which_a_redirect_leads_is_asked_for_as_the_first_one_was() {
    let world = world_with(&["evidence.holdouts=\"50 %\""]).await;
    for user in 1..=10 {
        load(&world, user).await;
    }
    be_quiet().await;
    let mut told = Vec::new();
    for user in 11..=30 {
        let [first, second] = led(&world, user).await;
        assert_eq!(first, second);
        told.push(first);
    }
    assert_eq!(told.iter().flatten().count(), 10, "it is one load: {told:?}");
}

#[tokio::test]
async fn where_no_evidence_is_wanted_all_loads_are_alike() {
    let world = world_with(&["evidence.holdouts=\"50 %\"", "evidence.enabled=false"]).await;
    for user in 1..=10 {
        load(&world, user).await;
    }
    be_quiet().await;
    for user in 11..=20 {
        assert_eq!(load(&world, user).await, None);
    }
}

#[tokio::test]
async fn a_site_whose_loads_are_slower_with_more_is_judged_and_its_loads_are_done_with_less() {
    let world = world_with(&["evidence.holdouts=\"50 %\""]).await;
    let mut events = world.bus.subscribe();
    let seconds = |told: Option<&str>| if told == Some("nothing") { 1 } else { 3 };
    for user in 1..=10 {
        load_in(&world, user, seconds).await;
    }
    be_quiet().await;
    for user in 11..=30 {
        load_in(&world, user, seconds).await;
    }
    be_quiet().await;
    support::until(&mut events, |event| {
        let Event::SiteJudged { site, before, unasked, slower_percent, loads, others } = event else {
            return false;
        };
        assert_eq!(
            (site.as_str(), before.as_str(), unasked.as_str()),
            ("http://site.test", "all", "nothing")
        );
        assert!((150..=250).contains(slower_percent), "{slower_percent} % for three seconds in place of one");
        assert!(*loads >= 5 && *others >= 5, "{loads}, {others}");
        true
    })
    .await;
    let mut told = Vec::new();
    for user in 31..=50 {
        told.push(load_in(&world, user, seconds).await);
    }
    let less = told.iter().filter(|word| word.as_deref() == Some("nothing")).count();
    assert!(less >= 10, "all but those that are held out: {told:?}");
}

#[tokio::test]
async fn a_site_that_more_helps_is_not_judged() {
    let world = world_with(&["evidence.holdouts=\"50 %\""]).await;
    let seconds = |told: Option<&str>| if told.is_none() { 1 } else { 3 };
    for user in 1..=10 {
        load_in(&world, user, seconds).await;
    }
    be_quiet().await;
    for user in 11..=40 {
        load_in(&world, user, seconds).await;
    }
    be_quiet().await;
    assert_eq!(world.bus.counters().sites_judged(), 0);
    assert!(world.bus.counters().restrained() >= 10);
}
