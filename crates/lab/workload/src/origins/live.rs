//! What an origin does that is no file: WebSocket echo, server-sent events on a clock, long polls. Everything lies under
//! [`PREFIX`], on every origin, so that the live web can be measured beside the pages.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::server::ResponseBody;

/// Where all of it lies.
pub const PREFIX: &str = "/.lab/";
/// WebSocket (RFC 6455): every message comes back.
pub const ECHO: &str = "/.lab/echo";
/// Server-sent events: `count` of them, the first at once, `every` milliseconds apart.
pub const EVENTS: &str = "/.lab/events";
/// A long poll: answered after `after` milliseconds.
pub const POLL: &str = "/.lab/poll";

/// The clock that events and polls tell: microseconds since 1970. Sender and receiver of the lab are one machine.
pub fn clock() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Answers a request under [`PREFIX`]; none for any other.
pub(super) async fn answer(request: &mut Request<Incoming>) -> Option<Response<ResponseBody>> {
    let path = request.uri().path();
    if !path.starts_with(PREFIX) {
        return None;
    }
    let numbers = query(request.uri().query().unwrap_or_default());
    let number = |name: &str, otherwise: u64| numbers.get(name).copied().unwrap_or(otherwise);
    Some(match path {
        ECHO => echo(request),
        EVENTS => events(number("count", 10), Duration::from_millis(number("every", 1000))),
        POLL => poll(Duration::from_millis(number("after", 1000))).await,
        _ => told(StatusCode::NOT_FOUND, "there are /.lab/echo, /.lab/events and /.lab/poll\n"),
    })
}

/// The numbers of a query.
fn query(text: &str) -> HashMap<&str, u64> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

/// RFC 6455 §4.2.2; the echo begins once the connection is handed over.
fn echo(request: &mut Request<Incoming>) -> Response<ResponseBody> {
    let asks = |name, value: &str| {
        let told = request.headers().get(name).and_then(|told| told.to_str().ok()).unwrap_or_default();
        told.split(',').any(|item| item.trim().eq_ignore_ascii_case(value))
    };
    let wanted =
        asks(UPGRADE, "websocket") && asks(CONNECTION, "upgrade") && asks(SEC_WEBSOCKET_VERSION, "13");
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY).filter(|_| wanted) else {
        let mut refusal = told(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket\n");
        refusal.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        refusal.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return refusal;
    };
    let accept = derive_accept_key(key.as_bytes());
    tokio::spawn(echo_messages(hyper::upgrade::on(request)));
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let fields = response.headers_mut();
    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        fields.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

async fn echo_messages(upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    // Pings and closes are answered by the stream itself; what breaks RFC 6455 ends it with the status it names.
    while let Some(Ok(message)) = socket.next().await {
        let is_data = message.is_text() || message.is_binary();
        if is_data && socket.send(message).await.is_err() {
            return;
        }
    }
}

fn events(count: u64, every: Duration) -> Response<ResponseBody> {
    let events = futures_util::stream::unfold(0, move |sent| async move {
        if sent == count {
            return None;
        }
        if sent > 0 {
            tokio::time::sleep(every).await;
        }
        let event = format!("id: {sent}\ndata: {}\n\n", clock());
        Some((Ok::<_, std::io::Error>(Frame::data(Bytes::from(event))), sent + 1))
    });
    fresh("text/event-stream", BodyExt::boxed(StreamBody::new(events)))
}

/// Says nothing, not even a head, until its time has come.
async fn poll(after: Duration) -> Response<ResponseBody> {
    tokio::time::sleep(after).await;
    fresh("text/plain", whole(Bytes::from(format!("{}\n", clock()))))
}

fn told(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = fresh("text/plain", whole(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

fn whole(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed()
}

fn fresh(media_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
