//! A WebSocket across the hop: its opening handshake is an exchange like any other, and once the origin has switched
//! protocols bytes go both ways as they come. What they say is nobody's business here.

use farhop_front::{Head, Responder};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Priority;
use farhop_transport::hop::{Receiver, Sender};
use http::HeaderValue;
use http::header::UPGRADE;

use crate::Remote;
use crate::auth::Pass;
use crate::carry::{Carried, carry};

/// A word of a conversation waits for no page, and one conversation not for another.
pub(crate) const PRIORITY: Priority = Priority { urgency: 1, incremental: true };

/// An origin's yes to a WebSocket, and the stream that carries it.
pub(crate) struct Switched {
    pub(crate) head: ResponseHead,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

impl Switched {
    /// Tells the client and carries until both sides have ended, or `pass` is good no more. `None` when the client is gone.
    pub(crate) async fn carry(self, remote: &Remote, pass: &Pass, responder: Responder) -> Option<Carried> {
        let ResponseHead { status, mut fields } = self.head;
        // RFC 9110 §7.8: said on each connection anew.
        fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let tunnel = responder.tunnel(Head { status, fields }).await.ok()?;
        let idle = remote.settings().timeouts.tunnel_idle;
        let over = remote.gate().withdrawn(pass);
        Some(carry(tunnel, self.sender, self.receiver, idle, over, |_| {}, |_| None).await)
    }
}
