//! A TLS connection over any stream, client or server.
//!
//! Client: with a session that allows it, what is written first goes along with the first flight; where the server does not
//! take it, it is written once more when the handshake is over (RFC 8446 §4.2.10). Server: gives what came so as the first
//! bytes of the connection, and may answer in its own first flight (`send_half_rtt_data`).

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use rustls::{ClientConnection, Connection, HandshakeKind, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// See the module.
pub(crate) struct TlsStream<S> {
    io: S,
    tls: Connection,
    /// What went along with the first flight and may have to be written again.
    early: Vec<u8>,
    facts: Arc<Facts>,
}

/// What a handshake came to.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Whether the session was one of before; nothing while the handshake lasts.
    pub(crate) resumed: OnceLock<bool>,
    /// Whether something went along with the first flight, and the server took it.
    pub(crate) early: AtomicBool,
}

/// The stream below as rustls wants it: reads and writes that would block say so, and the task is woken later.
struct Blocking<'a, 'b, S> {
    io: &'a mut S,
    context: &'a mut Context<'b>,
}

impl<S: AsyncRead + Unpin> Read for Blocking<'_, '_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut into = ReadBuf::new(into);
        match Pin::new(&mut *self.io).poll_read(self.context, &mut into) {
            Poll::Ready(done) => done.map(|()| into.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl<S: AsyncWrite + Unpin> Write for Blocking<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.io).poll_write(self.context, bytes) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// The client's side: at once where a first flight may carry something, else after the handshake.
    pub(crate) async fn connect(io: S, tls: ClientConnection) -> io::Result<TlsStream<S>> {
        let mut stream = TlsStream { io, tls: tls.into(), early: Vec::new(), facts: Arc::default() };
        if !stream.may_be_early() {
            stream.handshake(|tls| !tls.is_handshaking()).await?;
        }
        Ok(stream)
    }

    /// The server's side: as soon as it is known what the client speaks.
    pub(crate) async fn accept(io: S, tls: ServerConnection) -> io::Result<TlsStream<S>> {
        let mut stream = TlsStream { io, tls: tls.into(), early: Vec::new(), facts: Arc::default() };
        stream.handshake(|tls| tls.alpn_protocol().is_some() || !tls.is_handshaking()).await?;
        Ok(stream)
    }

    /// The protocol that both sides agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// What the handshake comes to, also once the stream is in other hands.
    pub(crate) fn facts(&self) -> Arc<Facts> {
        self.facts.clone()
    }

    /// Waits until the server has given a ticket for the next session.
    pub(crate) async fn ticket(&mut self) -> io::Result<()> {
        self.handshake(|tls| match tls {
            Connection::Client(tls) => tls.tls13_tickets_received() > 0,
            Connection::Server(_) => true,
        })
        .await
    }

    fn may_be_early(&mut self) -> bool {
        match &mut self.tls {
            Connection::Client(tls) => tls.early_data().is_some(),
            Connection::Server(_) => false,
        }
    }

    /// Reads and writes until `done`.
    async fn handshake(&mut self, done: impl Fn(&Connection) -> bool) -> io::Result<()> {
        std::future::poll_fn(|context| {
            while !done(&self.tls) {
                if ready!(self.poll_advance(context))? == 0 {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
            }
            // What the last step made us say: a Finished must not wait for the first request.
            let _ = self.poll_drain(context)?;
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Takes some of the other side's bytes in; how many, none at its end.
    fn poll_advance(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let _ = self.poll_drain(context)?;
        let count = match self.tls.read_tls(&mut Blocking { io: &mut self.io, context }) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let processed = self.tls.process_new_packets();
        if processed.is_err() {
            let _ = self.poll_drain(context); // the alert, as far as it goes
        }
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.settle()?;
        Poll::Ready(Ok(count))
    }

    /// Once the handshake is over: what the server did not take with the first flight is written again.
    fn settle(&mut self) -> io::Result<()> {
        if self.tls.is_handshaking() {
            return Ok(());
        }
        if let Some(kind) = self.tls.handshake_kind() {
            self.facts.resumed.get_or_init(|| kind == HandshakeKind::Resumed);
        }
        let early = std::mem::take(&mut self.early);
        if let (Connection::Client(tls), false) = (&mut self.tls, early.is_empty()) {
            self.facts.early.store(tls.is_early_data_accepted(), Ordering::Relaxed);
            if !tls.is_early_data_accepted() {
                tls.writer().write_all(&early)?;
            }
        }
        Ok(())
    }

    /// Hands over everything that is to be sent.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Blocking { io: &mut self.io, context }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// What can be read without asking the other side: early bytes first.
    fn read_held(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Connection::Server(tls) = &mut self.tls
            && let Some(mut early) = tls.early_data()
        {
            let count = early.read(into)?;
            if count > 0 {
                return Ok(count);
            }
        }
        self.tls.reader().read(into)
    }

    /// What can be written at once; nothing where that has to wait.
    fn write_held(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Connection::Client(tls) = &mut self.tls {
            if tls.is_handshaking()
                && let Some(mut early) = tls.early_data()
            {
                let count = early.write(bytes)?;
                self.early.extend_from_slice(&bytes[..count]);
                return Ok(count);
            }
            if tls.is_handshaking() {
                return Ok(0);
            }
        }
        self.tls.writer().write(bytes)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match this.read_held(into.initialize_unfilled()) {
                Ok(count) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(this.poll_advance(context))?;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            let count = this.write_held(bytes)?;
            if count > 0 || bytes.is_empty() {
                let _ = this.poll_drain(context)?;
                return Poll::Ready(Ok(count));
            }
            if this.tls.is_handshaking() {
                if ready!(this.poll_advance(context))? == 0 {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
            } else {
                ready!(this.poll_drain(context))?;
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.tls.is_handshaking() {
            self.tls.send_close_notify();
        }
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
