//! The client's side, and what every test needs.

use bytes::BytesMut;
use farhop_front::h1::{BodyDecoder, Decoded, HeadScanner, ResponseHead, Section};
use farhop_front::{Connection, Exchange, Framing, Head, HeadLimits, Settings, Target};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// A client that reads responses as strictly as requests are read.
pub(crate) struct Client {
    pub(crate) stream: DuplexStream,
    pub(crate) buffer: BytesMut,
}

/// A response with its body, and whether the body was complete.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) fields: HeaderMap,
    pub(crate) framing: Framing,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: HeaderMap,
    pub(crate) complete: bool,
}

impl Client {
    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn fill(&mut self) -> bool {
        self.stream.read_buf(&mut self.buffer).await.unwrap() > 0
    }

    pub(crate) async fn head(&mut self, method: &Method) -> ResponseHead {
        let limits = HeadLimits::default();
        let mut scanner = HeadScanner::new(Section::Response);
        loop {
            if let Some(range) = scanner.scan(&self.buffer, &limits).unwrap() {
                let head = self.buffer.split_to(range.end);
                return ResponseHead::parse(&head, method, &limits).unwrap();
            }
            assert!(self.fill().await, "the connection ended before a response head");
        }
    }

    pub(crate) async fn response_to(&mut self, method: &Method) -> Response {
        let head = self.head(method).await;
        let mut decoder = BodyDecoder::new(head.framing, HeadLimits::default());
        let mut response = Response {
            status: head.status.as_u16(),
            fields: head.fields,
            framing: head.framing,
            body: Vec::new(),
            trailers: HeaderMap::new(),
            complete: true,
        };
        loop {
            match decoder.decode(&mut self.buffer).unwrap() {
                Decoded::Data(data) => response.body.extend_from_slice(&data),
                Decoded::End(trailers) => {
                    response.trailers = trailers;
                    return response;
                }
                Decoded::NeedMore => {
                    if !self.fill().await && decoder.end_of_input().is_err() {
                        response.complete = false;
                        return response;
                    }
                }
            }
        }
    }

    pub(crate) async fn response(&mut self) -> Response {
        self.response_to(&Method::GET).await
    }

    pub(crate) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await
    }
}

pub(crate) fn pair_with(settings: Settings) -> (Client, Connection) {
    let (near, far) = duplex(64 * 1024);
    (Client { stream: near, buffer: BytesMut::new() }, Connection::new(far, Arc::new(settings)))
}

pub(crate) fn pair() -> (Client, Connection) {
    pair_with(Settings::default())
}

pub(crate) fn head(status: u16, fields: &[(&'static str, &'static str)]) -> Head {
    let fields = fields
        .iter()
        .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), HeaderValue::from_static(value)));
    Head { status: StatusCode::from_u16(status).unwrap(), fields: fields.collect() }
}

pub(crate) async fn next(connection: &mut Connection) -> Exchange {
    connection.next_request().await.unwrap().expect("a request")
}

pub(crate) fn path(exchange: &Exchange) -> String {
    match &exchange.head.target {
        Target::Absolute { path, .. } | Target::Origin(path) => path.to_string(),
        other => format!("{other:?}"),
    }
}

pub(crate) const GET: &str = "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n";
