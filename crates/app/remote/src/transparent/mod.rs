//! Connections that were caught on their way through this machine (TPROXY, or a TUN device). Each is accepted at once, as if its destination
//! had: the round trips of its handshake are the client's network's. Then it goes to whom it is for: plain HTTP and TLS
//! that may be looked into to the application role, all else across as it is, to the address that its client chose.
//!
//! What catches them is not here: listeners are given, and a connection's local address is where it was to lead, or else the device knows.

mod http;
mod strange;
mod target;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use farhop_events::Event;
use farhop_front::tls::{self, Opening};
use farhop_front::{Connection, Listener, Tunnel};
use farhop_packets::Ends;
use farhop_settings::{PortRange, RemoteSettings};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::Remote;
use crate::answers::Trouble;
use crate::auth::Pass;
use crate::class;
use crate::clients::{self, Client};
use crate::intercept;
use crate::login::Login;
use crate::request::Way;
use crate::tun::Device;
use crate::tunnel::Wish;

pub(crate) use strange::Strange;
pub(crate) use target::settle;

/// How long a client of TLS may take for its first word. One that is silent waits for the server to begin.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection that was caught.
struct Caught {
    client: Client,
    /// Where its client wanted to connect to.
    to: SocketAddr,
}

/// Who serves it.
enum Server {
    Http,
    Tls,
    Carried,
}

/// How the ends of a connection that was caught are found.
#[derive(Clone)]
pub(crate) enum Found {
    /// Its own are those of the client and of where that wanted to go.
    Diverted,
    /// The device by which it came knows them.
    By(Arc<Device>),
}

impl Found {
    fn ends(&self, stream: &TcpStream, peer: SocketAddr) -> Option<Ends> {
        match self {
            // Without it the client has left already.
            Found::Diverted => stream.local_addr().ok().map(|to| Ends { client: peer, to }),
            Found::By(device) => device.connection(peer),
        }
    }
}

/// Accepts what is caught until the future is dropped.
pub(crate) async fn accept(remote: Arc<Remote>, listener: Listener, found: Found) {
    let own = listener.local_addr().ok();
    loop {
        let (stream, peer, place) = listener.accept_raw().await;
        let Some(ends) = found.ends(&stream, peer) else { continue };
        let remote = Arc::clone(&remote);
        tokio::spawn(async move {
            attend(&remote, stream, ends, own).await;
            drop(place);
        });
    }
}

async fn attend(remote: &Arc<Remote>, stream: TcpStream, ends: Ends, own: Option<SocketAddr>) {
    let Ends { client: peer, to } = ends;
    let (settings, address) = (remote.settings(), peer.ip().to_canonical());
    remote.within().trips.measure(&stream);
    let tunnel = Tunnel::over(stream);
    let counted = remote.caught().enter(address, settings.transparent.connections_per_client);
    // One that leads to the listener itself was not caught, but begun on this machine: it would lead here again.
    let is_ours = settings.clients.iter().any(|range| range.contains(address)) && Some(to) != own;
    if counted.is_none() || !is_ours {
        remote.bus().emit(Event::ClientRefused { address: address.to_string() });
        return tunnel.reset();
    }
    let (user, pass) = (remote.users().at(address), Pass::Caught);
    let login = Login::new(remote.uplink().clone());
    let client = Client { address, user, pass, login };
    let caught = Caught { client, to };
    let server = caught.server(remote, &settings);
    drop(settings);
    match server {
        Server::Http => Box::pin(caught.serve(remote, tunnel)).await,
        Server::Tls => Box::pin(caught.look_into(remote, tunnel)).await,
        Server::Carried => caught.carry(remote, tunnel).await,
    }
}

impl Caught {
    fn server(&self, remote: &Remote, settings: &RemoteSettings) -> Server {
        let is_among = |ports: &[PortRange]| ports.iter().any(|range| range.contains(self.to.port()));
        match settings.role.serves_http() {
            true if is_among(&settings.transparent.http_ports) => Server::Http,
            true if remote.leaves().is_some() && is_among(&settings.interception.ports) => Server::Tls,
            _ => Server::Carried,
        }
    }

    /// Carries it as it is.
    async fn carry(&self, remote: &Remote, tunnel: Tunnel) {
        let wish = self.wish(remote, self.to.ip().to_string());
        let _busy = remote.busy();
        match remote.uplink().carrier(Instant::now() + remote.outage()).await {
            Some(carrier) => wish.pass(remote, &carrier, tunnel, || {}).await,
            None => wish.lost(remote, tunnel),
        }
    }

    /// Looks into TLS where everybody agrees, by the host that its hello names.
    async fn look_into(&self, remote: &Arc<Remote>, tunnel: Tunnel) {
        let (host, tunnel) = match tls::open(tunnel, intercept::patience(remote, PATIENCE)).await {
            Opening::Hello { sni: Some(host), tunnel, .. } => (host, tunnel),
            // Whom it is for is hidden, or it is no TLS: nobody can have agreed.
            Opening::Hello { tunnel, .. } | Opening::Other { tunnel } | Opening::Silent { tunnel } => {
                return self.carry(remote, tunnel).await;
            }
            Opening::Gone => return,
        };
        let wish = self.wish(remote, host);
        let _busy = remote.busy();
        let decision = wish.decide(remote, self.client.address);
        match remote.uplink().carrier(Instant::now() + remote.outage()).await {
            Some(carrier) => wish.go_on(remote, self.client.address, decision, carrier, tunnel).await,
            None => wish.lost(remote, tunnel),
        }
    }

    /// Serves it if it is HTTP for the host that its client has connected to.
    async fn serve(&self, remote: &Arc<Remote>, tunnel: Tunnel) {
        let mut connection = match http::open(tunnel, self.to, &remote.within()).await {
            http::Opening::Http { tunnel } => Connection::new(tunnel, remote.within()),
            http::Opening::Other { tunnel } => return self.carry(remote, tunnel).await,
            http::Opening::Gone => return,
        };
        loop {
            let incoming = tokio::select! {
                incoming = connection.next_request() => incoming,
                () = remote.draining() => return,
            };
            match incoming {
                Ok(Some(incoming)) => {
                    clients::serve_within(remote, incoming, &self.client, Way::Caught(self.to)).await;
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(target: "farhop", "client {}, caught: {error}", self.client.address);
                    return;
                }
            }
        }
    }

    /// A tunnel for it, to `host` by name or address.
    fn wish(&self, remote: &Remote, host: String) -> Wish {
        let settings = remote.settings();
        let listed = class::listed(self.to.port(), &settings.transparent);
        let name = settings.transparent.client_addresses.then_some(self.client.address);
        let (id, at) = (remote.next_exchange(), Some(self.to.ip()));
        let (Client { user, pass, address: client, .. }, port) = (self.client.clone(), self.to.port());
        let wish = Wish { id, user, client, pass, host, port, at, name, listed, started: Instant::now() };
        remote.bus().emit(Event::RequestAccepted {
            exchange: id,
            user: wish.user.name.to_string(),
            method: wish.method().into(),
            url: wish.url(remote),
        });
        wish
    }
}

impl Wish {
    /// There was no carrier for it in time.
    fn lost(&self, remote: &Remote, tunnel: Tunnel) {
        let trouble = Trouble::no_carrier();
        self.failed(remote, trouble.side, trouble.detail, None);
        tunnel.reset();
    }
}

/// An address as the host of a URL.
fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
