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

use crate::visitor::{PATIENCE, first_line, head};

const PIECE: usize = 64 * 1024;
/// How often the user is asked whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// Between two attempts to reach a proxy that is about to listen.
const AGAIN: Duration = Duration::from_millis(2);

/// How to get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// Through the remote.
    Farhop,
    /// Straight to an origin that sends with BBR.
    DirectBbr,
}

/// A body that is known beforehand.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) path: String,
    pub(crate) seed: u64,
    pub(crate) length: u64,
    /// How long after the others it is asked for.
    pub(crate) after: Duration,
    /// RFC 9218.
    pub(crate) priority: Option<&'static str>,
}

impl Wanted {
    /// Asked for at once, with no priority of its own.
    pub(crate) fn new(path: impl Into<String>, seed: u64, length: u64) -> Wanted {
        Wanted { path: path.into(), seed, length, after: Duration::ZERO, priority: None }
    }
}

/// When something was asked for and when its last byte had come, since the beginning of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Got {
    pub(crate) start: Duration,
    pub(crate) end: Duration,
}

/// Fetches everything, on this thread.
///
/// # Errors
/// No connection, another answer than 200, a wrong byte or one too few, or the user wants it to end.
pub(super) fn fetch(
    via: Via,
    server: SocketAddr,
    origin: SocketAddr,
    wanted: &[Wanted],
    interrupt: &Interrupt,
) -> io::Result<Vec<Got>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let all = try_join_all(wanted.iter().map(|wanted| one(via, server, origin, wanted, start)));
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

async fn one(
    via: Via,
    server: SocketAddr,
    origin: SocketAddr,
    wanted: &Wanted,
    start: Instant,
) -> io::Result<Got> {
    tokio::time::sleep(wanted.after).await;
    let asked = start.elapsed();
    let stream = connect(via, server).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(PIECE, stream);
    let target = match via {
        Via::Farhop => format!("http://{}{}", origin.ip(), wanted.path),
        Via::DirectBbr => wanted.path.clone(),
    };
    let priority = wanted.priority.map(|priority| format!("Priority: {priority}\r\n")).unwrap_or_default();
    let ask =
        format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{priority}Connection: close\r\n\r\n", origin.ip());
    stream.write_all(ask.as_bytes()).await?;
    let head = head(&mut stream).await?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("{} is answered '{}'", wanted.path, first_line(&head))));
    }
    let (mut checker, mut piece) = (Checker::new(wanted.seed), vec![0; PIECE]);
    while checker.checked() < wanted.length {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            let said = format!("{} is cut off after {} bytes", wanted.path, checker.checked());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
        }
        let wrong = |at| io::Error::other(format!("byte {at} of {} is wrong", wanted.path));
        checker.check(&piece[..count]).map_err(wrong)?;
    }
    Ok(Got { start: asked, end: start.elapsed() })
}

/// A proxy of which the process has only just been started is waited for, an origin is not.
async fn connect(via: Via, server: SocketAddr) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect(server).await {
            Err(error) if via == Via::Farhop && error.kind() == io::ErrorKind::ConnectionRefused => {
                tokio::time::sleep(AGAIN).await;
            }
            outcome => return outcome,
        }
    }
}
