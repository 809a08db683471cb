//! For fuzzing: a carrier that delivers anything, in any order, to a session of either role whose app does a
//! little of everything. The session must take it without panic and give back as much as it was given.

use std::time::Duration;

use bytes::Bytes;
use http::header::UPGRADE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::{
    Ask, Config, Direction, Event, Kind, MOST_CONTROL, MOST_HEADS, MOST_UNFINISHED, Role, Session, Transmit,
    code,
};
use crate::frame::{Class, Coding, Frame, Hello, Priority, Tunnel, Validating, Verdict};
use crate::head::{RequestHead, ResponseHead};
use crate::journal::Hearing;
use crate::scheduler::StreamId;

/// Steps that one input may take: longer ones find nothing more.
const MOST_STEPS: usize = 2_000;

/// The first byte chooses the role and whether the carrier takes writes; then each step is a byte, of which the
/// low three bits say what happens and the others on which stream. Data is a length byte and as many bytes.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let [setup, steps @ ..] = data else { return };
    let role = if setup & 1 == 0 { Role::Ground } else { Role::Remote };
    let mut driver = Driver::new(role, setup & 2 == 0);
    let mut input = steps;
    for _ in 0..MOST_STEPS {
        let [step, rest @ ..] = input else { break };
        input = driver.step(*step, rest);
        driver.settle();
    }
    driver.check();
}

struct Driver {
    session: Session,
    streams: Vec<StreamId>,
    takes: bool,
    now: Duration,
}

impl Driver {
    fn new(role: Role, takes: bool) -> Self {
        let session = Session::new(role, Config::default(), Duration::ZERO);
        let mut driver = Driver { session, streams: Vec::new(), takes, now: Duration::ZERO };
        if role == Role::Remote {
            let asked = driver.session.ask(driver.now, Ask::default(), &request());
            if let Some(nature) = driver.session.nature(asked) {
                driver.session.rejoin(&nature, 1, 1, Hearing::Body);
            }
            driver.session.open_tunnel(&Tunnel::to(1, 1, Class::Web, "site.test", 443));
            let mut socket = request();
            socket.fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
            driver.session.ask(driver.now, Ask::default(), &socket);
        }
        driver.settle();
        if role == Role::Remote {
            // Otherwise nearly every input ends at the control stream's first frame.
            let hello = Hello { versions: vec![super::VERSION], ..Hello::default() };
            driver.session.handle_data(driver.now, driver.streams[0], Frame::Hello(hello).encode());
        }
        driver
    }

    fn step<'a>(&mut self, step: u8, mut rest: &'a [u8]) -> &'a [u8] {
        let (now, choice) = (self.now, usize::from(step >> 3));
        if step & 7 == 0 {
            let direction = if choice & 1 == 0 { Direction::Both } else { Direction::One };
            self.streams.push(self.session.handle_opened(direction));
            return rest;
        }
        let Some(id) = self.streams.get(choice % self.streams.len().max(1)).copied() else { return rest };
        match step & 7 {
            1..=3 => {
                if let [length, after @ ..] = rest {
                    let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
                    self.session.handle_data(now, id, Bytes::copy_from_slice(bytes));
                    rest = after;
                }
            }
            4 => self.session.handle_end(id),
            5 => self.session.handle_reset(id, code::CANCELLED),
            6 => self.session.handle_stopped(id, code::CANCELLED),
            _ => self.now += Duration::from_millis(400),
        }
        rest
    }

    /// Does what the session wants, and what an app would.
    fn settle(&mut self) {
        while let Some(transmit) = self.session.poll_transmit(self.now) {
            match transmit {
                Transmit::Open(id, _) => self.streams.push(id),
                Transmit::Write { stream, .. } if self.takes => self.session.handle_written(stream),
                _ => {}
            }
        }
        while let Some(event) = self.session.poll_event() {
            self.answer(event);
        }
        let _ = self.session.next_wakeup(self.now);
    }

    fn answer(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Asked { stream, head, .. } => {
                if let Some(promise) = self.session.promise(now, stream, &head, Priority::default())
                    && let Some(push) = self.session.push(promise)
                {
                    self.session.finish(now, push, None);
                }
                let status = if head.upgrades() { StatusCode::SWITCHING_PROTOCOLS } else { StatusCode::OK };
                let ok = ResponseHead { status, fields: head.fields };
                self.session.answer(now, stream, &ok, Coding::Identity, None);
                self.session.finish(now, stream, None);
            }
            Event::TunnelAsked { stream, .. } => self.session.accept_tunnel(stream),
            Event::Rejoin { stream, position, .. } => {
                let nature = self.streams.iter().find_map(|id| self.session.nature(*id));
                match (position % 3, nature) {
                    (0, Some(nature)) => {
                        self.session.accept_rejoin(stream, &nature, position, Hearing::Body);
                    }
                    (1, _) => self.session.refuse_rejoin(stream, Verdict::NeverCame),
                    _ => self.session.refuse_rejoin(stream, Verdict::NotKept),
                }
            }
            Event::Rejoined { stream, verdict: Verdict::NeverCame } => {
                self.session.ask_again(now, stream, Ask::default(), &request());
            }
            Event::Body { stream, bytes } => {
                self.session.taken(1, 1, 1000 * bytes.len());
                self.session.write(stream, bytes);
            }
            Event::Promised { promise, .. }
            | Event::Validating { validating: Validating { promise, .. }, .. } => {
                self.session.refuse_promises(promise..=promise);
            }
            Event::Ended { stream } | Event::Reset { stream, .. } | Event::Stopped { stream, .. } => {
                self.session.cancel(stream, code::CANCELLED);
            }
            _ => {}
        }
    }

    fn check(&self) {
        let held_back = |stream: &super::Stream| stream.held_back.as_ref().map_or(0, |held| held.size());
        let held: usize =
            self.session.streams.values().map(|stream| stream.reader.held() + held_back(stream)).sum();
        assert_eq!(held, self.session.unfinished, "bytes of unfinished frames are miscounted");
        let heads: usize = self.session.streams.values().map(|stream| stream.head).sum();
        assert_eq!(heads, self.session.heads, "heads of open requests are miscounted");
        assert!(heads <= MOST_HEADS);
        // One piece of input may pass a bound before it is noticed.
        assert!(held <= MOST_UNFINISHED + 256);
        let control = self.session.control.map_or(0, |control| self.session.queued(control));
        assert!(control <= MOST_CONTROL + 64, "{control} bytes wait on the control stream");
        let unknown = |id: &StreamId| {
            self.session
                .streams
                .get(id)
                .is_some_and(|s| s.kind == Kind::Unknown && !s.writing && s.phase == super::Phase::Done)
        };
        assert!(!self.streams.iter().any(unknown), "a stream that is over is still there");
    }
}

fn request() -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "site.test".into(),
        path: "/".into(),
        fields: HeaderMap::new(),
    }
}
