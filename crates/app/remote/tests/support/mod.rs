//! A remote with a ground that the test plays over a link in the process, and what clients say and read.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

pub mod within;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_authority::{Authority, Terms};
use farhop_events::{Bus, Event, Subscription};
use farhop_htotp::frame::{Coding, Failure, Priority, Resume, Side};
use farhop_htotp::session::{Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_remote::{Reach, Running};
use farhop_settings::RemoteSettings;
use farhop_transport::hop::{Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Listener, Peers};
use farhop_transport::socket::link;
use farhop_transport::{Connection, tcp};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

pub const PATIENCE: Duration = Duration::from_secs(20);
pub const BROWSER: &str = "accept: */*\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

/// Where the ground that the test plays takes carriers: QUIC over a link in the process, or TCP on loopback.
pub enum Listening {
    Quic(Listener),
    Tcp(tcp::Listener),
}

impl Listening {
    /// The next carrier, of a ground that makes use of being told of bodies.
    pub async fn carrier(&mut self) -> Hop {
        self.carrier_with(Config { bodies: true, ..Config::default() }).await
    }

    /// The same, with a session that is set up so.
    pub async fn carrier_with(&mut self, config: Config) -> Hop {
        let start =
            |connection: Connection| Hop::start_lasting(connection, Role::Ground, config, &PathPlan::UNKNOWN);
        match self {
            Listening::Quic(listener) => {
                let accepted = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap().unwrap();
                start(accepted.connection.into())
            }
            Listening::Tcp(listener) => {
                let accepted = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
                start(accepted.connection.into())
            }
        }
    }
}

/// A remote, and the ground that the test plays.
pub struct World {
    pub running: Running,
    pub listener: Listening,
    pub hop: Hop,
    pub bus: Bus,
    /// The CA of a world whose settings switch interception on.
    pub authority: Option<Arc<Authority>>,
    /// What both ends are joined by; nothing where the carrier is one over TCP.
    pub link: link::Link,
}

/// A request that has come to ground.
pub struct Asked {
    pub head: RequestHead,
    pub resume: Option<Resume>,
    pub sender: Sender,
    pub receiver: Receiver,
}

pub async fn world() -> World {
    world_with(&[]).await
}

/// A world with these settings (`key=value`) over the defaults. With `FARHOP_TEST_CARRIER=tcp` in the environment its
/// carrier is one over TCP.
pub async fn world_with(more: &[&str]) -> World {
    world_over("none", more).await
}

/// The same over a link of this profile. TCP goes over loopback, so that only no link at all can be under it.
pub async fn world_over(link: &str, more: &[&str]) -> World {
    let profile = Profile::named(link).unwrap();
    world_on(&profile, PathPlan::for_profile(&profile), more).await
}

/// The same over this link, of which both ends are told so much.
pub async fn world_on(profile: &Profile, plan: PathPlan, more: &[&str]) -> World {
    world_vouched_for(profile, plan, more, &Terms::default()).await
}

/// A world as [`world_with`] gives it, whose CA was made for what these terms say.
pub async fn world_under(terms: &Terms, more: &[&str]) -> World {
    let profile = Profile::named("none").unwrap();
    world_vouched_for(&profile, PathPlan::for_profile(&profile), more, terms).await
}

async fn world_vouched_for(profile: &Profile, plan: PathPlan, more: &[&str], terms: &Terms) -> World {
    let over_tcp =
        profile.name == "none" && std::env::var("FARHOP_TEST_CARRIER").is_ok_and(|carrier| carrier == "tcp");
    let (link, at_ground, at_remote) = link::pair(profile, 1);
    let (ground, remote) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let key = ground.public();
    let peers = Peers::new([("test".to_owned(), remote.public())]).unwrap();
    let (mut listener, address) = if over_tcp {
        let options = tcp::Options::new(&plan, End::Ground, None).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = tcp::Listener::bind(any, ground, peers, plan, options).unwrap();
        let address = listener.local_addr().unwrap();
        (Listening::Tcp(listener), address)
    } else {
        let choice = plan.default_choice(End::Ground);
        let listener = Listener::new(at_ground, ground, peers, plan, choice).unwrap();
        let address = listener.local_addr().unwrap();
        (Listening::Quic(listener), address)
    };
    let sets = [
        if over_tcp { "carrier=tcp" } else { "carrier=auto" },
        "listen=\"127.0.0.1:0\"",
        "ground.0.name=\"test\"",
        "ground.0.address=\"127.0.0.1:1\"",
        "ground.0.keys=[\"x\"]",
    ];
    let sets: Vec<String> = sets.iter().chain(more).map(|set| (*set).to_owned()).collect();
    let settings: RemoteSettings = farhop_settings::load(None, &sets).unwrap();
    let bus = Bus::new();
    let authority = settings.interception.enabled.then(|| Authority::ephemeral(terms).unwrap());
    let authority = authority.map(Arc::new);
    let reach = Reach {
        socket: at_remote,
        identity: remote,
        plan,
        in_process: Some((address, key)),
        authority: authority.clone(),
        first_window: None,
    };
    let running = farhop_remote::start(settings, reach, bus.clone(), false).await.unwrap();
    let hop = listener.carrier().await;
    assert!(running.connected(PATIENCE).await);
    World { running, listener, hop, bus, authority, link }
}

/// Waits for an event.
pub async fn until(events: &mut Subscription, is: impl Fn(&Event) -> bool) {
    let told = async { while !is(&events.next().await.unwrap().unwrap().event) {} };
    timeout(PATIENCE, told).await.expect("it is told");
}

/// How a client does TLS that trusts the CA of this world, or nobody, and offers these protocols.
pub fn tls_client(world: &World, trusts: bool, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if trusts {
        roots.add(world.authority.as_ref().unwrap().certificate().der().clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

impl World {
    /// The next request that crosses.
    pub async fn asked(&self) -> Asked {
        loop {
            let incoming = timeout(PATIENCE, self.hop.accept()).await.expect("a request crosses").unwrap();
            if let Incoming::Exchange { head, resume, sender, receiver, .. } = incoming {
                return Asked { head, resume, sender, receiver };
            }
        }
    }

    /// Lets ground answer the next request so; gives the request.
    pub async fn give(
        &self,
        status: u16,
        fields: &[(&'static str, &'static str)],
        body: &'static str,
    ) -> Asked {
        let mut asked = self.asked().await;
        let head = ResponseHead { status: StatusCode::from_u16(status).unwrap(), ..head(fields) };
        asked.sender.answer(&head, Coding::Identity, None);
        if !body.is_empty() {
            asked.sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
        }
        asked.sender.finish(None);
        asked
    }

    /// Loses the carrier as a killed ground does, and takes the next.
    pub async fn lose_carrier(&mut self) {
        self.hop.close();
        self.hop = self.listener.carrier().await;
    }

    /// Says of what was under way on the lost carrier that nothing is known of it.
    pub async fn forget(&self) {
        let mut incoming = None;
        while !matches!(incoming, Some(Incoming::Rejoin { .. })) {
            incoming = timeout(PATIENCE, self.hop.accept()).await.expect("the remote wants to go on");
        }
    }

    pub async fn client(&self) -> TcpStream {
        self.client_at(Ipv4Addr::LOCALHOST).await
    }

    pub async fn client_at(&self, address: Ipv4Addr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(IpAddr::V4(address), 0)).unwrap();
        socket.connect(self.running.addresses()[0]).await.unwrap()
    }

    /// Asks for a URL of the site and gives the connection.
    pub async fn get(&self, path: &str, fields: &str) -> TcpStream {
        let mut client = self.client().await;
        send(&mut client, "GET", path, fields).await;
        client
    }

    /// A CONNECT that is granted.
    pub async fn connect(&self, to: &str) -> TcpStream {
        self.connect_as(to, "").await
    }

    /// The same as `who`, a line of a request's head.
    pub async fn connect_as(&self, to: &str, who: &str) -> TcpStream {
        self.connect_on(self.client().await, to, who).await
    }

    /// The same on a connection to the proxy.
    pub async fn connect_on(&self, mut client: TcpStream, to: &str, who: &str) -> TcpStream {
        let request = format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n{who}\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut got = String::new();
        read_until(&mut client, &mut got, "\r\n\r\n").await;
        assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
        client
    }

    pub fn crossed(&self) -> u64 {
        self.bus.counters().requests_crossed()
    }
}

pub async fn send(client: &mut TcpStream, method: &str, path: &str, fields: &str) {
    let request = format!(
        "{method} http://site.test{path} HTTP/1.1\r\nhost: site.test\r\n{fields}connection: close\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until `enough` or the end.
pub async fn read_until(client: &mut TcpStream, got: &mut String, enough: &str) {
    let mut buffer = [0; 4096];
    while enough.is_empty() || !got.contains(enough) {
        let count = timeout(PATIENCE, client.read(&mut buffer)).await.expect("an answer comes").unwrap_or(0);
        if count == 0 {
            return;
        }
        got.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

pub async fn answer(mut client: TcpStream) -> String {
    let mut got = String::new();
    read_until(&mut client, &mut got, "").await;
    got
}

pub fn head(fields: &[(&'static str, &'static str)]) -> ResponseHead {
    let fields: HeaderMap =
        fields.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect();
    ResponseHead { status: StatusCode::OK, fields }
}

pub const CACHEABLE: &[(&str, &str)] = &[("content-type", "text/css"), ("cache-control", "max-age=600")];
pub const UNCACHEABLE: &[(&str, &str)] = &[("content-type", "text/css"), ("cache-control", "no-store")];

/// The request that a browser sends for a resource of the document, as ground predicts it.
pub fn predicted(document: &RequestHead, path: &str) -> RequestHead {
    let mut head = RequestHead { path: path.into(), ..document.clone() };
    head.fields.insert("referer", HeaderValue::from_static("http://site.test/"));
    head.fields.remove("upgrade-insecure-requests");
    head
}

pub const REFERER: &str = "referer: http://site.test/\r\n";

/// Loads a document whose answer promises `/a.css`; gives its head as asked and the promise.
pub async fn page(world: &World) -> (RequestHead, u64) {
    page_of(world, "").await
}

/// The same as `who`, a line of a request's head.
pub async fn page_of(world: &World, who: &str) -> (RequestHead, u64) {
    let client = world.get("/", &format!("{BROWSER}{who}")).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let promise = sender.promise(&predicted(&asked, "/a.css"), Priority::default()).unwrap();
    sender.answer(
        &head(&[("content-type", "text/html"), ("cache-control", "no-store")]),
        Coding::Identity,
        None,
    );
    sender.write(Bytes::from_static(b"<link rel=stylesheet href=a.css>")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("a.css"));
    (asked, promise)
}

/// Lets ground answer the next request with a cacheable body.
pub async fn answer_with(world: &World, body: &'static str) {
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(CACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    sender.finish(None);
}

/// Ground takes a promise back, and could fetch it all the same.
pub fn withdrawn() -> Failure {
    let (token, detail) = ("promise_withdrawn".into(), "the page's budget is used up".into());
    Failure { side: Side::Link, status: 502, token, detail }
}

pub fn failure() -> Failure {
    Failure { side: Side::Origin, status: 502, token: "connection_refused".into(), detail: "refused".into() }
}
