//! An offer of streams and its answer (RFC 3264), as requests and responses bear them.

use std::net::SocketAddr;

use farhop_diffserv::calls::Codec;

use crate::message::Message;
use crate::sdp::{Audio, Session};
use crate::speech::{MOST_STREAMS, Stream};

/// Which request of a call's: each side counts its own (RFC 3261 §12.2.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    from: String,
    number: u32,
}

/// An offer, and its answer where there is one.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    request: Request,
    /// The request came without an offer: then its response has it, and ACK or PRACK the answer (RFC 3261 §13.2.1).
    is_late: bool,
    requester: Option<Session>,
    responder: Option<Session>,
}

/// A stream that both sides have, or as long as one has said nothing the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) stream: Stream,
    /// Where it goes, as far as that is known: the answer's before the offer's.
    pub(crate) media: Vec<SocketAddr>,
}

impl Request {
    pub(crate) fn of(message: &Message<'_>) -> Request {
        Request { from: message.from.to_owned(), number: message.number }
    }

    /// Whether a message is this request, answers it, or belongs to it.
    pub(crate) fn is_of(&self, message: &Message<'_>) -> bool {
        self.from == message.from && self.number == message.number
    }

    /// Whether its sender had sent the message's before.
    pub(crate) fn is_after(&self, message: &Message<'_>) -> bool {
        self.from == message.from && self.number > message.number
    }
}

impl Exchange {
    /// One that this request begins.
    pub(crate) fn begin(request: &Message<'_>, sdp: Option<Session>) -> Exchange {
        let is_late = sdp.is_none();
        Exchange { request: Request::of(request), is_late, requester: sdp, responder: None }
    }

    pub(crate) fn is_of(&self, message: &Message<'_>) -> bool {
        self.request.is_of(message)
    }

    /// What the requester says, in the request or in what acknowledges its response.
    pub(crate) fn request(&mut self, sdp: Session) {
        self.requester = Some(sdp);
    }

    /// What a response says, which may be another request's of the same call's.
    pub(crate) fn respond(&mut self, message: &Message<'_>, sdp: Option<Session>) {
        let side = if self.request.from == message.from { &mut self.responder } else { &mut self.requester };
        if sdp.is_some() {
            *side = sdp;
        }
    }

    /// Whether there is nothing more to be said.
    pub(crate) fn is_answered(&self) -> bool {
        self.requester.is_some() && self.responder.is_some()
    }

    /// Whether its answer is in what acknowledges the response.
    pub(crate) fn waits_for_requester(&self) -> bool {
        self.is_late && self.requester.is_none() && self.responder.is_some()
    }

    /// Its streams of speech, those that either side refuses or lets rest left out.
    pub(crate) fn streams(&self) -> Vec<Agreed> {
        let (answer, offer) = match self.is_late {
            true => (&self.requester, &self.responder),
            false => (&self.responder, &self.requester),
        };
        match (answer, offer) {
            // RFC 3264 §6: an answer has as many streams as its offer, in the same order.
            (Some(answer), Some(offer)) => answer
                .audio
                .iter()
                .zip(&offer.audio)
                .filter_map(|pair| Some(agreed(&[pair.0.as_ref()?, pair.1.as_ref()?])))
                .take(MOST_STREAMS)
                .collect(),
            (Some(one), None) | (None, Some(one)) => {
                one.audio.iter().flatten().map(|audio| agreed(&[audio])).take(MOST_STREAMS).collect()
            }
            (None, None) => Vec::new(),
        }
    }
}

/// What the sides of a stream say of it, the answer first.
fn agreed(sides: &[&Audio]) -> Agreed {
    let codec = sides.iter().find_map(|side| side.codecs.first().copied()).unwrap_or(Codec::G711);
    let said = sides.iter().find_map(|side| side.packet_time);
    // What cannot be a packet of this codec was said of another one.
    let packet_time =
        said.filter(|time| codec.payload(*time).is_some()).unwrap_or_else(|| codec.usual_packet_time());
    let is_secured = sides.iter().any(|side| side.is_secured);
    let media = sides.iter().filter_map(|side| side.to).collect();
    Agreed { stream: Stream { codec, packet_time, is_secured }, media }
}
