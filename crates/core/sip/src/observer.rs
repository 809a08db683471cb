//! Calls as they come and go.
//!
//! ```text
//!            INVITE with SDP                 2xx to INVITE
//!   (none) ───────────────────▶ ringing ───────────────────▶ talking
//!      ▲                           │                            │
//!      │   CANCEL, 3xx to 6xx to   │                            │ BYE
//!      └── INVITE, three minutes ──┴────────────────────────────┘
//! ```
//!
//! Whatever SDP passes while a call rings or talks (183, 200, ACK, UPDATE, a second INVITE) says anew where its speech goes. A
//! CANCEL may cross the answer that it comes too late for: then that begins the call once more (RFC 3261 §9.1).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use farhop_diffserv::calls::Codec;

use crate::message::{Kind, Message, Method};
use crate::sdp::{MOST_MEDIA, Session};

/// Calls that are followed at a time; a further one is passed over.
pub const MOST_DIALOGS: usize = 4096;
/// RFC 3261 §16.6 point 11: timer C, which ends what rings, is more than three minutes.
const RINGING: Duration = Duration::from_secs(181);
/// §9.1: how long a cancelled INVITE may still be answered, 64 × T1.
const CANCELLED: Duration = Duration::from_secs(32);

/// What a call speaks, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// Its `Call-ID`.
    pub call: String,
    /// The codec that it will speak, as far as is known: the first of the answer, before it the first of the offer. One that is
    /// not known here counts as G.711, which none of the usual ones exceeds.
    pub codec: Codec,
    /// How long the speech of a packet is.
    pub packet_time: Duration,
    /// Where its packets go, at both ends as far as they are known.
    pub media: Vec<SocketAddr>,
}

/// What has become of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It wants to speak so, or does: NEW_VOICE_CALL, for the first time or anew.
    Speaks(Speech),
    /// It is over, by its `Call-ID`: VOICE_CALL_RELEASE.
    Over(String),
}

#[derive(Debug, Clone, Default)]
struct Dialog {
    /// When it stops ringing; `None` once it talks.
    rings_until: Option<Duration>,
    /// Its end was told, and may not come to pass.
    is_cancelled: bool,
    /// What was offered, and what was answered.
    offer: Option<Session>,
    answer: Option<Session>,
    /// What was told of it.
    told: Option<Speech>,
}

/// The calls that have passed by and are not over.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    dialogs: HashMap<String, Dialog>,
}

impl Observer {
    /// Takes bytes that have passed at `now`, in either direction; what became of a call by them. What is no message changes
    /// nothing.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) -> Option<Change> {
        self.handle_message(now, &Message::read(bytes)?)
    }

    /// Takes a message that has passed at `now`, in either direction; what became of its call by it.
    pub fn handle_message(&mut self, now: Duration, message: &Message<'_>) -> Option<Change> {
        let sdp = message.sdp.map(Session::read);
        match (message.kind, message.method) {
            (Kind::Request, Method::Bye) => self.end(message.call_id),
            (Kind::Request, Method::Cancel) => self.cancel(now, message.call_id),
            (Kind::Request, Method::Invite) => self.invite(now, message.call_id, sdp),
            (Kind::Response(300..), Method::Invite) => {
                // A call that talks goes on after another INVITE of its that failed (RFC 3261 §14.1).
                let rings = self.dialogs.get(message.call_id).is_some_and(|it| it.rings_until.is_some());
                if rings { self.end(message.call_id) } else { None }
            }
            (Kind::Response(code @ 101..300), Method::Invite) => {
                self.answer(message.call_id, sdp, code >= 200)
            }
            (Kind::Request, Method::Ack) => self.answer(message.call_id, sdp, false),
            (Kind::Request, Method::Update | Method::Prack) => self.offer(message.call_id, sdp),
            (Kind::Response(200..300), Method::Update | Method::Prack) => {
                self.answer(message.call_id, sdp, false)
            }
            _ => None,
        }
    }

    /// Ends the calls that have rung for too long; one at a time, until there is none.
    pub fn poll_timeout(&mut self, now: Duration) -> Option<Change> {
        loop {
            let over = |dialog: &Dialog| dialog.rings_until.is_some_and(|until| until <= now);
            let call = self.dialogs.iter().find(|(_, dialog)| over(dialog)).map(|(call, _)| call.clone())?;
            if let Some(change) = self.end(&call) {
                return Some(change);
            }
        }
    }

    /// A call that an earlier observer had told of: it talks, and its end is to be told.
    pub fn take_up(&mut self, speech: Speech) {
        if self.dialogs.len() < MOST_DIALOGS {
            let call = speech.call.clone();
            self.dialogs.insert(call, Dialog { told: Some(speech), ..Dialog::default() });
        }
    }

    /// Nobody wants to hear of this call any more, until a message of it begins it anew: its end may have been missed.
    pub fn forget(&mut self, call: &str) {
        self.dialogs.remove(call);
    }

    /// How many calls are followed.
    pub fn dialogs(&self) -> usize {
        self.dialogs.len()
    }

    fn invite(&mut self, now: Duration, call: &str, sdp: Option<Session>) -> Option<Change> {
        if !self.dialogs.contains_key(call) {
            if self.dialogs.len() >= MOST_DIALOGS {
                return None;
            }
            let dialog = Dialog { rings_until: Some(now.saturating_add(RINGING)), ..Dialog::default() };
            self.dialogs.insert(call.to_owned(), dialog);
        }
        self.offer(call, sdp)
    }

    fn offer(&mut self, call: &str, sdp: Option<Session>) -> Option<Change> {
        let dialog = self.dialogs.get_mut(call)?;
        if let Some(sdp) = sdp {
            // A message that is sent again changes nothing.
            if dialog.offer.as_ref() != Some(&sdp) {
                dialog.answer = None;
            }
            dialog.offer = Some(sdp);
        }
        dialog.tell(call)
    }

    fn answer(&mut self, call: &str, sdp: Option<Session>, talks: bool) -> Option<Change> {
        let dialog = self.dialogs.get_mut(call)?;
        if talks {
            (dialog.rings_until, dialog.is_cancelled) = (None, false);
        }
        match sdp {
            // RFC 3261 §13.2.1: without an offer in INVITE the offer is in the response, and the answer in ACK.
            Some(sdp) if dialog.offer.is_none() => dialog.offer = Some(sdp),
            Some(sdp) => dialog.answer = Some(sdp),
            None => {}
        }
        let change = dialog.tell(call);
        // One that talks and has no speech has no end to be told; its BYE may never pass.
        if talks && dialog.told.is_none() {
            self.dialogs.remove(call);
        }
        change
    }

    fn cancel(&mut self, now: Duration, call: &str) -> Option<Change> {
        let dialog = self.dialogs.get_mut(call)?;
        if dialog.rings_until.is_none() || dialog.is_cancelled {
            return None;
        }
        (dialog.is_cancelled, dialog.rings_until) = (true, Some(now.saturating_add(CANCELLED)));
        dialog.told.take().map(|_| Change::Over(call.to_owned()))
    }

    /// Its end, where it had been told of.
    fn end(&mut self, call: &str) -> Option<Change> {
        let dialog = self.dialogs.remove(call)?;
        dialog.told.map(|_| Change::Over(call.to_owned()))
    }
}

impl Dialog {
    /// What is to be told of it now, where that is something else than before.
    fn tell(&mut self, call: &str) -> Option<Change> {
        if self.is_cancelled {
            return None;
        }
        let sessions = || self.answer.iter().chain(&self.offer);
        let audio = || sessions().flat_map(|session| &session.audio);
        audio().next()?;
        let codec = audio().find_map(|it| it.codecs.first().copied()).unwrap_or(Codec::G711);
        let said = audio().find_map(|it| it.packet_time);
        // What cannot be a packet of this codec was said of another one.
        let packet_time =
            said.filter(|time| codec.payload(*time).is_some()).unwrap_or_else(|| codec.usual_packet_time());
        let mut media: Vec<SocketAddr> = audio().map(|it| it.to).take(MOST_MEDIA).collect();
        media.dedup();
        let speech = Speech { call: call.to_owned(), codec, packet_time, media };
        if self.told.as_ref() == Some(&speech) {
            return None;
        }
        self.told = Some(speech.clone());
        Some(Change::Speaks(speech))
    }
}
