//! A client that times downloads: each on a connection of its own, every byte compared.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use farhop_compare::Interrupt;
use farhop_testkit::pattern::Checker;
use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Nothing here takes so long unless it hangs: a hundred round trips over the longest path are a minute.
pub const PATIENCE: Duration = Duration::from_secs(300);

const PIECE: usize = 64 * 1024;
/// How often the user is asked whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// Between two attempts to reach a proxy that is about to listen.
const AGAIN: Duration = Duration::from_millis(2);

/// Whom the client connects to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    /// A proxy that is asked for the origin.
    Proxy(SocketAddr),
    /// The origin.
    Origin,
}

/// A body that is known beforehand.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Where it stands.
    pub path: String,
    /// Which bytes it has ([`farhop_testkit::pattern`]).
    pub seed: u64,
    /// How many.
    pub length: u64,
    /// How long after the others it is asked for.
    pub after: Duration,
    /// RFC 9218.
    pub priority: Option<&'static str>,
    /// Whether it is downloaded once before, not timed, and after such a pause once more on the same connection.
    pub once_before: Option<Duration>,
}

impl Wanted {
    /// Asked for at once, with no priority of its own.
    pub fn new(path: impl Into<String>, seed: u64, length: u64) -> Wanted {
        Wanted { path: path.into(), seed, length, after: Duration::ZERO, priority: None, once_before: None }
    }
}

/// When something was asked for and when its last byte had come, since the beginning of the load.
#[derive(Debug, Clone, Copy)]
pub struct Got {
    /// Before the connection was made, unless one was there.
    pub start: Duration,
    /// With the last byte.
    pub end: Duration,
}

/// Fetches everything, on this thread.
///
/// # Errors
/// No connection, another answer than 200, a wrong byte or one too few, or the user wants it to end.
pub(crate) fn fetch(
    server: Server,
    origin: SocketAddr,
    wanted: &[Wanted],
    interrupt: &Interrupt,
) -> io::Result<Vec<Got>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let all = try_join_all(wanted.iter().map(|wanted| one(server, origin, wanted, start)));
        tokio::select! {
            got = tokio::time::timeout(PATIENCE, all) => got.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            () = stopped(interrupt) => Err(io::ErrorKind::Interrupted.into()),
        }
    })
}

async fn stopped(interrupt: &Interrupt) {
    while interrupt.check().is_ok() {
        tokio::time::sleep(LOOK).await;
    }
}

async fn one(server: Server, origin: SocketAddr, wanted: &Wanted, start: Instant) -> io::Result<Got> {
    tokio::time::sleep(wanted.after).await;
    let mut asked = start.elapsed();
    let stream = connect(server, origin).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(PIECE, stream);
    if let Some(pause) = wanted.once_before {
        download(&mut stream, server, origin, wanted, "keep-alive").await?;
        tokio::time::sleep(pause).await;
        asked = start.elapsed();
    }
    download(&mut stream, server, origin, wanted, "close").await?;
    Ok(Got { start: asked, end: start.elapsed() })
}

/// One request and its answer.
async fn download(
    stream: &mut BufReader<TcpStream>,
    server: Server,
    origin: SocketAddr,
    wanted: &Wanted,
    connection: &str,
) -> io::Result<()> {
    let Wanted { path, seed, length, priority, .. } = wanted;
    let host = origin.ip();
    let target = match server {
        Server::Proxy(_) => format!("http://{host}{path}"),
        Server::Origin => path.clone(),
    };
    let priority = priority.map(|priority| format!("Priority: {priority}\r\n")).unwrap_or_default();
    let ask = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{priority}Connection: {connection}\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let head = head(stream).await?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("{path} is answered '{}'", first_line(&head))));
    }
    let (mut checker, mut piece) = (Checker::new(*seed), vec![0; PIECE]);
    while checker.checked() < *length {
        let rest = usize::try_from(length - checker.checked()).unwrap_or(PIECE).min(PIECE);
        let count = stream.read(&mut piece[..rest]).await?;
        if count == 0 {
            let said = format!("{path} is cut off after {} bytes", checker.checked());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
        }
        let wrong = |at| io::Error::other(format!("byte {at} of {path} is wrong"));
        checker.check(&piece[..count]).map_err(wrong)?;
    }
    Ok(())
}

/// A proxy of which the process has only just been started is waited for, an origin is not.
async fn connect(server: Server, origin: SocketAddr) -> io::Result<TcpStream> {
    let Server::Proxy(proxy) = server else { return TcpStream::connect(origin).await };
    loop {
        match TcpStream::connect(proxy).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => tokio::time::sleep(AGAIN).await,
            outcome => return outcome,
        }
    }
}

/// Reads a message head, up to and with its empty line, and not a byte more.
///
/// # Errors
/// The connection ends before.
pub async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The first line of a head.
pub fn first_line(head: &str) -> &str {
    head.lines().next().unwrap_or_default()
}
