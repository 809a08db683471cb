//! HTTP/1.x, server side: answers in the order of the requests, however many are there already.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Content;
use crate::connect::Stream;

const HEAD: usize = 64 << 10;

/// Serves one connection to its end.
pub(super) async fn serve(mut stream: impl Stream, content: Arc<Content>) -> io::Result<()> {
    let mut held = BytesMut::new();
    let mut answered = 0;
    loop {
        let request = match parse(&held)? {
            Some((length, request)) => {
                held.advance(length);
                request
            }
            None if held.len() > HEAD => return Err(io::Error::other("a request's head does not end")),
            None => {
                if stream.read_buf(&mut held).await? == 0 {
                    return stream.shutdown().await;
                }
                continue;
            }
        };
        answered += 1;
        let persists = request.persists && content.requests.is_none_or(|most| answered < most);
        tokio::time::sleep(content.delay).await;
        let (status, body, media) = match content.files.get(&request.path) {
            Some((body, media)) => ("200 OK", body.clone(), *media),
            None => ("404 Not Found", "no such file\n".into(), "text/plain"),
        };
        let connection = if persists { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).await?;
        stream.flush().await?;
        if !persists {
            return stream.shutdown().await;
        }
    }
}

struct Request {
    path: String,
    persists: bool,
}

fn parse(bytes: &[u8]) -> io::Result<Option<(usize, Request)>> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    let parsed = request.parse(bytes).map_err(io::Error::other)?;
    let httparse::Status::Complete(length) = parsed else { return Ok(None) };
    let target = request.path.unwrap_or("/");
    // RFC 9112 §3.2.2: a server takes the absolute form, too.
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let connection = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("connection"));
    let says = |token: &str| {
        connection
            .is_some_and(|field| String::from_utf8_lossy(field.value).trim().eq_ignore_ascii_case(token))
    };
    let persists = if request.version == Some(1) { !says("close") } else { says("keep-alive") };
    Ok(Some((length, Request { path: path.to_owned(), persists })))
}
