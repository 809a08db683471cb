//! The sockets by which names are asked for: as the resolver would make them, but each tied to its name server, so that what
//! ICMP says of that (nobody at this port, no such host) is heard at once. Unbound ones wait for an answer until patience ends.

use hickory_resolver::net::runtime::{RuntimeProvider, TokioHandle, TokioRuntimeProvider, TokioTime};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::UdpSocket;

type Made<T> = Pin<Box<dyn Send + Future<Output = io::Result<T>>>>;

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct NameServerSockets(TokioRuntimeProvider);

impl RuntimeProvider for NameServerSockets {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = UdpSocket;
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
    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Made<UdpSocket> {
        Box::pin(async move {
            let socket = UdpSocket::bind(local).await?;
            socket.connect(server).await?;
            Ok(socket)
        })
    }
}
