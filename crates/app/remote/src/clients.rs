//! Client connections: each request in turn goes to whoever serves it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use farhop_events::{Event, ExchangeId, Side};
use farhop_front::{Connection, Exchange as Incoming, Head, Listener, RequestBody, Responder, Settings};
use farhop_settings::RemoteSettings;
use farhop_settings::remote::RemoteTimeouts;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use crate::Remote;
use crate::answers::{Trouble, via};
use crate::auth::{Pass, identify};
use crate::exchange::Exchange;
use crate::login::Login;
use crate::portal::{self, Place};
use crate::request::{Wanted, Way, sort};
use crate::tunnel::Wish;
use crate::users::User;

/// Who asks, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// An IPv4 address is written as such, however it came.
    pub(crate) address: IpAddr,
    pub(crate) user: User,
    /// By what it came in.
    pub(crate) pass: Pass,
    /// What it may have logged in.
    pub(crate) login: Login,
}

/// How many connections each client address has open.
#[derive(Default)]
pub(crate) struct Census(Mutex<HashMap<IpAddr, u32>>);

/// One connection counted, until it is dropped.
pub(crate) struct Counted<'a> {
    census: &'a Census,
    address: IpAddr,
}

impl Census {
    pub(crate) fn enter(&self, address: IpAddr, most: u32) -> Option<Counted<'_>> {
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
    front.connections = settings.limits.connections as usize;
    front.name = "farhop-remote".into();
    with_patience(front, &settings.timeouts)
}

/// The same with these timeouts, which are live.
pub(crate) fn with_patience(mut front: Settings, timeouts: &RemoteTimeouts) -> Settings {
    front.idle_timeout = timeouts.idle;
    front.head_timeout = timeouts.head;
    front.body_timeout = timeouts.stall;
    front.write_timeout = timeouts.stall;
    front.half_close_grace = timeouts.half_close;
    front
}

/// Accepts clients until the future is dropped.
pub(crate) async fn accept(remote: Arc<Remote>, listener: Listener) {
    // Without the address only the portal cannot say where the proxy is.
    let at = listener.local_addr().unwrap_or(SocketAddr::from(([0; 4], 0)));
    loop {
        let (connection, peer) = listener.accept_with(|| remote.within()).await;
        let place = Place { client: peer, listener: at };
        // Boxed: the runtime moves a task that has begun or ended, and this one is large.
        tokio::spawn(Box::pin(attend(Arc::clone(&remote), connection, place)));
    }
}

async fn attend(remote: Arc<Remote>, mut connection: Connection, place: Place) {
    let address = place.client.ip().to_canonical();
    let settings = remote.settings();
    let counted = remote.census().enter(address, settings.limits.connections_per_client);
    let login = Login::new(remote.uplink().clone());
    let admitted = settings.clients.iter().any(|range| range.contains(address));
    loop {
        let incoming = tokio::select! {
            incoming = connection.next_request() => incoming,
            () = remote.draining() => return,
        };
        match incoming {
            Ok(Some(incoming)) if admitted && counted.is_some() => {
                serve(&remote, incoming, place, &login).await;
            }
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
                tracing::debug!(target: "farhop", "client {}: {error}", place.client);
                return;
            }
        }
    }
}

async fn serve(remote: &Arc<Remote>, incoming: Incoming, place: Place, login: &Login) {
    let (user, pass) = match identify(remote, place.client.ip(), &incoming.head).await {
        Ok(known) => known,
        Err((head, page)) => {
            // The client will ask again, or is gone: neither is ours to know.
            let _ = incoming.responder.respond(head, page).await;
            return;
        }
    };
    if portal::is_asked(&incoming.head) {
        return portal::serve(remote, incoming, &user, place).await;
    }
    let (address, login) = (place.client.ip().to_canonical(), login.clone());
    let client = Client { address, user, pass, login };
    let Incoming { head, body, responder } = incoming;
    let method = head.method.clone();
    let wanted = sort(head, Way::Explicit);
    let taken = take(remote, &client, &method, &wanted);
    let _busy = remote.busy();
    if let Wanted::Tunnel { host, port } = wanted {
        drop(body);
        let Client { address, user, pass, .. } = client;
        let Taken { id, started } = taken;
        let (at, name, listed) = (None, None, None);
        let wish = Wish { id, user, client: address, pass, host, port, at, name, listed, started };
        if portal::is_host(&wish.host) {
            return wish.show_portal(remote, place, responder).await;
        }
        return wish.connect(Arc::clone(remote), address, responder).await;
    }
    answer(remote, &client, Way::Explicit, taken, wanted, body, responder).await;
}

/// Serves a request of a connection that was begun for a server. Whose it is was settled when the connection began.
pub(crate) async fn serve_within(remote: &Arc<Remote>, incoming: Incoming, client: &Client, way: Way) {
    let Incoming { head, body, responder } = incoming;
    let method = head.method.clone();
    let wanted = sort(head, way);
    let taken = take(remote, client, &method, &wanted);
    let _busy = remote.busy();
    answer(remote, client, way, taken, wanted, body, responder).await;
}

/// A request that was taken in.
struct Taken {
    id: ExchangeId,
    started: Instant,
}

fn take(remote: &Remote, client: &Client, method: &Method, wanted: &Wanted) -> Taken {
    let (id, started) = (remote.next_exchange(), Instant::now());
    let url = match wanted {
        Wanted::Fetch(fetch) => fetch.url.to_string(),
        Wanted::Tunnel { host, port } => format!("{host}:{port}"),
        Wanted::Own { .. } | Wanted::Echo { .. } => "*".into(),
    };
    let url = remote.bus().url(&url);
    let user = client.user.name.to_string();
    remote.bus().emit(Event::RequestAccepted { exchange: id, user, method: method.to_string(), url });
    Taken { id, started }
}

/// Answers whatever is no tunnel.
async fn answer(
    remote: &Arc<Remote>,
    client: &Client,
    way: Way,
    Taken { id, started }: Taken,
    wanted: Wanted,
    body: RequestBody,
    mut responder: Responder,
) {
    match wanted {
        Wanted::Fetch(mut fetch) => {
            let Client { address, user, pass, login } = client.clone();
            login.mark(id, user.id, &mut fetch.head);
            let caught_at = if let Way::Caught(at) = way { Some(at.ip()) } else { None };
            let fetch = (*fetch).into();
            let (uploaded, course, eagerness, cut_short) = <_>::default();
            let client = address;
            let mut exchange = Exchange {
                id,
                user,
                pass,
                client,
                caught_at,
                fetch,
                started,
                uploaded,
                course,
                eagerness,
                cut_short,
            };
            exchange.heed_strange(remote);
            exchange.serve(Arc::clone(remote), body, responder).await;
        }
        // Granted before, or not at all.
        Wanted::Tunnel { .. } => {}
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
        Wanted::Echo { target, fields: asked } => {
            drop(body);
            responder.close_after();
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("message/http"));
            via(&mut fields, id);
            let _ =
                responder.respond(Head { status: StatusCode::OK, fields }, echo(&target, asked).into()).await;
        }
    }
}

/// RFC 9110 §9.3.8: the request as it was received, without what could be sensitive.
fn echo(target: &str, mut fields: HeaderMap) -> String {
    for name in [COOKIE, AUTHORIZATION, PROXY_AUTHORIZATION] {
        fields.remove(name);
    }
    let lines = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
    format!("TRACE {target} HTTP/1.1\r\n{}\r\n", lines.collect::<String>())
}
