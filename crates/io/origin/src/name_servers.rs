//! Messages to name servers and what they answer: over UDP, and over TCP what does not fit. What a message says is the
//! caller's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// How long a name server is waited for, and how often all of them are asked.
const PATIENCE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 2;
/// Those beyond are not asked.
const MOST: usize = 2;
/// More than anyone sends over UDP to who has asked for less (RFC 9715).
const LARGEST_DATAGRAM: usize = 4096;

/// What a message is to who has asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The answer.
    Whole,
    /// The answer, as far as it fits into a datagram.
    Truncated,
    /// Somebody's attempt, or late.
    Other,
}

/// Asks one after the other until one answers, and gives its message.
///
/// # Errors
/// None does; why, of the last.
pub async fn ask_name_servers(
    servers: &[SocketAddr],
    question: &[u8],
    judge: impl Fn(&[u8]) -> Reply,
) -> Result<Vec<u8>, String> {
    let mut error = "no name server is known; name one in 'dns.servers'".to_owned();
    for _ in 0..ROUNDS {
        for server in servers.iter().take(MOST) {
            error = match timeout(PATIENCE, ask(*server, question, &judge)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => format!("{server}: {error}"),
                Err(_) => format!("{server} does not answer"),
            };
        }
    }
    Err(error)
}

async fn ask(server: SocketAddr, question: &[u8], judge: &impl Fn(&[u8]) -> Reply) -> io::Result<Vec<u8>> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // A port that nobody can guess (RFC 5452 §9.2), and nobody else's datagrams.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    loop {
        let length = socket.recv(&mut buffer).await?;
        match judge(&buffer[..length]) {
            Reply::Whole => return Ok(buffer[..length].to_vec()),
            Reply::Truncated => return ask_over_tcp(server, question, judge).await,
            // The right one is waited for.
            Reply::Other => {}
        }
    }
}

/// RFC 1035 §4.2.2: a length in front of each message.
async fn ask_over_tcp(
    server: SocketAddr,
    question: &[u8],
    judge: &impl Fn(&[u8]) -> Reply,
) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?.to_be_bytes();
    stream.write_all(&[&length[..], question].concat()).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    match judge(&answer) {
        Reply::Whole => Ok(answer),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "answers something else")),
    }
}
