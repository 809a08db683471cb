//! One end of a link: what QUIC takes for a UDP socket. The link itself is [`super`]'s.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::{Shared, index, way};
use crate::path::End;
use crate::socket::inbox::SEGMENTS;
use crate::socket::{Meter, Traffic};

/// IPv4 and UDP headers, which the link carries with each datagram.
pub(super) const HEADERS: usize = 28;
/// Larger packets do not pass, as on any Ethernet.
pub(super) const MTU: usize = 1500;
/// Addresses that no one owns (RFC 5737): they show in logs and must mislead nobody.
const GROUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4433);
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4433);

/// One end of a link.
#[derive(Debug)]
pub struct LinkSocket {
    pub(super) end: End,
    pub(super) shared: Arc<Shared>,
    pub(super) meter: Meter,
}

impl LinkSocket {
    /// What has passed this socket so far.
    pub fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }

    /// The address under which this end is called.
    pub fn addr(&self) -> SocketAddr {
        match self.end {
            End::Ground => GROUND,
            End::Remote => REMOTE,
        }
    }

    pub(super) fn peer_addr(&self) -> SocketAddr {
        match self.end {
            End::Ground => REMOTE,
            End::Remote => GROUND,
        }
    }
}

impl AsyncUdpSocket for LinkSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if transmit.destination != self.peer_addr() {
            return Ok(()); // nobody else lives on this link; UDP would not tell either
        }
        let contents = transmit.contents;
        let segment = transmit.segment_size.unwrap_or(contents.len()).max(1);
        let sent = self.shared.with(|state, now| {
            if !state.has_room(self.end) {
                return false;
            }
            let whole = Bytes::copy_from_slice(contents);
            for start in (0..whole.len()).step_by(segment) {
                let datagram = whole.slice(start..whole.len().min(start + segment));
                let size = datagram.len() + HEADERS;
                if size <= MTU {
                    let size = farhop_units::Bytes(size as u64);
                    state.path.handle_packet(now, way(self.end), size, datagram);
                }
            }
            true
        });
        if !sent {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.meter.count_sent(contents.len(), segment);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut writers = Vec::new();
        let received = {
            let mut state = self.shared.lock();
            let inbox = &mut state.inboxes[index(self.end)];
            let mut filled = 0;
            for (buf, meta) in bufs.iter_mut().zip(meta.iter_mut()) {
                let Some((len, stride)) = inbox.fill(buf) else { break };
                *meta = RecvMeta { addr: self.peer_addr(), len, stride, ecn: None, dst_ip: None };
                self.meter.count_received(len, stride);
                filled += 1;
            }
            if filled == 0 {
                inbox.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            state.release_writers(self.end.opposite(), &mut writers);
            filled
        };
        writers.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(received))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr())
    }

    fn max_transmit_segments(&self) -> usize {
        SEGMENTS
    }

    fn max_receive_segments(&self) -> usize {
        SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// Waits until the link takes datagrams again.
#[derive(Debug)]
struct Room(Arc<LinkSocket>);

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = &self.0;
        let mut state = socket.shared.lock();
        if state.has_room(socket.end) {
            return Poll::Ready(Ok(()));
        }
        let writers = &mut state.inboxes[index(socket.end.opposite())].writers;
        if !writers.iter().any(|waker| waker.will_wake(cx.waker())) {
            writers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
