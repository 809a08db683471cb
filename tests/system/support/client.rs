//! A client of the proxy that tells a whole answer from one that was cut off.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// A request body.
pub(crate) type Body = BoxBody<Bytes, std::convert::Infallible>;

/// An answer, as far as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
    /// Whether it ended as its framing says that a whole one does.
    pub(crate) whole: bool,
}

impl Answer {
    /// A field's value; empty where there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// `Proxy-Status` without its words for people: who reports, and RFC 9209's error type.
    pub(crate) fn reported(&self) -> String {
        self.field("proxy-status").split("; details").next().unwrap_or_default().to_owned()
    }
}

/// A request as a proxy takes it: absolute-form, with its `Host`.
pub(crate) fn request(method: Method, url: &str) -> http::request::Builder {
    let uri: http::Uri = url.parse().unwrap();
    let host = uri.authority().unwrap().to_string();
    Request::builder().method(method).uri(uri).header("host", host)
}

/// Asks on a connection of its own and gives the answer once its head is here.
pub(crate) async fn open(proxy: SocketAddr, request: Request<Body>) -> Response<Incoming> {
    let what = format!("{} {}", request.method(), request.uri());
    let ask = async {
        let stream = TcpStream::connect(proxy).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    let answer = timeout(PATIENCE, ask).await.unwrap_or_else(|_| panic!("{what}: no answer in {PATIENCE:?}"));
    answer.unwrap_or_else(|error| panic!("{what}: {error:?}"))
}

/// Asks and takes the whole answer.
pub(crate) async fn send(proxy: SocketAddr, request: Request<Body>) -> Answer {
    let what = format!("{} {}", request.method(), request.uri());
    let (head, mut body) = open(proxy, request).await.into_parts();
    let mut answer = Answer {
        status: head.status.as_u16(),
        fields: head.headers,
        bytes: Vec::new(),
        trailers: None,
        whole: true,
    };
    while let Some(frame) =
        timeout(PATIENCE, body.frame()).await.unwrap_or_else(|_| panic!("{what}: the body stands still"))
    {
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(data)) => answer.bytes.extend_from_slice(&data),
            Ok(Err(rest)) => answer.trailers = rest.into_trailers().ok(),
            Err(_) => {
                answer.whole = false;
                break;
            }
        }
    }
    answer
}

/// GET.
pub(crate) async fn get(proxy: SocketAddr, url: &str) -> Answer {
    send(proxy, request(Method::GET, url).body(Empty::new().boxed()).unwrap()).await
}

/// Writes `text` to the proxy as it stands and reads until `enough` of what comes back, or its end.
pub(crate) async fn raw(stream: &mut TcpStream, text: &str, enough: impl Fn(&str) -> bool) -> String {
    let talk = async {
        stream.write_all(text.as_bytes()).await.unwrap();
        let (mut got, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
        loop {
            let so_far = String::from_utf8_lossy(&got).into_owned();
            if enough(&so_far) {
                return so_far;
            }
            match stream.read(&mut buffer).await.unwrap() {
                0 => return so_far,
                count => got.extend_from_slice(&buffer[..count]),
            }
        }
    };
    timeout(PATIENCE, talk).await.unwrap_or_else(|_| panic!("{text:?} is not answered"))
}
