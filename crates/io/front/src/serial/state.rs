//! The one state that the handles of a connection share, and its poll functions. No `await` in here: each function
//! runs under the lock and returns.
//!
//! Reading and writing are independent, so that a response can start while the upload runs:
//!
//! ```text
//! answer:  Settled ─request─► Awaiting ─head─► Streaming ─end─► Settled
//!                                └───── drop ──────┴──────────► closed
//! ```

use crate::connection::{BodyError, Departure};
use crate::h1::{BodyDecoder, Decoded, Framing, HeadLimits, Refusal};
use crate::socket::Socket;
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What one read may bring while a body arrives, and the most that is kept of requests sent ahead.
const READ_AHEAD: usize = 16 * 1024;
/// What one read may bring while the connection is idle; on the stack, so that an idle connection holds no buffer.
const FIRST_READ: usize = 4 * 1024;
/// Slices handed to one vectored write.
const SLICES: usize = 16;

/// Where the current exchange's response stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// No response is owed.
    Settled,
    /// A final response is owed and has not begun.
    Awaiting,
    /// The head of the final response is written.
    Streaming(Framing),
}

/// A piece of a request body.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    End(HeaderMap),
}

pub(super) struct State {
    pub(super) socket: Box<dyn Socket>,
    pub(super) buffer: BytesMut,
    pub(super) decoder: BodyDecoder,
    /// A reading error was reported: nothing further can be read as HTTP.
    pub(super) reading_failed: bool,
    /// When the client was seen to send nothing more.
    ended_at: Option<Instant>,
    /// When the client's socket last took bytes.
    written_at: Option<Instant>,
    /// The application still holds the request body.
    pub(super) body_held: bool,
    pub(super) out: VecDeque<Bytes>,
    pub(super) answer: Answer,
    /// The answer is an event stream, which is quiet for as long as nothing happens.
    pub(super) is_events: bool,
    pub(super) persists: bool,
    pub(super) closed: bool,
    settled_waker: Option<Waker>,
    departure_waker: Option<Waker>,
}

impl State {
    pub(super) fn new(socket: Box<dyn Socket>) -> Self {
        State {
            socket,
            buffer: BytesMut::new(),
            decoder: BodyDecoder::new(Framing::None, HeadLimits::default()),
            reading_failed: false,
            ended_at: None,
            written_at: None,
            body_held: false,
            out: VecDeque::new(),
            answer: Answer::Settled,
            is_events: false,
            persists: true,
            closed: false,
            settled_waker: None,
            departure_waker: None,
        }
    }

    /// Closes the connection at once. With `reset` the client cannot take it for a proper end.
    pub(super) fn close(&mut self, reset: bool) {
        if reset {
            self.socket.reset_on_close();
        }
        self.closed = true;
        self.persists = false;
        self.answer = Answer::Settled;
        self.socket = Box::new(tokio::io::empty());
        self.out = VecDeque::new();
        self.buffer = BytesMut::new();
        self.wake();
    }

    /// Gives the stream away with the bytes that were read but not asked for.
    pub(super) fn hand_over(&mut self) -> (Box<dyn Socket>, Bytes) {
        let early = std::mem::take(&mut self.buffer).freeze();
        let socket = std::mem::replace(&mut self.socket, Box::new(tokio::io::empty()));
        self.close(false);
        (socket, early)
    }

    /// Wakes whoever waits for the exchange to change.
    pub(super) fn wake(&mut self) {
        for waker in [self.settled_waker.take(), self.departure_waker.take()].into_iter().flatten() {
            waker.wake();
        }
    }

    /// Reads once into the buffer; the count of bytes, 0 at the end of the stream.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.ended_at.is_some() {
            return Poll::Ready(Ok(0));
        }
        let count = if self.buffer.is_empty() && self.decoder.is_ended() {
            // Give the allocation back before waiting, perhaps for minutes.
            self.buffer = BytesMut::new();
            let mut memory = [MaybeUninit::uninit(); FIRST_READ];
            let mut read = ReadBuf::uninit(&mut memory);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
            self.buffer.extend_from_slice(read.filled());
            read.filled().len()
        } else {
            self.buffer.reserve(READ_AHEAD);
            // `read_buf` keeps nothing between polls, so that a fresh future each time loses nothing.
            ready!(pin!(self.socket.read_buf(&mut self.buffer)).poll(cx))?
        };
        self.ended_at = (count == 0).then(Instant::now);
        Poll::Ready(Ok(count))
    }

    /// The next piece of the request body.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let result = loop {
            if self.closed {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::NotConnected).into()));
            }
            match self.decoder.decode(&mut self.buffer) {
                Ok(Decoded::Data(data)) => break Ok(Piece::Data(compact(data))),
                Ok(Decoded::End(trailers)) => break Ok(Piece::End(trailers)),
                Ok(Decoded::NeedMore) => match ready!(self.poll_fill(cx)) {
                    Ok(0) => break Err(Refusal::BodyIncomplete.into()),
                    Ok(_) => {}
                    Err(error) => break Err(error.into()),
                },
                Err(refusal) => break Err(refusal.into()),
            }
        };
        match &result {
            Err(_) => self.fail_reading(),
            Ok(_) if self.decoder.is_ended() => self.wake(),
            Ok(_) => {}
        }
        Poll::Ready(result)
    }

    /// Notes that nothing further can be read as HTTP; a response can still be written.
    pub(super) fn fail_reading(&mut self) {
        self.reading_failed = true;
        self.persists = false;
        self.wake();
    }

    /// Whether the request body is done with, read to its end or not.
    fn body_over(&self) -> bool {
        self.decoder.is_ended() || self.reading_failed
    }

    /// Ready when no response is owed, none is left to send, and nobody reads the request body any more.
    pub(super) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.answer == Answer::Settled {
            ready!(self.poll_flush(cx))?;
            if !self.body_held || self.body_over() {
                return Poll::Ready(Ok(()));
            }
        }
        self.settled_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready when the client is seen to have left. Waits while the body is still being read: its reader will notice.
    pub(super) fn poll_departure(&mut self, cx: &mut Context<'_>) -> Poll<Departure> {
        loop {
            if self.closed {
                return Poll::Ready(Departure::Reset);
            }
            if self.ended_at.is_some() {
                return Poll::Ready(Departure::EndOfInput);
            }
            if !self.body_over() || self.buffer.len() >= READ_AHEAD {
                self.departure_waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if ready!(self.poll_fill(cx)).is_err() {
                self.fail_reading();
                return Poll::Ready(Departure::Reset);
            }
        }
    }

    /// When a client that sends nothing more last gave reason to believe that it is there.
    pub(super) fn last_sign_of_half_closed(&self) -> Option<Instant> {
        self.ended_at.max(self.written_at)
    }

    /// Writes all that is queued.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            ready!(self.poll_write(cx))?;
        }
        if self.out.capacity() > SLICES {
            self.out = VecDeque::new();
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Writes some of what is queued; ready at once when nothing is.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        self.out.retain(|piece| !piece.is_empty());
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (slice, piece) in slices.iter_mut().zip(&self.out) {
            *slice = IoSlice::new(piece);
        }
        let mut written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, &slices))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written_at = Some(Instant::now());
        while let Some(piece) = self.out.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                break;
            }
            written -= piece.len();
            self.out.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

/// A piece of a body to be kept: a few bytes are a view of the whole buffer, and a client that sends one by one would take
/// many times what it has sent.
fn compact(data: Bytes) -> Bytes {
    if data.len() < READ_AHEAD / 4 { Bytes::copy_from_slice(&data) } else { data }
}
