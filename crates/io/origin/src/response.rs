//! Responses of origins: the head held to one reading, the body as a stream whose end can be trusted.

use crate::error::Error;
use crate::faults;
use crate::hop::strip_hop_by_hop;
use crate::http2::Pump;
use crate::pool::{Lent, Share};
use crate::settings::Settings;
use crate::upload::Progress;
use bytes::Bytes;
use farhop_front::h1::merge_lengths;
use h2::RecvStream;
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::{Method, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use std::sync::Arc;

/// A response whose head has arrived.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The version of HTTP in which it came.
    pub version: Version,
    /// End-to-end fields.
    pub fields: HeaderMap,
    /// Whether there is a body, and its length in bytes where the origin says it.
    pub length: Option<u64>,
    /// Whether nothing but the end of a connection within TLS ends the body. Servers seldom say that end, so the body
    /// may have been cut off by anybody, see [`ResponseBody::was_cut`]: it is for whoever asked, and not to be kept.
    pub unsealed: bool,
    /// The body as it arrives.
    pub body: ResponseBody,
}

/// Checks what hyper and h2 let pass, and takes out what is of the connection; whether no body can follow.
///
/// # Errors
/// A head whose body could be delimited in two ways.
pub(crate) fn check_head(
    method: &Method,
    status: StatusCode,
    version: Version,
    fields: &mut HeaderMap,
) -> Result<bool, Error> {
    let malformed = |what: &str| Err(Error::Malformed(what.into()));
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        // RFC 9110 §15.5.8: only a proxy of the client's own may ask for what is meant for that proxy.
        return malformed("407 is not for an origin to say");
    }
    let bodiless =
        *method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    merge_lengths(fields);
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next() {
        if lengths.next().is_some() {
            return malformed("content-length is repeated, and differs");
        }
        let digits = length.as_bytes();
        if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
            return malformed("content-length is no number");
        }
    }
    let mut codings = fields.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        // RFC 9112 §6.1: both together ought to be handled as an error.
        if fields.contains_key(CONTENT_LENGTH) {
            return malformed("content-length beside transfer-encoding");
        }
        if version == Version::HTTP_10 {
            return malformed("transfer-encoding in HTTP/1.0");
        }
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return malformed("transfer-encoding is not chunked alone");
        }
    }
    strip_hop_by_hop(fields);
    if bodiless && status == StatusCode::NO_CONTENT {
        // RFC 9110 §8.6: it must not be there, so nothing further on may act on it.
        fields.remove(CONTENT_LENGTH);
    }
    Ok(bodiless)
}

/// What a finished exchange gives back. Dropped instead, an HTTP/1 connection is closed and an HTTP/2 stream is reset.
pub(crate) struct Lease {
    on: On,
    /// The origin does not want the rest of the request body.
    upload_unwanted: bool,
}

/// What an exchange runs on.
enum On {
    Http1(Lent),
    Http2(Share, Pump),
}

impl Lease {
    pub(crate) fn http1(lent: Lent, upload_unwanted: bool) -> Lease {
        Lease { on: On::Http1(lent), upload_unwanted }
    }

    pub(crate) fn http2(share: Share, upload: Pump, upload_unwanted: bool) -> Lease {
        Lease { on: On::Http2(share, upload), upload_unwanted }
    }

    /// Gives an HTTP/1 connection back once it is ready for another request: at once, unless the request body is still
    /// on its way. One that never gets ready is closed.
    fn give_back(self, progress: &Arc<Progress>, settings: &Settings) {
        let upload_unwanted = self.upload_unwanted;
        let mut lent = match self.on {
            On::Http1(lent) => lent,
            On::Http2(_share, upload) => {
                if !upload_unwanted {
                    upload.detach();
                }
                return;
            }
        };
        if lent.connection().sender.is_ready() {
            return lent.keep();
        }
        // RFC 9112 §9.5: whoever is told no while sending a body ceases and closes.
        if upload_unwanted && progress.is_uploading() {
            return;
        }
        let (progress, patience) = (progress.clone(), settings.first_byte_timeout);
        tokio::spawn(async move {
            tokio::select! {
                ready = lent.connection().sender.ready() => if ready.is_ok() {
                    lent.keep();
                },
                () = progress.stalled(patience) => {}
            }
        });
    }

    /// Something has come.
    fn moved(&self) {
        if let On::Http1(lent) = &self.on {
            lent.moved();
        }
    }

    fn was_cut(&mut self) -> bool {
        match &mut self.on {
            On::Http1(lent) => lent.connection().vetting.was_cut(),
            On::Http2(..) => false,
        }
    }

    /// The body has stood still for too long.
    fn has_stalled(&self) {
        if let On::Http2(share, _) = &self.on {
            share.retire();
        }
    }
}

/// The body of a response. Dropped before its end, it ends the exchange.
pub struct ResponseBody {
    source: Source,
    lease: Option<Lease>,
    trailers: Option<HeaderMap>,
    progress: Arc<Progress>,
    settings: Arc<Settings>,
    failed: Option<Error>,
    cut: bool,
}

enum Source {
    Http1(Incoming),
    Http2 {
        stream: RecvStream,
        /// RFC 9110 §6.4.1: no body can follow this head.
        bodiless: bool,
    },
}

/// What comes next of a body.
enum Part {
    Data(Bytes),
    End(Option<HeaderMap>),
}

impl Source {
    fn is_end(&self) -> bool {
        match self {
            Source::Http1(incoming) => incoming.is_end_stream(),
            Source::Http2 { stream, .. } => stream.is_end_stream(),
        }
    }

    /// Dropping the future loses nothing.
    async fn next(&mut self, trailers: &mut Option<HeaderMap>) -> Result<Part, Error> {
        match self {
            Source::Http1(incoming) => match incoming.frame().await {
                Some(Ok(frame)) => Ok(Part::Data(frame.into_data().unwrap_or_else(|frame| {
                    *trailers = frame.into_trailers().ok();
                    Bytes::new()
                }))),
                Some(Err(error)) => Err(faults::http1_body(&error)),
                None => Ok(Part::End(trailers.take())),
            },
            Source::Http2 { stream, bodiless } => match stream.data().await {
                Some(Ok(data)) if *bodiless && !data.is_empty() => {
                    Err(Error::BodyMalformed("there is one where none may be".into()))
                }
                Some(Ok(data)) => {
                    // The origin may send as much again: it is the reader's now. Fails only on a stream that is over.
                    let _ = stream.flow_control().release_capacity(data.len());
                    Ok(Part::Data(data))
                }
                Some(Err(error)) => Err(faults::http2_body(&error)),
                None => stream.trailers().await.map(Part::End).map_err(|error| faults::http2_body(&error)),
            },
        }
    }
}

impl ResponseBody {
    pub(crate) fn http1(
        incoming: Incoming,
        lease: Lease,
        progress: Arc<Progress>,
        settings: Arc<Settings>,
    ) -> Self {
        ResponseBody::new(Source::Http1(incoming), lease, progress, settings)
    }

    pub(crate) fn http2(
        stream: RecvStream,
        bodiless: bool,
        lease: Lease,
        progress: Arc<Progress>,
        settings: Arc<Settings>,
    ) -> Self {
        ResponseBody::new(Source::Http2 { stream, bodiless }, lease, progress, settings)
    }

    fn new(source: Source, lease: Lease, progress: Arc<Progress>, settings: Arc<Settings>) -> Self {
        ResponseBody {
            source,
            lease: Some(lease),
            trailers: None,
            progress,
            settings,
            failed: None,
            cut: false,
        }
    }

    /// Whether it is known already that nothing (more) comes.
    pub fn is_end(&self) -> bool {
        self.source.is_end()
    }

    /// The next bytes, never empty; `None` after the last. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body is cut short, malformed or stalled. What came before must not be taken for the whole.
    pub async fn data(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.lease.is_none() {
            return Ok(None);
        }
        match self.next_data().await {
            Ok(Some(data)) => Ok(Some(data)),
            Ok(None) => {
                self.give_back();
                Ok(None)
            }
            Err(error) => {
                self.lease = None;
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn next_data(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            self.progress.touch();
            let part = tokio::select! {
                part = self.source.next(&mut self.trailers) => part?,
                () = self.progress.stalled(self.settings.body_timeout) => {
                    self.lease.iter().for_each(Lease::has_stalled);
                    return Err(Error::BodyStalled);
                }
            };
            match part {
                Part::Data(data) if data.is_empty() => {}
                Part::Data(data) => {
                    self.lease.iter().for_each(Lease::moved);
                    return Ok(Some(data));
                }
                Part::End(trailers) => {
                    self.trailers = trailers;
                    return Ok(None);
                }
            }
        }
    }

    /// Whether the origin has left without the word by which TLS tells an end from a cut line (RFC 9112 §9.8), once
    /// [`ResponseBody::data`] has given `None`.
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// The trailers, once [`ResponseBody::data`] has given `None`.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        let mut trailers = self.trailers.take()?;
        strip_hop_by_hop(&mut trailers);
        Some(trailers)
    }

    fn give_back(&mut self) {
        if let Some(mut lease) = self.lease.take() {
            self.cut = lease.was_cut();
            lease.give_back(&self.progress, &self.settings);
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // A response without a body is whole even if nobody asked for its data.
        if self.failed.is_none() && self.source.is_end() {
            self.give_back();
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").field("is_end", &self.is_end()).finish_non_exhaustive()
    }
}
