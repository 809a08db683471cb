//! A response body as it will be delivered: what the origin sends, with its content codings undone where the treatment
//! says so, in pieces of bounded size. It knows nothing of the hop.

use bytes::Bytes;
use farhop_htotp::frame::Failure;
use farhop_squeeze::{Coding, Decoder};
use http::HeaderMap;

use crate::failure;
use crate::origins::{OriginBody, OriginPart};

/// The next part of a body.
#[derive(Debug)]
pub(crate) enum Part {
    /// Bytes, at least one.
    Bytes(Bytes),
    /// The end, with its trailers.
    End(Option<HeaderMap>),
}

/// See the module.
pub(crate) struct Source {
    body: OriginBody,
    /// Without codings it passes bytes on as they are.
    decoder: Decoder,
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl Source {
    /// The body, with `codings` undone.
    pub(crate) fn new(body: OriginBody, codings: &[Coding]) -> Self {
        Source { body, decoder: Decoder::new(codings), trailers: None, ended: false }
    }

    /// Bytes that the origin has sent.
    pub(crate) fn received(&self) -> u64 {
        self.body.received()
    }

    /// The next part; nothing comes after [`Part::End`] or a failure. Cancel-safe.
    ///
    /// # Errors
    /// The origin failed, or its body cannot be decoded.
    pub(crate) async fn next(&mut self) -> Result<Part, Failure> {
        loop {
            // Pieces are bounded: what expands a thousandfold comes in many, each when it is wanted.
            if let Some(bytes) = self.decoder.pull().map_err(|error| failure::coding(&error))? {
                return Ok(Part::Bytes(bytes));
            }
            if self.ended {
                return Ok(Part::End(self.trailers.take()));
            }
            match self.body.next().await? {
                OriginPart::Bytes(bytes) => self.decoder.feed(bytes),
                OriginPart::End(trailers) => {
                    (self.ended, self.trailers) = (true, trailers);
                    self.decoder.end();
                }
            }
        }
    }
}
