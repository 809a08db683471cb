//! How questions go to name servers: by connected sockets, so that a machine which says at once that nobody listens there
//! (ICMP) is heard, and not waited for. What is asked is the resolver's.

use hickory_resolver::net::runtime::{RuntimeProvider, TokioRuntimeProvider};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::UdpSocket;

type Opening<T> = Pin<Box<dyn Send + Future<Output = io::Result<T>>>>;

/// Tokio's sockets, those of UDP connected.
#[derive(Clone, Default)]
pub(crate) struct Heard(TokioRuntimeProvider);

impl RuntimeProvider for Heard {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = UdpSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        patience: Option<Duration>,
    ) -> Opening<Self::Tcp> {
        self.0.connect_tcp(server, local, patience)
    }

    /// The resolver asks for sockets that are not connected, as some systems refuse to send to an address on others. Linux does not.
    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Opening<UdpSocket> {
        Box::pin(async move {
            let socket = UdpSocket::bind(local).await?;
            socket.connect(server).await?;
            Ok(socket)
        })
    }
}
