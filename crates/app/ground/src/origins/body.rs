//! The body of a response as it comes from an origin or out of the stock: what is coded with a dictionary undone, and what is to be kept, kept.

use std::sync::Arc;

use bytes::Bytes;
use farhop_htotp::frame::Failure;
use farhop_origin::{Error, ResponseBody};
use http::HeaderMap;

use crate::dictated::{Dictated, Keeping, Undoing};
use crate::failure;
use crate::stock::{Kept, StockBody};

/// A body as the origin sends it, or has sent it.
pub(crate) struct OriginBody {
    whence: Whence,
    /// Nobody has asked for it, so what may have been cut off is not taken for the whole, as browsers would take it.
    pub(super) strict: bool,
    /// It is coded with a dictionary that was offered.
    pub(super) undoing: Option<(Undoing, Arc<Dictated>)>,
    /// What was undone before anyone asked for it.
    undone: Option<Bytes>,
    /// It will be one itself.
    pub(super) keeping: Option<Keeping>,
    /// It is kept on disk.
    kept: Option<Kept>,
    received: u64,
    ended: bool,
}

/// Whence a body comes.
enum Whence {
    Origin(ResponseBody),
    Stock(StockBody),
}

impl From<ResponseBody> for OriginBody {
    fn from(body: ResponseBody) -> Self {
        OriginBody::coming(Whence::Origin(body))
    }
}

impl From<StockBody> for OriginBody {
    fn from(body: StockBody) -> Self {
        OriginBody::coming(Whence::Stock(body))
    }
}

/// The next part of it.
pub(crate) enum OriginPart {
    /// At least one byte.
    Bytes(Bytes),
    /// Complete.
    End(Option<HeaderMap>),
}

impl OriginBody {
    fn coming(whence: Whence) -> OriginBody {
        OriginBody {
            whence,
            strict: false,
            undoing: None,
            undone: None,
            keeping: None,
            kept: None,
            received: 0,
            ended: false,
        }
    }

    /// Keeps it, too, once it is whole.
    pub(crate) fn keep(&mut self, kept: Option<Kept>) {
        self.kept = kept;
    }

    /// The next part; nothing follows the end or a failure. Cancel-safe.
    ///
    /// # Errors
    /// The body is not whole.
    pub(crate) async fn next(&mut self) -> Result<OriginPart, Failure> {
        loop {
            if let Some(bytes) = self.undone()? {
                return Ok(self.given(bytes));
            }
            let body = match &mut self.whence {
                Whence::Origin(body) => body,
                Whence::Stock(body) => return body.next().await,
            };
            if self.ended {
                let is_whole = !body.was_cut();
                // Trailers speak of the origin's bytes.
                let trailers = body.trailers().filter(|_| self.undoing.is_none());
                self.end(is_whole, trailers.as_ref());
                return Ok(OriginPart::End(trailers));
            }
            if let Some(bytes) = self.read().await? {
                return Ok(self.given(bytes));
            }
        }
    }

    /// Reads on. Gives what comes, unless that has to be undone. Cancel-safe.
    async fn read(&mut self) -> Result<Option<Bytes>, Failure> {
        let Whence::Origin(body) = &mut self.whence else { return Ok(None) };
        match body.data().await {
            Ok(Some(bytes)) => {
                self.received += bytes.len() as u64;
                match &mut self.undoing {
                    Some((undoing, _)) => undoing.decoder.feed(bytes),
                    None => return Ok(Some(bytes)),
                }
            }
            Ok(None) if self.strict && body.was_cut() => {
                return Err(failure::origin(&Error::BodyIncomplete));
            }
            Ok(None) => {
                self.ended = true;
                self.undoing.iter_mut().for_each(|(undoing, _)| undoing.decoder.end());
            }
            Err(error) => return Err(failure::origin(&error)),
        }
        Ok(None)
    }

    /// Undoes the first of what is coded with a dictionary. Cancel-safe.
    ///
    /// # Errors
    /// It is coded with another, or not whole.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        while self.undoing.is_some() {
            self.undone = self.undone()?;
            if self.undone.is_some() || self.ended {
                break;
            }
            self.read().await?;
        }
        Ok(())
    }

    /// Bytes that the origin has sent.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// What is at hand of a body that is coded with a dictionary.
    fn undone(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(bytes) = self.undone.take() {
            return Ok(Some(bytes));
        }
        let Some((undoing, dictated)) = &mut self.undoing else { return Ok(None) };
        undoing.decoder.pull().map_err(|error| {
            undoing.failed(dictated);
            failure::coding(&error)
        })
    }

    fn given(&mut self, bytes: Bytes) -> OriginPart {
        if self.keeping.as_mut().is_some_and(|keeping| !keeping.take(&bytes)) {
            self.keeping = None;
        }
        if self.kept.as_mut().is_some_and(|kept| !kept.take(&bytes)) {
            self.kept = None;
        }
        OriginPart::Bytes(bytes)
    }

    fn end(&mut self, is_whole: bool, trailers: Option<&HeaderMap>) {
        let (keeping, kept) = (self.keeping.take(), self.kept.take());
        if is_whole {
            keeping.into_iter().for_each(Keeping::whole);
            kept.into_iter().for_each(|kept| kept.whole(trailers.cloned(), self.received));
        }
    }
}
