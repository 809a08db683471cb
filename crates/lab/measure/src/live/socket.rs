//! WebSocket echoes: how long one takes, and whether a hundred come back as they were sent. Over HTTP/1.1 and over HTTP/2
//! (RFC 8441), which Chromium and Firefox use where the proxy offers it (`tests/system/clients/live.rs`).

use std::io;
use std::time::Duration;

use farhop_workload::origins::live::ECHO;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Method, Request};
use http_body_util::Empty;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{ALLOWED, HOST, Ways, median, ms};
use crate::Row;
use crate::visitor::{Visitor, first_line, head};

/// Echoes that are timed.
const TIMED: usize = 30;
/// Messages each way that have to come in order.
const MESSAGES: usize = 100;
/// A third of a round trip of the path.
const APART: Duration = Duration::from_millis(215);

/// How long an echo takes through Farhop, beside a direct socket: in turn, a third of a round trip after each other, so that
/// none waits for another's bytes on the narrow way up.
pub(super) async fn echoes(ways: &Ways) -> io::Result<Vec<Row>> {
    let (first, direct) = tokio::try_join!(plain(&ways.farhop), plain(&ways.direct))?;
    let (second, _open) = extended(&ways.farhop).await?;
    let (mut direct, first, second) =
        tokio::try_join!(timed(direct, Duration::ZERO), timed(first, APART), timed(second, 2 * APART))?;
    let direct = median(&mut direct);
    let mut rows = Vec::new();
    for (version, mut times) in [("HTTP/1.1", first), ("HTTP/2", second)] {
        let farhop = median(&mut times);
        rows.push(Row::judged(
            format!("WebSocket echo over {version}, geo-hylas2"),
            format!("{} (median of {TIMED}; direct {})", ms(farhop), ms(direct)),
            "a direct socket's + 5 ms",
            farhop <= direct + ALLOWED,
        ));
    }
    Ok(rows)
}

/// Whether many messages, all under way at once, come back in their order.
pub(super) async fn in_order(farhop: &Visitor) -> io::Result<Row> {
    let right = right(plain(farhop).await?).await?;
    let measured = format!("{right} of {MESSAGES} in order");
    Ok(Row::judged("WebSocket messages each way", measured, "all, in order", right == MESSAGES))
}

/// The same messages, of which a wrong one is an error; gives how many came back.
///
/// # Errors
/// No socket is to be had, or another message came than was sent.
pub(crate) async fn echoed(visitor: &Visitor) -> io::Result<u64> {
    all(right(plain(visitor).await?).await?)
}

/// The same over HTTP/2.
///
/// # Errors
/// As [`echoed`].
pub(crate) async fn echoed_within_http2(visitor: &Visitor) -> io::Result<u64> {
    let (socket, _open) = extended(visitor).await?;
    all(right(socket).await?)
}

fn all(right: usize) -> io::Result<u64> {
    match right {
        MESSAGES => Ok(MESSAGES as u64),
        part => Err(io::Error::other(format!("{part} of {MESSAGES} messages came back as they were sent"))),
    }
}

/// How many of many messages, all under way at once, came back as they were sent before one did not.
async fn right<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>) -> io::Result<usize> {
    let (mut sink, mut stream) = socket.split();
    // Of all sizes: some in one frame with others, some over many packets.
    let message = |number: usize| Message::text(format!("{number}:{}", "x".repeat(number * number % 5000)));
    let send = async {
        for number in 0..MESSAGES {
            sink.send(message(number)).await.map_err(io::Error::other)?;
        }
        Ok::<_, io::Error>(())
    };
    let receive = async {
        let mut right = 0;
        while right < MESSAGES && stream.next().await.transpose().ok().flatten() == Some(message(right)) {
            right += 1;
        }
        right
    };
    let (sent, right) = tokio::join!(send, receive);
    sent.map(|()| right)
}

async fn timed<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    after: Duration,
) -> io::Result<Vec<Duration>> {
    tokio::time::sleep(after).await;
    let mut times = Vec::new();
    for number in 0..TIMED {
        let message = Message::text(format!("message {number}"));
        let start = Instant::now();
        socket.send(message.clone()).await.map_err(io::Error::other)?;
        match socket.next().await {
            Some(Ok(echo)) if echo == message => times.push(start.elapsed()),
            other => return Err(io::Error::other(format!("message {number} came back as {other:?}"))),
        }
    }
    Ok(times)
}

/// A socket over HTTP/1.1.
async fn plain(visitor: &Visitor) -> io::Result<WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>> {
    let stream = open(visitor).await?;
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, None).await)
}

/// A connection that has become a WebSocket, for whoever writes frames of his own.
pub(super) async fn open(
    visitor: &Visitor,
) -> io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
    let mut stream = visitor.secure(HOST, &["http/1.1"]).await?;
    let ask = format!(
        "GET {ECHO} HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await?;
    let head = head(&mut stream).await?;
    // RFC 6455 §1.3 works this very key out.
    let accepted = head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    match head.starts_with("HTTP/1.1 101") && accepted {
        true => Ok(stream),
        false => Err(io::Error::other(format!("the WebSocket is answered '{}'", first_line(&head)))),
    }
}

/// A socket over HTTP/2 (RFC 8441), and what keeps its connection open.
async fn extended(
    visitor: &Visitor,
) -> io::Result<(WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>, impl Sized)> {
    let stream = visitor.secure(HOST, &["h2"]).await?;
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let ask = Request::builder()
        .method(Method::CONNECT)
        .uri(format!("https://{HOST}{ECHO}"))
        .extension(Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .body(Empty::<bytes::Bytes>::new())
        .map_err(io::Error::other)?;
    let response = sender.send_request(ask).await.map_err(io::Error::other)?;
    if !response.status().is_success() {
        return Err(io::Error::other(format!("extended CONNECT is answered {}", response.status())));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(io::Error::other)?;
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await;
    Ok((socket, sender))
}
