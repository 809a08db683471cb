//! How connections are made: a trait of the caller's choice, and TCP as its everyday form.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;

use crate::dns::Names;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Any connection.
pub type BoxStream = Box<dyn Stream>;

/// A connection being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<BoxStream>> + Send>>;

/// A socket being bound, and the address that it is to talk to.
pub type Binding = Pin<Box<dyn Future<Output = io::Result<(UdpSocket, SocketAddr)>> + Send>>;

/// What a load asks of a connection's socket ([`Settings`](crate::Settings)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketOptions {
    /// Its receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// Whether its first bytes may go along with its SYN.
    pub fast_open: bool,
}

/// Makes connections: to origins, or to the proxy where there is one.
pub trait Connect: Send + Sync + 'static {
    /// Connects to this host and port.
    fn connect(&self, host: &str, port: u16, options: SocketOptions) -> Connecting;

    /// A socket for QUIC with this host and port. Who has none leaves it as it is.
    fn datagrams(&self, host: &str, port: u16) -> Binding {
        let reason = format!("no way to {host}:{port} but by TCP");
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::Unsupported, reason)) })
    }
}

/// Connects over TCP, in the network namespace of the thread that it runs on.
#[derive(Debug, Clone)]
pub struct TcpConnector {
    names: Arc<Names>,
}

impl TcpConnector {
    /// Resolves names as `names` says.
    pub fn new(names: Names) -> TcpConnector {
        TcpConnector { names: Arc::new(names) }
    }

    /// The same with nothing resolved yet, for another load.
    #[must_use]
    pub fn anew(&self) -> TcpConnector {
        TcpConnector::new(self.names.anew())
    }
}

impl Connect for TcpConnector {
    fn connect(&self, host: &str, port: u16, options: SocketOptions) -> Connecting {
        let (names, host) = (self.names.clone(), host.to_owned());
        Box::pin(async move {
            let address = SocketAddr::new(names.address(&host).await?, port);
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            if let Some(bytes) = options.receive_buffer {
                // Before connecting: the window's scale is chosen then (RFC 7323 §2.2).
                socket.set_recv_buffer_size(bytes)?;
            }
            if options.fast_open {
                farhop_netdev::fast_open_connect(&socket)?;
            }
            let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxStream)
        })
    }

    fn datagrams(&self, host: &str, port: u16) -> Binding {
        let (names, host) = (self.names.clone(), host.to_owned());
        Box::pin(async move {
            let address = SocketAddr::new(names.address(&host).await?, port);
            let any: SocketAddr = match address {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
            };
            Ok((UdpSocket::bind(any)?, address))
        })
    }
}
