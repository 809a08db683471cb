//! A socket that treats badly what it sends.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use farhop_orbit::Rng;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// A socket that loses what it sends in runs of `burst` on average (Gilbert's channel), or changes a byte in some.
#[derive(Debug)]
pub(crate) struct Bad {
    inner: Arc<dyn AsyncUdpSocket>,
    /// Loses whole batches, and sends the others as such.
    batches: bool,
    loss: f64,
    burst: f64,
    damage: f64,
    state: Mutex<(bool, Rng)>,
}

impl Bad {
    /// Loses datagrams.
    pub(crate) fn new(
        inner: Arc<dyn AsyncUdpSocket>,
        loss: f64,
        burst: f64,
        damage: f64,
        seed: u64,
    ) -> Arc<Bad> {
        Arc::new(Bad {
            inner,
            batches: false,
            loss,
            burst,
            damage,
            state: Mutex::new((false, Rng::new(seed))),
        })
    }

    /// Loses batches of segments.
    pub(crate) fn in_batches(inner: Arc<dyn AsyncUdpSocket>, loss: f64, seed: u64) -> Arc<Bad> {
        let state = Mutex::new((false, Rng::new(seed)));
        Arc::new(Bad { inner, batches: true, loss, burst: 1.0, damage: 0.0, state })
    }
}

impl AsyncUdpSocket for Bad {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let (is_bad, rng) = &mut *state;
        let whole = if self.batches { None } else { transmit.segment_size };
        let stride = whole.unwrap_or(transmit.contents.len());
        for datagram in transmit.contents.chunks(stride) {
            let leave = 1.0 / self.burst;
            let turn = if *is_bad { leave } else { leave * self.loss / (1.0 - self.loss) };
            *is_bad ^= rng.chance(turn);
            let mut contents = datagram.to_vec();
            if rng.chance(self.damage) {
                let at = rng.next_u64() as usize % contents.len();
                contents[at] ^= 0x20;
            }
            if !*is_bad {
                let segment_size = transmit.segment_size.filter(|_| self.batches);
                self.inner.try_send(&Transmit { contents: &contents, segment_size, ..transmit.clone() })?;
            }
        }
        Ok(())
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

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
