//! Downloads, uploads and tunnels, in haste, slowly, and given up in the middle; each byte compared.

use std::io;
use std::net::SocketAddr;

use farhop_lab_transport::{first_line, head};
use farhop_testkit::pattern::{Checker, bytes_at};
use farhop_testkit::{File, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

use super::load::Client;
use super::origin::{Talk, talk, wrong};

/// Bodies to be downloaded; the last is not meant to be downloaded whole.
const SIZES: [u64; 4] = [30_000, 300_000, 1_500_000, 40_000_000];
const PIECE: usize = 16 * 1024;
/// Between two pieces that a slow client reads.
const BREATH: Duration = Duration::from_millis(150);
/// Of a body that is given up, so many bytes are taken or sent.
const PART: u64 = 200_000;

/// How a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Quick,
    Slow,
    Cancelled,
}

/// All bodies; those that may be held, for a moment.
pub(super) fn site() -> Site {
    SIZES.iter().zip(1..).fold(Site::new(), |site, (size, seed)| {
        site.file(&path(seed), File::pattern(seed, *size).field("cache-control", "max-age=3"))
    })
}

fn path(seed: u64) -> String {
    format!("/body-{seed}")
}

/// One of the bodies, or the beginning of the last.
pub(super) async fn download(client: &mut Client<'_>, pace: Pace) -> io::Result<u64> {
    let seed = match pace {
        Pace::Quick => 1 + client.below(3),
        Pace::Slow => 2,
        Pace::Cancelled => 4,
    };
    let (mut stream, said) = asked(client, "GET", &path(seed), "").await?;
    expect(&said, "HTTP/1.1 200 ")?;
    let size = SIZES[seed as usize - 1];
    let wanted = if pace == Pace::Cancelled { PART + client.below(PART) } else { size };
    body(&mut stream, seed, 0, wanted, pace).await
}

/// A part of a body.
pub(super) async fn range(client: &mut Client<'_>) -> io::Result<u64> {
    let first = client.below(SIZES[2] / 2);
    let last = first + client.below(SIZES[2] / 4);
    let fields = format!("Range: bytes={first}-{last}\r\n");
    let (mut stream, said) = asked(client, "GET", &path(3), &fields).await?;
    expect(&said, "HTTP/1.1 206 ")?;
    body(&mut stream, 3, first, last - first + 1, Pace::Quick).await
}

/// Sends a body, of which the origin has to name the length and the hash.
pub(super) async fn upload(client: &mut Client<'_>) -> io::Result<u64> {
    let length = 100_000 + client.below(400_000);
    let seed = 100 + client.number;
    let sent = bytes_at(seed, 0, length as usize);
    let fields = format!("Content-Length: {length}\r\n");
    let mut stream = ask(client, "POST", "/upload", &fields).await?;
    stream.write_all(&sent).await?;
    let said = head(&mut stream).await?;
    expect(&said, "HTTP/1.1 200 ")?;
    let receipt = format!("{length} bytes, {}", blake3::hash(&sent).to_hex());
    let mut got = vec![0; receipt.len()];
    stream.read_exact(&mut got).await?;
    match got == receipt.as_bytes() {
        true => Ok(length),
        false => Err(wrong(&format!("the origin received '{}'", String::from_utf8_lossy(&got)))),
    }
}

/// Sends the beginning of a body and goes.
pub(super) async fn cancelled_upload(client: &mut Client<'_>) -> io::Result<u64> {
    let mut stream = ask(client, "POST", "/upload", "Content-Length: 5000000\r\n").await?;
    stream.write_all(&bytes_at(1, 0, PART as usize)).await?;
    if client.below(2) == 0 {
        stream.get_ref().set_zero_linger()?;
    }
    Ok(0)
}

/// A talk with an origin that speaks no HTTP: through CONNECT, or on a connection that is caught.
pub(super) async fn tunnel(client: &mut Client<'_>, is_caught: bool) -> io::Result<u64> {
    let kind = Talk::ALL[client.below(Talk::ALL.len() as u64) as usize];
    let length = 20_000 + client.below(200_000);
    let stream = match is_caught {
        true => TcpStream::connect(client.map.raw).await?,
        false => client.visitor()?.tunnel(&client.map.raw.to_string()).await?,
    };
    talk(stream, kind, 1000 + client.number, length)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("{kind:?}: {error}")))
}

/// Asks the origin of bodies through the proxy and reads the head of the answer.
async fn asked(
    client: &Client<'_>,
    method: &str,
    path: &str,
    fields: &str,
) -> io::Result<(BufReader<TcpStream>, String)> {
    let mut stream = ask(client, method, path, fields).await?;
    let head = head(&mut stream).await?;
    Ok((stream, head))
}

async fn ask(
    client: &Client<'_>,
    method: &str,
    path: &str,
    fields: &str,
) -> io::Result<BufReader<TcpStream>> {
    let host: SocketAddr = client.map.files;
    let mut stream = BufReader::with_capacity(PIECE, TcpStream::connect(client.map.proxy).await?);
    let (host, credentials) = (host.ip(), client.credentials());
    let head = format!(
        "{method} http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: {credentials}\r\n{fields}\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    Ok(stream)
}

fn expect(head: &str, begin: &str) -> io::Result<()> {
    match head.starts_with(begin) {
        true => Ok(()),
        false => Err(io::Error::other(format!("answered '{}'", first_line(head)))),
    }
}

async fn body(
    stream: &mut BufReader<TcpStream>,
    seed: u64,
    from: u64,
    length: u64,
    pace: Pace,
) -> io::Result<u64> {
    let mut checker = Checker::starting_at(seed, from);
    let mut piece = vec![0; PIECE];
    while checker.checked() < from + length {
        let rest = usize::try_from(from + length - checker.checked()).unwrap_or(PIECE).min(PIECE);
        let count = stream.read(&mut piece[..rest]).await?;
        if count == 0 {
            let said = format!("cut off after {} of {length} bytes", checker.checked() - from);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
        }
        checker
            .check(&piece[..count])
            .map_err(|at| wrong(&format!("byte {at} of {} is wrong", path(seed))))?;
        if pace == Pace::Slow {
            sleep(BREATH).await;
        }
    }
    Ok(length)
}
