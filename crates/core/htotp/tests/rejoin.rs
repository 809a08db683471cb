//! Exchanges and tunnels that go on on a second carrier, both carriers in virtual time: what was said before the first was
//! lost, and was not heard, is said again, and nothing else is.

mod pair;

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, FrameError, Tunnel, Verdict};
use farhop_htotp::journal::{Hearing, Journal, Said};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Event, Nature};
use farhop_htotp::{RequestHead, ResponseHead};
use http::{HeaderMap, Method, StatusCode};
use pair::{GROUND, HALF, Pair, REMOTE, geo};
use proptest::prelude::*;

/// What the first carrier is called.
const NAME: u64 = 1;

fn request(method: Method) -> RequestHead {
    let (scheme, authority, path) = ("http".into(), "site.test".into(), "/".into());
    RequestHead { method, scheme, authority, path, fields: HeaderMap::new() }
}

fn ok() -> Said {
    let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
    Said::Answered { head, coding: Coding::Identity, resumed: None }
}

/// One end of an exchange: what an app keeps of it.
struct Side {
    end: usize,
    stream: StreamId,
    nature: Nature,
    journal: Journal,
    heard: Vec<u8>,
    heads: usize,
}

impl Side {
    fn new(pair: &mut Pair, end: usize, stream: StreamId) -> Side {
        let session = if end == REMOTE { pair.remote() } else { pair.ground() };
        let hearing = if end == REMOTE { Hearing::Head } else { Hearing::Body };
        let nature = session.nature(stream).expect("an exchange or a tunnel");
        Side { end, stream, nature, journal: Journal::new(hearing), heard: Vec::new(), heads: 0 }
    }

    fn say(&mut self, pair: &mut Pair, said: Said) {
        let now = pair.now;
        let session = if self.end == REMOTE { pair.remote() } else { pair.ground() };
        session.say(now, self.stream, &said);
        self.journal.say(said);
    }

    /// Takes what has come; gives how the end's other events read.
    fn hear(&mut self, pair: &mut Pair) -> Vec<Event> {
        let mut others = Vec::new();
        for (_, event) in pair.events(self.end) {
            match event {
                Event::Answered { stream, .. } if stream == self.stream => {
                    self.heads += 1;
                    self.journal.heard_head(true);
                }
                Event::TunnelOpened { stream } if stream == self.stream => self.journal.heard_head(true),
                Event::Body { stream, bytes } if stream == self.stream => {
                    self.journal.heard_bytes(bytes.len());
                    self.heard.extend_from_slice(&bytes);
                    let exchange = self.nature.exchange();
                    let session = if self.end == REMOTE { pair.remote() } else { pair.ground() };
                    session.taken(exchange, self.journal.heard(), bytes.len());
                }
                Event::Ended { stream } if stream == self.stream => self.journal.heard_end(),
                Event::Taken { exchange, position } if exchange == self.nature.exchange() => {
                    self.journal.confirm(position);
                }
                other => others.push(other),
            }
        }
        others
    }
}

/// Goes on with `remote` and `ground` on `pair`, as the ends' apps do.
fn go_on(pair: &mut Pair, remote: &mut Side, ground: &mut Side) {
    let (heard, hearing) = (remote.journal.heard(), remote.journal.hearing());
    remote.stream = pair.remote().rejoin(&remote.nature, NAME, heard, hearing);
    pair.run(pair.now + 2 * HALF);
    let Some(Event::Rejoin { stream, carrier: NAME, exchange, position }) =
        ground.hear(pair).into_iter().find(|event| matches!(event, Event::Rejoin { .. }))
    else {
        panic!("no rejoin");
    };
    assert_eq!(exchange, ground.nature.exchange());
    ground.stream = stream;
    let (heard, hearing) = (ground.journal.heard(), ground.journal.hearing());
    assert!(pair.ground().accept_rejoin(stream, &ground.nature, heard, hearing));
    let now = pair.now;
    for said in ground.journal.since(position).expect("all is kept") {
        pair.ground().say(now, stream, &said);
    }
    pair.run(now + 2 * HALF);
    let rejoined = remote.hear(pair).into_iter().find_map(|event| match event {
        Event::Rejoined { verdict: Verdict::GoesOn(position), .. } => Some(position),
        _ => None,
    });
    let now = pair.now;
    for said in remote.journal.since(rejoined.expect("it goes on")).expect("all is kept") {
        pair.remote().say(now, remote.stream, &said);
    }
}

fn begun(pair: &mut Pair, stream: StreamId) -> (Side, Side) {
    pair.run(pair.now + 2 * HALF);
    let far = pair.events(GROUND).into_iter().find_map(|(_, event)| match event {
        Event::Asked { stream, .. } | Event::TunnelAsked { stream, .. } => Some(stream),
        _ => None,
    });
    let far = far.expect("it has come");
    (Side::new(pair, REMOTE, stream), Side::new(pair, GROUND, far))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The first carrier is lost at any time; bodies both ways are whole, each byte once, the head too.
    #[test]
    fn an_exchange_goes_on_wherever_its_carrier_is_lost(up in 0usize..40_000, down in 0usize..200_000, lost_ms in 0u64..1500) {
        let mut first = geo();
        let ask = Ask { exchange: 5, user: 1, ..Ask::default() };
        let stream = first.remote().ask(Duration::ZERO, ask, &request(Method::POST));
        let (mut remote, mut ground) = begun(&mut first, stream);
        let pattern = |length: usize| (0..length).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
        let (up, down) = (pattern(up), pattern(down));
        remote.say(&mut first, Said::Bytes(up.clone().into()));
        remote.say(&mut first, Said::Ended(None));
        ground.say(&mut first, ok());
        ground.say(&mut first, Said::Bytes(down.clone().into()));
        ground.say(&mut first, Said::Ended(None));
        first.run(first.now + Duration::from_millis(lost_ms));
        remote.hear(&mut first);
        ground.hear(&mut first);
        let mut second = geo();
        go_on(&mut second, &mut remote, &mut ground);
        second.run(second.now + Duration::from_secs(5));
        remote.hear(&mut second);
        ground.hear(&mut second);
        prop_assert_eq!(remote.heads, 1);
        prop_assert!(remote.heard == down && ground.heard == up);
        prop_assert_eq!(remote.journal.hearing(), Hearing::Done);
        prop_assert_eq!(ground.journal.hearing(), Hearing::Done);
    }
}

#[test]
fn a_tunnel_goes_on_both_ways() {
    let mut first = geo();
    let stream = first.remote().open_tunnel(&Tunnel::to(9, 1, Class::Web, "site.test", 443));
    let (mut remote, mut ground) = begun(&mut first, stream);
    ground.say(&mut first, Said::Opened);
    remote.say(&mut first, Said::Bytes("ping".into()));
    // Lost before either word arrives.
    let mut second = geo();
    go_on(&mut second, &mut remote, &mut ground);
    ground.say(&mut second, Said::Bytes("pong".into()));
    remote.say(&mut second, Said::Ended(None));
    second.run(second.now + 4 * HALF);
    remote.hear(&mut second);
    ground.hear(&mut second);
    assert_eq!((&remote.heard[..], &ground.heard[..]), (&b"pong"[..], &b"ping"[..]));
    assert_eq!(ground.journal.hearing(), Hearing::Done);
}

#[test]
fn an_urgent_byte_goes_on_with_its_mark() {
    let mut first = geo();
    // Ground has said by then that it takes marks.
    first.run(3 * HALF);
    let stream = first.remote().open_tunnel(&Tunnel::to(9, 1, Class::Web, "site.test", 21));
    let (mut remote, mut ground) = begun(&mut first, stream);
    remote.say(&mut first, Said::Bytes("before".into()));
    first.run(first.now + 2 * HALF);
    ground.hear(&mut first);
    [Said::Urgent, Said::Bytes("!".into())].into_iter().for_each(|said| remote.say(&mut first, said));
    // Lost before it arrives.
    let mut second = geo();
    go_on(&mut second, &mut remote, &mut ground);
    second.run(second.now + 4 * HALF);
    let others = ground.hear(&mut second);
    assert!(others.contains(&Event::Urgent { stream: ground.stream }), "{others:?}");
    assert_eq!(&ground.heard[..], b"before!");
}

#[test]
fn what_never_came_is_begun_anew_on_the_stream_that_says_so() {
    let mut pair = geo();
    let ask = Ask { exchange: 5, user: 1, ..Ask::default() };
    let stream = pair.remote().ask(Duration::ZERO, ask, &request(Method::POST));
    let nature = pair.remote().nature(stream).unwrap();
    let again = pair.remote().rejoin(&nature, NAME, 0, Hearing::Head);
    pair.run(2 * HALF);
    let claims = pair.events(GROUND).into_iter().filter_map(|(_, event)| match event {
        Event::Rejoin { stream, .. } => Some(stream),
        _ => None,
    });
    let [claim] = claims.collect::<Vec<_>>()[..] else { panic!("not one rejoin") };
    pair.ground().refuse_rejoin(claim, Verdict::NeverCame);
    pair.run(pair.now + 2 * HALF);
    let rejoined = Event::Rejoined { stream: again, verdict: Verdict::NeverCame };
    assert!(pair.events(REMOTE).iter().any(|(_, event)| *event == rejoined));
    let now = pair.now;
    pair.remote().ask_again(now, again, ask, &request(Method::POST));
    pair.remote().say(now, again, &Said::Ended(None));
    pair.run(now + 2 * HALF);
    let events = pair.events(GROUND);
    let asked = |event: &Event| matches!(event, Event::Asked { stream, exchange: 5, .. } if *stream == claim);
    assert!(events.iter().any(|(_, event)| asked(event)), "{events:?}");
}

#[test]
fn what_is_not_kept_leaves_nothing_behind() {
    let mut pair = geo();
    let ask = Ask { exchange: 5, user: 1, ..Ask::default() };
    let first = pair.remote().ask(Duration::ZERO, ask, &request(Method::GET));
    let nature = pair.remote().nature(first).unwrap();
    pair.remote().cancel(first, 0x10);
    pair.remote().rejoin(&nature, NAME, 77, Hearing::Body);
    pair.run(2 * HALF);
    let claim = pair.events(GROUND).into_iter().find_map(|(_, event)| match event {
        Event::Rejoin { stream, .. } => Some(stream),
        _ => None,
    });
    pair.ground().refuse_rejoin(claim.expect("a rejoin"), Verdict::NotKept);
    pair.run(pair.now + 4 * HALF);
    assert!(!pair.remote().is_active() && !pair.ground().is_active());
}

#[test]
fn nothing_may_be_said_on_a_stream_before_the_verdict() {
    let mut pair = geo();
    let ask = Ask { exchange: 5, user: 1, ..Ask::default() };
    let stream = pair.remote().ask(Duration::ZERO, ask, &request(Method::GET));
    let nature = pair.remote().nature(stream).unwrap();
    let id = pair.remote().rejoin(&nature, NAME, 77, Hearing::Body);
    pair.remote().write(id, Bytes::from_static(b"impatient"));
    pair.run(2 * HALF);
    let broken = |event: &Event| matches!(event, Event::Broken(FrameError::Misplaced(_)));
    assert!(pair.events(GROUND).iter().any(|(_, event)| broken(event)));
}

#[test]
fn an_end_says_what_has_come_in_few_words() {
    let mut pair = geo();
    for exchange in 0..10 {
        pair.remote().taken(exchange, 20_000, 20_000);
    }
    pair.run(2 * HALF);
    let taken = |event: &Event| matches!(event, Event::Taken { position: 20_000, .. });
    let events = pair.events(GROUND);
    let mut told: Vec<_> = events.iter().filter(|(_, event)| taken(event)).map(|(at, _)| *at).collect();
    // Of 200 kB, 128 have been enough to say so; the rest is told a while later, in one word.
    assert_eq!(told.len(), 10, "{events:?}");
    told.dedup();
    let [first, second] = told[..] else { panic!("{events:?}") };
    assert!(second - first > Duration::from_millis(150), "{events:?}");
}
