//! What a session promises, seen from both ends in virtual time.

mod pair;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, Failure, Priority, Resume, Side, Tunnel};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Config, Direction, Event, Role, Session, Transmit, code};
use farhop_htotp::{RequestHead, ResponseHead};
use http::{HeaderMap, HeaderValue, StatusCode};
use pair::{GROUND, HALF, Pair, REMOTE, geo, get};
use proptest::prelude::*;

fn ok() -> ResponseHead {
    let mut fields = HeaderMap::new();
    fields.insert("content-type", HeaderValue::from_static("text/html"));
    ResponseHead { status: StatusCode::OK, fields }
}

/// The stream and request of the first `Asked` among an end's events.
fn asked(pair: &mut Pair) -> (Duration, StreamId, RequestHead) {
    pair.events(GROUND)
        .into_iter()
        .find_map(|(at, event)| match event {
            Event::Asked { stream, head, .. } => Some((at, stream, head)),
            _ => None,
        })
        .expect("a request arrived")
}

fn body(events: &[(Duration, Event)], of: StreamId) -> Vec<u8> {
    let parts = events.iter().filter_map(|(_, event)| match event {
        Event::Body { stream, bytes } if *stream == of => Some(bytes.to_vec()),
        _ => None,
    });
    parts.flatten().collect()
}

#[test]
fn a_request_crosses_at_once_without_any_handshake() {
    let mut pair = geo();
    pair.remote().ask(Duration::ZERO, Ask { exchange: 7, user: 1, ..Ask::default() }, &get("/"));
    pair.run(Duration::from_secs(1));
    let (at, _, head) = asked(&mut pair);
    assert_eq!(head, get("/"));
    assert!(at < HALF + Duration::from_millis(2), "{at:?}");
}

#[test]
fn a_promise_arrives_ahead_of_the_bytes_that_mention_it() {
    let mut pair = geo();
    let ask = pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
    pair.run(HALF * 2);
    let (_, stream, _) = asked(&mut pair);
    let now = pair.now;
    let ground = pair.ground();
    ground.answer(now, stream, &ok(), Coding::Identity, None);
    let promise = ground.promise(now, stream, &get("/style.css"), Priority::default()).unwrap();
    ground.write(stream, Bytes::from_static(b"<link href=style.css>"));
    ground.finish(now, stream, None);
    let push = ground.push(promise).unwrap();
    ground.answer(now, push, &ok(), Coding::Identity, None);
    ground.write(push, Bytes::from_static(b"body{}"));
    ground.finish(now, push, None);
    pair.run(Duration::from_secs(5));
    let events = pair.events(REMOTE);
    let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(|(_, event)| wanted(event)).unwrap();
    let promised = place(&|e| matches!(e, Event::Promised { head, .. } if head.path == "/style.css"));
    let mentioned = place(&|e| matches!(e, Event::Body { stream, .. } if *stream == ask));
    let pushed = place(&|e| matches!(e, Event::Pushed { promise: p, .. } if *p == promise));
    assert!(promised < mentioned && promised < pushed);
    let Event::Pushed { stream: push, .. } = events[pushed].1 else { unreachable!() };
    assert_eq!(body(&events, push), b"body{}");
    assert!(events.iter().any(|(_, e)| *e == Event::Ended { stream: push }));
}

/// A page that is answered with a promise of a style, which is pushed with a promise of a font.
fn nested(pair: &mut Pair) -> [u64; 2] {
    pair.remote().ask(Duration::ZERO, Ask { user: 3, ..Ask::default() }, &get("/"));
    pair.run(HALF * 2);
    let (_, page, _) = asked(pair);
    let now = pair.now;
    let ground = pair.ground();
    ground.answer(now, page, &ok(), Coding::Identity, None);
    let style =
        ground.promise(now, page, &get("/style.css"), Priority::default()).expect("the stream is open");
    let push = ground.push(style).expect("it is wanted");
    ground.answer(now, push, &ok(), Coding::Identity, None);
    let font =
        ground.promise(now, push, &get("/font.woff2"), Priority::default()).expect("the stream is open");
    ground.write(push, Bytes::from_static(b"@font-face{}"));
    ground.finish(now, push, None);
    [style, font]
}

#[test]
fn a_push_promises_what_its_body_names_ahead_of_it() {
    let mut pair = geo();
    let [style, font] = nested(&mut pair);
    pair.run(Duration::from_secs(5));
    let events = pair.events(REMOTE);
    let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(|(_, event)| wanted(event)).unwrap();
    let pushed = place(&|e| matches!(e, Event::Pushed { promise, .. } if *promise == style));
    let Event::Pushed { stream: push, .. } = events[pushed].1 else { unreachable!() };
    let nested = place(&|e| {
        matches!(e, Event::Promised { stream, promise, head, .. }
            if *stream == push && *promise == font && *head == get("/font.woff2"))
    });
    let named = place(&|e| matches!(e, Event::Body { stream, .. } if *stream == push));
    assert!(pushed < nested && nested < named);
    assert!(pair.ground().push(font).is_some());
}

#[test]
fn a_push_that_nobody_reads_promises_nothing_more() {
    let mut pair = geo();
    let now = pair.now;
    let page = pair.remote().ask(now, Ask::default(), &get("/second"));
    pair.run(now + HALF * 2);
    let (_, second, _) = asked(&mut pair);
    let now = pair.now;
    let style = pair.ground().promise(now, second, &get("/b.css"), Priority::default()).unwrap();
    let push = pair.ground().push(style).unwrap();
    pair.run(now + HALF * 2);
    let there = pair.events(REMOTE).into_iter().find_map(|(_, e)| match e {
        Event::Pushed { stream, promise } if promise == style => Some(stream),
        _ => None,
    });
    pair.remote().cancel(there.unwrap(), code::CANCELLED);
    pair.remote().cancel(page, code::CANCELLED);
    let now = pair.now;
    pair.run(now + HALF * 2);
    let now = pair.now;
    for stream in [push, second] {
        assert_eq!(pair.ground().promise(now, stream, &get("/c.png"), Priority::default()), None);
    }
}

/// What ground writes, in the order in which it wants it written, stream by stream.
fn written(session: &mut Session, now: Duration) -> (Vec<StreamId>, HashMap<StreamId, Vec<u8>>) {
    let (mut order, mut bytes) = (Vec::new(), HashMap::<StreamId, Vec<u8>>::new());
    while let Some(transmit) = session.poll_transmit(now) {
        match transmit {
            Transmit::Open(id, _) => order.push(id),
            Transmit::Write { stream, segments, .. } => {
                bytes.entry(stream).or_default().extend(segments.concat());
                session.handle_written(stream);
            }
            Transmit::Reset(..) | Transmit::Stop(..) | Transmit::Probe | Transmit::Datagram(_) => {}
        }
    }
    (order, bytes)
}

#[test]
fn pushes_that_overtake_the_promises_they_keep_are_read_once_these_are_here() {
    let now = Duration::ZERO;
    let [mut remote, mut ground] =
        [Role::Remote, Role::Ground].map(|role| Session::new(role, Config::default(), now));
    let page = remote.ask(now, Ask::default(), &get("/"));
    let (_, asked) = written(&mut remote, now);
    let there = ground.handle_opened(Direction::Both);
    ground.handle_data(now, there, asked[&page].clone().into());
    // A chain: each push promises the next one, and what comes first is what was sent last.
    let mut above = there;
    for n in 0..300 {
        let promise = ground.promise(now, above, &get(&format!("/{n}")), Priority::default()).unwrap();
        above = ground.push(promise).unwrap();
        ground.answer(now, above, &ok(), Coding::Identity, None);
    }
    let (pushes, mut bytes) = written(&mut ground, now);
    let mut held = Vec::new();
    for push in pushes.into_iter().rev() {
        let here = remote.handle_opened(Direction::One);
        remote.handle_data(now, here, bytes.remove(&push).unwrap().into());
        held.push(remote.held_back(here));
    }
    assert!(held.iter().filter(|held| **held > 0).count() >= 299, "all but the last name more");
    let promised = |session: &mut Session| {
        std::iter::from_fn(|| session.poll_event()).filter(|e| matches!(e, Event::Promised { .. })).count()
    };
    assert_eq!(promised(&mut remote), 0);
    remote.handle_data(now, page, bytes.remove(&there).unwrap().into());
    assert_eq!(promised(&mut remote), 300);
}

#[test]
fn a_run_of_promises_is_refused_in_one_frame() {
    let mut pair = geo();
    pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
    pair.run(HALF * 2);
    let (_, page, _) = asked(&mut pair);
    let now = pair.now;
    let promises: Vec<u64> = (0..600)
        .map(|n| pair.ground().promise(now, page, &get(&format!("/{n}.png")), Priority::default()).unwrap())
        .collect();
    pair.run(now + HALF * 4);
    let (now, before) = (pair.now, pair.sent(REMOTE));
    pair.remote().refuse_promises(promises[1]..=promises[598]);
    pair.run(now + HALF * 2);
    assert!(pair.sent(REMOTE) - before < 16, "{} bytes", pair.sent(REMOTE) - before);
    let told = Event::Unwanted { promises: promises[1]..=promises[598] };
    assert!(pair.events(GROUND).iter().any(|(_, e)| *e == told));
    let kept: Vec<u64> = promises.iter().copied().filter(|p| pair.ground().push(*p).is_some()).collect();
    assert_eq!(kept, [promises[0], promises[599]]);
}

#[test]
fn what_the_browser_asks_for_first_arrives_first() {
    let mut pair = geo();
    pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
    pair.run(HALF * 2);
    let (_, page, _) = asked(&mut pair);
    let now = pair.now;
    let ground = pair.ground();
    let unasked = Priority { urgency: 5, incremental: false };
    let promises: Vec<u64> =
        (0..40).map(|n| ground.promise(now, page, &get(&format!("/{n}.png")), unasked).unwrap()).collect();
    ground.answer(now, page, &ok(), Coding::Identity, None);
    ground.finish(now, page, None);
    for promise in &promises[..39] {
        let push = ground.push(*promise).unwrap();
        ground.answer(now, push, &ok(), Coding::Identity, None);
        ground.write(push, Bytes::from(vec![0; 60_000]));
        ground.finish(now, push, None);
    }
    pair.run(now + HALF);
    // One that is being sent last of all, and one whose fetch has not even begun.
    for promise in [promises[38], promises[39]] {
        pair.remote().want(promise, unasked);
    }
    pair.run(now + HALF * 2 + Duration::from_millis(10));
    let wanted = |e: &Event| matches!(e, Event::Wanted { promise, .. } if *promise == promises[39]);
    assert!(pair.events(GROUND).iter().any(|(_, e)| wanted(e)));
    let now = pair.now;
    let push = pair.ground().push(promises[39]).unwrap();
    pair.ground().answer(now, push, &ok(), Coding::Identity, None);
    pair.ground().write(push, Bytes::from(vec![0; 60_000]));
    pair.ground().finish(now, push, None);
    pair.run(now + Duration::from_secs(10));
    let events = pair.events(REMOTE);
    let mut numbers = HashMap::new();
    let mut ended = Vec::new();
    for (_, event) in &events {
        match event {
            Event::Pushed { stream, promise } => drop(numbers.insert(*stream, *promise)),
            Event::Ended { stream } => ended.extend(numbers.get(stream).copied()),
            _ => {}
        }
    }
    let place = |promise: u64| ended.iter().position(|p| *p == promise).unwrap();
    // 650 ms at 8 Mbit/s are ten images: those went before anyone asked.
    assert!(place(promises[38]) <= 12 && place(promises[39]) <= 13, "{ended:?}");
}

#[test]
fn what_the_browser_needs_first_after_all_arrives_first() {
    let mut pair = geo();
    let late = Priority { urgency: 5, incremental: false };
    let ask = |exchange| Ask { exchange, priority: late, ..Ask::default() };
    let asked: Vec<StreamId> =
        (0..40).map(|n| pair.remote().ask(Duration::ZERO, ask(n), &get(&format!("/{n}.png")))).collect();
    pair.run(HALF * 2);
    let now = pair.now;
    let wanted = |event| if let Event::Asked { stream, .. } = event { Some(stream) } else { None };
    let exchanges: Vec<StreamId> = pair.events(GROUND).into_iter().filter_map(|(_, e)| wanted(e)).collect();
    assert_eq!(exchanges.len(), 40);
    for exchange in exchanges {
        pair.ground().answer(now, exchange, &ok(), Coding::Identity, None);
        pair.ground().write(exchange, Bytes::from(vec![0; 60_000]));
        pair.ground().finish(now, exchange, None);
    }
    pair.run(now + HALF);
    pair.remote().reorder(39, Priority { urgency: 1, incremental: false });
    pair.remote().reorder(2, Priority { urgency: 7, incremental: false });
    // What is not under way is nobody's concern.
    pair.remote().reorder(40, Priority { urgency: 0, incremental: false });
    pair.run(now + Duration::from_secs(30));
    let ended: Vec<StreamId> = pair
        .events(REMOTE)
        .into_iter()
        .filter_map(|(_, event)| if let Event::Ended { stream } = event { Some(stream) } else { None })
        .collect();
    let place = |n: usize| ended.iter().position(|stream| *stream == asked[n]).unwrap();
    // Two half trips at 8 Mbit/s are about eleven images: those went before ground heard of it.
    assert!(ended.len() == 40 && place(39) <= 12, "{ended:?}");
    assert!(place(39) < place(20) && place(2) < place(38), "what has gone out stays where it is: {ended:?}");
}

#[test]
fn one_users_bundle_does_not_delay_anothers_first_byte() {
    let mut pair = geo();
    let page = pair.remote().ask(Duration::ZERO, Ask { user: 1, ..Ask::default() }, &get("/"));
    pair.run(HALF * 2);
    let (_, far, _) = asked(&mut pair);
    let now = pair.now;
    let ground = pair.ground();
    ground.answer(now, far, &ok(), Coding::Identity, None);
    for n in 0..600 {
        // The greedy user's are urgent, too.
        let urgent = Priority { urgency: 0, incremental: n % 2 == 0 };
        let promise = ground.promise(now, far, &get(&format!("/{n}.png")), urgent).unwrap();
        let push = ground.push(promise).unwrap();
        ground.answer(now, push, &ok(), Coding::Identity, None);
        ground.write(push, Bytes::from(vec![0; 20_000]));
        ground.finish(now, push, None);
    }
    ground.write(far, Bytes::from(vec![0; 60_000]));
    ground.finish(now, far, None);
    pair.run(now + Duration::from_secs(2));
    let start = pair.now;
    let late = Priority { urgency: 7, incremental: false };
    let other = Ask { exchange: 2, user: 2, priority: late, ..Ask::default() };
    let other = pair.remote().ask(start, other, &get("/other"));
    pair.run(start + HALF + Duration::from_millis(5));
    let (asked_at, far, _) = asked(&mut pair);
    let now = pair.now;
    pair.ground().answer(now, far, &ok(), Coding::Identity, None);
    pair.ground().write(far, Bytes::from(vec![1; 5_000]));
    pair.ground().finish(now, far, None);
    pair.run(now + Duration::from_secs(3));
    let events = pair.events(REMOTE);
    let first = |of: StreamId| {
        events.iter().find(|(_, e)| matches!(e, Event::Body { stream, .. } if *stream == of)).unwrap().0
    };
    // Half a round trip, what may be ahead in the carrier (50 ms), and one grant of the other user.
    let delay = first(other) - asked_at;
    assert!(delay < HALF + Duration::from_millis(50 + 20), "{delay:?}");
    let pushed = |e: &&(Duration, Event)| matches!(e.1, Event::Body { stream, .. } if stream != page && stream != other);
    let ahead = events.iter().filter(pushed).take_while(|(at, _)| *at < first(other)).count();
    assert!(ahead > 100, "the bundle was under way");
}

#[test]
fn trailers_informational_heads_and_failures_arrive() {
    let mut pair = geo();
    let one = pair.remote().ask(Duration::ZERO, Ask::default(), &get("/1"));
    let two = pair.remote().ask(Duration::ZERO, Ask { exchange: 2, ..Ask::default() }, &get("/2"));
    pair.run(Duration::from_secs(1));
    let streams: Vec<StreamId> = pair
        .events(GROUND)
        .into_iter()
        .filter_map(|(_, e)| if let Event::Asked { stream, .. } = e { Some(stream) } else { None })
        .collect();
    let now = pair.now;
    let early = ResponseHead { status: StatusCode::EARLY_HINTS, fields: HeaderMap::new() };
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    let failure =
        Failure { side: Side::Origin, status: 502, token: "connection_refused".into(), detail: "no".into() };
    let ground = pair.ground();
    ground.inform(now, streams[0], &early);
    ground.answer(now, streams[0], &ok(), Coding::Identity, None);
    ground.finish(now, streams[0], Some(&trailers));
    ground.fail(streams[1], failure.clone());
    pair.run(Duration::from_secs(3));
    let events: Vec<Event> = pair.events(REMOTE).into_iter().map(|(_, event)| event).collect();
    assert!(events.contains(&Event::Informed { stream: one, head: early }));
    assert!(events.contains(&Event::Trailers { stream: one, fields: trailers }));
    assert!(events.contains(&Event::Failed { stream: two, failure }));
}

#[test]
fn a_tunnel_carries_bytes_before_and_after_it_stands() {
    let mut pair = geo();
    let near = pair.remote().open_tunnel(&Tunnel::to(1, 1, Class::Web, "site.test", 443));
    pair.remote().write(near, Bytes::from_static(b"early"));
    pair.run(Duration::from_secs(1));
    let events = pair.events(GROUND);
    let far = events
        .iter()
        .find_map(|(_, e)| match e {
            Event::TunnelAsked { stream, asked } if asked.host == "site.test" && asked.port == 443 => {
                Some(*stream)
            }
            _ => None,
        })
        .unwrap();
    assert_eq!(body(&events, far), b"early");
    pair.ground().accept_tunnel(far);
    pair.ground().write(far, Bytes::from_static(b"answer"));
    let now = pair.now;
    pair.ground().finish(now, far, None);
    pair.run(Duration::from_secs(3));
    let events = pair.events(REMOTE);
    assert_eq!(body(&events, near), b"answer");
    assert!(events.iter().any(|(_, e)| *e == Event::Ended { stream: near }));
}

#[test]
fn a_tunnel_that_shows_what_it_is_has_its_class_at_both_ends_once_ground_takes_marks() {
    let mut pair = geo();
    for (number, is_told) in [(1, false), (2, true)] {
        let near = pair.remote().open_tunnel(&Tunnel::to(number, 1, Class::Web, "site.test", 443));
        pair.remote().write(near, Bytes::from_static(b"hello"));
        pair.remote().tell_class(near, Class::Background);
        assert_eq!(pair.remote().class(near), Some(Class::Background));
        pair.run(pair.now + 3 * HALF);
        let events = pair.events(GROUND);
        let asked = events.iter().find_map(|(_, event)| match event {
            Event::TunnelAsked { stream, .. } => Some(*stream),
            _ => None,
        });
        let far = asked.expect("a tunnel");
        assert_eq!(body(&events, far), b"hello", "nothing else is the far side's");
        let class = if is_told { Class::Background } else { Class::Web };
        assert_eq!(pair.ground().class(far), Some(class));
        let classed = Event::Classed { stream: far, class: Class::Background };
        assert_eq!(events.iter().any(|(_, event)| *event == classed), is_told);
    }
}

/// What has come on a stream, and where it is marked as urgent.
fn marks(events: &[(Duration, Event)], of: StreamId) -> (Vec<u8>, Vec<usize>) {
    let (mut all, mut marks) = (Vec::new(), Vec::new());
    for (_, event) in events {
        match event {
            Event::Body { stream, bytes } if *stream == of => all.extend_from_slice(bytes),
            Event::Urgent { stream } if *stream == of => marks.push(all.len()),
            _ => {}
        }
    }
    (all, marks)
}

#[test]
fn urgent_bytes_of_a_tunnel_keep_their_mark_once_ground_has_said_that_it_takes_marks() {
    let mut pair = geo();
    for (number, places) in [(1, vec![]), (2, vec![6])] {
        let near = pair.remote().open_tunnel(&Tunnel::to(number, 1, Class::Web, "site.test", 21));
        let say = |session: &mut Session, id| {
            session.write(id, Bytes::from_static(b"before"));
            session.mark(id);
            session.write(id, Bytes::from_static(b"!after"));
        };
        say(pair.remote(), near);
        pair.run(pair.now + 3 * HALF);
        let events = pair.events(GROUND);
        let asked = events.iter().find_map(|(_, event)| match event {
            Event::TunnelAsked { stream, asked } => Some((*stream, asked.marked)),
            _ => None,
        });
        let (far, marked) = asked.expect("a tunnel");
        assert_eq!(marked, !places.is_empty());
        assert_eq!(marks(&events, far), (b"before!after".to_vec(), places.clone()));
        pair.ground().accept_tunnel(far);
        say(pair.ground(), far);
        pair.run(pair.now + 3 * HALF);
        assert_eq!(marks(&pair.events(REMOTE), near), (b"before!after".to_vec(), places));
    }
}

#[test]
fn an_urgent_exchange_overtakes_a_bulk_transfer_within_fifty_milliseconds_of_link_time() {
    let mut pair = geo();
    pair.remote().ask(Duration::ZERO, Ask { class: Class::Bulk, ..Ask::default() }, &get("/bulk"));
    pair.run(Duration::from_millis(400));
    let (_, bulk, _) = asked(&mut pair);
    let now = pair.now;
    pair.ground().answer(now, bulk, &ok(), Coding::Identity, None);
    pair.ground().write(bulk, Bytes::from(vec![0; 8_000_000]));
    pair.run(Duration::from_secs(2));
    let start = pair.now;
    let urgent = pair.remote().ask(start, Ask { exchange: 2, user: 1, ..Ask::default() }, &get("/urgent"));
    pair.run(start + HALF + Duration::from_millis(5));
    let (_, far, _) = asked(&mut pair);
    let now = pair.now;
    pair.ground().answer(now, far, &ok(), Coding::Identity, None);
    pair.ground().write(far, Bytes::from(vec![1; 5_000]));
    pair.ground().finish(now, far, None);
    pair.run(start + Duration::from_secs(3));
    let events = pair.events(REMOTE);
    let at = events.iter().find(|(_, e)| *e == Event::Ended { stream: urgent }).unwrap().0;
    assert!(at - start < HALF * 2 + Duration::from_millis(90), "{:?}", at - start);
}

#[test]
fn cancelling_an_exchange_tells_ground_and_leaves_no_stream() {
    let mut pair = geo();
    let ask = pair.remote().ask(Duration::ZERO, Ask::default(), &get("/"));
    pair.run(Duration::from_millis(400));
    let (_, stream, _) = asked(&mut pair);
    pair.remote().cancel(ask, code::CANCELLED);
    pair.run(Duration::from_secs(2));
    let events = pair.events(GROUND);
    assert!(events.iter().any(|(_, e)| *e == Event::Stopped { stream, code: code::CANCELLED }));
    pair.ground().cancel(stream, code::CANCELLED);
    pair.run(Duration::from_secs(3));
    assert!(!pair.remote().is_active() && !pair.ground().is_active());
}

#[test]
fn a_resumed_exchange_carries_offset_and_prefix() {
    let mut pair = geo();
    let resume = Resume { offset: 123_456, prefix: [9; 32] };
    pair.remote().ask(Duration::ZERO, Ask { resume: Some(resume), ..Ask::default() }, &get("/big"));
    pair.run(Duration::from_secs(1));
    let got = pair
        .events(GROUND)
        .into_iter()
        .find_map(|(_, e)| if let Event::Asked { resume, .. } = e { resume } else { None });
    assert_eq!(got, Some(resume));
}

#[test]
fn a_peer_that_breaks_the_protocol_ends_the_carrier_with_a_named_error() {
    let mut pair = geo();
    pair.run(Duration::from_secs(1));
    let stream = pair.ground().handle_opened(farhop_htotp::session::Direction::Both);
    let now = pair.now;
    pair.ground().handle_data(now, stream, Bytes::from_static(&[0x13, 1, 0]));
    let broken = pair
        .events(GROUND)
        .into_iter()
        .find_map(|(_, e)| if let Event::Broken(e) = e { Some(e.to_string()) } else { None });
    assert_eq!(broken.as_deref(), Some("frame 0x13 does not belong here"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the pieces in which the carrier delivers, both ends see the same.
    #[test]
    fn any_split_of_the_bytes_gives_the_same_result(piece in 1usize..50, sizes in proptest::collection::vec(0usize..3000, 1..6)) {
        let mut results = Vec::new();
        for piece in [usize::MAX, piece] {
            let mut pair = geo();
            pair.piece = piece;
            let asks: Vec<StreamId> = (0..sizes.len())
                .map(|n| pair.remote().ask(Duration::ZERO, Ask { exchange: n as u64, ..Ask::default() }, &get(&format!("/{n}"))))
                .collect();
            pair.run(Duration::from_secs(1));
            let asked: Vec<(StreamId, RequestHead)> = pair.events(GROUND).into_iter()
                .filter_map(|(_, e)| if let Event::Asked { stream, head, .. } = e { Some((stream, head)) } else { None }).collect();
            prop_assert_eq!(asked.len(), sizes.len());
            for (stream, head) in asked {
                let now = pair.now;
                let n: usize = head.path[1..].parse().unwrap();
                pair.ground().answer(now, stream, &ok(), Coding::Identity, None);
                pair.ground().promise(now, stream, &get(&format!("/{n}/nested")), Priority::default());
                pair.ground().write(stream, Bytes::from(vec![n as u8; sizes[n]]));
                pair.ground().finish(now, stream, None);
            }
            pair.run(Duration::from_secs(10));
            let events = pair.events(REMOTE);
            let bodies: Vec<Vec<u8>> = asks.iter().map(|id| body(&events, *id)).collect();
            let mut promised: Vec<String> = events.iter().filter_map(|(_, e)| if let Event::Promised { head, .. } = e { Some(head.url()) } else { None }).collect();
            promised.sort();
            for (n, size) in sizes.iter().enumerate() {
                prop_assert_eq!(&bodies[n], &vec![n as u8; *size]);
            }
            results.push((bodies, promised));
        }
        prop_assert_eq!(&results[0], &results[1]);
    }
}

#[test]
fn ground_says_in_its_settings_whether_it_makes_use_of_pages_that_the_remote_answers() {
    for held_pages in [true, false] {
        let mut pair =
            Pair::new(Duration::from_millis(300), None, Config { held_pages, ..Config::default() });
        assert!(!pair.remote().takes_held_pages());
        pair.run(Duration::from_secs(2));
        assert_eq!(pair.remote().takes_held_pages(), held_pages);
    }
}

#[test]
fn small_headers_go_to_who_has_said_that_it_takes_them() {
    let mut pair = geo();
    assert!(!pair.remote().takes_small_headers() && !pair.ground().takes_small_headers());
    pair.run(Duration::from_secs(2));
    assert!(pair.remote().takes_small_headers() && pair.ground().takes_small_headers());
}
