//! Clients and origins with bad manners: what they say and leave half said must be answered or ended, never held.

use std::io;

use farhop_lab_transport::{first_line, head};
use farhop_testkit::Manners;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

use super::load::Client;
use super::origin::wrong;
use super::pages::{ask, speak};

/// More of an endless body proves nothing new.
const ENOUGH: u64 = 4 * 1024;
/// What is left is left after so long.
const SOON: Duration = Duration::from_millis(300);

/// An origin that misbehaves in one of many ways: its answer must not come as a whole one.
pub(super) async fn origin(client: &mut Client<'_>) -> io::Result<u64> {
    let all = &client.map.hostile;
    let (manners, address) = all[client.of_kind % all.len()];
    let mut sender = speak(TcpStream::connect(client.map.proxy).await?).await?;
    let asked = ask(&format!("http://{address}/"), Some(&client.credentials()))?;
    let answer = sender.send_request(asked).await;
    // A connection that is ended is one way of not answering.
    let Ok(answer) = answer else { return Ok(0) };
    let status = answer.status();
    let (mut body, mut bytes) = (answer.into_body(), 0);
    while bytes < ENOUGH {
        match body.frame().await {
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) => return Ok(bytes),
            None if status.is_success() && manners.is_never_whole() => {
                return Err(wrong(&format!("{manners:?} came as a whole answer of {bytes} bytes")));
            }
            None if status.is_success() || status.is_server_error() => return Ok(bytes),
            None => return Err(io::Error::other(format!("{manners:?} is answered {status}"))),
        }
    }
    match manners {
        Manners::EndlessBody | Manners::EndlessTinyChunks => Ok(bytes),
        other => Err(wrong(&format!("{other:?} came as {bytes} bytes and more"))),
    }
}

/// What a client may say that is no request, or none that is allowed: it is refused, or the connection ends.
pub(super) async fn client(client: &mut Client<'_>) -> io::Result<u64> {
    let credentials = format!("Proxy-Authorization: {}\r\n", client.credentials());
    let said: [String; 9] = [
        "GET / HTTP/1.1\r\n\r\n".into(),
        "GET http://a.test/ HTTP/9.9\r\nHost: a.test\r\n\r\n".into(),
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
        format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{credentials}X: {}\r\n\r\n", "x".repeat(80_000)),
        format!("CONNECT a.test:25 HTTP/1.1\r\nHost: a.test:25\r\n{credentials}\r\n"),
        format!("GET http://none.test/ HTTP/1.1\r\nHost: none.test\r\n{credentials}\r\n"),
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{7f}\x03\x03\r\n\r\n".into(),
        // Half a head: nothing is answered, and the client goes.
        "GET http://a.test/ HTTP/1.1\r\nHo".into(),
    ];
    let number = client.below(said.len() as u64) as usize;
    let mut stream = TcpStream::connect(client.map.proxy).await?;
    stream.write_all(said[number].as_bytes()).await?;
    if number == said.len() - 1 {
        sleep(SOON).await;
        return Ok(0);
    }
    match head(&mut stream).await {
        Ok(head) if head.starts_with("HTTP/1.1 4") || head.starts_with("HTTP/1.1 5") => Ok(0),
        Ok(head) => {
            Err(wrong(&format!("'{}' is answered '{}'", first_line(&said[number]), first_line(&head))))
        }
        Err(_) => Ok(0),
    }
}

/// A connection that is caught and left: at once, after a byte, or with a reset in the middle of something.
pub(super) async fn caught_and_left(client: &mut Client<'_>) -> io::Result<u64> {
    let way = client.below(3);
    let mut stream = TcpStream::connect(client.map.raw).await?;
    match way {
        0 => {}
        1 => stream.write_all(b"e").await?,
        _ => {
            stream.write_all(b"echo 1 1000\nhello").await?;
            // Whatever of the echo has come by then.
            let mut some = [0; 16];
            let _ = tokio::time::timeout(SOON, stream.read(&mut some)).await;
            stream.set_zero_linger()?;
        }
    }
    Ok(0)
}
