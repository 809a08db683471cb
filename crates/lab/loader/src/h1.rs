//! HTTP/1.x on one connection: requests written, answers read in their order (RFC 9112). Knows nothing of pages.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::body::Body;
use crate::connect::Stream;
use crate::fields;
use crate::graph::{Object, upload_body};

/// More lines than any answer of the lab has, and longer ones.
const FIELDS: usize = 128;
const HEAD: usize = 64 << 10;
const PIECE: usize = 64 << 10;

/// A connection with what was read ahead of it.
pub(crate) struct Wire<S> {
    pub(crate) stream: S,
    held: BytesMut,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) coding: Option<String>,
    /// Whether the connection may be used again (RFC 9112 §9.3).
    pub(crate) persists: bool,
    pub(crate) framing: Framing,
}

/// How the end of a body is known (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// By the end of the connection.
    Close,
}

/// The bytes of a GET, or of a POST with what it uploads: HTTP/1.0's, or 1.1's on a connection that stays; in absolute form towards a proxy (RFC 9112 §3.2.2).
pub(crate) fn request(object: &Object, persistent: bool, absolute: bool) -> Vec<u8> {
    let url = &object.url;
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let target = match absolute {
        true => url.as_str().split('#').next().unwrap_or_default().to_owned(),
        false => format!("{}{query}", url.path()),
    };
    let version = if persistent { "1.1" } else { "1.0" };
    let method = if object.upload.is_some() { "POST" } else { "GET" };
    let mut text = format!("{method} {target} HTTP/{version}\r\nHost: {}\r\n", authority(url));
    for (name, value) in fields::of(object) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(bytes) = object.upload {
        text.push_str(&format!("Content-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n"));
    }
    text.push_str(if persistent { "Connection: keep-alive\r\n\r\n" } else { "Connection: close\r\n\r\n" });
    let mut request = text.into_bytes();
    request.extend(object.upload.map(upload_body).unwrap_or_default());
    request
}

/// Host, and port where it is not the scheme's own.
pub(crate) fn authority(url: &url::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

impl<S: Stream> Wire<S> {
    pub(crate) fn new(stream: S) -> Wire<S> {
        Wire { stream, held: BytesMut::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Waits until the other side ends the connection, or says what nobody asked for.
    pub(crate) async fn ended(&mut self) {
        if self.held.is_empty() {
            let _ = self.more().await;
        }
    }

    /// Opens a tunnel through a proxy (RFC 9110 §9.3.6).
    ///
    /// # Errors
    /// The proxy refuses, in words.
    pub(crate) async fn tunnel(&mut self, host: &str, port: u16) -> Result<(), String> {
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        self.write(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let head = self.head(|| {}).await?;
        match head.status {
            200..=299 if self.held.is_empty() => Ok(()),
            status => Err(format!("the proxy answers CONNECT with {status}")),
        }
    }

    /// The head of the next answer; `begun` is told once its first byte is there. Informational ones are passed over.
    ///
    /// # Errors
    /// The connection ends, or it is no HTTP, in words.
    pub(crate) async fn head(&mut self, mut begun: impl FnMut()) -> Result<Head, String> {
        let mut is_begun = false;
        loop {
            if !self.held.is_empty() && !std::mem::replace(&mut is_begun, true) {
                begun();
            }
            match parse(&self.held)? {
                Some((length, head)) => {
                    self.held.advance(length);
                    // RFC 9110 §15.2; 101 was never asked for.
                    if !(100..200).contains(&head.status) {
                        return Ok(head);
                    }
                }
                None if self.held.len() > HEAD => return Err("the head of its answer does not end".into()),
                None => {
                    if self.more().await.map_err(|error| error.to_string())? == 0 {
                        return Err("the connection ended before its answer".into());
                    }
                }
            }
        }
    }

    /// The body after `head`, into `body`; `known` is told how many bytes of its content are there.
    ///
    /// # Errors
    /// It breaks off or is malformed, in words.
    pub(crate) async fn body(
        &mut self,
        framing: Framing,
        body: &mut Body,
        mut known: impl FnMut(u64),
    ) -> Result<(), String> {
        match framing {
            Framing::Length(length) => self.exactly(length, body, &mut known).await,
            Framing::Close => loop {
                if !self.held.is_empty() {
                    let piece = self.held.split();
                    known(body.push(&piece)?);
                }
                if self.more().await.map_err(|error| error.to_string())? == 0 {
                    return Ok(());
                }
            },
            Framing::Chunked => loop {
                let line = self.line().await?;
                // RFC 9112 §7.1.1: extensions are passed over.
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16).map_err(|_| format!("'{line}' is no chunk"))?;
                if size == 0 {
                    while !self.line().await?.is_empty() {} // trailers
                    return Ok(());
                }
                self.exactly(size, body, &mut known).await?;
                if !self.line().await?.is_empty() {
                    return Err("a chunk is longer than it says".into());
                }
            },
        }
    }

    async fn exactly(
        &mut self,
        mut left: u64,
        body: &mut Body,
        known: &mut impl FnMut(u64),
    ) -> Result<(), String> {
        while left > 0 {
            if self.held.is_empty() && self.more().await.map_err(|error| error.to_string())? == 0 {
                return Err(format!("its body broke off {left} bytes before its end"));
            }
            let count = self.held.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = self.held.split_to(count);
            left -= count as u64;
            known(body.push(&piece)?);
        }
        Ok(())
    }

    async fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.split_to(end + 1);
                return Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
            }
            if self.held.len() > HEAD || self.more().await.map_err(|error| error.to_string())? == 0 {
                return Err("its body broke off between chunks".into());
            }
        }
    }

    async fn more(&mut self) -> std::io::Result<usize> {
        self.held.reserve(PIECE);
        self.stream.read_buf(&mut self.held).await
    }
}

/// The head that `bytes` begin with and its length; none while it is not complete.
fn parse(bytes: &[u8]) -> Result<Option<(usize, Head)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(bytes).map_err(|error| format!("its answer is no HTTP/1: {error}"))?;
    let httparse::Status::Complete(length) = parsed else { return Ok(None) };
    let field = |name: &str| {
        let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(found.value).into_owned())
    };
    let status = response.code.unwrap_or_default();
    let says = |name: &str, token: &str| {
        field(name).is_some_and(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(token)))
    };
    let is_new = response.version == Some(1);
    let framing = if matches!(status, 100..=199 | 204 | 304) {
        Framing::Length(0)
    } else if says("transfer-encoding", "chunked") {
        Framing::Chunked
    } else if let Some(text) = field("content-length") {
        Framing::Length(text.trim().parse().map_err(|_| format!("'{text}' is no length"))?)
    } else {
        Framing::Close
    };
    let persists = framing != Framing::Close
        && if is_new { !says("connection", "close") } else { says("connection", "keep-alive") };
    Ok(Some((length, Head { status, coding: field("content-encoding"), persists, framing })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Kind;

    async fn read(bytes: &'static [u8]) -> (Wire<tokio::io::DuplexStream>, tokio::task::JoinHandle<()>) {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let writing = tokio::spawn(async move {
            for byte in bytes {
                far.write_all(&[*byte]).await.unwrap();
            }
        });
        (Wire::new(near), writing)
    }

    async fn whole(wire: &mut Wire<tokio::io::DuplexStream>) -> Result<(u16, Vec<u8>, bool), String> {
        let head = wire.head(|| {}).await?;
        let mut body = Body::new(head.coding.as_deref())?;
        wire.body(head.framing, &mut body, |_| {}).await?;
        Ok((head.status, body.finish()?, head.persists))
    }

    #[tokio::test]
    async fn answers_come_apart_whatever_frames_them() {
        let (mut wire, _writing) = read(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
              HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nde\r\n1\r\nf\r\n0\r\nTrailer: t\r\n\r\n\
              HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
              HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n\
              HTTP/1.0 200 OK\r\n\r\nto the end",
        )
        .await;
        assert_eq!(whole(&mut wire).await.unwrap(), (200, b"abc".to_vec(), true));
        assert_eq!(whole(&mut wire).await.unwrap(), (200, b"def".to_vec(), true));
        assert_eq!(whole(&mut wire).await.unwrap(), (304, Vec::new(), true));
        assert_eq!(whole(&mut wire).await.unwrap(), (404, Vec::new(), false));
        assert_eq!(whole(&mut wire).await.unwrap(), (200, b"to the end".to_vec(), false));
    }

    #[tokio::test]
    async fn what_breaks_off_or_is_no_http_is_told() {
        let (mut wire, _writing) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").await;
        assert_eq!(whole(&mut wire).await.unwrap_err(), "its body broke off 3 bytes before its end");
        let (mut wire, _writing) = read(b"SSH-2.0-x\r\n\r\n").await;
        assert!(whole(&mut wire).await.unwrap_err().starts_with("its answer is no HTTP/1: "));
        let (mut wire, _writing) = read(b"").await;
        assert_eq!(whole(&mut wire).await.unwrap_err(), "the connection ended before its answer");
    }

    #[test]
    fn a_request_is_in_the_form_that_its_receiver_needs() {
        let object = Object::new("http://a.test:8080/x?y#z".parse().unwrap(), Kind::Image, b"");
        let text = |persistent, absolute| String::from_utf8(request(&object, persistent, absolute)).unwrap();
        assert!(text(true, false).starts_with("GET /x?y HTTP/1.1\r\nHost: a.test:8080\r\n"));
        assert!(text(true, true).starts_with("GET http://a.test:8080/x?y HTTP/1.1\r\n"));
        let old = text(false, false);
        assert!(
            old.starts_with("GET /x?y HTTP/1.0\r\n") && old.contains("Connection: close\r\n\r\n"),
            "{old}"
        );
    }
}
