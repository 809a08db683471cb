//! The sockets by which names are asked for: as the resolver would make them, but each tied to its name server, so that what
//! ICMP says of that (nobody at this port, no such host) is heard at once. Unbound ones wait for an answer until patience ends.

use hickory_resolver::net::runtime::{
    DnsUdpSocket, RuntimeProvider, TokioHandle, TokioRuntimeProvider, TokioTime,
};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;

type Made<T> = Pin<Box<dyn Send + Future<Output = io::Result<T>>>>;

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct NameServerSockets(TokioRuntimeProvider);

impl RuntimeProvider for NameServerSockets {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = Tied;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> TokioHandle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        patience: Option<Duration>,
    ) -> Made<Self::Tcp> {
        self.0.connect_tcp(server, local, patience)
    }

    /// Its documentation wants a socket that is not connected, for `send_to` on those that are is refused by some systems;
    /// not by Linux (ip(7), udp(7)).
    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Made<Tied> {
        Box::pin(async move {
            let socket = UdpSocket::bind(local).await?;
            socket.connect(server).await?;
            Ok(Tied(socket))
        })
    }
}

/// A socket that is connected to a name server.
pub(crate) struct Tied(UdpSocket);

impl Tied {
    /// Completes with what ICMP has said. That makes no socket readable, so that nobody who waits for an answer alone hears it.
    async fn complaint(&self) -> io::Error {
        loop {
            if let Err(error) = self.0.ready(Interest::ERROR).await {
                return error;
            }
            if let Ok(Some(error)) = self.0.take_error() {
                return error;
            }
            // It was somebody else's: the next is waited for.
            let _ = self.0.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
    }
}

impl DnsUdpSocket for Tied {
    type Time = TokioTime;

    fn poll_recv_from(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<(usize, SocketAddr)>> {
        DnsUdpSocket::poll_recv_from(&self.0, cx, buf)
    }

    fn recv_from<'life0, 'life1, 'async_trait>(
        &'life0 self,
        buf: &'life1 mut [u8],
    ) -> Pin<Box<dyn Future<Output = io::Result<(usize, SocketAddr)>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            tokio::select! {
                received = self.0.recv_from(buf) => received,
                complaint = self.complaint() => Err(complaint),
            }
        })
    }

    fn poll_send_to(&self, cx: &mut Context<'_>, buf: &[u8], target: SocketAddr) -> Poll<io::Result<usize>> {
        DnsUdpSocket::poll_send_to(&self.0, cx, buf, target)
    }
}
