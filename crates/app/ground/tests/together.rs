//! What several users of one remote need at a time is sent once, if anyone may have it.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_htotp::session::Ask;
use farhop_transport::hop::Incoming;
use support::{Origin, Pair, Peer, Reply, navigate, pushed};
use tokio::sync::watch;

const PAGE: &str = "<!doctype html><link rel=icon href=\"data:,\"><script src=/a.js></script>";

/// How far the answers of an origin may go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gate {
    Closed,
    Heads,
    Open,
}

/// A site whose page names a script that is answered with these fields, as far as the gate lets it.
async fn gated(fields: &'static str, gate: watch::Receiver<Gate>) -> Origin {
    Origin::start(move |mut peer: Peer| {
        let mut gate = gate.clone();
        async move {
            if !peer.path().starts_with("/a.js") {
                peer.answer("content-type: text/html | cache-control: no-store", PAGE).await;
                return Some(peer);
            }
            gate.wait_for(|gate| *gate >= Gate::Heads).await.unwrap();
            peer.say(format!("HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: 10\r\n\r\n01234")).await;
            gate.wait_for(|gate| *gate >= Gate::Open).await.unwrap();
            peer.say("56789").await;
            Some(peer)
        }
    })
    .await
}

/// User `user` loads the page; `own` is a field of its request.
async fn loads(pair: &Pair, origin: &Origin, user: u64, own: Option<(&'static str, &'static str)>) -> Reply {
    let mut head = navigate(origin, "/");
    head.fields.remove("cookie");
    if let Some((name, value)) = own {
        head.fields.insert(name, value.parse().unwrap());
    }
    let ask = Ask { exchange: 100 + user, user, ..Ask::default() };
    let (mut sender, mut receiver) = pair.hop.ask(ask, &head);
    sender.finish(None);
    Reply::take(&mut receiver).await
}

fn scripts_asked_for(origin: &Origin) -> usize {
    origin.paths().iter().filter(|path| path.starts_with("/a.js")).count()
}

/// Not to be changed: so it is sent as it comes.
const ANYONES: &str = "content-type: text/javascript\r\ncache-control: max-age=600, no-transform";
const NOBODYS: &str = "content-type: text/javascript\r\ncache-control: no-store";

async fn until_asked(origin: &Origin, times: usize) {
    while scripts_asked_for(origin) < times {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_on_its_way_to_one_user_is_not_promised_to_others() {
    let (open, gate) = watch::channel(Gate::Heads);
    let origin = gated(ANYONES, gate).await;
    let pair = Pair::new(&[]).await;
    let first = loads(&pair, &origin, 7, None).await;
    assert_eq!(first.promised_paths(), ["/a.js"]);
    // Its push begins with the head.
    let push = loop {
        if let Some(Incoming::Push { promise, receiver }) = pair.hop.accept().await {
            break (promise, receiver);
        }
    };
    for user in 8..12 {
        assert!(loads(&pair, &origin, user, None).await.promises.is_empty(), "it waits for the first's");
    }
    // With cookies, or where it may be another, it is this user's own.
    for (user, own) in [(12, ("cookie", "a=1")), (13, ("accept-language", "fr"))] {
        assert_eq!(loads(&pair, &origin, user, Some(own)).await.promised_paths(), ["/a.js"]);
    }
    open.send_replace(Gate::Open);
    let (promise, mut receiver) = push;
    let push = Reply::take(&mut receiver).await;
    assert!(promise == first.promises[0].0 && push.whole && push.body == b"0123456789");
    assert!(loads(&pair, &origin, 14, None).await.promises.is_empty(), "the remote has it");
    for _ in 0..2 {
        assert!(pushed(&pair).await.1.whole);
    }
    assert_eq!(scripts_asked_for(&origin), 3);
}

#[tokio::test]
async fn what_two_are_promised_at_once_is_taken_back_from_one_if_the_other_is_sent_it() {
    for (fields, is_anyones) in [(ANYONES, true), (NOBODYS, false)] {
        let (open, gate) = watch::channel(Gate::Closed);
        let origin = gated(fields, gate).await;
        let pair = Pair::new(&[]).await;
        let first = loads(&pair, &origin, 7, None).await;
        until_asked(&origin, 1).await;
        let second = loads(&pair, &origin, 8, None).await;
        assert_eq!((first.promises.len(), second.promises.len()), (1, 1), "nobody knows whose it is");
        open.send_replace(Gate::Open);
        let mut failed = Vec::new();
        for _ in 0..2 {
            let (promise, push) = pushed(&pair).await;
            match push.failure {
                Some(failure) => failed.push((promise, failure.token)),
                None => assert!(push.whole && push.body == b"0123456789"),
            }
        }
        let expected = is_anyones.then(|| (second.promises[0].0, "promise_withdrawn".into()));
        assert_eq!(failed, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(scripts_asked_for(&origin), if is_anyones { 1 } else { 2 });
    }
}

#[tokio::test]
async fn what_the_first_user_does_not_want_after_all_is_sent_to_the_next() {
    let (open, gate) = watch::channel(Gate::Heads);
    let origin = gated(ANYONES, gate).await;
    let pair = Pair::new(&[]).await;
    let first = loads(&pair, &origin, 7, None).await;
    until_asked(&origin, 1).await;
    let promise = first.promises[0].0;
    pair.hop.refuse_promises(promise..=promise);
    // The refusal is on its way to ground before the next request.
    let second = loop {
        let second = loads(&pair, &origin, 8, None).await;
        if !second.promises.is_empty() {
            break second;
        }
        tokio::task::yield_now().await;
    };
    open.send_replace(Gate::Open);
    loop {
        let (promise, push) = pushed(&pair).await;
        if promise == second.promises[0].0 {
            break assert!(push.whole && push.body == b"0123456789");
        }
    }
}
