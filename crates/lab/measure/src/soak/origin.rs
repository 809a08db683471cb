//! What stands at the other end of tunnels: it speaks no HTTP, ends either half first, and breaks off when it is told to.
//! A connection begins with a line that says which; both sides know every byte that follows.

use std::io;

use farhop_testkit::pattern::{Checker, bytes_at};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// In pieces of so many bytes.
const PIECE: usize = 16 * 1024;

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// Everything comes back; the client ends its half first.
    Echo,
    /// The server speaks only once the client's half has ended.
    Late,
    /// The server ends its half first, and then listens on.
    Early,
    /// The server breaks off in the middle.
    BreaksOff,
    /// The client does.
    IsLeft,
}

impl Talk {
    pub(super) const ALL: [Talk; 5] = [Talk::Echo, Talk::Late, Talk::Early, Talk::BreaksOff, Talk::IsLeft];

    fn word(self) -> &'static str {
        match self {
            Talk::Echo => "echo",
            Talk::Late => "late",
            Talk::Early => "early",
            Talk::BreaksOff => "breaks-off",
            Talk::IsLeft => "is-left",
        }
    }
}

/// Serves each connection until this is dropped.
pub(super) async fn serve(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(answer(stream));
    }
}

async fn answer(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(PIECE, stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let mut words = line.split_whitespace();
    let word = words.next().unwrap_or_default();
    let mut number = || words.next().and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let (seed, length) = (number(), number());
    match Talk::ALL.into_iter().find(|talk| talk.word() == word) {
        Some(Talk::Echo | Talk::IsLeft) => {
            loop {
                let piece = stream.fill_buf().await?.to_vec();
                if piece.is_empty() {
                    break;
                }
                stream.consume(piece.len());
                stream.get_mut().write_all(&piece).await?;
            }
            stream.get_mut().shutdown().await
        }
        Some(Talk::Late) => {
            let right = received(&mut stream, seed, length).await?;
            // Who hears nothing of what was sent has to notice.
            send(stream.get_mut(), seed + 1, if right { length } else { 0 }).await?;
            stream.get_mut().shutdown().await
        }
        Some(Talk::Early) => {
            send(stream.get_mut(), seed + 1, length).await?;
            stream.get_mut().shutdown().await?;
            // Whether it was right the client cannot be told any more, except by a reset.
            match received(&mut stream, seed, length).await? {
                true => Ok(()),
                false => stream.get_mut().set_zero_linger(),
            }
        }
        Some(Talk::BreaksOff) => {
            send(stream.get_mut(), seed + 1, length).await?;
            stream.get_mut().set_zero_linger()
        }
        None => Ok(()),
    }
}

/// Has a talk over a connection and compares every byte; gives how many came.
pub(super) async fn talk(mut stream: TcpStream, talk: Talk, seed: u64, length: u64) -> io::Result<u64> {
    stream.write_all(format!("{} {seed} {length}\n", talk.word()).as_bytes()).await?;
    match talk {
        Talk::Echo => {
            let (mut from, mut to) = stream.split();
            let up = async {
                send(&mut to, seed, length).await?;
                to.shutdown().await
            };
            let (sent, came) = tokio::join!(up, whole(&mut from, seed, length));
            sent.and(came)
        }
        Talk::Late => {
            send(&mut stream, seed, length).await?;
            stream.shutdown().await?;
            whole(&mut stream, seed + 1, length).await
        }
        Talk::Early => {
            let came = whole(&mut stream, seed + 1, length).await?;
            send(&mut stream, seed, length).await?;
            stream.shutdown().await?;
            Ok(came)
        }
        Talk::BreaksOff => {
            let mut checker = Checker::new(seed + 1);
            // A reset overtakes what was sent before it.
            match until_end(&mut stream, &mut checker).await {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error),
                Err(_) => Ok(checker.checked()),
                Ok(()) => Err(wrong("the origin's reset came as an end in order")),
            }
        }
        Talk::IsLeft => {
            send(&mut stream, seed, length / 2).await?;
            let mut some = vec![0; usize::try_from(length / 8).unwrap_or(PIECE)];
            stream.read_exact(&mut some).await?;
            Checker::new(seed).check(&some).map_err(|at| wrong(&format!("byte {at} of an echo")))?;
            stream.set_zero_linger()?;
            Ok(some.len() as u64)
        }
    }
}

/// The error of bytes that nobody sent.
pub(super) fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

async fn send(to: &mut (impl tokio::io::AsyncWrite + Unpin), seed: u64, length: u64) -> io::Result<()> {
    for at in (0..length).step_by(PIECE) {
        to.write_all(&bytes_at(seed, at, PIECE.min((length - at) as usize))).await?;
    }
    to.flush().await
}

/// Whether exactly these bytes came before the end.
async fn received(stream: &mut (impl AsyncRead + Unpin), seed: u64, length: u64) -> io::Result<bool> {
    match whole(stream, seed, length).await {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
        came => came.map(|_| true),
    }
}

async fn whole(stream: &mut (impl AsyncRead + Unpin), seed: u64, length: u64) -> io::Result<u64> {
    let mut checker = Checker::new(seed);
    until_end(stream, &mut checker).await?;
    match checker.checked() {
        all if all == length => Ok(all),
        // Cut off, but as if it were whole.
        part => Err(wrong(&format!("{part} of {length} bytes and an end in order"))),
    }
}

async fn until_end(stream: &mut (impl AsyncRead + Unpin), checker: &mut Checker) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        checker.check(&piece[..count]).map_err(|at| wrong(&format!("byte {at} of a tunnel is wrong")))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_talk_comes_to_its_end_and_every_byte_is_compared() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener));
        for kind in Talk::ALL {
            let stream = TcpStream::connect(address).await.unwrap();
            let came = talk(stream, kind, 5, 100_000).await.unwrap();
            let all = matches!(kind, Talk::Echo | Talk::Late | Talk::Early);
            assert_eq!(came == 100_000, all || (kind == Talk::BreaksOff && came == 100_000), "{kind:?}");
        }
        server.abort();
    }

    #[tokio::test]
    async fn a_wrong_byte_and_a_missing_one_are_told() {
        let mut bytes = bytes_at(7, 0, 1000).to_vec();
        assert_eq!(whole(&mut &bytes[..], 7, 1000).await.unwrap(), 1000);
        assert!(whole(&mut &bytes[..999], 7, 1000).await.is_err());
        bytes[500] ^= 1;
        let error = whole(&mut &bytes[..], 7, 1000).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains("500")), (io::ErrorKind::InvalidData, true));
    }
}
