//! `http://farhop.internal/` and the files that configure browsers, over a real connection: nothing of it crosses.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::Coding;
use rustls::pki_types::ServerName;
use support::within;
use support::{BROWSER, CACHEABLE, PATIENCE, World, answer, head, tls_client, until, world, world_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// What a client gets for this request head, with the connection closed after it.
async fn ask(world: &World, head: &str, body: &str) -> String {
    let mut client = world.client().await;
    let request = format!("{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    client.write_all(request.as_bytes()).await.unwrap();
    answer(client).await
}

async fn page(world: &World, path: &str) -> String {
    ask(world, &format!("GET http://farhop.internal{path} HTTP/1.1\r\nhost: farhop.internal"), "").await
}

/// Sends a form of the overview as a browser does.
async fn send(world: &World, form: &str) -> String {
    let overview = page(world, "/").await;
    let token = overview.split("name=\"token\" value=\"").nth(1).expect("the overview has a form");
    let token = token.split('"').next().unwrap();
    let head = "POST http://farhop.internal/switch HTTP/1.1\r\nhost: farhop.internal\r\norigin: http://farhop.internal\r\n\
                content-type: application/x-www-form-urlencoded";
    ask(world, head, &format!("token={token}&{form}")).await
}

#[tokio::test]
async fn the_portal_is_served_here() {
    let world = world().await;
    let overview = page(&world, "/").await;
    assert!(overview.starts_with("HTTP/1.1 200 "), "{overview}");
    assert!(overview.contains("The satellite link is up") && overview.contains("Passed on unread"));
    assert!(overview.contains(&format!("http://{}/proxy.pac", world.running.addresses()[0])), "{overview}");
    assert!(page(&world, "/none").await.starts_with("HTTP/1.1 404 "));
    assert_eq!(world.crossed(), 0);
    assert_eq!(world.bus.counters().requests(), 2);
}

#[tokio::test]
async fn browsers_get_their_configuration_from_the_proxys_own_port() {
    let world = world().await;
    let port = world.running.addresses()[0].port();
    for path in ["/proxy.pac", "/wpad.dat"] {
        let file = ask(&world, &format!("GET {path} HTTP/1.1\r\nhost: localhost:{port}"), "").await;
        assert!(file.contains("Content-Type: application/x-ns-proxy-autoconfig\r\n"), "{file}");
        assert!(file.contains(&format!("var way = \"PROXY localhost:{port}; DIRECT\";")), "{file}");
    }
    let other = ask(&world, &format!("GET / HTTP/1.1\r\nhost: localhost:{port}"), "").await;
    assert!(other.starts_with("HTTP/1.1 400 ") && other.contains("http://farhop.internal/"), "{other}");
    assert_eq!(world.crossed(), 0);
}

#[tokio::test]
async fn a_user_switches_interception_off_and_on_again() {
    let world = world_with(&["interception.enabled=true"]).await;
    let ca = world.authority.as_ref().unwrap().certificate();
    assert!(page(&world, "/ca.pem").await.ends_with(&ca.pem()));
    assert!(page(&world, "/").await.contains("Accelerated"));

    let switched = send(&world, "do=site-off&site=https%3A%2F%2Fwww.bank.example%2Flogin").await;
    assert!(switched.starts_with("HTTP/1.1 303 ") && switched.contains("Location: /\r\n"), "{switched}");
    assert!(page(&world, "/").await.contains("bank.example"));
    send(&world, "do=site-on&site=bank.example").await;
    assert!(!page(&world, "/").await.contains("bank.example"));

    send(&world, "do=all-off").await;
    assert!(page(&world, "/").await.contains("Off for you"));
    send(&world, "do=all-on").await;
    assert!(page(&world, "/").await.contains("Accelerated"));
}

#[tokio::test]
async fn what_is_switched_off_is_not_read_any_more_on_connections_that_stand() {
    let world = world_with(&["interception.enabled=true"]).await;
    for switch in ["do=site-off&site=site.test", "do=all-off"] {
        let mut client = within::within(&world).await;
        within::say(&mut client, "/", "").await;
        within::answer(world.asked().await, "as ever").await;
        within::hear(&mut client, "as ever").await;
        send(&world, "do=site-off&site=other.test").await;
        within::say(&mut client, "/again", "").await;
        within::answer(world.asked().await, "as ever").await;
        within::hear(&mut client, "as ever").await;
        send(&world, switch).await;
        let end = timeout(PATIENCE, client.read(&mut [0; 64])).await.expect("it ends");
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        send(&world, "do=site-on&site=site.test").await;
    }
    assert_eq!(world.crossed(), 4);
}

/// Asks for `path` and lets ground answer, with these fields, this body that stands for more.
async fn given(
    world: &World,
    path: &str,
    fields: &[(&'static str, &'static str)],
    coding: Coding,
    body: Bytes,
) {
    let client = world.get(path, BROWSER).await;
    let mut asked = world.asked().await;
    asked.sender.answer(&head(fields), coding, None);
    asked.sender.write(body).await.unwrap();
    asked.sender.finish(None);
    assert!(answer(client).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_user_is_told_what_crossed_and_what_it_stands_for() {
    let world = world().await;
    let text = "not quite random ".repeat(10_000);
    let packed = farhop_squeeze::compress(text.as_bytes(), 3).unwrap();
    assert!(packed.len() < 1_000, "{}", packed.len());
    let crossed = packed.len();
    given(&world, "/a.css", CACHEABLE, Coding::Zstd, packed).await;
    let picture = [
        ("content-type", "image/webp"),
        ("farhop-image", "webp; q=74; from=jpeg; was=90000"),
        ("cache-control", "no-store"),
    ];
    given(&world, "/a.jpg", &picture, Coding::Identity, vec![7; 30_000].into()).await;
    // Held by now, so that nothing of it crosses again.
    assert!(answer(world.get("/a.css", BROWSER).await).await.len() > text.len());
    assert_eq!(world.crossed(), 2);

    let overview = page(&world, "/").await;
    for words in [
        format!("other text</th><td>340.0 KB</td><td>{crossed} B</td>"),
        "Pictures</th><td>90.0 KB</td><td>30.0 KB</td>".to_owned(),
        "did not cross again</th><td>170.0 KB</td>".to_owned(),
    ] {
        assert!(overview.contains(&words), "{words}: {overview}");
    }
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let world = world_with(&["interception.enabled=true"]).await;
    let head =
        "POST http://farhop.internal/switch HTTP/1.1\r\nhost: farhop.internal\r\norigin: http://evil.example";
    let refused = ask(&world, head, "do=all-off").await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let long = ask(&world, head, &"x".repeat(10_000)).await;
    assert!(long.starts_with("HTTP/1.1 413 "), "{long}");
    assert!(page(&world, "/").await.contains("Accelerated"));
}

const CONNECT: &str = "CONNECT farhop.internal:443 HTTP/1.1\r\nhost: farhop.internal:443";

/// Asks within TLS for the overview, as who trusts the CA of this world, or nobody.
async fn ask_within(world: &World, trusts: bool) -> std::io::Result<String> {
    let client = world.connect("farhop.internal:443").await;
    let name = ServerName::try_from("farhop.internal").unwrap();
    let connecting = TlsConnector::from(tls_client(world, trusts, &["http/1.1"])).connect(name, client);
    let mut client = timeout(PATIENCE, connecting).await.expect("a handshake ends")?;
    let token = page(world, "/").await;
    let token = token.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let form = format!("token={token}&do=all-off");
    let post = format!(
        "POST /switch HTTP/1.1\r\nhost: farhop.internal\r\norigin: https://farhop.internal\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let get = "GET / HTTP/1.1\r\nhost: farhop.internal\r\nconnection: close\r\n\r\n";
    client.write_all((post + get).as_bytes()).await?;
    let mut got = String::new();
    timeout(PATIENCE, client.read_to_string(&mut got)).await.expect("an answer comes")?;
    Ok(got)
}

#[tokio::test]
async fn who_trusts_the_ca_has_the_portal_within_tls_whatever_is_switched_off() {
    let world = world_with(&["interception.enabled=true"]).await;
    for _ in 0..2 {
        let got = ask_within(&world, true).await.unwrap();
        assert!(got.starts_with("HTTP/1.1 303 ") && got.contains("\r\nLocation: /\r\n"), "{got}");
        assert!(got.contains("Off for you"), "{got}");
    }
    assert_eq!((world.crossed(), world.bus.counters().intercepted()), (0, 0));
}

#[tokio::test]
async fn where_the_portal_can_have_no_certificate_that_is_said_at_once() {
    for world in [world().await, world_with(&["interception.enabled=true"]).await] {
        if world.authority.is_some() {
            // What has been refused once is not tried again.
            let mut events = world.bus.subscribe();
            assert!(ask_within(&world, false).await.is_err());
            until(&mut events, |event| matches!(event, Event::BypassLearned { .. })).await;
        }
        let refused = ask(&world, CONNECT, "").await;
        assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
        assert!(refused.contains("http://farhop.internal/, without TLS"), "{refused}");
        assert_eq!(world.crossed(), 0);
    }
}

#[tokio::test]
async fn a_link_that_has_fallen_silent_is_not_called_up() {
    if std::env::var("FARHOP_TEST_CARRIER").is_ok_and(|carrier| carrier == "tcp") {
        return;
    }
    let world = world().await;
    let mut events = world.bus.subscribe();
    assert!(page(&world, "/").await.contains("The satellite link is up"));
    let _asking = world.get("/", "").await;
    world.link.cut();
    until(&mut events, |event| matches!(event, Event::CarrierSilent { .. })).await;
    let told = page(&world, "/").await;
    assert!(told.contains("The satellite link does not answer") && !told.contains("link is up"), "{told}");
}

#[tokio::test]
async fn a_device_that_refuses_the_certificate_everywhere_is_told_so() {
    let world = world_with(&["interception.enabled=true"]).await;
    let mut events = world.bus.subscribe();
    let distrusting = TlsConnector::from(tls_client(&world, false, &["h2"]));
    for host in ["a.test", "b.test", "c.test", "d.test", "e.test"] {
        assert!(!page(&world, "/").await.contains("Not on this device"), "{host}");
        let client = world.connect(&format!("{host}:443")).await;
        assert!(distrusting.connect(ServerName::try_from(host).unwrap(), client).await.is_err());
        until(&mut events, |event| matches!(event, Event::BypassLearned { .. })).await;
    }
    let told = page(&world, "/").await;
    assert!(told.contains("Not on this device") && told.contains("a.test, b.test"), "{told}");
    send(&world, "do=try-again").await;
    assert!(page(&world, "/").await.contains("Accelerated"));
}
