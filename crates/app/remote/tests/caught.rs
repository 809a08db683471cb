//! Requests of connections that were caught, for names that ground does not know: their clients have found an address, and that may
//! answer them, and nobody else.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Class, Coding, Failure, Side, Tunnel};
use farhop_htotp::head::SENT_TO;
use farhop_transport::hop::{Arrival, Incoming, Receiver, Sender};
use http::{Method, StatusCode};
use support::{Asked, CACHEABLE, PATIENCE, World, head, read_until, tls_client, world_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A remote that catches what is for a port, and that port.
async fn catching() -> (World, u16) {
    catching_with(&["transparent.http_ports=[\"1-65535\"]"]).await
}

async fn catching_with(more: &[&str]) -> (World, u16) {
    let mut world = world_with(more).await;
    // To the wildcard nobody connects: all are for another address, and were caught.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    world.running.catch(vec![listener]);
    (world, port)
}

/// What a client says that has found `host` at the address.
async fn ask(client: &mut TcpStream, method: &str, host: &str, more: &str) {
    let request = format!("{method} /x HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
}

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.unwrap()
}

fn unknown() -> Failure {
    Failure { side: Side::Origin, status: 502, token: "dns_error".into(), detail: "no such name".into() }
}

async fn answer(asked: Asked, body: &'static str) {
    let Asked { mut sender, .. } = asked;
    sender.answer(&head(CACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    sender.finish(None);
}

/// What leads browsers to HTTP/3.
const ELSEWHERE: (&str, &str) = ("alt-svc", "h3=\":443\"");

#[tokio::test]
async fn who_does_not_know_of_the_proxy_is_not_led_past_it() {
    let settings = ["transparent.http_ports=[\"1-65535\"]", "interception.enabled=true"];
    let (world, port) = catching_with(&settings).await;
    let host = format!("site.example:{port}");
    let mut caught = connect(port).await;
    ask(&mut caught, "GET", &host, "").await;
    let mut within = support::within::within(&world).await;
    support::within::say(&mut within, "/x", "").await;
    // Who has set the proxy goes nowhere past it.
    let mut explicit = world.get("/x", "").await;
    for _ in 0..3 {
        let mut asked = world.asked().await;
        asked.sender.inform(&ResponseHead { status: StatusCode::EARLY_HINTS, ..head(&[ELSEWHERE]) });
        let fields = [ELSEWHERE, ("content-length", "2"), ("cache-control", "no-store")];
        asked.sender.answer(&head(&fields), Coding::Identity, None);
        asked.sender.write("ok".into()).await.unwrap();
        asked.sender.finish(None);
    }
    let (mut of_caught, mut of_explicit) = (String::new(), String::new());
    read_until(&mut caught, &mut of_caught, "\r\n\r\nok").await;
    read_until(&mut explicit, &mut of_explicit, "\r\n\r\nok").await;
    let of_within = support::within::hear(&mut within, "\r\n\r\nok").await;
    for (got, is_told) in [(of_caught, false), (of_within, false), (of_explicit, true)] {
        let got = got.to_ascii_lowercase();
        assert!(got.starts_with("http/1.1 103 ") && got.contains("cache-control: no-store"), "{got}");
        assert_eq!(got.contains(ELSEWHERE.0), is_told, "{got}");
    }
}

#[tokio::test]
async fn a_name_that_ground_does_not_know_is_asked_for_again_at_its_clients_address_and_nothing_is_kept() {
    let (world, port) = catching().await;
    let host = format!("wiki.firm.example:{port}");
    let mut client = connect(port).await;
    // What a client says of the field counts for nothing.
    ask(&mut client, "GET", &host, "Farhop-Sent-To: 10.0.0.1\r\n").await;
    let first = world.asked().await;
    assert_eq!((first.head.authority.as_str(), first.head.sent_to()), (host.as_str(), None));
    first.sender.fail(unknown());
    let again = world.asked().await;
    assert_eq!(again.head.sent_to(), Some(Ipv4Addr::LOCALHOST.into()));
    answer(again, "the wiki").await;
    let mut got = String::new();
    read_until(&mut client, &mut got, "the wiki").await;
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");

    // It was cacheable, and is asked for all the same: by this client at the address at once, and by who has chosen the proxy at
    // the name alone.
    ask(&mut client, "GET", &host, "").await;
    let second = world.asked().await;
    assert_eq!(second.head.sent_to(), Some(Ipv4Addr::LOCALHOST.into()));
    answer(second, "more of it").await;
    read_until(&mut client, &mut got, "more of it").await;
    let mut other = world.client().await;
    let request = format!("GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\nFarhop-Sent-To: 10.0.0.1\r\n\r\n");
    other.write_all(request.as_bytes()).await.unwrap();
    let asked = world.asked().await;
    assert!(!asked.head.fields.contains_key(SENT_TO));
    asked.sender.fail(unknown());
    let mut got = String::new();
    read_until(&mut other, &mut got, "\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 502 "), "{got}");
}

#[tokio::test]
async fn what_may_not_be_said_twice_is_said_at_the_address_the_next_time() {
    let (world, port) = catching().await;
    let host = format!("wiki.firm.example:{port}");
    for (round, sent_to) in [None, Some(Ipv4Addr::LOCALHOST.into())].into_iter().enumerate() {
        let mut client = connect(port).await;
        ask(&mut client, "POST", &host, "Content-Length: 2\r\n\r\nhi").await;
        let asked = world.asked().await;
        assert_eq!((&asked.head.method, asked.head.sent_to()), (&Method::POST, sent_to));
        let mut got = String::new();
        if round == 0 {
            asked.sender.fail(unknown());
            read_until(&mut client, &mut got, "\r\n\r\n").await;
            assert!(got.starts_with("HTTP/1.1 502 "), "{got}");
        } else {
            answer(asked, "done").await;
            read_until(&mut client, &mut got, "done").await;
            assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
        }
    }
}

/// A connection that is carried as it is, and begins with this; at ground once that has come. The remote knows by then that ground takes
/// marks.
async fn carried(world: &World, port: u16, first: &[u8]) -> (TcpStream, Tunnel, Sender, Receiver) {
    loop {
        let mut client = connect(port).await;
        client.write_all(first).await.unwrap();
        let (asked, sender, mut receiver) = loop {
            let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a tunnel is wanted").unwrap();
            if let Incoming::Tunnel { asked, sender, receiver } = incoming {
                break (asked, sender, receiver);
            }
        };
        let mut came = 0;
        while came < first.len() {
            match timeout(PATIENCE, receiver.next()).await.expect("it comes") {
                Arrival::Body(bytes) => came += bytes.len(),
                other => panic!("{other:?}"),
            }
        }
        if asked.marked {
            return (client, asked, sender, receiver);
        }
    }
}

#[tokio::test]
async fn what_is_carried_as_it_is_has_the_class_that_its_hello_says_at_both_ends() {
    let chat = ["rule.0.name=\"chat\"", "rule.0.service=\"interactive\"", "rule.0.alpn=[\"xmpp-client\"]"];
    let (world, port) = catching_with(&chat).await;
    for (host, protocols, class) in [
        ("site.test", &["h2"][..], Class::Web),
        ("download.windowsupdate.com", &["h2"], Class::Background),
        ("site.test", &["xmpp-client"], Class::Interactive),
    ] {
        let name = host.try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(tls_client(&world, false, protocols), name).unwrap();
        let mut hello = Vec::new();
        tls.write_tls(&mut hello).unwrap();
        let (_client, asked, sender, _receiver) = carried(&world, port, &hello).await;
        assert_eq!((&*asked.host, sender.class()), ("127.0.0.1", Some(class)), "{host} {protocols:?}");
    }
}

#[tokio::test]
async fn a_shell_is_one_until_it_carries_files() {
    let (world, port) = catching_with(&[]).await;
    let (mut client, asked, mut sender, mut receiver) =
        carried(&world, port, b"SSH-2.0-OpenSSH_10.0\r\n").await;
    let told = (asked.class, sender.class());
    assert_eq!(told, (Class::Web, Some(Class::Interactive)), "from its first word on somebody waits for it");
    sender.accept_tunnel();
    // What comes back of a key, or of a word by which a file is asked for.
    for (keys, answer, class) in
        [(100, 36, Class::Interactive), (1, 300_000, Class::Web), (1, 36, Class::Web)]
    {
        for _ in 0..keys {
            client.write_all(&[7; 36]).await.unwrap();
            let said = timeout(PATIENCE, receiver.next()).await.unwrap();
            assert!(matches!(said, Arrival::Body(_)), "no key");
            sender.write(vec![7; answer].into()).await.unwrap();
            timeout(PATIENCE, client.read_exact(&mut vec![0; answer])).await.unwrap().unwrap();
        }
        if answer == 36 {
            assert_eq!(sender.class(), Some(class));
        }
    }
}
