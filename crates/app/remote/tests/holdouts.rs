//! Some loads of a site's pages are done with less fetched unasked, once there is something to compare them with.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::Coding;
use support::{REFERER, UNCACHEABLE, World, answer, head, send, world_with};

const DOCUMENT: &str =
    "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

/// A user loads a page, and what it needs; gives what ground was told of how much may be fetched for it.
async fn load(world: &World, user: u8) -> Option<String> {
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
    tokio::time::pause();
    for _ in 0..6 {
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
