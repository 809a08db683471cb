//! Responses of origins: the head held to one reading, the body as a stream whose end can be trusted.

use crate::error::Error;
use crate::hop::strip_hop_by_hop;
use crate::pool::{Connection, Slot};
use crate::settings::Settings;
use crate::upload::Progress;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::{Method, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use std::io;
use std::sync::Arc;

/// A response whose head has arrived.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// End-to-end fields.
    pub fields: HeaderMap,
    /// Whether there is a body, and its length in bytes where the origin says it.
    pub length: Option<u64>,
    /// The body as it arrives.
    pub body: ResponseBody,
}

/// Checks what hyper lets pass, and takes out what is of the connection.
///
/// # Errors
/// A head whose body could be delimited in two ways.
pub(crate) fn check_head(
    method: &Method,
    status: StatusCode,
    version: Version,
    fields: &mut HeaderMap,
) -> Result<(), Error> {
    let malformed = |what: &str| Err(Error::Malformed(what.into()));
    let bodiless =
        *method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next() {
        // RFC 9112 §6.3, 5 would let equal repetitions pass; whoever repeats can also differ.
        if lengths.next().is_some() {
            return malformed("content-length is repeated");
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
    Ok(())
}

/// What a finished exchange gives back.
pub(crate) struct Lease {
    /// The origin does not want the rest of the request body.
    pub(crate) upload_unwanted: bool,
    pub(crate) slot: Slot,
    pub(crate) connection: Connection,
    pub(crate) progress: Arc<Progress>,
    pub(crate) settings: Arc<Settings>,
}

impl Lease {
    /// Keeps the connection once it is ready for another request: at once, unless the request body is still on its
    /// way. One that never gets ready is closed.
    fn give_back(self) {
        let Lease { upload_unwanted, slot, mut connection, progress, settings } = self;
        if connection.sender.is_ready() {
            return slot.keep(connection);
        }
        // RFC 9112 §9.5: whoever is told no while sending a body ceases and closes.
        if upload_unwanted && progress.is_uploading() {
            return;
        }
        tokio::spawn(async move {
            tokio::select! {
                ready = connection.sender.ready() => if ready.is_ok() {
                    slot.keep(connection);
                },
                () = progress.stalled(settings.body_timeout) => {}
            }
        });
    }
}

/// The body of a response. Dropped before its end, it closes the connection.
pub struct ResponseBody {
    incoming: Incoming,
    lease: Option<Lease>,
    trailers: Option<HeaderMap>,
    progress: Arc<Progress>,
    settings: Arc<Settings>,
    failed: Option<Error>,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, lease: Lease) -> Self {
        let (progress, settings) = (lease.progress.clone(), lease.settings.clone());
        ResponseBody { incoming, lease: Some(lease), trailers: None, progress, settings, failed: None }
    }

    /// Whether it is known already that nothing (more) comes.
    pub fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// The next bytes, never empty; `None` after the last. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body is cut short, malformed or stalled. What came before must not be taken for the whole.
    pub async fn data(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.next_data().await {
            Ok(Some(data)) => Ok(Some(data)),
            Ok(None) => {
                if let Some(lease) = self.lease.take() {
                    lease.give_back();
                }
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
            let frame = tokio::select! {
                frame = self.incoming.frame() => frame,
                () = self.progress.stalled(self.settings.body_timeout) => return Err(Error::BodyStalled),
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(body_error(&error)),
                None => return Ok(None),
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }

    /// The trailers, once [`ResponseBody::data`] has given `None`.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        let mut trailers = self.trailers.take()?;
        strip_hop_by_hop(&mut trailers);
        Some(trailers)
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // A response without a body is whole even if nobody asked for its data.
        if self.failed.is_none()
            && self.incoming.is_end_stream()
            && let Some(lease) = self.lease.take()
        {
            lease.give_back();
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").field("is_end", &self.is_end()).finish_non_exhaustive()
    }
}

/// What hyper found wrong with a body.
fn body_error(error: &hyper::Error) -> Error {
    if error.is_incomplete_message() {
        return Error::BodyIncomplete;
    }
    match io_cause(error) {
        Some(cause) if matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            Error::BodyMalformed(cause.to_string())
        }
        _ => Error::BodyIncomplete,
    }
}

/// The I/O error behind a hyper error, if that is what it was.
pub(crate) fn io_cause(error: &hyper::Error) -> Option<&io::Error> {
    std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>())
}
