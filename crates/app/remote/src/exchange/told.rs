//! What events and the user's ledger are told of a request in the end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use farhop_events::{Event, Side};
use farhop_front::Responder;

use super::{Delivery, Exchange};
use crate::Remote;
use crate::answers::Trouble;

impl Exchange {
    pub(crate) async fn fail(self, remote: &Arc<Remote>, mut responder: Responder, mut trouble: Trouble) {
        self.learn_from(remote, &mut responder, &mut trouble);
        remote.holdouts().spoil(self.id);
        let asks_again = trouble.passes_elsewhere;
        let answering = if asks_again { responder.refuse().err() } else { Some(responder) };
        let status = answering.as_ref().map(|_| trouble.status.as_u16());
        if let Some(responder) = answering {
            let (head, page) = trouble.page(self.id);
            // The client may be gone too; the event says what failed first.
            let _ = responder.respond(head, page).await;
        }
        remote.bus().emit(Event::Failed {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.fetch.head.method.to_string(),
            url: remote.bus().url(self.fetch.url.as_str()),
            side: trouble.side,
            error: trouble.detail,
            status,
            bytes: 0,
        });
    }

    pub(super) fn broken(&self, remote: &Remote, delivery: &Delivery, side: Side, error: String) {
        remote.holdouts().spoil(self.id);
        remote.bus().emit(Event::Failed {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.fetch.head.method.to_string(),
            url: remote.bus().url(self.fetch.url.as_str()),
            side,
            error,
            status: None,
            bytes: delivery.bytes,
        });
    }

    pub(super) fn client_gone(&self, remote: &Remote, delivery: &Delivery, error: &str) {
        self.broken(remote, delivery, Side::User, error.to_owned());
    }

    pub(super) fn answered(&self, remote: &Remote, delivery: &Delivery) {
        remote.ledger().answered(&self.user, delivery.from, delivery.bytes, &delivery.given);
        remote.bus().emit(Event::Answered {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.fetch.head.method.to_string(),
            url: remote.bus().url(self.fetch.url.as_str()),
            status: delivery.status.as_u16(),
            from: delivery.from,
            bytes: delivery.bytes,
            upload_bytes: self.uploaded.load(Relaxed),
            first_byte_ms: delivery.first_byte_ms,
            total_ms: self.elapsed_ms(),
        });
    }
}
