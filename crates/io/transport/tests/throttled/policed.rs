//! A UDP socket whose network polices what it sends: what exceeds a rate is dropped, nothing waits.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use farhop_units::BitRate;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::time::Instant;

/// Bytes that pass at once: handshakes do.
const BURST: f64 = 16e3;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Policed {
    inner: Arc<dyn AsyncUdpSocket>,
    rate: BitRate,
    /// Bytes that may pass, and since when.
    bucket: Mutex<(f64, Instant)>,
}

impl Policed {
    pub(crate) fn new(inner: Arc<dyn AsyncUdpSocket>, rate: BitRate) -> Arc<Policed> {
        Arc::new(Policed { inner, rate, bucket: Mutex::new((BURST, Instant::now())) })
    }

    fn passes(&self, bytes: usize) -> bool {
        let (tokens, since) = &mut *self.bucket.lock().unwrap();
        let now = Instant::now();
        *tokens = (*tokens + (now - *since).as_secs_f64() * self.rate.0 as f64 / 8.0).min(BURST);
        *since = now;
        let passes = *tokens >= bytes as f64;
        *tokens -= if passes { bytes as f64 } else { 0.0 };
        passes
    }
}

impl AsyncUdpSocket for Policed {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.passes(transmit.contents.len()) { self.inner.try_send(transmit) } else { Ok(()) }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
