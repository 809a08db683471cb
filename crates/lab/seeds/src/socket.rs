//! A socket of the in-process link whose datagrams meet what was drawn for their way.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use farhop_orbit::Way;
use farhop_transport::socket::link::{Link, LinkSocket};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use crate::ills::{Channel, Passing};
use crate::log::Log;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct BadSocket {
    inner: Arc<LinkSocket>,
    link: Link,
    way: Way,
    channel: Mutex<Channel>,
    log: Arc<Log>,
}

impl BadSocket {
    /// What `inner` sends goes `way`.
    pub(crate) fn new(
        inner: Arc<LinkSocket>,
        link: Link,
        way: Way,
        channel: Channel,
        log: Arc<Log>,
    ) -> Arc<BadSocket> {
        Arc::new(BadSocket { inner, link, way, channel: Mutex::new(channel), log })
    }

    fn numbers(&self, len: usize, late: u64) -> [u64; 3] {
        [u64::from(self.way == Way::Return), len as u64, late]
    }

    /// Puts one datagram on the link, which drops it where its queue is full.
    fn put(&self, to: SocketAddr, contents: &[u8]) -> io::Result<()> {
        let drops = |link: &Link| link.counters(self.way).queue_drops.packets;
        let before = drops(&self.link);
        let transmit = Transmit { destination: to, ecn: None, contents, segment_size: None, src_ip: None };
        self.inner.try_send(&transmit)?;
        if drops(&self.link) > before {
            self.log.taken("queue full", self.numbers(contents.len(), 0));
        }
        Ok(())
    }

    fn send(self: &Arc<Self>, to: SocketAddr, mut contents: Vec<u8>, passing: Passing) -> io::Result<()> {
        let numbers = self.numbers(contents.len(), passing.late.as_nanos() as u64);
        match passing.flipped {
            Some(bit) => {
                contents[bit / 8] ^= 1 << (bit % 8);
                self.log.taken("damaged", numbers);
            }
            None => self.log.sent(self.way, numbers),
        }
        if passing.late.is_zero() {
            return self.put(to, &contents);
        }
        let socket = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(passing.late).await;
            // A link with a rate always takes a datagram.
            let _ = socket.put(to, &contents);
        });
        Ok(())
    }
}

/// The socket as QUIC holds it.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) Arc<BadSocket>);

impl AsyncUdpSocket for Handle {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.0.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let socket = &self.0;
        let (now, standing) = (socket.log.now(), socket.log.standing());
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for datagram in transmit.contents.chunks(stride) {
            let met = {
                let mut channel = socket.channel.lock().unwrap_or_else(PoisonError::into_inner);
                channel.meet(now, standing, datagram.len())
            };
            if met.is_empty() {
                socket.log.taken("lost", socket.numbers(datagram.len(), 0));
            }
            for passing in met {
                socket.send(transmit.destination, datagram.to_vec(), passing)?;
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
        self.0.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.0.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        false
    }
}
