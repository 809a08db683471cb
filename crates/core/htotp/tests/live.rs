//! What people wait for word by word: WebSockets, events, trickling uploads and tunnels, in virtual time. A word crosses
//! when it is written, whatever else is on the way.

mod pair;

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, Priority, Tunnel};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Event, code};
use farhop_htotp::{RequestHead, ResponseHead};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use pair::{GROUND, HALF, Pair, REMOTE, geo};

/// What a word may take beyond the way itself: its own bytes on the link, and one grant that is being written.
const SLACK: Duration = Duration::from_millis(5);

fn get(path: &str, fields: &[(&'static str, &'static str)]) -> RequestHead {
    let mut all = HeaderMap::new();
    for (name, value) in fields {
        all.insert(*name, HeaderValue::from_static(value));
    }
    RequestHead {
        method: Method::GET,
        scheme: "https".into(),
        authority: "live.test".into(),
        path: path.into(),
        fields: all,
    }
}

fn head(status: StatusCode) -> ResponseHead {
    ResponseHead { status, fields: HeaderMap::new() }
}

/// The stream of the last request or tunnel that ground heard of.
fn begun(pair: &mut Pair) -> StreamId {
    let begun = |(_, event)| match event {
        Event::Asked { stream, .. } | Event::TunnelAsked { stream, .. } => Some(stream),
        _ => None,
    };
    pair.events(GROUND).into_iter().filter_map(begun).last().expect("something has begun")
}

/// When each piece of a body came, and what it was.
fn words(pair: &mut Pair, end: usize, of: StreamId) -> Vec<(Duration, Bytes)> {
    let word = |(at, event)| match event {
        Event::Body { stream, bytes } if stream == of => Some((at, bytes)),
        _ => None,
    };
    pair.events(end).into_iter().filter_map(word).collect()
}

/// A WebSocket that stands: its stream at either end.
fn socket(pair: &mut Pair) -> (StreamId, StreamId) {
    let now = pair.now;
    let near = pair.remote().ask(now, Ask::default(), &get("/socket", &[("upgrade", "websocket")]));
    pair.run(now + HALF + SLACK);
    let far = begun(pair);
    let now = pair.now;
    pair.ground().answer(now, far, &head(StatusCode::SWITCHING_PROTOCOLS), Coding::Identity, None);
    pair.run(now + HALF + SLACK);
    let answered = pair.events(REMOTE).into_iter().any(|(_, event)| {
        matches!(event, Event::Answered { stream, head, .. } if stream == near && head.status == 101)
    });
    assert!(answered);
    (near, far)
}

#[test]
fn words_of_a_websocket_cross_both_ways_when_they_are_written() {
    let mut pair = geo();
    let (near, far) = socket(&mut pair);
    for turn in 0..20u8 {
        let said = pair.now;
        pair.remote().write(near, Bytes::from(vec![turn; 9]));
        pair.ground().write(far, Bytes::from(vec![turn; 700]));
        pair.run(said + HALF + SLACK);
        let [(at, word)] = &words(&mut pair, GROUND, far)[..] else { panic!("one word, then the next") };
        assert!(word == &vec![turn; 9] && *at < said + HALF + SLACK);
        let [(at, word)] = &words(&mut pair, REMOTE, near)[..] else { panic!("one word, then the next") };
        assert!(word == &vec![turn; 700] && *at < said + HALF + SLACK);
    }
}

#[test]
fn each_side_of_a_websocket_ends_by_itself() {
    let mut pair = geo();
    let (near, far) = socket(&mut pair);
    let now = pair.now;
    pair.remote().finish(now, near, None);
    pair.run(now + HALF * 2);
    assert!(pair.events(GROUND).iter().any(|(_, e)| *e == Event::Ended { stream: far }));
    pair.ground().write(far, Bytes::from_static(b"last word"));
    let then = pair.now;
    pair.ground().finish(then, far, None);
    pair.run(now + HALF * 4);
    let heard = pair.events(REMOTE);
    assert!(heard.iter().any(|(_, e)| matches!(e, Event::Body { bytes, .. } if bytes == "last word")));
    assert!(heard.iter().any(|(_, e)| *e == Event::Ended { stream: near }));
    assert!(!pair.remote().is_active() && !pair.ground().is_active(), "nothing of it is left");
}

#[test]
fn what_broke_behind_a_websocket_or_a_tunnel_is_told_as_a_reset() {
    let mut pair = geo();
    let (near, far) = socket(&mut pair);
    let tunnel = pair.remote().open_tunnel(&Tunnel::to(9, 1, Class::Web, "ssh.test", 22));
    pair.run(HALF * 6);
    let far_tunnel = begun(&mut pair);
    pair.ground().abort(far);
    pair.remote().abort(tunnel);
    pair.run(HALF * 9);
    let reset = |events: Vec<(Duration, Event)>| {
        events.into_iter().find_map(|(_, e)| {
            if let Event::Reset { stream, code } = e { Some((stream, code)) } else { None }
        })
    };
    assert_eq!(reset(pair.events(REMOTE)), Some((near, code::RESET)));
    assert_eq!(reset(pair.events(GROUND)), Some((far_tunnel, code::RESET)));
}

#[test]
fn another_protocol_that_nobody_asked_for_costs_its_exchange_and_nothing_else() {
    let mut pair = geo();
    let near = pair.remote().ask(Duration::ZERO, Ask::default(), &get("/", &[]));
    pair.run(HALF + SLACK);
    let (far, now) = (begun(&mut pair), pair.now);
    pair.ground().answer(now, far, &head(StatusCode::SWITCHING_PROTOCOLS), Coding::Identity, None);
    pair.run(HALF * 3);
    let heard = pair.events(REMOTE);
    let failed = heard.iter().find_map(|(_, e)| match e {
        Event::Failed { stream, failure } if *stream == near => {
            Some((failure.status, failure.token.as_str()))
        }
        _ => None,
    });
    assert_eq!(failed, Some((502, "http_upgrade_failed")));
    assert!(!heard.iter().any(|(_, e)| matches!(e, Event::Broken(_))));
}

#[test]
fn a_host_is_prepared_before_its_first_request_is_there() {
    let mut pair = geo();
    let now = pair.now;
    pair.remote().prepare(7, "https", "live.test", 443);
    pair.run(now + HALF + SLACK);
    let wanted = Event::Prepare { user: 7, scheme: "https".into(), host: "live.test".into(), port: 443 };
    assert!(pair.events(GROUND).iter().any(|(at, event)| *event == wanted && *at < HALF + SLACK));
}

#[test]
fn events_and_trickling_bodies_cross_piece_by_piece_both_ways() {
    let mut pair = geo();
    let near = pair.remote().ask(Duration::ZERO, Ask::default(), &get("/events", &[]));
    pair.run(HALF + SLACK);
    let (far, now) = (begun(&mut pair), pair.now);
    pair.ground().answer(now, far, &head(StatusCode::OK), Coding::Identity, None);
    for _ in 0..10 {
        let said = pair.now + Duration::from_secs(3);
        pair.run(said);
        pair.events(REMOTE);
        pair.ground().write(far, Bytes::from_static(b"data: tick\n\n"));
        pair.remote().write(near, Bytes::from_static(b"part of an upload"));
        pair.run(said + HALF + SLACK);
        assert_eq!(words(&mut pair, REMOTE, near).len(), 1, "an event waits for nothing");
        assert_eq!(words(&mut pair, GROUND, far).len(), 1, "nor does a piece of an upload");
    }
}

/// One tunnel downloads as fast as the link allows; another of the same user says a word.
#[test]
fn a_download_in_one_tunnel_leaves_the_others_of_its_user_alive() {
    let mut pair = geo();
    pair.remote().open_tunnel(&Tunnel::to(1, 1, Class::Web, "big.test", 443));
    pair.run(HALF + SLACK);
    let bulk = begun(&mut pair);
    let quiet = pair.remote().open_tunnel(&Tunnel::to(2, 1, Class::Web, "chat.test", 443));
    pair.run(HALF * 3);
    let far = begun(&mut pair);
    for stream in [bulk, far] {
        pair.ground().accept_tunnel(stream);
    }
    pair.run(HALF * 6);
    let said = pair.now;
    while pair.ground().queued(bulk) < 2_000_000 {
        pair.ground().write(bulk, Bytes::from(vec![0; 60_000]));
    }
    pair.ground().write(far, Bytes::from_static(b"a word"));
    pair.run(said + Duration::from_secs(1));
    let [(at, _)] = words(&mut pair, REMOTE, quiet)[..] else { panic!("the word waits for the download") };
    // Two writes of the download may be ahead of it, of at most 16 KiB each.
    assert!(at < said + HALF + Duration::from_millis(60), "{at:?} after {said:?}");
}

/// The same of an upload of pages' class beside a WebSocket whose urgency the remote has chosen.
#[test]
fn a_word_goes_ahead_of_a_page() {
    let mut pair = geo();
    let urgent = Priority { urgency: 1, incremental: true };
    let ask = Ask { priority: urgent, ..Ask::default() };
    let near = pair.remote().ask(Duration::ZERO, ask, &get("/socket", &[("upgrade", "websocket")]));
    pair.run(HALF + SLACK);
    let (far, now) = (begun(&mut pair), pair.now);
    pair.ground().answer(now, far, &head(StatusCode::SWITCHING_PROTOCOLS), Coding::Identity, None);
    pair.remote().ask(now, Ask::default(), &get("/page", &[]));
    pair.run(now + HALF * 2 + SLACK);
    let (page, said) = (begun(&mut pair), pair.now);
    pair.ground().answer(said, page, &head(StatusCode::OK), Coding::Identity, None);
    pair.ground().write(page, Bytes::from(vec![0; 1_000_000]));
    pair.run(said + Duration::from_millis(200));
    pair.events(REMOTE);
    let said = pair.now;
    pair.ground().write(far, Bytes::from_static(b"a word"));
    pair.run(said + Duration::from_secs(1));
    let [(at, _)] = words(&mut pair, REMOTE, near)[..] else { panic!("the word waits for the page") };
    assert!(at < said + HALF + Duration::from_millis(60), "{at:?} after {said:?}");
}
