//! Whose word counts on whether a connection is looked into: the operator's, each user's own, and what users must not
//! be able to take from each other.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::sync::Arc;

use farhop_events::{Bypass, Event};
use farhop_remote::passwords;
use farhop_settings::RemoteSettings;
use farhop_transport::hop::{Arrival, Incoming};
use rustls::{ClientConfig, RootCertStore};
use support::{PATIENCE, World, answer, world_with};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// "anna:one" and "ben:two" (RFC 7617 §2).
const ANNA: &str = "proxy-authorization: Basic YW5uYTpvbmU=\r\n";
const BEN: &str = "proxy-authorization: Basic YmVuOnR3bw==\r\n";

#[derive(Debug, PartialEq)]
enum Went {
    /// Ground was told to prepare for requests.
    LookedInto,
    /// The bytes went to ground as they were.
    Through,
}

/// A handshake by a client that trusts the CA of this world.
async fn handshake(world: &World, client: TcpStream, to: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    if let Some(authority) = &world.authority {
        roots.add(authority.certificate().der().clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = to.split(':').next().unwrap().to_owned();
    TlsConnector::from(Arc::new(config)).connect(name.try_into().unwrap(), client).await
}

/// What becomes of a connection of `who` to this host and port.
async fn goes(world: &World, who: &str, to: &str) -> Went {
    let client = world.connect_as(to, who).await;
    let heard = async {
        loop {
            if let Incoming::Tunnel { asked, mut receiver, .. } = world.hop.accept().await.unwrap() {
                assert_eq!(format!("{}:{}", asked.host, asked.port), to);
                let Arrival::Body(first) = receiver.next().await else { panic!("nothing comes along") };
                assert!(first.starts_with(&[0x16, 3]), "it begins as TLS does");
                return Went::Through;
            }
        }
    };
    let shaken = handshake(world, client, to);
    tokio::pin!(heard, shaken);
    let went = timeout(PATIENCE, async {
        tokio::select! {
            went = &mut heard => went,
            // The origin that the test plays answers no handshake.
            shaken = &mut shaken => { shaken.unwrap(); Went::LookedInto }
        }
    });
    went.await.expect("ground hears of it")
}

#[tokio::test]
async fn built_in_and_configured_lists_and_ports_decide() {
    let world = world_with(&[
        "interception.enabled=true",
        "interception.bypass=.own.test, !shop.paypal.com",
        "interception.ports=443, 8443",
    ])
    .await;
    for (to, went, why) in [
        ("site.test:443", Went::LookedInto, None),
        ("site.test:8443", Went::LookedInto, None),
        ("site.test:8080", Went::Through, Some(Bypass::Port)),
        ("www.own.test:443", Went::Through, Some(Bypass::Configured)),
        ("notown.test:443", Went::LookedInto, None),
        ("www.paypal.com:443", Went::Through, Some(Bypass::BuiltIn)),
        ("shop.paypal.com:443", Went::LookedInto, None),
    ] {
        let before = why.map(|why| world.bus.counters().bypassed(why));
        assert_eq!(goes(&world, "", to).await, went, "{to}");
        assert_eq!(why.map(|why| world.bus.counters().bypassed(why)), before.map(|count| count + 1), "{to}");
    }
}

#[tokio::test]
async fn where_it_is_off_nothing_is_looked_into() {
    let world = world_with(&[]).await;
    assert_eq!(goes(&world, "", "site.test:443").await, Went::Through);
}

#[tokio::test]
async fn a_list_is_taken_over_while_it_runs_and_the_switch_itself_is_not() {
    let world = world_with(&["interception.enabled=true"]).await;
    assert_eq!(goes(&world, "", "site.test:443").await, Went::LookedInto);
    let sets = [
        "ground.0.name=\"test\"",
        "ground.0.address=\"127.0.0.1:1\"",
        "ground.0.keys=[\"x\"]",
        "interception.enabled=false",
        "interception.bypass=site.test",
    ];
    world.running.reload(farhop_settings::load::<RemoteSettings>(None, &sets.map(str::to_owned)).unwrap());
    assert_eq!(goes(&world, "", "site.test:443").await, Went::Through);
    assert_eq!(goes(&world, "", "other.test:443").await, Went::LookedInto, "that takes a restart");
}

/// A form of the portal, sent as a browser of `who` does.
async fn switch(world: &World, who: &str, form: &str) {
    let ask = async |request: String| {
        let mut client = world.client().await;
        client.write_all(request.as_bytes()).await.unwrap();
        answer(client).await
    };
    let head = format!("host: farhop.internal\r\nconnection: close\r\n{who}");
    let overview = ask(format!("GET http://farhop.internal/ HTTP/1.1\r\n{head}\r\n")).await;
    let token = overview.split("name=\"token\" value=\"").nth(1).expect("the overview has a form");
    let form = format!("token={}&{form}", token.split('"').next().unwrap());
    let switched = ask(format!(
        "POST http://farhop.internal/switch HTTP/1.1\r\n{head}origin: http://farhop.internal\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    ))
    .await;
    assert!(switched.starts_with("HTTP/1.1 303 "), "{switched}");
}

async fn world_of_two(more: &[&str]) -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    passwords::add(&file, "anna", "one", false).unwrap();
    passwords::add(&file, "ben", "two", false).unwrap();
    let file = format!("auth.file={}", file.display());
    let sets = [&["interception.enabled=true", "auth.required=true", &file], more].concat();
    (world_with(&sets).await, folder)
}

#[tokio::test]
async fn a_user_switches_off_for_nobody_else() {
    let (world, _folder) = world_of_two(&[]).await;
    assert_eq!(goes(&world, ANNA, "www.site.test:443").await, Went::LookedInto);
    switch(&world, ANNA, "do=site-off&site=www.site.test").await;
    assert_eq!(goes(&world, ANNA, "cdn.site.test:443").await, Went::Through);
    assert_eq!(goes(&world, ANNA, "other.test:443").await, Went::LookedInto);
    assert_eq!(goes(&world, BEN, "www.site.test:443").await, Went::LookedInto);
    switch(&world, BEN, "do=all-off").await;
    assert_eq!(goes(&world, BEN, "other.test:443").await, Went::Through);
    // A host of which ground has not heard a moment ago.
    assert_eq!(goes(&world, ANNA, "third.test:443").await, Went::LookedInto);
}

#[tokio::test]
async fn where_users_are_asked_first_each_agrees_alone() {
    let (world, _folder) = world_of_two(&["interception.ask=true"]).await;
    assert_eq!(goes(&world, ANNA, "site.test:443").await, Went::Through);
    assert_eq!(world.bus.counters().bypassed(Bypass::NotAgreed), 1);
    switch(&world, ANNA, "do=all-on").await;
    assert_eq!(goes(&world, ANNA, "site.test:443").await, Went::LookedInto);
    assert_eq!(goes(&world, BEN, "site.test:443").await, Went::Through);
}

#[tokio::test]
async fn what_is_asked_within_is_asked_by_whoever_connected() {
    let (world, _folder) = world_of_two(&[]).await;
    let mut events = world.bus.subscribe();
    let client = world.connect_as("site.test:443", BEN).await;
    let mut tls = timeout(PATIENCE, handshake(&world, client, "site.test:443")).await.unwrap().unwrap();
    // Another name inside is nobody's business of the proxy, and goes no further than it would have.
    tls.write_all(format!("GET / HTTP/1.1\r\nhost: site.test\r\n{ANNA}\r\n").as_bytes()).await.unwrap();
    let asked = world.asked().await;
    assert!(!asked.head.fields.contains_key("proxy-authorization"), "{:?}", asked.head.fields);
    loop {
        if let Event::RequestAccepted { user, method, .. } = &events.next().await.unwrap().unwrap().event
            && method == "GET"
        {
            assert_eq!(user, "ben");
            return;
        }
    }
}
