//! A client of the proxy that sends what a case says and reads strictly what comes. What it should be, others judge.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::strict::{self, Kind, Message};
use super::text::End;

/// No answer takes so long unless none comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Of what is sent byte by byte, so many bytes are; heads and first chunks are shorter.
const ONE_BY_ONE: usize = 600;

/// Sends `bytes` in one write, or the beginning of them each in a write of its own.
pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    in_pieces: bool,
) -> io::Result<()> {
    let (beginning, rest) = bytes.split_at(if in_pieces { bytes.len().min(ONE_BY_ONE) } else { 0 });
    for byte in beginning.chunks(1) {
        stream.write_all(byte).await?;
        stream.flush().await?;
    }
    stream.write_all(rest).await?;
    stream.flush().await
}

/// One connection to the proxy.
pub(super) struct Client<S> {
    stream: S,
    got: Vec<u8>,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    InPeace,
    Reset,
}

/// What came next.
#[derive(Debug)]
pub(super) enum Came {
    Response(Message),
    /// The connection ended before the end of a response; these bytes of it had come.
    Cut(Vec<u8>),
    /// The connection ended between responses.
    End,
    /// Bytes without one reading.
    Wrong(String),
    Nothing,
}

impl std::fmt::Display for Came {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Came::Response(message) => {
                write!(f, "{} '{}'", message.start[1], String::from_utf8_lossy(&message.body).trim_end())
            }
            Came::Cut(bytes) => write!(f, "the part {:?}", String::from_utf8_lossy(bytes)),
            Came::End => f.write_str("the end"),
            Came::Wrong(why) => write!(f, "bytes without a reading, {why}"),
            Came::Nothing => f.write_str("nothing"),
        }
    }
}

impl Client<TcpStream> {
    /// Connects to the proxy from this address.
    ///
    /// # Panics
    /// There is no connection to be had.
    pub(super) async fn connect(proxy: SocketAddr, from: Ipv4Addr) -> Self {
        let socket = TcpSocket::new_v4().expect("sockets can be made");
        socket.bind(SocketAddr::from((from, 0))).expect("loopback has free ports");
        let stream = socket.connect(proxy).await.expect("the proxy accepts");
        // A piece is a packet.
        let _ = stream.set_nodelay(true);
        Client::over(stream)
    }

    /// Breaks the connection off.
    pub(super) fn reset(self) {
        // A connection that is gone needs no reset.
        let _ = self.stream.set_zero_linger();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// A client on a connection that is made already.
    pub(super) fn over(stream: S) -> Self {
        Client { stream, got: Vec::new(), ended: None }
    }

    /// Sends these bytes and, where that is said, nothing more.
    pub(super) async fn send(&mut self, bytes: &[u8], end: End, in_pieces: bool) {
        // The proxy may have had enough before the end; what it says to that is read in any case.
        let _ = write(&mut self.stream, bytes, in_pieces).await;
        if end == End::Closed {
            let _ = self.stream.shutdown().await;
        }
    }

    /// The next response; `method` is that of the request.
    pub(super) async fn next(&mut self, method: &str) -> Came {
        loop {
            match strict::read(
                &self.got,
                Kind::Response { method, ended: self.ended == Some(Ended::InPeace) },
            ) {
                Err(why) => return Came::Wrong(why),
                Ok(Some(message)) => {
                    self.got.drain(..message.length);
                    return Came::Response(message);
                }
                Ok(None) => {}
            }
            if self.ended.is_some() {
                let left = std::mem::take(&mut self.got);
                return if left.is_empty() { Came::End } else { Came::Cut(left) };
            }
            let mut buffer = [0; 16 * 1024];
            match timeout(PATIENCE, self.stream.read(&mut buffer)).await {
                Err(_) => return Came::Nothing,
                Ok(Ok(0)) => self.ended = Some(Ended::InPeace),
                Ok(Ok(count)) => self.got.extend_from_slice(&buffer[..count]),
                Ok(Err(_)) => self.ended = Some(Ended::Reset),
            }
        }
    }
}

/// A request of an honest client.
pub(super) fn get(origin: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET http://{origin}{path} HTTP/1.1\r\nHost: {origin}\r\n\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn whole_responses_cut_ones_and_ends_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = Client::connect(listener.local_addr().unwrap(), Ipv4Addr::LOCALHOST).await;
        let (mut server, _) = listener.accept().await.unwrap();
        let said =
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok";
        server.write_all(said.as_bytes()).await.unwrap();
        server.shutdown().await.unwrap();
        assert!(matches!(client.next("GET").await, Came::Response(message) if message.body == b"ok"));
        assert!(matches!(client.next("GET").await, Came::Cut(bytes) if bytes.ends_with(b"ok")));
        assert!(matches!(client.next("GET").await, Came::End));
    }
}
