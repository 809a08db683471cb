//! A session as text: what crosses a carrier line by line, and what either end makes of it.
//!
//! `> 3 both` the remote opens stream 3 · `> 3 1105…` it writes · `> 3 end`, `> 3 reset 16`, `> 3 stop 16` ·
//! `<` the same from ground. After an empty line: what each end heard.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{
    Class, Coding, Failure, Frame, FrameReader, Hello, Priority, Resume, Side, Tunnel, Validating, Verdict,
    kind,
};
use farhop_htotp::journal::{Hearing, Said};
use farhop_htotp::mirror::{BodyHash, Bound, Entry, HeldBody, Position, Validators, Word};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Config, Direction, Event, Role, Session, Transmit, code};
use farhop_htotp::{RequestHead, ResponseHead};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

const REMOTE: usize = 0;
const GROUND: usize = 1;

fn session(role: Role) -> Session {
    let hello = Hello {
        versions: Vec::new(),
        epoch: 1_700_000_000,
        profile: "geo-hylas2".into(),
        agent: format!("farhop {role:?}"),
    };
    Session::new(role, Config { hello, ..Config::default() }, Duration::ZERO)
}

/// Two sessions over a carrier that loses nothing and writes down everything.
struct Tape {
    ends: [Session; 2],
    ids: [BTreeMap<StreamId, usize>; 2],
    numbers: [BTreeMap<usize, StreamId>; 2],
    opened: usize,
    now: Duration,
    wire: String,
}

impl Tape {
    fn new() -> Self {
        Tape {
            ends: [session(Role::Remote), session(Role::Ground)],
            ids: Default::default(),
            numbers: Default::default(),
            opened: 0,
            now: Duration::ZERO,
            wire: String::new(),
        }
    }

    fn note(&mut self, from: usize, stream: usize, what: &str) {
        writeln!(self.wire, "{} {stream} {what}", ['>', '<'][from]).expect("a string takes all");
    }

    fn join(&mut self, end: usize, id: StreamId, number: usize) {
        self.ids[end].insert(id, number);
        self.numbers[end].insert(number, id);
    }

    /// The remote says what this version never does.
    fn insert(&mut self, stream: usize, frame: &Frame) {
        let bytes = frame.encode();
        self.note(REMOTE, stream, &bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        self.ends[GROUND].handle_data(self.now, self.numbers[GROUND][&stream], bytes);
    }

    /// Lets everything cross.
    fn settle(&mut self) {
        let mut moved = true;
        while moved {
            moved = false;
            for from in [REMOTE, GROUND] {
                while let Some(transmit) = self.ends[from].poll_transmit(self.now) {
                    self.transmit(from, transmit);
                    moved = true;
                }
            }
        }
    }

    fn transmit(&mut self, from: usize, transmit: Transmit) {
        let (to, now) = (1 - from, self.now);
        let there = |tape: &Tape, id| {
            let number = tape.ids[from][&id];
            (number, tape.numbers[to][&number])
        };
        match transmit {
            Transmit::Open(id, direction) => {
                let number = self.opened;
                self.opened += 1;
                self.join(from, id, number);
                let other = self.ends[to].handle_opened(direction);
                self.join(to, other, number);
                self.note(from, number, if direction == Direction::Both { "both" } else { "one" });
            }
            Transmit::Write { stream, segments, end, .. } => {
                let (number, other) = there(self, stream);
                let bytes = segments.concat();
                if !bytes.is_empty() {
                    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                    self.note(from, number, &hex);
                    self.ends[to].handle_data(now, other, bytes.into());
                }
                if end {
                    self.note(from, number, "end");
                    self.ends[to].handle_end(other);
                }
                self.ends[from].handle_written(stream);
            }
            Transmit::Reset(id, code) => {
                let (number, other) = there(self, id);
                self.note(from, number, &format!("reset {code}"));
                self.ends[to].handle_reset(other, code);
            }
            Transmit::Stop(id, code) => {
                let (number, other) = there(self, id);
                self.note(from, number, &format!("stop {code}"));
                self.ends[to].handle_stopped(other, code);
            }
            Transmit::Probe | Transmit::Datagram(_) => {}
        }
    }

    /// Ground's name of a stream that the remote opened.
    fn ground(&self, remote: StreamId) -> StreamId {
        self.numbers[GROUND][&self.ids[REMOTE][&remote]]
    }

    fn ask(&mut self, ask: Ask, head: &RequestHead) -> StreamId {
        let id = self.ends[REMOTE].ask(self.now, ask, head);
        self.settle();
        self.ground(id)
    }
}

fn fields(all: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("plain text"))
    };
    all.iter().map(field).collect()
}

fn get(authority: &str, path: &str, more: &[(&'static str, &str)]) -> RequestHead {
    let browser = [
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36"),
        ("accept", "*/*"),
        ("accept-encoding", "gzip, deflate"),
    ];
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: authority.into(),
        path: path.into(),
        fields: fields(&[&browser[..], more].concat()),
    }
}

fn response(status: StatusCode, more: &[(&'static str, &str)]) -> ResponseHead {
    ResponseHead { status, fields: fields(more) }
}

/// A session that has something of everything.
pub(crate) fn record() -> String {
    let mut tape = Tape::new();
    tape.settle();
    tape.insert(0, &Frame::Settings(vec![(33, 7)]));
    let cookie = [("cookie", "session=0123456789abcdef")];
    let page = tape.ask(Ask { exchange: 1, user: 1, ..Ask::default() }, &get("site.test", "/", &cookie));
    let now = tape.now;
    let html = response(StatusCode::OK, &[("content-type", "text/html"), ("etag", "\"5f3a-61b2\"")]);
    let ground = &mut tape.ends[GROUND];
    ground.inform(now, page, &response(StatusCode::EARLY_HINTS, &[("link", "</style.css>; rel=preload")]));
    ground.answer(now, page, &html, Coding::Zstd, None);
    let style = get("site.test", "/style.css", &[cookie[0], ("referer", "http://site.test/")]);
    let image = get("cdn.test", "/logo.png", &[("referer", "http://site.test/")]);
    let held = get("site.test", "/held.css", &[("referer", "http://site.test/")]);
    let [style, image] = [style, image].map(|head| ground.promise(now, page, &head, Priority::default()));
    let held =
        ground.validate(page, (1, 9), &held, Priority::default()).and_then(|promise| ground.push(promise));
    let held = held.expect("nobody refused it");
    ground.answer(now, held, &response(StatusCode::NOT_MODIFIED, &[]), Coding::Identity, None);
    ground.finish(now, held, None);
    ground.write(page, Bytes::from_static(b"not really zstd"));
    ground.finish(now, page, Some(&fields(&[("x-sum", "7")])));
    let push = style.and_then(|promise| ground.push(promise)).expect("nobody refused it");
    ground.answer(
        now,
        push,
        &response(StatusCode::OK, &[("content-type", "text/css")]),
        Coding::Identity,
        None,
    );
    let font = get("site.test", "/font.woff2", &[cookie[0], ("referer", "http://site.test/style.css")]);
    let font = ground.promise(now, push, &font, Priority::default()).and_then(|promise| ground.push(promise));
    ground.write(push, Bytes::from_static(b"body{}"));
    ground.finish(now, push, None);
    let font = font.expect("nobody refused it");
    ground.answer(now, font, &response(StatusCode::NOT_FOUND, &[]), Coding::Identity, None);
    ground.finish(now, font, None);
    tape.settle();
    let image = image.expect("the page is open");
    let entry = Entry { number: 1, user: Some(1), bound: Bound::default(), fresh_s: 3600, fingerprint: 7 };
    let validators = Validators { number: 1, tag: "\"5f3a-61b2\"".into(), modified: 784_111_777 };
    let stored = [Word::Stored(vec![entry]), Word::Validators(vec![validators])];
    let more = [Word::Evicted(vec![1]), Word::Log(Position { log: 9, next: 4 }), Word::Summary(vec![7])];
    for word in [Word::Reset].into_iter().chain(stored).chain(more) {
        tape.ends[REMOTE].tell_mirror(word);
    }
    let body = HeldBody { user: Some(1), hash: BodyHash([7; BodyHash::LENGTH]) };
    for word in [Word::Holds(vec![body]), Word::Lacks(vec![body])] {
        tape.ends[REMOTE].tell_mirror(word);
    }
    tape.ends[REMOTE].tell_used(image..=image);
    tape.ends[REMOTE].tell_answered(1, &[(1, 650)]);
    tape.ends[GROUND].tell_heard(Position { log: 9, next: 3 });
    tape.ends[GROUND].tell_differ(1, vec![0]);
    tape.ends[GROUND].offer_dictionary(BodyHash([9; BodyHash::LENGTH]), 9_000);
    tape.ends[REMOTE].want(image, Priority::default());
    tape.ends[REMOTE].refuse_promises(image..=image);

    // An upload, answered while it is under way; a download resumed; a failure; one given up.
    let mut post = get("site.test", "/upload", &cookie);
    post.method = Method::POST;
    let upload = tape.ends[REMOTE].ask(now, Ask { exchange: 2, user: 1, ..Ask::default() }, &post);
    tape.ends[REMOTE].write(upload, Bytes::from_static(b"part of it"));
    tape.settle();
    let far = tape.ground(upload);
    tape.ends[GROUND].answer(now, far, &response(StatusCode::CONFLICT, &[]), Coding::Identity, None);
    tape.ends[GROUND].finish(now, far, None);
    tape.ends[GROUND].stop(far, code::CANCELLED);
    tape.settle();
    let resume = Some(Resume { offset: 70_000, prefix: [0xab; 32] });
    let ask = Ask { exchange: 3, user: 1, class: Class::Bulk, resume, ..Ask::default() };
    let big = tape.ask(ask, &get("site.test", "/big", &cookie));
    tape.ends[GROUND].answer(now, big, &html, Coding::Identity, Some(70_000));
    tape.ends[GROUND].abort(big);
    let refused = tape.ask(Ask { exchange: 4, user: 2, ..Ask::default() }, &get("gone.test", "/", &[]));
    let detail = "gone.test:80 refused the connection".into();
    let failure = Failure { side: Side::Origin, status: 502, token: "connection_refused".into(), detail };
    tape.ends[GROUND].fail(refused, failure);
    let given_up =
        tape.ends[REMOTE].ask(now, Ask { exchange: 5, ..Ask::default() }, &get("slow.test", "/", &[]));
    tape.settle();
    tape.ends[REMOTE].cancel(given_up, code::CANCELLED);

    let tunnel = tape.ends[REMOTE].open_tunnel(&Tunnel::to(6, 1, Class::Interactive, "site.test", 443));
    tape.ends[REMOTE].write(tunnel, Bytes::from_static(b"early"));
    tape.settle();
    let far = tape.ground(tunnel);
    tape.ends[GROUND].accept_tunnel(far);
    tape.ends[GROUND].write(far, Bytes::from_static(b"answer"));
    tape.ends[GROUND].finish(now, far, None);
    tape.ends[REMOTE].mark(tunnel);
    tape.ends[REMOTE].tell_class(tunnel, Class::Interactive);
    tape.ends[REMOTE].write(tunnel, Bytes::from_static(b"!"));
    tape.ends[REMOTE].finish(now, tunnel, None);
    tape.settle();

    // A connection prepared, and a WebSocket over it.
    tape.ends[REMOTE].prepare(1, "https", "live.test", 443);
    let mut socket =
        get("live.test", "/socket", &[("upgrade", "websocket"), ("sec-websocket-version", "13")]);
    socket.scheme = "https".into();
    let socket = tape.ends[REMOTE].ask(now, Ask { exchange: 7, user: 1, ..Ask::default() }, &socket);
    tape.settle();
    let far = tape.ground(socket);
    let switched = response(StatusCode::SWITCHING_PROTOCOLS, &[("upgrade", "websocket")]);
    tape.ends[GROUND].answer(now, far, &switched, Coding::Identity, None);
    tape.ends[GROUND].write(far, Bytes::from_static(b"first word"));
    tape.settle();
    tape.ends[REMOTE].write(socket, Bytes::from_static(b"reply"));
    tape.ends[REMOTE].finish(now, socket, None);
    tape.settle();
    tape.ends[GROUND].abort(far);
    tape.settle();

    // So many heads that the first are retired.
    for n in 0..12u64 {
        let own: String = (0..24).map(|i| char::from(b'a' + ((i * (n + 3) + n) % 26) as u8)).collect();
        let head = get("site.test", "/many", &[("x-own", &own)]);
        tape.ask(Ask { exchange: 10 + n, user: 1, ..Ask::default() }, &head);
    }
    // Another origin of the same user.
    tape.ask(Ask { exchange: 30, user: 1, ..Ask::default() }, &get("cdn.test", "/far.js", &cookie));
    // What was under way on another carrier: it goes on, cannot, or never came.
    let slow = tape.ends[REMOTE].ask(
        now,
        Ask { exchange: 31, user: 1, ..Ask::default() },
        &get("slow.test", "/", &[]),
    );
    tape.settle();
    let there = tape.ground(slow);
    let natures = [tape.ends[REMOTE].nature(slow), tape.ends[GROUND].nature(there)];
    let [here, there] = natures.map(|nature| nature.expect("an exchange"));
    let mut rejoin = || {
        let id = tape.ends[REMOTE].rejoin(&here, 6, 1234, Hearing::Body);
        tape.settle();
        tape.ground(id)
    };
    let [on, lost, new] = [rejoin(), rejoin(), rejoin()];
    let ground = &mut tape.ends[GROUND];
    assert!(ground.accept_rejoin(on, &there, 1, Hearing::Done));
    ground.say(now, on, &Said::Bytes(Bytes::from_static(b"the rest")));
    ground.say(now, on, &Said::Ended(None));
    ground.refuse_rejoin(lost, Verdict::NotKept);
    ground.refuse_rejoin(new, Verdict::NeverCame);
    ground.taken(31, 1, 1 << 20);
    tape.ends[REMOTE].taken(31, 1243, 1 << 20);
    tape.ends[REMOTE].reorder(31, Priority { urgency: 1, incremental: false });
    tape.ends[REMOTE].leave(1, "18a5-000000000000001f");
    tape.ends[REMOTE].weigh(2, 200);
    let report = farhop_htotp::frame::PathReport { arriving: 7_912_024, lost: 100 };
    tape.ends.iter_mut().for_each(|end| end.report_path(report));
    tape.settle();
    tape.now = Duration::from_secs(60);
    tape.settle();
    tape.ends[GROUND].drain();
    tape.settle();
    let heard = replay(&tape.wire);
    format!("{}\n{heard}", tape.wire)
}

fn unhex(text: &str) -> Option<Bytes> {
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>().map(Bytes::from)
}

/// The lines of one direction: stream and what happens on it.
fn side(wire: &str, arrow: char) -> impl Iterator<Item = (usize, &str)> {
    wire.lines().filter_map(move |line| {
        let (number, what) = line.strip_prefix(arrow)?.trim_start().split_once(' ')?;
        Some((number.parse().ok()?, what))
    })
}

/// Hands one direction to an end; gives each event with the stream's number.
fn listen(
    end: &mut Session,
    ids: &mut BTreeMap<usize, StreamId>,
    wire: &str,
    arrow: char,
) -> Vec<(usize, Event)> {
    let mut heard = Vec::new();
    for (number, what) in side(wire, arrow) {
        match (what.split_once(' '), what) {
            (None, "both") => drop(ids.insert(number, end.handle_opened(Direction::Both))),
            (None, "one") => drop(ids.insert(number, end.handle_opened(Direction::One))),
            (None, "end") => end.handle_end(ids[&number]),
            (Some(("reset", code)), _) => end.handle_reset(ids[&number], code.parse().expect("a code")),
            (Some(("stop", code)), _) => end.handle_stopped(ids[&number], code.parse().expect("a code")),
            _ => {
                let bytes = unhex(what).unwrap_or_else(|| panic!("{what:?} is not hexadecimal"));
                end.handle_data(Duration::ZERO, ids[&number], bytes);
            }
        }
        heard.extend(std::iter::from_fn(|| end.poll_event()).map(|event| (number, event)));
        while end.poll_transmit(Duration::ZERO).is_some() {}
    }
    heard
}

/// What ground, then remote make of the bytes.
pub(crate) fn replay(wire: &str) -> String {
    let mut heard = String::new();
    let mut say = |who: &str, number: usize, event: &Event| {
        writeln!(heard, "{who} {number} {}", words(event)).expect("a string takes all");
    };
    let (mut ground, mut ids) = (session(Role::Ground), BTreeMap::new());
    let (mut remote, mut opened) = (session(Role::Remote), BTreeMap::new());
    if let Some(Transmit::Open(control, _)) = remote.poll_transmit(Duration::ZERO) {
        opened.insert(0, control);
    }
    for (number, event) in listen(&mut ground, &mut ids, wire, '>') {
        say("ground", number, &event);
        // The remote of this replay asks what the recorded one asked: its promises refer to it.
        match event {
            Event::Asked { head, .. } => {
                opened.insert(number, remote.ask(Duration::ZERO, Ask::default(), &head));
            }
            Event::TunnelAsked { asked, .. } => {
                opened.insert(number, remote.open_tunnel(&asked));
            }
            Event::Rejoin { carrier, position, .. } => {
                let nature = opened.values().find_map(|id| remote.nature(*id)).expect("asked before");
                opened.insert(number, remote.rejoin(&nature, carrier, position, Hearing::Body));
            }
            _ => {}
        }
    }
    for (number, event) in listen(&mut remote, &mut opened, wire, '<') {
        say("remote", number, &event);
    }
    heard
}

/// An event in words that do not change with the types behind it.
fn words(event: &Event) -> String {
    let request = |head: &RequestHead| format!("{} {}{}", head.method, head.url(), listed(&head.fields));
    let response = |head: &ResponseHead| format!("{}{}", head.status.as_u16(), listed(&head.fields));
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let order = |p: &Priority| format!("u={}{}", p.urgency, if p.incremental { ", i" } else { "" });
    match event {
        Event::Hello(hello) => {
            format!("hello {:?} {} {:?} {:?}", hello.versions, hello.epoch, hello.profile, hello.agent)
        }
        Event::Asked { exchange, user, class, priority, resume, head, .. } => {
            let from = resume.map_or(String::new(), |r| format!(" from {} ({:02x}…)", r.offset, r.prefix[0]));
            let class = *class as u8;
            format!(
                "asked {exchange} of user {user}, class {class}, {}{from}: {}",
                order(priority),
                request(head)
            )
        }
        Event::Informed { head, .. } => format!("informed {}", response(head)),
        Event::Answered { head, coding, resumed, .. } => {
            let coding = match coding {
                Coding::Identity => 0,
                Coding::Zstd => 1,
                Coding::Dictionary(_) => 2,
                Coding::Delta(_) => 3,
                Coding::Brotli => 4,
                Coding::Gzip => 5,
            };
            format!("answered in coding {coding}, resumed at {resumed:?}: {}", response(head))
        }
        Event::Promised { promise, priority, head, .. } => {
            format!("promised {promise}, {}: {}", order(priority), request(head))
        }
        Event::Validating { validating: Validating { promise, entry, .. }, .. } => {
            format!("validating entry {entry} for {promise}")
        }
        Event::Pushed { promise, .. } => format!("pushed {promise}"),
        Event::Unwanted { promises } if promises.start() == promises.end() => {
            format!("unwanted {}", promises.start())
        }
        Event::Unwanted { promises } => format!("unwanted {} to {}", promises.start(), promises.end()),
        Event::Used { promises } => format!("used {} to {}", promises.start(), promises.end()),
        Event::AnsweredHere { page, entries } => format!("answered of page {page}: {entries:?}"),
        Event::Wanted { promise, priority } => format!("wanted {promise}, {}", order(priority)),
        Event::Prepare { user, scheme, host, port } => {
            format!("prepare {scheme}://{host}:{port} for user {user}")
        }
        Event::Left { user, connection } => format!("left {connection} of user {user}"),
        Event::Released { .. } => "released".into(),
        Event::Mirror(word) => format!("mirror {word:?}"),
        Event::Heard(Position { log, next }) => format!("heard log {log} before {next}"),
        Event::Differ { of, buckets } => format!("{buckets:?} of {of} differ"),
        Event::Dictionary { hash, length } => format!("dictionary {:02x}… of {length} bytes", hash.0[0]),
        Event::Body { bytes, .. } => format!("body {:?}", text(bytes)),
        Event::Trailers { fields, .. } => format!("trailers{}", listed(fields)),
        Event::Ended { .. } => "ended".into(),
        Event::Failed { failure, .. } => format!("failed at side {}: {failure}", failure.side as u8),
        Event::Reset { code, .. } => format!("reset {code}"),
        Event::Stopped { code, .. } => format!("stopped {code}"),
        Event::TunnelAsked { asked: Tunnel { tunnel, user, class, host, port, .. }, .. } => {
            format!("tunnel {tunnel} of user {user}, class {}, to {host}:{port}", *class as u8)
        }
        Event::TunnelOpened { .. } => "tunnel opened".into(),
        Event::Urgent { .. } => "urgent".into(),
        Event::Classed { class, .. } => format!("of class {}", *class as u8),
        Event::Rejoin { carrier, exchange, position, .. } => {
            format!("rejoin {exchange} of carrier {carrier} at {position}")
        }
        Event::Rejoined { verdict, .. } => format!("rejoined: {verdict:?}"),
        Event::Taken { exchange, position } => format!("taken {exchange} up to {position}"),
        Event::Drained { .. } => "room".into(),
        Event::PathReported(report) => {
            format!("{} bit/s arrive, {} of 10,000 lost", report.arriving, report.lost)
        }
        Event::Pong(_) => "pong".into(),
        Event::Drain => "drain".into(),
        Event::Silent => "silent".into(),
        Event::Back { silence } => format!("back after {silence:?}"),
        Event::Dead => "dead".into(),
        Event::Broken(why) => format!("broken: {why}"),
    }
}

fn listed(fields: &HeaderMap) -> String {
    fields
        .iter()
        .map(|(name, value)| format!(" | {name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect()
}

/// The types of all frames in a recording.
pub(crate) fn kinds(recording: &str) -> BTreeSet<u64> {
    let wire = recording.split("\n\n").next().unwrap_or_default();
    let mut kinds = BTreeSet::new();
    for arrow in ['>', '<'] {
        let mut readers: BTreeMap<usize, FrameReader> = BTreeMap::new();
        for (number, what) in side(wire, arrow) {
            let Some(mut bytes) = unhex(what) else { continue };
            while let Ok(Some(frame)) = readers.entry(number).or_default().next(&mut bytes) {
                kinds.insert(frame.kind());
            }
        }
    }
    assert!(kinds.contains(&kind::HELLO), "no recording: {recording:.40}");
    kinds
}
