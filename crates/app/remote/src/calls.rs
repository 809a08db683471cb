//! Calls that cross as datagrams: SIP is overheard on its way through, over UDP and over TCP, and the media that it announces are voice. The link manager
//! cannot hear it: at the link's device all of it is inside the carrier. Anybody's phone may announce calls, so what pours more
//! than speech does is voice no longer. No I/O.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_packets::Ends;
use farhop_sip::{Change, Framing, MOST_DIALOGS, Observer};
use farhop_units::BitRate;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use crate::admission::CARRIED;

/// A call of which no message has passed for so long is over: its end may have taken another way.
const KEPT: Duration = Duration::from_secs(3600);
/// What speech never exceeds: four times G.711 with all that is around it, and half of what Opus may have.
const MOST_BYTES: usize = 64 * 1024;
/// In so long.
const MEASURED: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Default)]
pub(crate) struct Calls {
    known: Mutex<Known>,
    /// A call has begun, changed or ended.
    changed: Notify,
    /// How often the link manager's word on a call has changed.
    words: AtomicU64,
}

struct Known {
    began: Instant,
    observer: Observer,
    /// By `Call-ID`; no more than the observer follows.
    calls: HashMap<String, Call>,
    /// When it is next looked for what is over.
    look_at: Instant,
}

struct Call {
    media: Vec<SocketAddr>,
    /// Media that have shown that they are no speech.
    poured: HashSet<SocketAddr>,
    /// What it takes inside the carrier, in each direction.
    rate: BitRate,
    /// The link manager has no room for it.
    is_refused: bool,
    until: Instant,
}

impl Default for Known {
    fn default() -> Self {
        let now = Instant::now();
        Known { began: now, observer: Observer::default(), calls: HashMap::new(), look_at: now }
    }
}

impl Calls {
    /// A datagram, or a message on a connection, has passed, in either direction, by a port of SIP.
    pub(crate) fn hear(&self, now: Instant, payload: &[u8]) {
        let mut known = self.lock();
        known.forget(now);
        let since = now.saturating_duration_since(known.began);
        if let Some(change) = known.observer.handle_bytes(since, payload) {
            known.follow(now, change);
            self.changed.notify_waiters();
        }
    }

    /// Completes when a call begins, changes or ends, or a message of one repeats itself.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Whether a flow between these ends carries what a call has announced. Its other end may be behind an address that SDP does not
    /// know, so one of them is enough.
    pub(crate) fn speaks(&self, now: Instant, ends: Ends) -> bool {
        let mut known = self.lock();
        known.forget(now);
        known.calls.values().any(|call| call.speaks(ends))
    }

    /// The calls that there are, and what each takes.
    pub(crate) fn wanted(&self, now: Instant) -> Vec<(String, BitRate)> {
        let mut known = self.lock();
        known.forget(now);
        known.calls.iter().map(|(name, call)| (name.clone(), call.rate)).collect()
    }

    /// The link manager's word on a call.
    pub(crate) fn settle(&self, name: &str, is_refused: bool) {
        let mut known = self.lock();
        if let Some(call) = known.calls.get_mut(name).filter(|call| call.is_refused != is_refused) {
            call.is_refused = is_refused;
            self.words.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Changes whenever the word on a call does.
    pub(crate) fn words(&self) -> u64 {
        self.words.load(Ordering::Relaxed)
    }

    /// Whether a flow between these ends carries a call for which there is no room, and no other.
    pub(crate) fn is_refused(&self, ends: Ends) -> bool {
        let known = self.lock();
        let mut own = known.calls.values().filter(|call| call.is_at(ends)).peekable();
        own.peek().is_some() && own.all(|call| call.is_refused)
    }

    /// What this flow carries is no speech, whatever was announced.
    pub(crate) fn pours(&self, ends: Ends) {
        for call in self.lock().calls.values_mut() {
            let of_flow = call.media.iter().filter(|media| **media == ends.client || **media == ends.to);
            call.poured.extend(of_flow.copied());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection by a port of SIP.
pub(crate) struct Signalling<'a> {
    calls: &'a Calls,
    said: Framing,
    heard: Framing,
}

impl<'a> Signalling<'a> {
    /// One that begins.
    pub(crate) fn of(calls: &'a Calls) -> Self {
        Signalling { calls, said: Framing::default(), heard: Framing::default() }
    }

    /// Its client says this.
    pub(crate) fn said(&mut self, now: Instant, bytes: &[u8]) {
        self.said.handle_bytes(bytes, |message| self.calls.hear(now, message));
    }

    /// The far side says this.
    pub(crate) fn heard(&mut self, now: Instant, bytes: &[u8]) {
        self.heard.handle_bytes(bytes, |message| self.calls.hear(now, message));
    }
}

impl Call {
    fn speaks(&self, ends: Ends) -> bool {
        self.is_at(ends) && !self.is_refused
    }

    fn is_at(&self, ends: Ends) -> bool {
        let is_its = |media: &SocketAddr| *media == ends.client || *media == ends.to;
        self.media.iter().any(is_its) && !self.poured.iter().any(is_its)
    }
}

impl Known {
    fn follow(&mut self, now: Instant, change: Change) {
        match change {
            Change::Speaks(speech) => {
                let until = now + KEPT;
                // What cannot be a packet takes nothing: it is no speech.
                let rate = speech.rate(&CARRIED).unwrap_or(BitRate(0));
                let known = self.calls.entry(speech.call).or_insert_with(|| Call {
                    media: Vec::new(),
                    poured: HashSet::new(),
                    rate,
                    is_refused: false,
                    until,
                });
                known.poured.retain(|poured| speech.media.contains(poured));
                (known.media, known.rate, known.until) = (speech.media, rate, until);
            }
            Change::Over(call) => {
                self.calls.remove(&call);
            }
            // No flow has a name.
            Change::Unplaced(_) => {}
        }
        debug_assert!(self.calls.len() <= MOST_DIALOGS, "as many as the observer follows");
    }

    /// Each second at the most.
    fn forget(&mut self, now: Instant) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + Duration::from_secs(1);
        let since = now.saturating_duration_since(self.began);
        while let Some(change) = self.observer.poll_timeout(since) {
            self.follow(now, change);
        }
        let observer = &mut self.observer;
        self.calls.retain(|id, call| {
            let stays = now < call.until;
            if !stays {
                observer.forget(id);
            }
            stays
        });
    }
}

/// What a flow that counts as speech has carried, in both directions.
#[derive(Default)]
pub(crate) struct Measured {
    since: Option<Instant>,
    bytes: usize,
}

impl Measured {
    /// So much more has passed; whether that can be speech.
    pub(crate) fn passed(&mut self, now: Instant, bytes: usize) -> bool {
        let since = *self.since.get_or_insert(now);
        if now >= since + MEASURED {
            (self.since, self.bytes) = (Some(now), 0);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= MOST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = "v=0\r\no=alice 53655765 2353687637 IN IP4 10.0.0.5\r\ns=-\r\nc=IN IP4 10.0.0.5\r\nt=0 0\r\n\
        m=audio 16384 RTP/AVP 18 101\r\na=rtpmap:18 G729/8000\r\na=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\n";
    const ANSWER: &str = "v=0\r\no=bob 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 20000 RTP/AVP 18\r\n";

    /// RFC 3665 §3.1, with the addresses of these tests.
    fn message(first: &str, call: &str, sequence: &str, sdp: &str) -> Vec<u8> {
        let kind = if sdp.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        format!(
            "{first}\r\nVia: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK74bf9\r\nMax-Forwards: 70\r\n\
             From: Alice <sip:alice@atlanta.example.com>;tag=9fxced76sl\r\nTo: Bob <sip:bob@biloxi.example.com>\r\n\
             Call-ID: {call}\r\nCSeq: {sequence}\r\nContact: <sip:alice@10.0.0.5>\r\n{kind}Content-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        )
        .into_bytes()
    }

    fn invite(call: &str) -> Vec<u8> {
        message("INVITE sip:bob@biloxi.example.com SIP/2.0", call, "1 INVITE", OFFER)
    }

    fn ends(client: &str, to: &str) -> Ends {
        Ends { client: client.parse().unwrap(), to: to.parse().unwrap() }
    }

    fn speech() -> Ends {
        ends("10.0.0.5:16384", "192.0.2.9:20000")
    }

    #[test]
    fn what_a_connection_announces_is_voice_too() {
        let (calls, now) = (Calls::default(), Instant::now());
        let mut signalling = Signalling::of(&calls);
        let crosses = |signalling: &mut Signalling<'_>, bytes: &[u8], is_said| {
            for piece in bytes.chunks(100) {
                if is_said { signalling.said(now, piece) } else { signalling.heard(now, piece) }
            }
        };
        crosses(&mut signalling, &[invite("a"), invite("b")].concat(), true);
        assert!(calls.speaks(now, speech()));
        crosses(&mut signalling, &message("SIP/2.0 200 OK", "a", "1 INVITE", ANSWER), false);
        crosses(&mut signalling, &message("CANCEL sip:bob@192.0.2.9 SIP/2.0", "b", "1 CANCEL", ""), true);
        assert_eq!(calls.wanted(now).len(), 1);
        crosses(&mut signalling, &message("BYE sip:alice@10.0.0.5 SIP/2.0", "a", "7 BYE", ""), false);
        assert!(!calls.speaks(now, speech()));
    }

    #[test]
    fn media_that_sip_announces_are_voice_from_offer_to_bye() {
        let (calls, now) = (Calls::default(), Instant::now());
        assert!(!calls.speaks(now, speech()));
        calls.hear(now, &invite("3848276298220188511@atlanta.example.com"));
        // The phone's own address is known, and the other's not yet.
        assert!(calls.speaks(now, speech()));
        let beside = ends("10.0.0.6:4000", "192.0.2.9:20000");
        assert!(!calls.speaks(now, beside));
        calls.hear(
            now,
            &message("SIP/2.0 200 OK", "3848276298220188511@atlanta.example.com", "1 INVITE", ANSWER),
        );
        // Behind an address that SDP does not know.
        assert!(calls.speaks(now, beside));
        assert!(!calls.speaks(now, ends("10.0.0.5:16390", "192.0.2.9:20002")));
        // What is none changes nothing.
        calls.hear(now, b"GET / HTTP/1.1\r\n\r\n");
        calls.hear(now, &[0xff; 2000]);
        calls.hear(now, &message("BYE sip:bob@192.0.2.9 SIP/2.0", "another", "2 BYE", ""));
        assert!(calls.speaks(now, speech()));
        calls.hear(
            now,
            &message("BYE sip:bob@192.0.2.9 SIP/2.0", "3848276298220188511@atlanta.example.com", "2 BYE", ""),
        );
        assert!(!calls.speaks(now, speech()));
    }

    #[test]
    fn speech_goes_on_as_voice_after_a_change_that_fails() {
        let (calls, now) = (Calls::default(), Instant::now());
        calls.hear(now, &invite("a"));
        calls.hear(now, &message("SIP/2.0 200 OK", "a", "1 INVITE", ANSWER));
        let moved = OFFER.replace("16384", "16390");
        calls.hear(now, &message("INVITE sip:bob@192.0.2.9 SIP/2.0", "a", "2 INVITE", &moved));
        let other = ends("10.0.0.5:16390", "192.0.2.1:20000");
        assert!(calls.speaks(now, speech()) && calls.speaks(now, other));
        calls.hear(now, &message("SIP/2.0 488 Not Acceptable Here", "a", "2 INVITE", ""));
        assert!(calls.speaks(now, speech()) && !calls.speaks(now, other));
        // What comes late of a try before is of no matter.
        calls.hear(now, &message("SIP/2.0 407 Proxy Authentication Required", "a", "1 INVITE", ""));
        assert!(calls.speaks(now, speech()));
    }

    #[test]
    fn what_rings_for_too_long_and_whose_end_does_not_pass_is_over() {
        let (calls, now) = (Calls::default(), Instant::now());
        calls.hear(now, &invite("a"));
        assert!(calls.speaks(now + Duration::from_secs(100), speech()));
        assert!(!calls.speaks(now + Duration::from_secs(200), speech()));
        let later = now + Duration::from_secs(300);
        calls.hear(later, &invite("b"));
        calls.hear(later, &message("SIP/2.0 200 OK", "b", "1 INVITE", ANSWER));
        assert!(calls.speaks(later + Duration::from_secs(3000), speech()));
        assert!(!calls.speaks(later + KEPT + Duration::from_secs(1), speech()));
        let known = calls.lock();
        assert_eq!((known.calls.len(), known.observer.dialogs()), (0, 0));
    }

    #[test]
    fn however_many_are_announced_no_more_are_kept_than_are_followed() {
        let (calls, now) = (Calls::default(), Instant::now());
        for call in 0..MOST_DIALOGS + 500 {
            calls.hear(now, &invite(&call.to_string()));
        }
        assert_eq!(calls.lock().calls.len(), MOST_DIALOGS);
    }

    #[test]
    fn what_pours_is_no_speech_whatever_was_announced() {
        let (calls, now) = (Calls::default(), Instant::now());
        calls.hear(now, &invite("a"));
        let mut measured = Measured::default();
        // G.711 in both directions for a minute.
        for packet in 0..6_000u32 {
            assert!(measured.passed(now + Duration::from_millis(10) * packet, 172));
        }
        let mut measured = Measured::default();
        // 2 Mbit/s.
        let until =
            (0..1_000u32).find(|packet| !measured.passed(now + Duration::from_millis(5) * *packet, 1_250));
        assert!(until.is_some_and(|packet| packet < 60), "{until:?}");
        calls.pours(speech());
        assert!(!calls.speaks(now, speech()));
        // Saying it again does not help.
        calls.hear(now, &message("SIP/2.0 200 OK", "a", "1 INVITE", ANSWER));
        assert!(!calls.speaks(now, speech()));
    }
}
