//! One request on its way over one connection after another, until one of them has its answer or it must not be sent
//! again.

use crate::error::Error;
use crate::faults;
use crate::hop::strip_hop_by_hop;
use crate::http2::{self, Unanswered};
use crate::pool::{Lent, Share};
use crate::request::{Head, Request};
use crate::response::{Lease, Response, ResponseBody, check_head};
use crate::settings::{FLOOD, Settings};
use crate::upload::{Progress, Spare, UploadBody};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};
use http::{HeaderValue, Method, StatusCode, Version};
use hyper::body::{Body, Incoming};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why an attempt gave no response.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The connection was gone before anything was sent.
    Unsent,
    /// The origin says that it has not acted on the request: any may be sent again (RFC 9113 §8.7).
    Unprocessed,
    /// The same, as it has ended the connection before the turn of this request had come (RFC 9113 §6.8).
    GoneAway,
    /// The same, and it wants HTTP/1.1 (RFC 9113 §7).
    WantsHttp1,
    /// The connection broke without a word in answer.
    Unanswered,
    /// For good.
    For(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::For(error)
    }
}

type Informational = Arc<dyn Fn(Version, StatusCode, HeaderMap) + Send + Sync>;

/// See the module.
pub(crate) struct Sending {
    head: Head,
    /// Taken by the attempt that sends it.
    body: Option<UploadBody>,
    /// What to make another body of, where that is wanted, and its length in bytes where that is known.
    spare: Option<Spare>,
    length: Option<u64>,
    progress: Arc<Progress>,
    informational: Informational,
    settings: Arc<Settings>,
}

impl Sending {
    /// # Errors
    /// The request can't be sent by anyone.
    pub(crate) fn new(
        request: Request,
        informational: Informational,
        settings: &Arc<Settings>,
    ) -> Result<Self, Error> {
        if request.method == Method::CONNECT {
            return Err(Error::InvalidRequest("CONNECT opens a tunnel".into()));
        }
        let Request { method, scheme, destination, path, fields, upload, patience, .. } = request;
        let settings = match patience {
            Some(patience) => Arc::new(settings.with_patience(patience)),
            None => settings.clone(),
        };
        let length = upload.length();
        let head = Head::new(method, scheme, &destination, path, fields, length);
        let progress = Progress::new();
        let body = Some(upload.into_body(progress.clone()));
        Ok(Sending { head, body, spare: None, length, progress, informational, settings })
    }

    /// The same with what makes its body once more, held until the exchange is answered or has failed.
    pub(crate) fn with(self, spare: Spare) -> Self {
        Sending { spare: Some(spare), ..self }
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Whether the request may be sent twice although the origin may have acted on it (RFC 9110 §9.2.2), and can be:
    /// its body is at hand.
    pub(crate) fn is_repeatable(&self) -> bool {
        is_idempotent(&self.head.method)
            && self.spare.as_ref().is_some_and(|spare| spare.is_kept(self.length))
    }

    /// Makes the body anew after an attempt has taken it; `false` if it is spent.
    pub(crate) fn renew(&mut self) -> bool {
        if self.body.is_none() {
            // Of its own: the attempt before may not know yet that it has failed.
            self.progress = Progress::new();
            let spare = self.spare.as_ref().and_then(|spare| spare.again(self.length));
            self.body = spare.map(|upload| upload.into_body(self.progress.clone()));
        }
        self.body.is_some()
    }

    /// Sends it on an HTTP/1 connection; with `again` it can go on another one if its origin was about to give this one up.
    pub(crate) async fn over_http1(&mut self, mut lent: Lent, again: bool) -> Result<Response, Failed> {
        let head = self.head.http1()?;
        let response = self.exchange(&mut lent, head).await?;
        // RFC 9110 §15.5.9: said of a connection on which nothing came, while this was on its way.
        let is_idle = response.status() == StatusCode::REQUEST_TIMEOUT && closes(response.headers());
        if again && is_idle {
            return Err(Failed::Unanswered);
        }
        Ok(self.http1_response(lent, response)?)
    }

    /// Sends `head` with the body and waits for the head of the final response, which may be 101.
    pub(crate) async fn exchange(
        &mut self,
        lent: &mut Lent,
        head: http::Request<()>,
    ) -> Result<http::Response<Incoming>, Failed> {
        let Some(body) = self.body.take() else { return Err(Failed::For(Error::Closed)) };
        let mut request = head.map(|()| body);
        let informed = self.informed();
        let seen = informed.seen.clone();
        hyper::ext::on_informational(&mut request, move |head| {
            // It cannot be refused: vetting lets no more of them pass than are allowed.
            let _ = informed.pass_on(head.version(), head.status(), head.headers());
        });
        self.progress.touch();
        let connection = lent.connection();
        connection.vetting.expect(request.method());
        let result = tokio::select! {
            // A busy machine may come to this only when its time is up as well; what came first counts.
            biased;
            result = connection.sender.try_send_request(request) => result,
            () = self.progress.stalled(self.settings.first_byte_timeout) => {
                return Err(Failed::For(Error::FirstByteTimedOut));
            }
        };
        let mut failure = match result {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        // Handed back unsent: any request may go on another connection.
        if let Some(request) = failure.take_message() {
            self.body = Some(request.into_body());
            return Err(Failed::Unsent);
        }
        match faults::http1_head(&failure.into_error(), self.head.host()) {
            Error::Closed if seen.load(Ordering::Relaxed) == 0 => Err(Failed::Unanswered),
            error => Err(Failed::For(error)),
        }
    }

    /// Sends it on an HTTP/2 connection.
    pub(crate) async fn over_http2(&mut self, share: Share) -> Result<Response, Failed> {
        let head = self.head.http2()?;
        let Some(body) = self.body.take() else { return Err(Failed::For(Error::Closed)) };
        let sent = share.connection.send(head, body, &self.progress).await;
        let (answer, upload) = match sent {
            Ok(sent) => sent,
            Err((error, body)) => {
                self.body = Some(body);
                return Err(faults::http2_unsent(&error));
            }
        };
        self.progress.touch();
        let informed = self.informed();
        let seen = informed.seen.clone();
        let inform =
            |head: http::Response<()>| informed.pass_on(Version::HTTP_2, head.status(), head.headers());
        let answer = tokio::select! {
            biased;
            answer = http2::answer(answer, inform) => answer,
            () = self.progress.stalled(self.settings.first_byte_timeout) => {
                share.retire();
                return Err(Failed::For(Error::FirstByteTimedOut));
            }
        };
        let response = match answer {
            Ok(response) => response,
            Err(Unanswered::Refused(error)) => return Err(Failed::For(error)),
            Err(Unanswered::Broken(error)) => {
                let why = self.progress.failure().map_or_else(|| faults::http2_head(&error), Failed::For);
                return Err(match why {
                    Failed::Unanswered if seen.load(Ordering::Relaxed) > 0 => Failed::For(Error::Closed),
                    why => why,
                });
            }
        };
        Ok(self.http2_response(share, upload, response)?)
    }

    /// Makes what hyper read a response, if it has one reading.
    pub(crate) fn http1_response(
        &self,
        mut lent: Lent,
        response: http::Response<Incoming>,
    ) -> Result<Response, Error> {
        let (head, incoming) = response.into_parts();
        let chunked = head.headers.contains_key(TRANSFER_ENCODING);
        let upload_unwanted =
            closes(&head.headers) || head.status.is_client_error() || head.status.is_server_error();
        let version = head.version;
        let (status, fields, _) = self.checked(head)?;
        let length = incoming.size_hint().exact();
        let unsealed = self.head.is_secure() && length.is_none() && !chunked;
        if is_event_stream(&fields) {
            lent.set_aside();
        }
        let lease = Lease::http1(lent, upload_unwanted);
        let body = ResponseBody::http1(incoming, lease, self.progress.clone(), self.settings.clone());
        Ok(Response { status, version, fields, length, unsealed, body })
    }

    fn http2_response(
        &self,
        share: Share,
        upload: http2::Pump,
        response: http::Response<h2::RecvStream>,
    ) -> Result<Response, Error> {
        let (head, stream) = response.into_parts();
        let (status, mut fields, bodiless) = self.checked(head)?;
        let length = if bodiless || stream.is_end_stream() {
            if !bodiless {
                // RFC 9113 §8.1: its head has ended the stream, and may end the client's: some, as those of gRPC ("Trailers-Only"), take
                // a head that data follow, be it none, for another answer.
                fields.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(0));
            }
            Some(0)
        } else {
            // Checked to be a number.
            fields.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
        };
        let upload_unwanted = status.is_client_error() || status.is_server_error();
        let lease = Lease::http2(share, upload, upload_unwanted);
        let body = ResponseBody::http2(stream, bodiless, lease, self.progress.clone(), self.settings.clone());
        Ok(Response { status, version: Version::HTTP_2, fields, length, unsealed: false, body })
    }

    /// The status, the fields that are end-to-end, and whether no body can follow.
    fn checked(&self, head: http::response::Parts) -> Result<(StatusCode, HeaderMap, bool), Error> {
        let (status, mut fields) = (head.status, head.headers);
        if status.is_informational() {
            return Err(Error::UnaskedUpgrade);
        }
        if fields.len() > self.settings.fields {
            return Err(Error::HeadTooLarge);
        }
        let bodiless = check_head(&self.head.method, status, head.version, &mut fields)?;
        Ok((status, fields, bodiless))
    }

    fn informed(&self) -> Informed {
        Informed {
            seen: Arc::default(),
            most: self.settings.informational,
            progress: self.progress.clone(),
            to: self.informational.clone(),
        }
    }
}

/// RFC 9110 §9.2.2, and of the methods registered since those that only ask (RFC 4918, RFC 3253, RFC 5323).
fn is_idempotent(method: &Method) -> bool {
    method.is_idempotent() || matches!(method.as_str(), "PROPFIND" | "REPORT" | "SEARCH")
}

/// Passes informational heads on, the first few of them.
struct Informed {
    seen: Arc<AtomicUsize>,
    most: usize,
    progress: Arc<Progress>,
    to: Informational,
}

impl Informed {
    fn pass_on(&self, version: Version, status: StatusCode, fields: &HeaderMap) -> Result<(), Error> {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            // RFC 9113 §8.6. In HTTP/1 it is no informational head but the last one.
            return Err(Error::UnaskedUpgrade);
        }
        // Those that are not passed on gain no time either.
        match self.seen.fetch_add(1, Ordering::Relaxed) {
            FLOOD.. => return Err(Error::TooManyInformational),
            seen if seen >= self.most => return Ok(()),
            _ => {}
        }
        self.progress.touch();
        let mut fields = fields.clone();
        strip_hop_by_hop(&mut fields);
        // RFC 9110 §8.6, RFC 9112 §6.1: neither means anything here.
        fields.remove(CONTENT_LENGTH);
        (self.to)(version, status, fields);
        Ok(())
    }
}

/// Whether nothing follows this head on its connection (RFC 9112 §9.6).
fn closes(fields: &HeaderMap) -> bool {
    fields.get_all(CONNECTION).iter().any(|value| {
        let mut items = value.as_bytes().split(|&byte| byte == b',');
        items.any(|item| item.trim_ascii().eq_ignore_ascii_case(b"close"))
    })
}

/// Whether a response is one of server-sent events.
fn is_event_stream(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}
