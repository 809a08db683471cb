//! An answer on its way to the client, as it comes. When the carrier is lost under it, it goes on by asking again and
//! comparing what the client already has.

use std::sync::Arc;

use bytes::Bytes;
use farhop_events::{AnsweredFrom, Crossing, Event, Side};
use farhop_front::{Head, Responder, ResponseBody};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Resume;
use farhop_store::{Broken, Piece, Reader};
use http::header::{
    ALT_SVC, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::Exchange;
use crate::Remote;
use crate::ask::{Asked, Asking, NotAnswered};
use crate::portal::Given;
use crate::section::Section;

/// What has been delivered of an answer.
pub(super) struct Delivery {
    pub(super) from: AnsweredFrom,
    pub(super) status: StatusCode,
    pub(super) bytes: u64,
    prefix: Prefix,
    pub(super) first_byte_ms: u64,
    asked_again: bool,
    pub(super) given: Given,
}

/// What the client has of a body, by its hash. Most bodies come in one piece, of which nobody asks for the rest: it is held, and
/// hashed when there is more.
#[derive(Default)]
struct Prefix {
    first: Bytes,
    rest: Option<Box<blake3::Hasher>>,
}

impl Prefix {
    fn take(&mut self, bytes: &Bytes) {
        if self.first.is_empty() && self.rest.is_none() {
            self.first = bytes.clone();
            return;
        }
        let first = std::mem::take(&mut self.first);
        let hasher = self.rest.get_or_insert_with(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&first);
            Box::new(hasher)
        });
        hasher.update(bytes);
    }

    fn hash(&self) -> [u8; 32] {
        match &self.rest {
            Some(hasher) => *hasher.finalize().as_bytes(),
            None => *blake3::hash(&self.first).as_bytes(),
        }
    }
}

impl Exchange {
    pub(crate) async fn deliver_empty(
        self,
        remote: &Arc<Remote>,
        responder: Responder,
        head: &ResponseHead,
        from: AnsweredFrom,
    ) {
        let mut delivery = Delivery::new(from, head.status);
        delivery.first_byte_ms = self.elapsed_ms();
        let written = responder.start(self.client_head(head), Bytes::new()).await;
        let result = match written {
            Ok(body) => body.finish(None).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => self.answered(remote, &delivery),
            Err(error) => self.client_gone(remote, &delivery, &error.to_string()),
        }
    }

    /// Streams a body to the client as it comes, and goes on after a lost carrier.
    pub(crate) async fn deliver(
        self,
        remote: &Arc<Remote>,
        responder: Responder,
        head: &ResponseHead,
        mut reader: Section,
        from: AnsweredFrom,
    ) {
        let mut delivery = Delivery::new(from, head.status);
        delivery.given = Given::with(&head.fields);
        // What is here already goes out with the head, in one packet if it fits.
        let first = match reader.take() {
            Some(Ok(Piece::Data(bytes))) => bytes,
            Some(Ok(Piece::End(trailers))) => {
                // An empty body, complete: its end is read again below from nothing.
                return self.deliver_whole(remote, responder, head, trailers, delivery).await;
            }
            _ => Bytes::new(),
        };
        delivery.first_byte_ms = self.elapsed_ms();
        delivery.take(&first);
        let mut out = match responder.start(self.client_head(head), first).await {
            Ok(out) => out,
            Err(error) => return self.client_gone(remote, &delivery, &error.to_string()),
        };
        loop {
            let piece = tokio::select! {
                // Where there is always more, sending it finds out that the client has gone.
                biased;
                piece = reader.next() => piece,
                _ = out.departure() => return self.client_gone(remote, &delivery, "the client closed the connection"),
            };
            let piece = match piece {
                Err(Broken::Outrun(id)) => {
                    delivery.given.crossed += reader.take_crossed();
                    if goes_on(remote, id, &mut reader).await {
                        continue;
                    }
                    Err(Broken::Lost)
                }
                piece => piece,
            };
            match piece {
                Ok(Piece::Data(bytes)) => {
                    delivery.take(&bytes);
                    if let Err(error) = out.send(bytes).await {
                        return self.client_gone(remote, &delivery, &error.to_string());
                    }
                }
                Ok(Piece::End(trailers)) => {
                    delivery.given.crossed += reader.take_crossed();
                    return match out.finish(trailers.as_ref()).await {
                        Ok(()) => self.answered(remote, &delivery),
                        Err(error) => self.client_gone(remote, &delivery, &error.to_string()),
                    };
                }
                Err(broken) if delivery.may_go_on(&broken) => {
                    delivery.given.crossed += reader.take_crossed();
                    match self.resume(remote, head, &delivery, &out).await {
                        Ok(rest) => reader = Section::rest(rest, delivery.bytes),
                        Err(why) => {
                            remote.bus().emit(Event::Aborted { exchange: self.id, why: why.clone() });
                            out.abort();
                            return self.broken(remote, &delivery, Side::Link, why);
                        }
                    }
                }
                Err(broken) => {
                    out.abort();
                    return self.broken(remote, &delivery, Side::Origin, broken.to_string());
                }
            }
        }
    }

    async fn deliver_whole(
        self,
        remote: &Arc<Remote>,
        responder: Responder,
        head: &ResponseHead,
        trailers: Option<HeaderMap>,
        mut delivery: Delivery,
    ) {
        delivery.first_byte_ms = self.elapsed_ms();
        let written = match responder.start(self.client_head(head), Bytes::new()).await {
            Ok(out) => out.finish(trailers.as_ref()).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => self.answered(remote, &delivery),
            Err(error) => self.client_gone(remote, &delivery, &error.to_string()),
        }
    }

    /// What of an answer's head the client is given.
    fn client_head(&self, head: &ResponseHead) -> Head {
        let mut fields = head.fields.clone();
        farhop_freshness::conceal(&mut fields);
        self.keep_here(&mut fields);
        Head { status: head.status, fields }
    }

    /// Leaves out what leads the client past this proxy.
    pub(super) fn keep_here(&self, fields: &mut HeaderMap) {
        // A client that does not know of a proxy, or thinks to speak with the origin itself, would go where the field leads, which is
        // HTTP/3 and past all that is done for it here (decision 0115).
        if self.caught_at.is_some() || self.fetch.head.scheme == "https" {
            fields.remove(ALT_SVC);
        }
    }

    /// Asks for the rest of a body whose carrier was lost. The part that the client has is compared by hash at ground;
    /// the heads are compared here, since the client has the old one.
    async fn resume(
        &self,
        remote: &Arc<Remote>,
        before: &ResponseHead,
        delivery: &Delivery,
        out: &ResponseBody,
    ) -> Result<Reader, String> {
        if self.fetch.head.method != Method::GET || self.fetch.has_body {
            return Err("a request that may change something is not sent twice".into());
        }
        let resume = Resume { offset: delivery.bytes, prefix: delivery.prefix.hash() };
        loop {
            self.crosses(remote, Crossing::Resumed, None);
            let head = match farhop_freshness::is_coded_with_dictionary(&before.fields) {
                true => self.fetch.with_dictionary(),
                false => self.fetch.head.clone(),
            };
            let mut asking = Asking::new(remote, self, head);
            let asked = tokio::select! {
                asked = asking.resume(resume) => asked,
                _ = out.departure() => return Err("the client closed the connection".into()),
            };
            match asked {
                Ok(Asked { head, reader, resumed, .. }) => {
                    if resumed != (resume.offset > 0).then_some(resume.offset) || !is_same(before, &head) {
                        return Err("the origin's answer has changed".into());
                    }
                    remote.bus().emit(Event::Resumed { exchange: self.id, skipped_bytes: resume.offset });
                    return Ok(reader);
                }
                Err(NotAnswered::Lost) => {}
                Err(NotAnswered::Trouble(trouble)) => return Err(trouble.detail),
            }
        }
    }
}

/// Who was too slow for others reads on from the disk, where what comes is kept under this number.
async fn goes_on(remote: &Remote, id: u64, reader: &mut Section) -> bool {
    let held = remote.repository().entry(id).await;
    let next = held.and_then(|(_, held)| held.body.reader());
    let is_there = next.is_some();
    next.into_iter().for_each(|next| reader.go_on(next));
    is_there
}

pub(super) fn from_promise(early: bool) -> AnsweredFrom {
    if early { AnsweredFrom::PromiseEarly } else { AnsweredFrom::PromiseOnTheWay }
}

impl Delivery {
    pub(super) fn new(from: AnsweredFrom, status: StatusCode) -> Self {
        Delivery {
            from,
            status,
            bytes: 0,
            prefix: Prefix::default(),
            first_byte_ms: 0,
            asked_again: false,
            given: Given::default(),
        }
    }

    /// A lost carrier comes back. A push that ground could not finish is asked for in the ordinary way, once.
    fn may_go_on(&mut self, broken: &Broken) -> bool {
        let promised = matches!(self.from, AnsweredFrom::PromiseEarly | AnsweredFrom::PromiseOnTheWay);
        match broken {
            Broken::Lost | Broken::Outrun(_) => true,
            Broken::Failed(_) | Broken::GivenUp => {
                promised && !std::mem::replace(&mut self.asked_again, true)
            }
        }
    }

    fn take(&mut self, bytes: &Bytes) {
        self.prefix.take(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// Whether a body that belongs to `again` may follow the head `before`. A length that only one of them tells is no
/// difference: a text may be coded in one go once and be streamed the next time.
fn is_same(before: &ResponseHead, again: &ResponseHead) -> bool {
    const DESCRIBE: [HeaderName; 5] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_RANGE, ETAG, LAST_MODIFIED];
    let values = |head: &ResponseHead, name: &HeaderName| -> Vec<HeaderValue> {
        head.fields.get_all(name).iter().cloned().collect()
    };
    let length = |head: &ResponseHead| head.fields.get(CONTENT_LENGTH).cloned();
    let lengths_agree = match (length(before), length(again)) {
        (Some(before), Some(again)) => before == again,
        _ => true,
    };
    before.status == again.status
        && lengths_agree
        && DESCRIBE.iter().all(|name| values(before, name) == values(again, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_has_has_one_hash_however_many_pieces_it_came_in() {
        for cuts in [&[][..], &[0], &[4], &[1, 1, 3], &[2, 7]] {
            let mut prefix = Prefix::default();
            let mut from = 0;
            for to in cuts.iter().copied().chain([10]) {
                prefix.take(&Bytes::from_static(&b"0123456789"[from..to]));
                from = to;
            }
            assert_eq!(prefix.hash(), *blake3::hash(b"0123456789").as_bytes(), "{cuts:?}");
        }
        assert_eq!(Prefix::default().hash(), *blake3::hash(b"").as_bytes());
    }
}
