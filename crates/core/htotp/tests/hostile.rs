//! A peer that keeps to no rule: it never costs more than agreed, and what is wrong with one message does not
//! end the carrier for the others.

mod pair;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farhop_htotp::frame::{Class, Coding, Frame, FrameError, FrameReader, Hello, Priority, Tunnel, kind};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Config, Direction, Event, ROOM, Role, Session, Transmit, VERSION, code};
use farhop_htotp::{RequestHead, ResponseHead, varint};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use pair::{GROUND, Pair, REMOTE};

const NOW: Duration = Duration::ZERO;

fn session(role: Role) -> Session {
    Session::new(role, Config::default(), NOW)
}

fn hello() -> Bytes {
    Frame::Hello(Hello { versions: vec![VERSION], ..Hello::default() }).encode()
}

fn request() -> Bytes {
    // :method GET, :scheme http, :authority patched with "a.test", :path /.
    let section = Bytes::from_static(b"\x00\x00\x03\x3f\x14:authority\x0ca.test\x05");
    let (class, priority) = (Class::Web, Priority::default());
    Frame::Request { exchange: 1, user: 1, class, priority, resume: None, section }.encode()
}

fn head(path: &str) -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "a.test".into(),
        path: path.into(),
        fields: HeaderMap::new(),
    }
}

#[test]
fn a_tunnel_in_very_small_pieces_waits_before_it_takes_many_times_its_length() {
    let mut remote = session(Role::Remote);
    let id = remote.open_tunnel(&Tunnel::to(1, 1, Class::Web, "a.test", 443));
    let pieces = (1..).find(|_| !remote.write(id, Bytes::from_static(b"x"))).unwrap_or(0);
    assert!((100..1000).contains(&pieces), "{pieces}");
}

#[test]
fn a_body_in_very_small_pieces_waits_before_it_takes_many_times_its_length() {
    let mut remote = session(Role::Remote);
    let id = remote.ask(NOW, Ask::default(), &head("/upload"));
    let mut pieces = |size: usize| {
        let piece = Bytes::from(vec![b'x'; size]);
        (1..).find(|_| !remote.write(id, piece.clone())).unwrap_or(0)
    };
    let joined = pieces(1);
    assert!((ROOM / 2..ROOM).contains(&joined), "{joined}: a frame takes many of them");
    while let Some(transmit) = remote.poll_transmit(NOW) {
        if let Transmit::Write { stream, .. } = transmit {
            remote.handle_written(stream);
        }
    }
    assert!(events(&mut remote).contains(&Event::Drained { stream: id }));
    let mut remote = session(Role::Remote);
    let id = remote.ask(NOW, Ask::default(), &head("/upload"));
    let large = Bytes::from(vec![b'x'; 16 * 1024]);
    assert_eq!((1..).find(|_| !remote.write(id, large.clone())), Some(4));
}

fn events(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

/// Why the session gave its carrier up, if it has.
fn broken(session: &mut Session) -> Option<FrameError> {
    events(session)
        .into_iter()
        .find_map(|event| if let Event::Broken(why) = event { Some(why) } else { None })
}

/// Hands all writes to a carrier that takes them.
fn written(session: &mut Session) -> Vec<Transmit> {
    let mut all = Vec::new();
    while let Some(transmit) = session.poll_transmit(NOW) {
        if let Transmit::Write { stream, .. } = transmit {
            session.handle_written(stream);
        }
        all.push(transmit);
    }
    all
}

fn first(session: &mut Session, direction: Direction, bytes: Bytes) -> StreamId {
    let stream = session.handle_opened(direction);
    session.handle_data(NOW, stream, bytes);
    stream
}

#[test]
fn frames_that_are_never_finished_are_not_kept_without_end() {
    let mut ground = session(Role::Ground);
    let mut unfinished = BytesMut::new();
    varint::put(&mut unfinished, kind::REQUEST);
    varint::put(&mut unfinished, 1 << 20);
    unfinished.resize(1 << 20, 0);
    let unfinished = unfinished.freeze();
    for _ in 0..15 {
        let stream = first(&mut ground, Direction::Both, unfinished.clone());
        ground.handle_reset(stream, 0);
    }
    for _ in 0..15 {
        first(&mut ground, Direction::Both, unfinished.clone());
    }
    assert_eq!(broken(&mut ground), None);
    first(&mut ground, Direction::Both, unfinished.clone());
    first(&mut ground, Direction::Both, unfinished);
    assert_eq!(broken(&mut ground), Some(FrameError::Unfinished));
}

/// Ground with this many requests open whose heads count 512 KiB each, nearly; gives what came of the last.
fn with_large_heads(ground: &mut Session, count: usize) -> (StreamId, Vec<Event>) {
    let mut section = b"\x00\x00\x03\x3f\x14:authority\x0ca.test\x05\x3f\x02x".to_vec();
    let mut length = BytesMut::new();
    let value = 500 * 1024;
    varint::put(&mut length, value as u64 * 2);
    section.extend_from_slice(&length);
    section.resize(section.len() + value, b'v');
    let (class, priority, section) = (Class::Web, Priority::default(), Bytes::from(section));
    let frame = Frame::Request { exchange: 1, user: 1, class, priority, resume: None, section }.encode();
    let mut last = None;
    for _ in 0..count {
        let stream = first(ground, Direction::Both, frame.clone());
        last = Some((stream, events(ground)));
    }
    last.expect("at least one")
}

#[test]
fn large_heads_of_many_requests_are_refused_one_by_one_until_others_have_ended() {
    let mut ground = session(Role::Ground);
    let (open, heard) = with_large_heads(&mut ground, 65);
    assert!(matches!(heard[..], [Event::Asked { .. }]), "{heard:?}");
    let (refused, heard) = with_large_heads(&mut ground, 1);
    assert_eq!(heard, [], "no app hears of it, and the carrier lasts");
    let transmits = written(&mut ground);
    assert!(transmits.contains(&Transmit::Stop(refused, code::CANCELLED)));
    let answered = transmits.iter().find_map(|transmit| match transmit {
        Transmit::Write { stream, segments, end: true, .. } if *stream == refused => Some(segments.concat()),
        _ => None,
    });
    let mut answered = Bytes::from(answered.expect("a last word"));
    let frame = FrameReader::default().next(&mut answered).unwrap();
    assert!(matches!(frame, Some(Frame::Failure(failure)) if failure.status == 503));

    let small = first(&mut ground, Direction::Both, request());
    assert!(matches!(events(&mut ground)[..], [Event::Asked { stream, .. }] if stream == small));
    ground.handle_reset(open, code::CANCELLED);
    ground.abort(open);
    let (_, heard) = with_large_heads(&mut ground, 1);
    assert!(heard.iter().any(|event| matches!(event, Event::Asked { .. })), "{heard:?}");
}

#[test]
fn a_peer_that_asks_for_signs_of_life_and_takes_none_is_given_up() {
    let mut ground = session(Role::Ground);
    let control = first(&mut ground, Direction::Both, hello());
    let pings: Vec<u8> = Frame::Ping(varint::MAX).encode().repeat(1000);
    let mut sent = 0;
    while sent < 100_000 && broken(&mut ground).is_none() {
        ground.handle_data(NOW, control, Bytes::copy_from_slice(&pings));
        sent += 1000;
    }
    assert!((10_000..100_000).contains(&sent), "{sent} pings were kept for a peer that reads nothing");
    let mut reads = session(Role::Ground);
    let control = first(&mut reads, Direction::Both, hello());
    for _ in 0..100 {
        reads.handle_data(NOW, control, Bytes::copy_from_slice(&pings));
        written(&mut reads);
    }
    assert_eq!(broken(&mut reads), None);
}

#[test]
fn a_stream_that_its_opener_may_not_open_ends_the_carrier() {
    let push = Frame::Push { promise: 0 }.encode();
    for (role, direction, bytes, kind) in [
        (Role::Remote, Direction::Both, push.clone(), kind::PUSH),
        (Role::Remote, Direction::One, request(), kind::REQUEST),
        (Role::Ground, Direction::One, request(), kind::REQUEST),
        (Role::Ground, Direction::One, hello(), kind::HELLO),
        (Role::Ground, Direction::One, push, kind::PUSH),
    ] {
        let mut end = session(role);
        first(&mut end, direction, bytes);
        assert_eq!(broken(&mut end), Some(FrameError::Misplaced(kind)), "{role:?} {direction:?}");
    }
}

#[test]
fn hello_is_said_once_and_first() {
    let mut ground = session(Role::Ground);
    let control = first(&mut ground, Direction::Both, hello());
    assert_eq!(broken(&mut ground), None);
    ground.handle_data(NOW, control, hello());
    assert_eq!(broken(&mut ground), Some(FrameError::Misplaced(kind::HELLO)));

    let mut remote = session(Role::Remote);
    let Some(Transmit::Open(control, _)) = remote.poll_transmit(NOW) else { panic!("no control stream") };
    remote.handle_data(NOW, control, Frame::Ping(1).encode());
    assert_eq!(broken(&mut remote), Some(FrameError::Misplaced(kind::PING)));
}

#[test]
fn a_control_stream_that_is_stopped_or_reset_ends_the_carrier() {
    for stop in [true, false] {
        let mut ground = session(Role::Ground);
        let control = first(&mut ground, Direction::Both, hello());
        if stop {
            ground.handle_stopped(control, 0)
        } else {
            ground.handle_reset(control, 0)
        }
        assert_eq!(broken(&mut ground), Some(FrameError::Truncated));
    }
}

#[test]
fn a_stream_given_up_before_it_said_what_it_is_leaves_nothing() {
    let mut ground = session(Role::Ground);
    let stream = ground.handle_opened(Direction::Both);
    ground.handle_reset(stream, code::CANCELLED);
    assert_eq!(written(&mut ground), [Transmit::Reset(stream, code::CANCELLED)]);
    assert!(!ground.is_active());
    assert_eq!(events(&mut ground), []);
}

#[test]
fn a_stop_that_overtakes_its_request_is_heard_with_it() {
    let mut ground = session(Role::Ground);
    let stream = ground.handle_opened(Direction::Both);
    ground.handle_stopped(stream, code::CANCELLED);
    assert_eq!(events(&mut ground), []);
    ground.handle_data(NOW, stream, request());
    let heard = events(&mut ground);
    assert!(matches!(heard[0], Event::Asked { .. }));
    assert_eq!(heard[1..], [Event::Stopped { stream, code: code::CANCELLED }]);
}

#[test]
fn a_section_kept_before_hello_is_acknowledged_after_it() {
    let mut remote = session(Role::Remote);
    let mut asks = Vec::new();
    let mut fields = HeaderMap::new();
    fields.insert("user-agent", HeaderValue::from_static("worth keeping for the next request"));
    remote.ask(NOW, Ask::default(), &RequestHead { fields, ..head("/") });
    for transmit in written(&mut remote) {
        if let Transmit::Write { segments, .. } = transmit {
            asks.push(segments.concat());
        }
    }
    // The carrier lost the packet with the control stream: the exchange comes first.
    let mut ground = session(Role::Ground);
    first(&mut ground, Direction::Both, asks.pop().unwrap().into());
    assert_eq!(written(&mut ground), []);
    let control = first(&mut ground, Direction::Both, asks.pop().unwrap().into());
    let answer: Vec<u8> = written(&mut ground)
        .into_iter()
        .filter_map(|t| match t {
            Transmit::Write { stream, segments, .. } if stream == control => Some(segments.concat()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(answer.ends_with(&Frame::Saved(0).encode()), "{answer:?}");
}

#[test]
fn the_peer_does_not_choose_the_round_trip() {
    let mut remote = session(Role::Remote);
    let Some(Transmit::Open(control, _)) = remote.poll_transmit(NOW) else { panic!("no control stream") };
    let later = Duration::from_secs(3600);
    remote.handle_data(later, control, [hello(), Frame::Pong(0).encode()].concat().into());
    assert!(!events(&mut remote).iter().any(|event| matches!(event, Event::Pong(_))));
}

#[test]
fn an_informational_head_is_no_answer_and_an_answer_is_not_informational() {
    for (kind, code) in [(kind::RESPONSE, 100), (kind::INFORMATIONAL, 200), (kind::INFORMATIONAL, 101)] {
        let mut remote = session(Role::Remote);
        let stream = remote.ask(NOW, Ask::default(), &head("/"));
        // A literal ":status".
        let section = Bytes::from(format!("\0\x3f\x0e:status\x06{code}").into_bytes());
        let frame = match kind {
            kind::RESPONSE => Frame::Response { coding: Coding::Identity, resumed: None, section },
            _ => Frame::Informational(section),
        };
        remote.handle_data(NOW, stream, frame.encode());
        assert_eq!(broken(&mut remote), Some(FrameError::Malformed(kind)), "{code}");
    }
}

#[test]
fn a_head_that_the_peer_would_refuse_fails_alone() {
    let mut pair = Pair::new(Duration::from_millis(300), None, Config::default());
    let mut fields = HeaderMap::new();
    fields.insert("x-own", HeaderValue::from_maybe_shared(Bytes::from(vec![b'v'; 600 * 1024])).unwrap());
    let large = RequestHead { fields: fields.clone(), ..head("/") };
    let refused = pair.remote().ask(NOW, Ask::default(), &large);
    let asked = pair.remote().ask(NOW, Ask::default(), &head("/"));
    pair.run(Duration::from_secs(1));
    let stream = pair.events(GROUND).into_iter().find_map(|(_, event)| match event {
        Event::Asked { stream, head, .. } if head.path == "/" => Some(stream),
        _ => None,
    });
    let (stream, now) = (stream.unwrap(), pair.now);
    assert_eq!(pair.ground().promise(now, stream, &large, Priority::default()), None);
    pair.ground().answer(
        now,
        stream,
        &ResponseHead { status: StatusCode::OK, fields },
        Coding::Identity,
        None,
    );
    pair.ground().write(stream, Bytes::from_static(b"after the failure"));
    pair.ground().finish(now, stream, None);
    assert!(pair.events(GROUND).iter().any(|(_, e)| matches!(e, Event::Stopped { .. })), "the app goes on");
    pair.run(Duration::from_secs(2));
    let failed: Vec<(StreamId, u16)> = pair
        .events(REMOTE)
        .into_iter()
        .filter_map(|(_, event)| match event {
            Event::Failed { stream, failure } => Some((stream, failure.status)),
            Event::Broken(why) => panic!("{why}"),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [(refused, 431), (asked, 502)]);
}

#[test]
fn what_is_said_after_the_last_word_stays_here() {
    let mut ground = session(Role::Ground);
    let stream = first(&mut ground, Direction::Both, request());
    ground.answer(
        NOW,
        stream,
        &ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() },
        Coding::Identity,
        None,
    );
    ground.finish(NOW, stream, None);
    let before = ground.queued(stream);
    ground.write(stream, Bytes::from_static(b"late"));
    ground.finish(NOW, stream, None);
    assert_eq!(ground.promise(NOW, stream, &head("/late"), Priority::default()), None);
    assert_eq!(ground.queued(stream), before);
}
