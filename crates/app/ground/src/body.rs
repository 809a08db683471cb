//! A response body as it will be delivered: what the origin sends, with its content codings undone where the treatment
//! says so, in pieces of bounded size. As long as it may cross as the origin coded it, the coded bytes come behind what they decode
//! to. It knows nothing of the hop.

use bytes::{Bytes, BytesMut};
use farhop_htotp::frame::Failure;
use farhop_squeeze::{Coding, Decoder};
use http::HeaderMap;

use crate::failure;
use crate::origins::{OriginBody, OriginPart};

/// The next part of a body.
#[derive(Debug)]
pub(crate) enum Part {
    /// Bytes, at least one; where the coded ones come behind, these may be all that there is.
    Bytes(Bytes),
    /// The end, with its trailers.
    End(Option<HeaderMap>),
}

/// See the module.
pub(crate) struct Source {
    body: OriginBody,
    /// Without codings it passes bytes on as they are.
    decoder: Decoder,
    coded: Option<Coded>,
    trailers: Option<HeaderMap>,
    ended: bool,
}

/// Coded bytes that are decoded at a time where they come behind: what they decode to is given first.
const SLICE: usize = 8 * 1024;

/// A body as it was coded.
#[derive(Default)]
struct Coded {
    /// What waits to be decoded.
    waiting: Bytes,
    /// What is being decoded.
    slice: Bytes,
    /// Of all that came, how many bytes were used up before that.
    used: u64,
    /// All that they decode to was given; to be taken.
    done: BytesMut,
}

impl Source {
    /// The body, with `codings` undone.
    pub(crate) fn new(body: OriginBody, codings: &[Coding]) -> Self {
        Source { body, decoder: Decoder::new(codings), coded: None, trailers: None, ended: false }
    }

    /// From its beginning on the coded bytes come behind those that they decode to, until [`Source::forget_coded`].
    pub(crate) fn keep_coded(&mut self) {
        self.coded = Some(Coded::default());
    }

    /// The coded bytes are of no use (any more).
    pub(crate) fn forget_coded(&mut self) {
        if let Some(coded) = self.coded.take()
            && !coded.waiting.is_empty()
        {
            self.decoder.feed(coded.waiting);
        }
    }

    /// The coded bytes that are not taken yet, of those parts of which all was given. None where they do not come behind.
    pub(crate) fn take_coded(&mut self) -> Option<Bytes> {
        self.coded.as_mut().map(|coded| coded.done.split().freeze())
    }

    /// How far back the body refers, once some of it was given; see [`Decoder::window`].
    pub(crate) fn window(&self) -> usize {
        self.decoder.window()
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
            match self.decoder.pull() {
                Ok(Some(bytes)) => return Ok(Part::Bytes(bytes)),
                Ok(None) if self.finish_slice() => return Ok(Part::Bytes(Bytes::new())),
                Ok(None) => {}
                Err(error) => {
                    self.finish_slice();
                    return Err(failure::coding(&error));
                }
            }
            if self.feed_slice() {
                continue;
            }
            if self.ended {
                return Ok(Part::End(self.trailers.take()));
            }
            match self.body.next().await? {
                OriginPart::Bytes(bytes) => match &mut self.coded {
                    Some(coded) => coded.waiting = bytes,
                    None => self.decoder.feed(bytes),
                },
                OriginPart::End(trailers) => {
                    (self.ended, self.trailers) = (true, trailers);
                    self.decoder.end();
                }
            }
        }
    }

    /// What was used up of the slice is done; whether that is anything.
    fn finish_slice(&mut self) -> bool {
        let used = self.decoder.used();
        let Some(coded) = &mut self.coded else { return false };
        // What follows the end of the coding is not of the body.
        let fresh = usize::try_from(used - coded.used).unwrap_or(usize::MAX).min(coded.slice.len());
        coded.done.extend_from_slice(&coded.slice.split_to(fresh));
        coded.used = used;
        fresh > 0
    }

    /// Goes on with the next slice, if there is one.
    fn feed_slice(&mut self) -> bool {
        let Some(coded) = self.coded.as_mut().filter(|coded| !coded.waiting.is_empty()) else { return false };
        coded.slice = coded.waiting.split_to(coded.waiting.len().min(SLICE));
        self.decoder.feed(coded.slice.clone());
        true
    }
}
