//! What both sides do with a stream: they say bytes that follow from the seed, and check those that they hear.

use bytes::Bytes;
use farhop_htotp::RequestHead;
use farhop_testkit::pattern::{Checker, bytes_at};
use farhop_transport::hop::{Arrival, Gone, Receiver, Sender};
use http::{HeaderMap, Method};

use crate::log::Log;

/// Bytes written at once.
const PIECE: usize = 16 << 10;

/// A body of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body {
    /// Names its contents.
    pub(crate) name: u64,
    pub(crate) size: usize,
}

/// Which body of an errand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Request,
    Answer,
    Promise(usize),
}

impl Body {
    /// The body of a part of an errand.
    pub(crate) fn of(seed: u64, errand: usize, part: Part, size: usize) -> Body {
        let place = match part {
            Part::Request => 0,
            Part::Answer => 1,
            Part::Promise(index) => 2 + index as u64,
        };
        Body { name: seed.wrapping_mul(1 << 20).wrapping_add((errand as u64) << 8 | place), size }
    }

    fn slice(self, from: usize, to: usize) -> Bytes {
        bytes_at(self.name, from as u64, to - from)
    }

    /// Says its bytes up to `end`, and does not finish.
    pub(crate) async fn say(self, sender: &mut Sender, end: usize) -> Result<(), Gone> {
        for from in (0..end).step_by(PIECE) {
            sender.write(self.slice(from, end.min(from + PIECE))).await?;
        }
        Ok(())
    }

    /// Says all of it, and finishes.
    pub(crate) async fn say_whole(self, sender: &mut Sender) -> Result<(), Gone> {
        self.say(sender, self.size).await?;
        sender.finish(None);
        Ok(())
    }

    pub(crate) fn listener(self) -> Listener {
        Listener { body: self, checker: Checker::new(self.name) }
    }
}

/// Hears a body.
#[derive(Debug)]
pub(crate) struct Listener {
    body: Body,
    checker: Checker,
}

impl Listener {
    /// Takes the next bytes.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        self.checker.check(piece).map_err(|at| format!("byte {at} is wrong"))?;
        if self.heard() > self.body.size {
            return Err(format!("{} bytes instead of {}", self.heard(), self.body.size));
        }
        Ok(())
    }

    pub(crate) fn heard(&self) -> usize {
        self.checker.checked() as usize
    }

    /// It is over.
    pub(crate) fn end(&self) -> Result<(), String> {
        let (heard, size) = (self.heard(), self.body.size);
        if heard == size { Ok(()) } else { Err(format!("ended after {heard} bytes of {size}")) }
    }

    /// Hears all of it where nothing else may come.
    pub(crate) async fn hear(
        mut self,
        mut receiver: Receiver,
        log: &Log,
        what: &str,
        number: u64,
    ) -> Result<(), String> {
        loop {
            match receiver.next().await {
                Arrival::Body(piece) => {
                    log.arrived(what, number, piece.len());
                    self.take(&piece)?;
                }
                Arrival::Answered { .. } => log.arrived(what, number, 0),
                Arrival::Ended => return self.end(),
                other => return Err(format!("{other:?} after {} bytes", self.heard())),
            }
        }
    }
}

/// The head of a request for `path`.
pub(crate) fn head(method: Method, path: String) -> RequestHead {
    RequestHead {
        method,
        scheme: "https".into(),
        authority: "site.test".into(),
        path,
        fields: HeaderMap::new(),
    }
}
