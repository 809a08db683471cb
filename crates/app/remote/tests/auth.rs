//! Names and passwords as clients meet them: asked for, checked, never sent on, and what they are good for.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::process::Command;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use farhop_remote::passwords;
use farhop_settings::RemoteSettings;
use farhop_transport::hop::{Arrival, Incoming, Receiver, Sender};
use h2::client::SendRequest;
use http::StatusCode;
use rustls::pki_types::ServerName;
use std::net::Ipv4Addr;
use support::{
    Asked, BROWSER, PATIENCE, REFERER, UNCACHEABLE, World, answer, answer_with, failure, head, page_of,
    read_until, send, tls_client, world_with,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// "anna:one", "ben:two" and "carl:three" (RFC 7617 §2).
const ANNA: &str = "proxy-authorization: Basic YW5uYTpvbmU=\r\n";
const BEN: &str = "proxy-authorization: Basic YmVuOnR3bw==\r\n";
const CARL: &str = "proxy-authorization: Basic Y2FybDp0aHJlZQ==\r\n";
const WRONG: &str = "proxy-authorization: Basic YW5uYTp0d28=\r\n";

fn users() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    passwords::add(&file, "anna", "one", false).unwrap();
    passwords::add(&file, "ben", "two", false).unwrap();
    let set = format!("auth.file={}", file.display());
    (folder, set)
}

async fn closed_world() -> (World, TempDir) {
    let (folder, file) = users();
    let world = world_with(&["auth.required=true", &file, "auth.realm=The \"Polarstern\""]).await;
    (world, folder)
}

#[tokio::test]
async fn a_client_is_asked_and_goes_on_with_its_name_on_the_same_connection() {
    let (world, _folder) = closed_world().await;
    let mut client = world.client().await;
    client.write_all(b"GET http://site.test/ HTTP/1.1\r\nhost: site.test\r\n\r\n").await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "exchange").await;
    assert!(got.starts_with("HTTP/1.1 407 "), "{got}");
    let challenge = "Proxy-Authenticate: Basic realm=\"The \\\"Polarstern\\\"\", charset=\"UTF-8\"\r\n";
    assert!(got.to_lowercase().contains(&challenge.to_lowercase()), "{got}");
    assert!(got.contains("asks for a name and a password"), "{got}");
    assert_eq!(world.crossed(), 0);
    send(&mut client, "GET", "/", ANNA).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert!(!asked.fields.contains_key("proxy-authorization"), "{:?}", asked.fields);
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"welcome")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("welcome"));
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_counted() {
    let (world, _folder) = closed_world().await;
    let refused = answer(world.get("/", WRONG).await).await;
    assert!(refused.starts_with("HTTP/1.1 407 ") && refused.contains("is not right"), "{refused}");
    let unreadable = answer(world.get("/", "proxy-authorization: Digest x\r\n").await).await;
    assert!(unreadable.starts_with("HTTP/1.1 407 ") && unreadable.contains("cannot be read"), "{unreadable}");
    let twice = answer(world.get("/", &format!("{ANNA}{BEN}")).await).await;
    assert!(twice.starts_with("HTTP/1.1 407 "), "{twice}");
    assert_eq!(world.bus.counters().logins_refused(), 1);
    assert_eq!(world.crossed(), 0);
}

#[tokio::test]
async fn a_body_of_a_request_that_is_refused_is_not_taken_for_the_next() {
    let (world, _folder) = closed_world().await;
    let mut client = world.client().await;
    let post = "POST http://site.test/ HTTP/1.1\r\nhost: site.test\r\ncontent-length: 40\r\n\r\n";
    client.write_all(post.as_bytes()).await.unwrap();
    client.write_all(b"GET http://evil.test/ HTTP/1.1\r\n\r\n345678").await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "exchange").await;
    // It may have been closed.
    let _ = client
        .write_all(format!("GET http://site.test/ HTTP/1.1\r\nhost: site.test\r\n{ANNA}\r\n").as_bytes())
        .await;
    drop(got);
    let next = timeout(PATIENCE, async {
        tokio::select! {
            asked = world.asked() => Some(asked.head.authority),
            rest = answer(client) => { assert!(!rest.contains("evil"), "{rest}"); None }
        }
    });
    assert!(matches!(next.await.unwrap().as_deref(), None | Some("site.test")));
}

#[tokio::test]
async fn the_portal_asks_however_it_is_asked_for_and_what_configures_browsers_does_not() {
    let (world, _folder) = closed_world().await;
    let ask = async |line: &str, host: &str, fields: &str| {
        let mut client = world.client().await;
        let request = format!("{line} HTTP/1.1\r\nhost: {host}\r\n{fields}connection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        answer(client).await
    };
    for path in ["/", "/install", "/ca.pem", "/switch", "/none"] {
        for host in ["farhop.internal", "FARHOP.internal.:80"] {
            let got = ask(&format!("GET {path}"), host, "").await;
            assert!(
                got.starts_with("HTTP/1.1 403 ") && !got.to_lowercase().contains("authenticate"),
                "{path}: {got}"
            );
        }
    }
    let got = ask("POST /switch", "farhop.internal", "content-length: 0\r\n").await;
    assert!(got.starts_with("HTTP/1.1 403 "), "{got}");
    let through = ask("GET http://farhop.internal/", "farhop.internal", "").await;
    assert!(through.starts_with("HTTP/1.1 407 "), "{through}");
    let known = ask("GET http://farhop.internal/", "farhop.internal", ANNA).await;
    assert!(known.starts_with("HTTP/1.1 200 ") && known.contains("anna"), "{known}");
    for (path, host) in [("/proxy.pac", "proxy.test:3128"), ("/wpad.dat", "farhop.internal")] {
        assert!(ask(&format!("GET {path}"), host, "").await.starts_with("HTTP/1.1 200 "), "{path}");
    }
}

#[tokio::test]
async fn a_tunnel_is_asked_for_too() {
    let (world, _folder) = closed_world().await;
    let connect = |fields: &str| format!("CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n{fields}\r\n");
    let mut client = world.client().await;
    client.write_all(connect("").as_bytes()).await.unwrap();
    assert!(answer(client).await.starts_with("HTTP/1.1 407 "));
    let mut client = world.client().await;
    client.write_all(connect(ANNA).as_bytes()).await.unwrap();
    let tunnel = async {
        loop {
            if let Incoming::Tunnel { asked, .. } = world.hop.accept().await.unwrap() {
                return asked.host;
            }
        }
    };
    assert_eq!(timeout(PATIENCE, tunnel).await.unwrap(), "a.test");
}

/// Loads a document as `who` whose answer promises `/a.css`, with that promise's body on its way.
async fn promised(world: &World, who: &str) {
    let (_, promise) = page_of(world, who).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"for anna alone")).await.unwrap();
    push.finish(None);
}

#[tokio::test]
async fn a_user_is_a_name_wherever_it_comes_from() {
    let (world, _folder) = closed_world().await;
    promised(&world, ANNA).await;
    let mut elsewhere = world.client_at(Ipv4Addr::new(127, 0, 0, 2)).await;
    send(&mut elsewhere, "GET", "/a.css", &format!("{BROWSER}{REFERER}{ANNA}")).await;
    assert!(answer(elsewhere).await.contains("for anna alone"));
}

#[tokio::test]
async fn two_names_at_one_address_are_two_users() {
    let (world, _folder) = closed_world().await;
    let mut events = world.bus.subscribe();
    promised(&world, ANNA).await;
    let other = world.get("/a.css", &format!("{BROWSER}{REFERER}{BEN}")).await;
    let Asked { sender, .. } = world.asked().await;
    sender.fail(failure());
    assert!(!answer(other).await.contains("for anna alone"));
    let mut names = Vec::new();
    while names.len() < 2 {
        if let Event::RequestAccepted { user, .. } = &events.next().await.unwrap().unwrap().event {
            names.push(user.clone());
        }
    }
    assert_eq!(names, ["anna", "ben"]);
}

#[tokio::test]
async fn what_browsers_fetch_before_they_know_of_passwords_is_not_refused() {
    let (world, _folder) = closed_world().await;
    let mut client = world.client().await;
    client
        .write_all(b"GET /proxy.pac HTTP/1.1\r\nhost: proxy.test\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let got = answer(client).await;
    assert!(!got.starts_with("HTTP/1.1 407 "), "{got}");
}

#[tokio::test]
async fn a_file_read_anew_shuts_out_who_is_gone_from_it() {
    let (world, folder) = closed_world().await;
    let client = world.get("/", ANNA).await;
    answer_with(&world, "welcome").await;
    assert!(answer(client).await.contains("welcome"));
    let file = folder.path().join("users");
    passwords::remove(&file, "anna").unwrap();
    reload(&world, &folder);
    assert!(answer(world.get("/", ANNA).await).await.starts_with("HTTP/1.1 407 "));
    let client = world.get("/other", BEN).await;
    answer_with(&world, "welcome").await;
    assert!(answer(client).await.contains("welcome"));
}

#[tokio::test]
async fn who_is_gone_from_the_file_is_served_no_longer_on_a_connection_that_is_open() {
    let (folder, file) = users();
    let world = world_with(&["auth.required=true", &file, "interception.enabled=true"]).await;
    let (mut anna, left) = http2(&world, ANNA).await;
    let (mut ben, _) = http2(&world, BEN).await;
    let (under_way, _) = anna.send_request(secure("/"), true).unwrap();
    let asked = world.asked().await;
    passwords::remove(&folder.path().join("users"), "anna").unwrap();
    reload(&world, &folder);
    // What was asked before is answered still, and the connection ends.
    answered(asked).await;
    assert_eq!(timeout(PATIENCE, under_way).await.unwrap().unwrap().status(), 200);
    timeout(PATIENCE, left).await.expect("it is ended").unwrap().unwrap();
    assert!(anna.send_request(secure("/more"), true).is_err());
    let (answer, _) = ben.send_request(secure("/ben"), true).unwrap();
    let asked = world.asked().await;
    assert_eq!(asked.head.path, "/ben");
    answered(asked).await;
    assert_eq!(timeout(PATIENCE, answer).await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn tunnels_and_websockets_end_of_who_is_gone_or_has_another_password() {
    let (world, folder) = closed_world().await;
    passwords::add(&folder.path().join("users"), "carl", "three", false).unwrap();
    reload(&world, &folder);
    let (mut anna, mut ben, mut carl) =
        (tunnel(&world, ANNA).await, tunnel(&world, BEN).await, tunnel(&world, CARL).await);
    let mut client = world.client().await;
    let socket = format!(
        "GET http://site.test/ HTTP/1.1\r\nhost: site.test\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{ANNA}\r\n"
    );
    client.write_all(socket.as_bytes()).await.unwrap();
    let Asked { sender, receiver: _talking, .. } = world.asked().await;
    sender.answer(
        &ResponseHead { status: StatusCode::SWITCHING_PROTOCOLS, ..head(&[]) },
        Coding::Identity,
        None,
    );
    read_until(&mut client, &mut String::new(), "\r\n\r\n").await;
    passwords::remove(&folder.path().join("users"), "anna").unwrap();
    passwords::add(&folder.path().join("users"), "ben", "new", true).unwrap();
    reload(&world, &folder);
    for gone in [&mut anna.0, &mut ben.0, &mut client] {
        let read = timeout(PATIENCE, gone.read(&mut [0; 1])).await.expect("it is ended");
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    carl.0.write_all(b"hello").await.unwrap();
    assert_eq!(timeout(PATIENCE, carl.2.next()).await.unwrap(), Arrival::Body("hello".into()));
}

/// A tunnel, granted, and ground's ends of it.
async fn tunnel(world: &World, who: &str) -> (TcpStream, Sender, Receiver) {
    let client = world.connect_as("a.test:443", who).await;
    let ends = async {
        loop {
            if let Incoming::Tunnel { sender, receiver, .. } = world.hop.accept().await.unwrap() {
                return (sender, receiver);
            }
        }
    };
    let (sender, receiver) = timeout(PATIENCE, ends).await.unwrap();
    (client, sender, receiver)
}

/// Lets the remote read its settings and the users in this folder anew, as SIGHUP does.
fn reload(world: &World, folder: &TempDir) {
    let sets = [
        "ground.0.name=\"test\"".to_owned(),
        "ground.0.address=\"127.0.0.1:1\"".into(),
        "ground.0.keys=[\"x\"]".into(),
        "auth.required=true".into(),
        format!("auth.file={}", folder.path().join("users").display()),
    ];
    world.running.reload(farhop_settings::load::<RemoteSettings>(None, &sets).unwrap());
}

/// A connection to `site.test` that is looked into, over HTTP/2, and its end.
async fn http2(world: &World, who: &str) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let client = world.connect_as("site.test:443", who).await;
    let name = ServerName::try_from("site.test").unwrap();
    let tls = TlsConnector::from(tls_client(world, true, &["h2"])).connect(name, client).await.unwrap();
    let (requests, connection) = h2::client::handshake(tls).await.unwrap();
    (requests, tokio::spawn(connection))
}

async fn answered(mut asked: Asked) {
    asked.sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    asked.sender.write(Bytes::from_static(b"welcome")).await.unwrap();
    asked.sender.finish(None);
}

fn secure(path: &str) -> http::Request<()> {
    http::Request::get(format!("https://site.test{path}")).body(()).unwrap()
}

#[tokio::test]
async fn a_remote_whose_file_of_users_is_damaged_does_not_start() {
    let (folder, file) = users();
    let path = folder.path().join("users");
    let damaged = std::fs::read_to_string(&path).unwrap() + "carl\n";
    std::fs::write(&path, damaged).unwrap();
    let started = tokio::spawn(async move { world_with(&["auth.required=true", &file]).await });
    assert!(started.await.is_err(), "nobody is let in by mistake");
}

/// What curl says, given these arguments and the proxy.
async fn curl(world: &World, arguments: &[&str]) -> Option<String> {
    let proxy = format!("http://{}", world.running.addresses()[0]);
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--include", "--max-time", "20", "--proxy", &proxy])
        .args(arguments);
    match tokio::task::spawn_blocking(move || command.output()).await.unwrap() {
        Ok(output) => Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()),
        Err(error) => {
            eprintln!("passed over: curl cannot be run ({error})");
            None
        }
    }
}

#[tokio::test]
async fn curl_is_let_in_with_a_password_at_once_and_after_it_was_asked() {
    let (world, _folder) = closed_world().await;
    for (url, ask_first) in [("http://site.test/1", &[][..]), ("http://site.test/2", &["--proxy-anyauth"])] {
        let arguments = [ask_first, &["--proxy-user", "anna:one", url]].concat();
        let (said, ()) = tokio::join!(curl(&world, &arguments), async {
            // Where there is no curl nobody asks.
            if Command::new("curl").arg("--version").output().is_ok() {
                answer_with(&world, "welcome").await;
            }
        });
        let Some(said) = said else { return };
        assert!(said.contains("welcome"), "{said}");
        assert_eq!(said.contains(" 407 "), !ask_first.is_empty(), "{said}");
    }
}

#[tokio::test]
async fn curl_is_told_what_is_wrong() {
    let (world, _folder) = closed_world().await;
    for arguments in [&["http://site.test/"][..], &["--proxy-user", "anna:two", "http://site.test/"]] {
        let Some(said) = curl(&world, arguments).await else { return };
        assert!(said.starts_with("HTTP/1.1 407 "), "{said}");
    }
    let Some(said) = curl(&world, &["--proxy-user", "anna:two", "https://site.test/"]).await else { return };
    assert!(said.contains("407"), "{said}");
    assert_eq!(world.crossed(), 0);
}
