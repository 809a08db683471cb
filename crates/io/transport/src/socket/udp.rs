//! A UDP socket of the system with buffers sized for the path and counters. Batching, segmentation
//! offload and ECN stay with quinn's own socket underneath.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use farhop_units::Bytes;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Meter, Traffic};

/// Why no socket was opened; each names the address and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Someone else listens there.
    #[error("udp {0} is already in use, stop the process that holds it or choose another address")]
    InUse(SocketAddr),
    /// No interface has it.
    #[error("udp {0} is not an address of this machine, choose one that 'ip address' lists or a wildcard")]
    NotLocal(SocketAddr),
    /// Ports below 1024 need a privilege.
    #[error("udp {0} may not be bound without privileges, choose a port above 1023")]
    Forbidden(SocketAddr),
    /// The system refused for another reason.
    #[error("udp {addr} cannot be opened: {error}")]
    Io {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// Buffers of a socket as the kernel granted them, in bytes of payload and bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// What the path needs, each way.
    pub wanted: Bytes,
    /// What the kernel keeps for received datagrams.
    pub receive: Bytes,
    /// What it keeps for datagrams to send.
    pub send: Bytes,
}

impl Buffers {
    /// The sysctls to raise, when the kernel granted less than the path needs.
    pub fn shortfall(&self) -> Option<String> {
        let short = |granted: Bytes, sysctl: &str| {
            (granted < self.wanted).then(|| format!("{sysctl} to {}", self.wanted.0))
        };
        let raise: Vec<String> =
            [short(self.receive, "net.core.rmem_max"), short(self.send, "net.core.wmem_max")]
                .into_iter()
                .flatten()
                .collect();
        (!raise.is_empty()).then(|| {
            format!(
                "the kernel grants socket buffers of {} and {} bytes where this path wants {}, raise {}",
                self.receive.0,
                self.send.0,
                self.wanted.0,
                raise.join(" and ")
            )
        })
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct UdpSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    /// The same socket, for its options.
    options: Socket,
    meter: Meter,
    buffers: Mutex<Buffers>,
    /// The log has said that the kernel grants less than is wanted.
    told: AtomicBool,
}

impl UdpSocket {
    /// Binds `addr` (port 0: any) with buffers of `buffer` each way if the kernel allows. Must be
    /// called inside a tokio runtime. A wildcard IPv6 address serves IPv4 too.
    ///
    /// # Errors
    /// The address is taken, foreign or forbidden.
    pub fn bind(addr: SocketAddr, buffer: Bytes) -> Result<Arc<Self>, BindError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(addr),
            io::ErrorKind::AddrNotAvailable => BindError::NotLocal(addr),
            io::ErrorKind::PermissionDenied => BindError::Forbidden(addr),
            _ => BindError::Io { addr, error },
        };
        let socket =
            Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
        if addr.is_ipv6() && addr.ip().is_unspecified() {
            socket.set_only_v6(false).map_err(failed)?;
        }
        let buffers = size_buffers(&socket, buffer).map_err(failed)?;
        socket.bind(&addr.into()).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let options = socket.try_clone().map_err(failed)?;
        let inner = TokioRuntime.wrap_udp_socket(socket.into()).map_err(failed)?;
        let (buffers, told) = (Mutex::new(buffers), AtomicBool::new(false));
        Ok(Arc::new(UdpSocket { inner, options, meter: Meter::default(), buffers, told }))
    }

    /// What has passed so far.
    pub fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }

    /// The buffers that the kernel granted.
    pub fn buffers(&self) -> Buffers {
        *self.lock()
    }

    /// Lets the buffers grow to `wanted` each way, if the kernel allows; what they have stays. Where it does not, the log says so
    /// once.
    pub fn grow(&self, wanted: Bytes) {
        let mut buffers = self.lock();
        if wanted <= buffers.wanted {
            return;
        }
        match size_buffers(&self.options, wanted) {
            Ok(granted) => *buffers = granted,
            Err(error) => return tracing::debug!("socket buffers stay as they are: {error}"),
        }
        drop(buffers);
        self.tell_shortfall();
    }

    /// Says in the log what the kernel does not grant of what is wanted, if it does not and has not been told of yet.
    pub(crate) fn tell_shortfall(&self) {
        if let Some(shortfall) = self.buffers().shortfall()
            && !self.told.swap(true, Relaxed)
        {
            tracing::warn!("{shortfall}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size_buffers(socket: &Socket, wanted: Bytes) -> io::Result<Buffers> {
    let size = usize::try_from(wanted.0).unwrap_or(usize::MAX).min(i32::MAX as usize);
    // Asking for too much is no error, the kernel grants what it may; what it granted is read back.
    socket.set_recv_buffer_size(size)?;
    socket.set_send_buffer_size(size)?;
    // socket(7): Linux doubles what was asked for, to pay for its bookkeeping, and returns the double.
    let share = if cfg!(target_os = "linux") { 2 } else { 1 };
    Ok(Buffers {
        wanted,
        receive: Bytes(socket.recv_buffer_size()? as u64 / share),
        send: Bytes(socket.send_buffer_size()? as u64 / share),
    })
}

impl AsyncUdpSocket for UdpSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)?;
        let len = transmit.contents.len();
        self.meter.count_sent(len, transmit.segment_size.unwrap_or(len));
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for meta in &meta[..received] {
            self.meter.count_received(meta.len, meta.stride);
        }
        Poll::Ready(Ok(received))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[tokio::test]
    async fn an_address_in_use_is_named_with_what_to_do() {
        let first = UdpSocket::bind(loopback(), Bytes(1 << 16)).unwrap();
        let taken = first.local_addr().unwrap();
        let error = UdpSocket::bind(taken, Bytes(1 << 16)).unwrap_err().to_string();
        let expected = format!(
            "udp {taken} is already in use, stop the process that holds it or choose another address"
        );
        assert_eq!(error, expected);
    }

    #[tokio::test]
    async fn a_foreign_address_is_named_too() {
        let foreign = SocketAddr::from(([192, 0, 2, 1], 4433));
        assert!(
            matches!(UdpSocket::bind(foreign, Bytes(1 << 16)), Err(BindError::NotLocal(addr)) if addr == foreign)
        );
    }

    #[tokio::test]
    async fn buffers_of_a_running_socket_grow_and_never_shrink() {
        let socket = UdpSocket::bind(loopback(), Bytes(16 << 10)).unwrap();
        let granted = || (socket.buffers().receive, socket.options.recv_buffer_size().unwrap() as u64 / 2);
        socket.grow(Bytes(64 << 10));
        assert_eq!(granted(), (Bytes(64 << 10), 64 << 10));
        socket.grow(Bytes(32 << 10));
        assert_eq!(granted(), (Bytes(64 << 10), 64 << 10));
        socket.grow(Bytes(1 << 40));
        assert!(granted().0 > Bytes(64 << 10), "as far as the kernel lets them");
        assert!(socket.told.load(Relaxed) && socket.buffers().shortfall().is_some());
    }

    #[tokio::test]
    async fn buffers_that_the_kernel_cut_are_reported_with_the_sysctl() {
        let granted = UdpSocket::bind(loopback(), Bytes(64 << 10)).unwrap().buffers();
        assert_eq!(granted.shortfall(), None);
        let greedy = UdpSocket::bind(loopback(), Bytes(1 << 40)).unwrap().buffers();
        assert!(greedy.shortfall().unwrap().contains("raise net.core.rmem_max to 1099511627776"));
    }
}
