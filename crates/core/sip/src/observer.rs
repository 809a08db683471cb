//! Calls as they come and go.
//!
//! ```text
//!            INVITE                         2xx to INVITE
//!   (none) ──────────▶ ringing ─────────────────────────────────▶ talking
//!      ▲                │    ▲                                    ▲  │
//!      │      CANCEL,   │    │ another INVITE                     │  │ BYE
//!      │   3xx to 6xx   ▼    │              2xx to INVITE         │  │
//!      ├── time ────── failed ────────────────────────────────────┘  │
//!      └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! Whatever SDP passes while a call rings or talks (183, 200, ACK, UPDATE, a second INVITE) is an offer or an answer. What was agreed
//! stays in force beside a further offer until that is answered by 2xx, and after it where it is refused.

use std::collections::HashMap;
use std::time::Duration;

use crate::dialog::Dialog;
use crate::message::{Kind, Message, Method};
use crate::name::name;
use crate::sdp::Session;
use crate::speech::Speech;

/// Calls that are followed at a time; a further one takes the place of one that has failed, or is passed over.
pub const MOST_DIALOGS: usize = 4096;

/// What has become of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It wants to speak so, or does: NEW_VOICE_CALL, for the first time or anew.
    Speaks(Speech),
    /// It is over, by its name: VOICE_CALL_RELEASE.
    Over(String),
    /// It talks, and both sides say where by the name of a host, which is not resolved here.
    Unplaced(String),
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
        let call = &*name(message.call_id);
        let sdp = message.sdp.map(Session::read);
        let begins = matches!((message.kind, message.method), (Kind::Request, Method::Invite));
        let dialog = if begins { self.begun(call)? } else { self.dialogs.get_mut(call)? };
        match (message.kind, message.method) {
            (Kind::Request, Method::Invite) => dialog.invite(now, message, sdp),
            (Kind::Request, Method::Ack) => dialog.acknowledge(message, sdp),
            (Kind::Request, Method::Cancel) => dialog.cancel(now, message),
            (Kind::Request, Method::Update | Method::Prack) => dialog.offer(now, message, sdp),
            (Kind::Request, Method::Bye) if dialog.is_ended_by(message) => return self.end(call),
            (Kind::Response(code), Method::Invite | Method::Update | Method::Prack) => match code {
                ..101 => {}
                101..200 => dialog.announce(now, message, sdp),
                200..300 => dialog.accept(message, sdp),
                300.. => dialog.refuse(message),
            },
            _ => {}
        }
        let change = dialog.tell(call);
        // One that talks and has no speech has no end to be told; its BYE may never pass.
        if dialog.is_silent() {
            let is_unplaced = dialog.is_unplaced();
            self.forget(call);
            return is_unplaced.then(|| Change::Unplaced(call.to_owned()));
        }
        change
    }

    /// Ends the calls that have rung for too long, and takes back offers that nobody has answered; one at a time, until there
    /// is none.
    pub fn poll_timeout(&mut self, now: Duration) -> Option<Change> {
        loop {
            let is_due = |dialog: &mut Dialog| dialog.has_rung_out(now) || dialog.forget_open(now);
            let (call, dialog) = self
                .dialogs
                .iter_mut()
                .find_map(|(call, dialog)| is_due(dialog).then(|| (call.clone(), dialog)))?;
            let change = if dialog.has_rung_out(now) { self.end(&call) } else { dialog.tell(&call) };
            if change.is_some() {
                return change;
            }
        }
    }

    /// A call that an earlier observer had told of, by its name: it talks, and its end is to be told.
    pub fn take_up(&mut self, call: &str) {
        if self.dialogs.len() < MOST_DIALOGS {
            self.dialogs.insert(call.to_owned(), Dialog::taken_up());
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

    /// The call that an INVITE is of, which it may begin; `None` where there is no room.
    fn begun(&mut self, call: &str) -> Option<&mut Dialog> {
        if !self.dialogs.contains_key(call) && self.dialogs.len() >= MOST_DIALOGS {
            let failed = self.dialogs.iter().filter_map(|(call, it)| Some((it.fails_until()?, call)));
            let first = failed.min()?.1.clone();
            self.dialogs.remove(&first);
        }
        Some(self.dialogs.entry(call.to_owned()).or_insert_with(Dialog::new))
    }

    /// Its end, where it had been told of.
    fn end(&mut self, call: &str) -> Option<Change> {
        self.dialogs.remove(call)?.end(call)
    }
}
