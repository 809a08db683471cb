//! The two sides of a stream on a lane: what waits to be sent within the peer's window, and what has arrived
//! and waits to be read.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Small pieces that wait are joined up to here, so that each costs its bytes and little more.
const JOINED: usize = 16 * 1024;

/// What this end sends.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    segments: VecDeque<Bytes>,
    queued: usize,
    /// The side ends after what is queued.
    pub(super) end: bool,
    /// A write has been handed over and not all of it sent.
    pub(super) writing: bool,
    /// Higher goes first.
    pub(super) priority: i32,
    /// When it was last added to; earlier goes first among equals.
    pub(super) turn: u64,
    sent: u64,
    limit: u64,
    /// The peer wants no more; told once.
    pub(super) stopped: bool,
}

impl Outgoing {
    pub(super) fn new(limit: u64) -> Self {
        Outgoing { limit, ..Outgoing::default() }
    }

    pub(super) fn add(&mut self, segments: Vec<Bytes>) {
        self.queued += segments.iter().map(Bytes::len).sum::<usize>();
        self.segments.extend(segments.into_iter().filter(|segment| !segment.is_empty()));
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Bytes that the stream's window lets go now.
    pub(super) fn room(&self) -> usize {
        usize::try_from(self.limit - self.sent).unwrap_or(usize::MAX).min(self.queued)
    }

    /// Whether the window is what everything waits for.
    pub(super) fn is_ready(&self) -> bool {
        self.room() > 0 || (self.queued == 0 && self.end)
    }

    /// A window only grows: words of the peer may overtake each other on several lanes.
    pub(super) fn widen(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Moves `length` queued bytes to `out`.
    pub(super) fn take(&mut self, mut length: usize, out: &mut BytesMut) {
        self.sent += length as u64;
        self.queued -= length;
        while length > 0 {
            let Some(mut segment) = self.segments.pop_front() else { return };
            let piece = segment.split_to(length.min(segment.len()));
            length -= piece.len();
            out.extend_from_slice(&piece);
            if !segment.is_empty() {
                self.segments.push_front(segment);
            }
        }
    }
}

/// How the peer's side ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Last,
    Reset(u64),
}

/// What this end receives.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pieces: VecDeque<BytesMut>,
    received: u64,
    read: u64,
    granted: u64,
    pub(super) ending: Option<Ending>,
    /// Nobody here wants any more: what still comes is dropped.
    pub(super) stopped: bool,
    /// The reader knows that there is something, and has not had it all.
    pub(super) told: bool,
}

impl Incoming {
    pub(super) fn new(window: u64) -> Self {
        Incoming { granted: window, ..Incoming::default() }
    }

    /// Whether the peer may send `length` bytes more.
    pub(super) fn admits(&self, length: usize) -> bool {
        self.received + length as u64 <= self.granted
    }

    /// Bytes that wait.
    pub(super) fn held(&self) -> u64 {
        self.received - self.read
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if bytes.is_empty() {
            return;
        }
        match self.pieces.back_mut() {
            Some(last) if last.len() + bytes.len() <= JOINED => last.extend_from_slice(bytes),
            _ => self.pieces.push_back(BytesMut::from(bytes)),
        }
    }

    pub(super) fn take(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front()?;
        self.read += piece.len() as u64;
        Some(piece.freeze())
    }

    /// Drops what waits; gives its size.
    pub(super) fn discard(&mut self) -> u64 {
        let held = self.held();
        self.pieces.clear();
        self.read = self.received;
        held
    }

    /// Whether the peer should hear how far it may go with this `window`: half of it is used up.
    pub(super) fn owes_word(&self, window: u64) -> bool {
        self.ending.is_none() && !self.stopped && self.read + window - self.granted >= window / 2
    }

    /// How far the peer may go.
    pub(super) fn grant(&mut self, window: u64) -> u64 {
        self.granted = self.read + window;
        self.granted
    }
}
