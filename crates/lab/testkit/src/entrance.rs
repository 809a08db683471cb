//! A way through a proxy for clients that know none: nghttp, h2load, openssl.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Opens a port on which each connection becomes a tunnel through `proxy` to `target` (`host:port`), for as long as the runtime
/// lives. A connection whose tunnel is refused is closed.
///
/// # Panics
/// Loopback has no free port.
pub async fn entrance(proxy: SocketAddr, target: String) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(client, proxy, target.clone()));
        }
    });
    address
}

async fn pass(mut client: TcpStream, proxy: SocketAddr, target: String) -> io::Result<()> {
    let mut tunnel = TcpStream::connect(proxy).await?;
    tunnel.set_nodelay(true)?;
    client.set_nodelay(true)?;
    tunnel.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tunnel.read_u8().await?);
    }
    if !head.starts_with(b"HTTP/1.1 200") {
        return Err(io::Error::other("the proxy refuses"));
    }
    copy_bidirectional(&mut client, &mut tunnel).await.map(drop)
}
