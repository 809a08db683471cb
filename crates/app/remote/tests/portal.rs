//! `http://farhop.internal/` and the files that configure browsers, over a real connection: nothing of it crosses.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use support::{World, answer, world, world_with};
use tokio::io::AsyncWriteExt;

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

#[tokio::test]
async fn there_is_no_portal_behind_tls_and_that_is_said_at_once() {
    let world = world_with(&["interception.enabled=true"]).await;
    let refused = ask(&world, "CONNECT farhop.internal:443 HTTP/1.1\r\nhost: farhop.internal:443", "").await;
    assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
    assert_eq!(world.crossed(), 0);
}
