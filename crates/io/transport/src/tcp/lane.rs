//! One TLS connection of a carrier: moves what the mux has for it, and what comes, without holding back more
//! than one record.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use farhop_htotp::mux::{Mux, MuxError};
use farhop_units::BitRate;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::export;
use super::options::unsent;
use crate::connection::Name;

/// Bytes that TLS may hold encrypted: one record and a short one.
const TLS_BUFFER: usize = 20 * 1024;
/// Bytes read at once, and at most before others have their turn.
const SCRATCH: usize = 16 * 1024;
const TURN: usize = 16 * SCRATCH;

/// Why a lane is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaneError {
    /// The connection has ended.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What came on it breaks the rules.
    #[error(transparent)]
    Mux(#[from] MuxError),
}

/// See the module.
pub(crate) struct Lane {
    tls: TlsStream<TcpStream>,
    /// Taken from the mux and not by TLS.
    out: BytesMut,
    /// Bytes that TLS has taken.
    written: u64,
    /// Read off TLS before there was a mux.
    early: BytesMut,
}

impl Lane {
    /// A connection whose handshake is done and from which `early` has been read.
    pub(super) fn new(mut tls: TlsStream<TcpStream>, early: BytesMut) -> Self {
        let limit = Some(TLS_BUFFER);
        match &mut tls {
            TlsStream::Client(tls) => tls.get_mut().1.set_buffer_limit(limit),
            TlsStream::Server(tls) => tls.get_mut().1.set_buffer_limit(limit),
        }
        Lane { tls, out: BytesMut::new(), written: 0, early }
    }

    /// What both ends call the carrier whose first lane this is.
    pub(super) fn name(&self) -> Option<Name> {
        export(&self.tls, Name::LABEL).ok().map(Name::from)
    }

    /// Round trip as the kernel has measured it.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        farhop_netdev::tcp_round_trip(self.tls.get_ref().0).ok().filter(|rtt| !rtt.is_zero())
    }

    /// The carrier's direction takes about `rate`: the kernel holds no more unsent than fits that.
    pub(crate) fn fit(&self, rate: BitRate) {
        // Where it refuses, it holds what it did.
        let _ = SockRef::from(self.tls.get_ref().0).set_tcp_notsent_lowat(unsent(Some(rate)));
    }

    /// Bytes that the peer's kernel has, and at most one record that TLS holds here.
    pub(crate) fn acknowledged(&self) -> u64 {
        let waiting = farhop_netdev::unacknowledged(self.tls.get_ref().0).unwrap_or(0);
        self.written.saturating_sub(waiting as u64)
    }

    /// Sends and receives what it can as lane `number` of `mux`. Ready when either has moved: how many bytes were
    /// received.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        number: usize,
        mux: &mut Mux,
    ) -> Poll<Result<usize, LaneError>> {
        let sent = self.send(cx, |out| mux.poll_output(number, out))?;
        let received = self.receive(cx, number, mux)?;
        if sent || received > 0 { Poll::Ready(Ok(received)) } else { Poll::Pending }
    }

    /// Whether anything was taken from `more`.
    fn send(&mut self, cx: &mut Context<'_>, mut more: impl FnMut(&mut BytesMut)) -> io::Result<bool> {
        let mut moved = false;
        loop {
            if self.out.is_empty() {
                // What TLS holds cannot be overtaken any more, so nothing is added to it.
                if Pin::new(&mut self.tls).poll_flush(cx)?.is_pending() {
                    return Ok(moved);
                }
                more(&mut self.out);
                if self.out.is_empty() {
                    return Ok(moved);
                }
                moved = true;
            }
            match Pin::new(&mut self.tls).poll_write(cx, &self.out)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => {
                    self.written += written as u64;
                    self.out.advance(written);
                }
                Poll::Pending => return Ok(moved),
            }
        }
    }

    fn receive(&mut self, cx: &mut Context<'_>, number: usize, mux: &mut Mux) -> Result<usize, LaneError> {
        let mut received = self.early.len();
        if received > 0 {
            mux.handle_input(number, &std::mem::take(&mut self.early))?;
        }
        let mut scratch = [0; SCRATCH];
        while received < TURN {
            let mut buffer = ReadBuf::new(&mut scratch);
            if Pin::new(&mut self.tls).poll_read(cx, &mut buffer)?.is_pending() {
                return Ok(received);
            }
            if buffer.filled().is_empty() {
                return Err(LaneError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            received += buffer.filled().len();
            mux.handle_input(number, buffer.filled())?;
        }
        Ok(received)
    }

    /// Sends what is left, then says that nothing follows, then waits until the peer has ended too: a connection that is
    /// closed with bytes unread is reset, and the reset may overtake the last words.
    pub(crate) fn poll_farewell(
        &mut self,
        cx: &mut Context<'_>,
        number: usize,
        mux: &mut Mux,
    ) -> Poll<io::Result<()>> {
        self.send(cx, |out| mux.poll_output(number, out))?;
        if !self.out.is_empty() || Pin::new(&mut self.tls).poll_shutdown(cx)?.is_pending() {
            return Poll::Pending;
        }
        let mut scratch = [0; SCRATCH];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            if Pin::new(&mut self.tls).poll_read(cx, &mut buffer)?.is_pending() {
                return Poll::Pending;
            }
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
