//! The remote as clients see it, with ground played by the test over a link in the process.

// Helpers outside `#[test]` functions: a failed unwrap is a failed test all the same.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use farhop_events::Bus;
use farhop_htotp::frame::{Coding, Failure, Priority, Resume, Side};
use farhop_htotp::session::{Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_remote::{Reach, Running};
use farhop_settings::RemoteSettings;
use farhop_transport::hop::{Arrival, Gone, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Listener, Peers};
use farhop_transport::socket::link;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
const BROWSER: &str = "accept: */*\r\nuser-agent: Mozilla/5.0 Chrome/156.0.0.0\r\n";

/// A remote, and the ground that the test plays.
struct World {
    running: Running,
    listener: Listener,
    hop: Hop,
    bus: Bus,
    _link: link::Link,
}

/// A request that has come to ground.
struct Asked {
    head: RequestHead,
    resume: Option<Resume>,
    sender: Sender,
    receiver: Receiver,
}

async fn world() -> World {
    let profile = Profile::named("none").unwrap();
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let (ground, remote) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (key, plan) = (ground.public(), PathPlan::for_profile(&profile));
    let peers = Peers::new([("test".to_owned(), remote.public())]).unwrap();
    let mut listener =
        Listener::new(at_ground, ground, peers, plan, plan.default_choice(End::Ground)).unwrap();
    let address = listener.local_addr().unwrap();
    let sets = [
        "listen=\"127.0.0.1:0\"",
        "ground.0.name=\"test\"",
        "ground.0.address=\"127.0.0.1:1\"",
        "ground.0.keys=[\"x\"]",
    ];
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let settings: RemoteSettings = farhop_settings::load(None, &sets).unwrap();
    let bus = Bus::new();
    let reach = Reach { socket: at_remote, identity: remote, plan, in_process: Some((address, key)) };
    let running = farhop_remote::start(settings, reach, bus.clone(), false).await.unwrap();
    let hop = carrier(&mut listener).await;
    assert!(running.connected(PATIENCE).await);
    World { running, listener, hop, bus, _link: link }
}

async fn carrier(listener: &mut Listener) -> Hop {
    let accepted = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap().unwrap();
    Hop::start(accepted.connection, Role::Ground, Config::default(), &PathPlan::UNKNOWN)
}

impl World {
    /// The next request that crosses.
    async fn asked(&self) -> Asked {
        loop {
            let incoming = timeout(PATIENCE, self.hop.accept()).await.expect("a request crosses").unwrap();
            if let Incoming::Exchange { head, resume, sender, receiver, .. } = incoming {
                return Asked { head, resume, sender, receiver };
            }
        }
    }

    /// Loses the carrier as a killed ground does, and takes the next.
    async fn lose_carrier(&mut self) {
        self.hop.close();
        self.hop = carrier(&mut self.listener).await;
    }

    async fn client(&self) -> TcpStream {
        self.client_at(Ipv4Addr::LOCALHOST).await
    }

    async fn client_at(&self, address: Ipv4Addr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(IpAddr::V4(address), 0)).unwrap();
        socket.connect(self.running.addresses()[0]).await.unwrap()
    }

    /// Asks for a URL of the site and gives the connection.
    async fn get(&self, path: &str, fields: &str) -> TcpStream {
        let mut client = self.client().await;
        send(&mut client, "GET", path, fields).await;
        client
    }

    fn crossed(&self) -> u64 {
        self.bus.counters().requests_crossed()
    }
}

async fn send(client: &mut TcpStream, method: &str, path: &str, fields: &str) {
    let request = format!(
        "{method} http://site.test{path} HTTP/1.1\r\nhost: site.test\r\n{fields}connection: close\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until `enough` or the end.
async fn read_until(client: &mut TcpStream, got: &mut String, enough: &str) {
    let mut buffer = [0; 4096];
    while enough.is_empty() || !got.contains(enough) {
        let count = timeout(PATIENCE, client.read(&mut buffer)).await.expect("an answer comes").unwrap_or(0);
        if count == 0 {
            return;
        }
        got.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

async fn answer(mut client: TcpStream) -> String {
    let mut got = String::new();
    read_until(&mut client, &mut got, "").await;
    got
}

fn head(fields: &[(&'static str, &'static str)]) -> ResponseHead {
    let fields: HeaderMap =
        fields.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect();
    ResponseHead { status: StatusCode::OK, fields }
}

const CACHEABLE: &[(&str, &str)] = &[("content-type", "text/css"), ("cache-control", "max-age=600")];
const UNCACHEABLE: &[(&str, &str)] = &[("content-type", "text/css"), ("cache-control", "no-store")];

/// The request that a browser sends for a resource of the document, as ground predicts it.
fn predicted(document: &RequestHead, path: &str) -> RequestHead {
    let mut head = RequestHead { path: path.into(), ..document.clone() };
    head.fields.insert("referer", HeaderValue::from_static("http://site.test/"));
    head
}

const REFERER: &str = "referer: http://site.test/\r\n";

/// Loads a document whose answer promises `/a.css`; gives its head as asked and the promise.
async fn page(world: &World) -> (RequestHead, u64) {
    let client = world.get("/", BROWSER).await;
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

#[tokio::test]
async fn a_promise_on_its_way_is_streamed_as_it_arrives() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut client = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"first ")).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "first ").await;
    assert!(got.contains("first "), "the part that is here is not held back: {got}");
    push.write(Bytes::from_static(b"second")).await.unwrap();
    push.finish(None);
    read_until(&mut client, &mut got, "").await;
    assert!(got.contains("second"), "{got}");
    assert_eq!(world.crossed(), 1, "only the document");
}

#[tokio::test]
async fn a_promise_that_came_early_is_kept_until_asked_and_answers_once() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"whole")).await.unwrap();
    push.finish(None);
    let fields = format!("{BROWSER}{REFERER}");
    assert!(answer(world.get("/a.css", &fields).await).await.contains("whole"));
    assert_eq!(world.crossed(), 1);
    let again = world.get("/a.css", &fields).await;
    let Asked { sender, .. } = world.asked().await;
    sender.fail(failure());
    assert!(answer(again).await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn what_is_held_fresh_is_answered_without_crossing() {
    let world = world().await;
    let client = world.get("/s.css", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(CACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"body{}")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.ends_with("body{}\r\n0\r\n\r\n"));
    let held = answer(world.get("/s.css", BROWSER).await).await;
    assert!(held.contains("body{}") && held.contains("Age: 0"), "{held}");
    assert_eq!(world.crossed(), 1);
}

/// Lets ground answer the next request with a cacheable body.
async fn answer_with(world: &World, body: &'static str) {
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(CACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    sender.finish(None);
}

#[tokio::test]
async fn targets_that_normalise_to_one_url_stay_apart() {
    let world = world().await;
    for (path, body) in [("/up/../app.js", "raw"), ("/%2e/app.js", "dotted"), ("/app.js", "plain")] {
        let client = world.get(path, BROWSER).await;
        answer_with(&world, body).await;
        assert!(answer(client).await.contains(body), "{path} was answered by another target");
    }
    assert!(answer(world.get("/app.js", BROWSER).await).await.contains("plain"));
    assert_eq!(world.crossed(), 3);
}

#[tokio::test]
async fn a_get_with_content_is_never_answered_from_what_is_held() {
    let world = world().await;
    let client = world.get("/q", BROWSER).await;
    answer_with(&world, "without content").await;
    assert!(answer(client).await.contains("without content"));
    let mut client = world.get("/q", &format!("{BROWSER}content-length: 2\r\n")).await;
    client.write_all(b"{}").await.unwrap();
    answer_with(&world, "with content").await;
    assert!(answer(client).await.contains("with content\r\n"));
    assert!(answer(world.get("/q", BROWSER).await).await.contains("without content"));
}

#[tokio::test]
async fn a_request_that_differs_in_a_field_is_asked() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"not this")).await.unwrap();
    push.finish(None);
    let client = world.get("/a.css", &format!("{BROWSER}{REFERER}cookie: who=else\r\n")).await;
    let Asked { head: asked, sender, .. } = world.asked().await;
    assert_eq!(asked.fields["cookie"], "who=else");
    sender.fail(failure());
    assert!(!answer(client).await.contains("not this"));
}

#[tokio::test]
async fn another_users_promise_answers_nobody_else() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"private")).await.unwrap();
    push.finish(None);
    let mut other = world.client_at(Ipv4Addr::new(127, 0, 0, 2)).await;
    send(&mut other, "GET", "/a.css", &format!("{BROWSER}{REFERER}")).await;
    let Asked { sender, .. } = world.asked().await;
    sender.fail(failure());
    assert!(!answer(other).await.contains("private"));
}

#[tokio::test]
async fn a_wait_on_a_promise_becomes_an_ask_when_the_carrier_is_lost() {
    let mut world = world().await;
    let _ = page(&world).await;
    let client = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    world.lose_carrier().await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"asked after all")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("asked after all"));
}

/// Sends the beginning of a body of 22 bytes to a client, then loses the carrier.
async fn cut_in_mid_body(world: &mut World) -> (TcpStream, String) {
    let mut client = world.get("/big", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(&[("content-length", "22"), ("etag", "\"1\"")]), Coding::Identity, None);
    sender.write(Bytes::from_static(b"the first half,")).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "half,").await;
    world.lose_carrier().await;
    (client, got)
}

#[tokio::test]
async fn a_body_goes_on_at_its_byte_after_the_carrier_was_lost() {
    let mut world = world().await;
    let (mut client, mut got) = cut_in_mid_body(&mut world).await;
    let Asked { resume, mut sender, .. } = world.asked().await;
    let prefix = *blake3::hash(b"the first half,").as_bytes();
    assert_eq!(resume, Some(Resume { offset: 15, prefix }));
    sender.answer(&head(&[("content-length", "22"), ("etag", "\"1\"")]), Coding::Identity, Some(15));
    sender.write(Bytes::from_static(b" & rest")).await.unwrap();
    sender.finish(None);
    read_until(&mut client, &mut got, "").await;
    assert!(got.ends_with("the first half, & rest"), "{got}");
}

#[tokio::test]
async fn a_body_that_changed_meanwhile_aborts_the_client_and_mixes_nothing() {
    let mut world = world().await;
    let (mut client, mut got) = cut_in_mid_body(&mut world).await;
    let Asked { mut sender, .. } = world.asked().await;
    // Ground says that the prefix is right, but the head is another one.
    sender.answer(&head(&[("content-length", "22"), ("etag", "\"2\"")]), Coding::Identity, Some(15));
    // The remote may be gone already: that is the point.
    let _ = sender.write(Bytes::from_static(b" & other")).await;
    read_until(&mut client, &mut got, "").await;
    assert!(got.ends_with("the first half,"), "{got}");
    assert_eq!(world.bus.counters().snapshot()["aborted"], 1);
}

#[tokio::test]
async fn a_request_that_may_change_something_is_never_sent_twice() {
    let mut world = world().await;
    let mut client = world.client().await;
    send(&mut client, "POST", "/order", "content-length: 3\r\n").await;
    client.write_all(b"one").await.unwrap();
    let Asked { mut receiver, sender, .. } = world.asked().await;
    assert_eq!(receiver.next().await, Arrival::Body(Bytes::from_static(b"one")));
    drop((receiver, sender));
    world.lose_carrier().await;
    let got = answer(client).await;
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("Proxy-Status: farhop-"), "{got}");
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn a_client_that_breaks_off_stops_the_exchange_at_ground() {
    let world = world().await;
    let client = world.get("/slow", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    // Closed with unread bytes: a reset, as when a browser gives a load up.
    sender.write(Bytes::from_static(b"unread")).await.unwrap();
    client.readable().await.unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(timeout(PATIENCE, sender.gone()).await, Ok(Gone::Stopped));
}

#[tokio::test]
async fn an_origin_that_breaks_off_is_passed_on_as_a_broken_body() {
    let world = world().await;
    let mut client = world.get("/broken", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"half")).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "half").await;
    drop(sender);
    read_until(&mut client, &mut got, "").await;
    assert!(got.contains("half") && !got.ends_with("0\r\n\r\n"), "{got}");
}

fn failure() -> Failure {
    Failure { side: Side::Origin, status: 502, token: "connection_refused".into(), detail: "refused".into() }
}
