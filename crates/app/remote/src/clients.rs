//! Client connections: each request in turn goes to whoever serves it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use farhop_events::{Event, Side};
use farhop_front::{Connection, Exchange as Incoming, Head, Listener, Settings};
use farhop_settings::RemoteSettings;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;

use crate::Remote;
use crate::answers::{Trouble, via};
use crate::exchange::Exchange;
use crate::request::{Wanted, sort};
use crate::tunnel::Wish;

/// How many connections each client address has open.
#[derive(Default)]
pub(crate) struct Census(Mutex<HashMap<IpAddr, u32>>);

/// One connection counted, until it is dropped.
struct Counted<'a> {
    census: &'a Census,
    address: IpAddr,
}

impl Census {
    fn enter(&self, address: IpAddr, most: u32) -> Option<Counted<'_>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Counted { census: self, address })
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(|n| u64::from(*n)).sum()
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut counts = self.census.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// What a listener is told, from the settings.
pub(crate) fn front_settings(settings: &RemoteSettings) -> Settings {
    let mut front = Settings::default();
    front.head.head = settings.limits.head;
    front.head.target = settings.limits.target;
    front.head.fields = settings.limits.fields as usize;
    front.idle_timeout = settings.timeouts.idle;
    front.head_timeout = settings.timeouts.head;
    front.body_timeout = settings.timeouts.stall;
    front.write_timeout = settings.timeouts.stall;
    front.connections = settings.limits.connections as usize;
    front.name = "farhop-remote".into();
    front
}

/// Accepts clients until the future is dropped.
pub(crate) async fn accept(remote: Arc<Remote>, listener: Listener) {
    loop {
        let (connection, peer) = listener.accept().await;
        tokio::spawn(attend(Arc::clone(&remote), connection, peer));
    }
}

async fn attend(remote: Arc<Remote>, mut connection: Connection, peer: SocketAddr) {
    let address = peer.ip().to_canonical();
    let settings = remote.settings();
    let counted = remote.census().enter(address, settings.limits.connections_per_client);
    let admitted = settings.clients.iter().any(|range| range.contains(address));
    loop {
        let incoming = tokio::select! {
            incoming = connection.next_request() => incoming,
            () = remote.draining() => return,
        };
        match incoming {
            Ok(Some(incoming)) if admitted && counted.is_some() => serve(&remote, incoming, address).await,
            Ok(Some(incoming)) => {
                remote.bus().emit(Event::ClientRefused { address: address.to_string() });
                let (status, token, detail) = if admitted {
                    let detail = format!(
                        "{address} has more connections open than 'limits.connections_per_client' allows"
                    );
                    (StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached", detail)
                } else {
                    let detail = format!("{address} may not use this proxy; add it to 'clients'");
                    (StatusCode::FORBIDDEN, "http_request_denied", detail)
                };
                let trouble = Trouble::new(status, Side::Remote, token, detail);
                let (head, page) = trouble.page(remote.next_exchange());
                // It is refused either way.
                let _ = incoming.responder.respond(head, page).await;
                return;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(target: "farhop", "client {peer}: {error}");
                return;
            }
        }
    }
}

async fn serve(remote: &Arc<Remote>, incoming: Incoming, address: IpAddr) {
    let started = Instant::now();
    let id = remote.next_exchange();
    let user = remote.users().at(address);
    let Incoming { head, body, mut responder } = incoming;
    let method = head.method.clone();
    let wanted = sort(head);
    let url = match &wanted {
        Wanted::Fetch(fetch) => fetch.url.to_string(),
        Wanted::Tunnel { host, port } => format!("{host}:{port}"),
        Wanted::Own { .. } | Wanted::Echo(_) => "*".into(),
    };
    let url = remote.bus().url(&url);
    let accepted =
        Event::RequestAccepted { exchange: id, user: user.name.to_string(), method: method.to_string(), url };
    remote.bus().emit(accepted);
    let _busy = remote.busy();
    match wanted {
        Wanted::Fetch(fetch) => {
            let exchange = Exchange { id, user, fetch: (*fetch).into(), started, uploaded: Arc::default() };
            exchange.serve(Arc::clone(remote), body, responder).await;
        }
        Wanted::Tunnel { host, port } => {
            drop(body);
            Wish { id, user, host, port, started }.serve(Arc::clone(remote), responder).await;
        }
        Wanted::Own { status, text } => {
            drop(body);
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            fields.insert(
                ALLOW,
                HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT"),
            );
            via(&mut fields, id);
            // Whether the client still listens changes nothing here.
            let _ = responder.respond(Head { status, fields }, Bytes::from_static(text.as_bytes())).await;
        }
        Wanted::Echo(asked) => {
            drop(body);
            responder.close_after();
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("message/http"));
            via(&mut fields, id);
            let _ = responder.respond(Head { status: StatusCode::OK, fields }, echo(asked).into()).await;
        }
    }
}

/// RFC 9110 §9.3.8: the request as it was received, without what could be sensitive.
fn echo(mut fields: HeaderMap) -> String {
    for name in [COOKIE, AUTHORIZATION, PROXY_AUTHORIZATION] {
        fields.remove(name);
    }
    let lines = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
    format!("TRACE * HTTP/1.1\r\n{}\r\n", lines.collect::<String>())
}
