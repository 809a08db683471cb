//! Connections that are caught, with a server that knows no more of it than they do: each question is a number, and its answer
//! bytes that follow from the number, compared one by one.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use farhop_compare::Interrupt;
use farhop_testkit::pattern::bytes_at;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// Where the server is, at each of its addresses.
pub(super) const PORT: u16 = 7007;
/// Bytes of an answer: a small message.
const ANSWER: usize = 1000;
/// How long a connection may take for its next answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Connections that are opened at a time.
const AT_ONCE: usize = 256;

/// Serves until the future is dropped.
pub(super) async fn serve(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(answer(stream))),
            // Its clients wait for an answer in vain, and say so.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while let Ok(number) = stream.read_u64().await {
        stream.write_all(&bytes_at(number, 0, ANSWER)).await?;
    }
    Ok(())
}

async fn ask(stream: &mut TcpStream, number: u64) -> io::Result<()> {
    let mut answer = [0; ANSWER];
    let call = async {
        stream.write_u64(number).await?;
        stream.read_exact(&mut answer).await
    };
    timeout(PATIENCE, call).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if answer[..] == bytes_at(number, 0, ANSWER)[..] { Ok(()) } else { Err(io::Error::other("other bytes")) }
}

/// Opens `count` connections, from these addresses in turn, asks once on each, and once more when all are open; then calls
/// `meanwhile`, and closes them.
///
/// # Errors
/// What went wrong with the first that failed.
pub(super) async fn together<T>(
    from: &[Ipv4Addr],
    to: SocketAddr,
    count: usize,
    meanwhile: impl FnOnce() -> T,
) -> io::Result<T> {
    let open = async |number: usize| {
        let from = from[number % from.len()];
        let at = |error: io::Error| io::Error::new(error.kind(), format!("flow {number}: {error}"));
        let socket = TcpSocket::new_v4().map_err(at)?;
        socket.bind(SocketAddr::from((from, 0))).map_err(at)?;
        let mut stream = socket.connect(to).await.map_err(at)?;
        ask(&mut stream, number as u64).await.map_err(at)?;
        Ok::<_, io::Error>(stream)
    };
    let mut flows: Vec<TcpStream> =
        stream::iter((0..count).map(open)).buffered(AT_ONCE).try_collect().await?;
    let again = flows.iter_mut().enumerate().map(|(number, flow)| ask(flow, (count + number) as u64));
    stream::iter(again).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    Ok(meanwhile())
}

/// What became of connections one after the other.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Those that got their answer.
    pub(super) done: u64,
    /// What went wrong with others: how many, and the first.
    pub(super) failed: (u64, Option<String>),
}

/// Opens `count` connections to these places in turn, `at_once` at a time, asks once on each and closes it; `done` counts along.
pub(super) async fn in_turn(
    to: &[SocketAddr],
    count: u64,
    at_once: usize,
    done: &AtomicU64,
    interrupt: &Interrupt,
) -> Outcome {
    let once = async |number: u64| {
        let to = to[(number % to.len() as u64) as usize];
        let mut stream = timeout(PATIENCE, TcpStream::connect(to))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        ask(&mut stream, number).await
    };
    let all = stream::iter((0..count).take_while(|_| interrupt.check().is_ok()).map(once));
    let gather = async |mut outcome: Outcome, result: io::Result<()>| {
        match result {
            Ok(()) => {
                outcome.done += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                outcome.failed.0 += 1;
                outcome.failed.1.get_or_insert_with(|| error.to_string());
            }
        }
        outcome
    };
    all.buffer_unordered(at_once).fold(Outcome::default(), gather).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_compared_and_counted() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));
        assert_eq!(together(&[Ipv4Addr::LOCALHOST], at, 20, || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_wrong_byte_is_found() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&[0; ANSWER]).await.unwrap();
            stream
        });
        let mut stream = TcpStream::connect(at).await.unwrap();
        assert_eq!(ask(&mut stream, 1).await.unwrap_err().to_string(), "other bytes");
    }
}
