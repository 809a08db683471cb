//! CONNECT with the operator's own CA: what is looked into, and what goes through untouched.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_authority::Terms;
use farhop_events::Bypass;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Failure, Priority};
use farhop_htotp::head::RECEIVED;
use farhop_transport::hop::{Arrival, Incoming};
use http::{HeaderValue, StatusCode};
use rustls::pki_types::ServerName;
use support::within::{answer, bypassed, handshake, hear, is_hello, say, tunnelled, within, world};
use support::{
    Asked, CACHEABLE, PATIENCE, World, failure, head, read_until, tls_client as config, world_under,
    world_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A handshake for `name` on a connection to `host` reaches ground as it is.
async fn goes_through(world: &World, host: &str, protocol: &str, name: &'static str) {
    let client = world.connect(&format!("{host}:443")).await;
    let going = tokio::spawn(handshake(client, config(world, true, &[protocol]), name));
    let (to, first) = tunnelled(world).await;
    assert!(to == host && is_hello(&first));
    going.abort();
}

#[tokio::test]
async fn ground_prepares_while_the_handshake_is_answered_and_requests_cross_as_https() {
    let world = world().await;
    let mut client = within(&world).await;
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("it is prepared").unwrap();
        if let Incoming::Prepare { scheme, host, port, .. } = incoming {
            assert_eq!((scheme.as_str(), host.as_str(), port), ("https", "site.test", 443));
            break;
        }
    }
    for path in ["/one", "/two?x"] {
        say(&mut client, path, "upgrade-insecure-requests: 1\r\n").await;
        let asked = world.asked().await;
        assert_eq!(
            (asked.head.url(), asked.head.scheme.as_str()),
            (format!("https://site.test{path}"), "https")
        );
        assert_eq!(asked.head.fields["upgrade-insecure-requests"], "1");
        answer(asked, "this is it").await;
        let got = hear(&mut client, "this is it").await;
        assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    }
    assert_eq!(world.bus.counters().intercepted(), 1);
}

#[tokio::test]
async fn requests_of_an_http2_connection_go_on_beside_each_other() {
    let world = world().await;
    let client = world.connect("site.test:443").await;
    let tls = handshake(client, config(&world, true, &["h2", "http/1.1"]), "site.test").await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (requests, connection) = h2::client::handshake(tls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let mut answers = Vec::new();
    for n in 0..20 {
        let request = http::Request::get(format!("https://site.test/{n}")).body(()).unwrap();
        let (answer, _) = requests.clone().ready().await.unwrap().send_request(request, true).unwrap();
        answers.push(answer);
    }
    // All are asked before any is answered, and the last is answered first.
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(world.asked().await);
    }
    while let Some(mut asked) = asked.pop() {
        let path = asked.head.path.clone();
        asked.sender.answer(&head(&[("cache-control", "no-store")]), Coding::Identity, None);
        asked.sender.write(path.into()).await.unwrap();
        asked.sender.finish(None);
    }
    for (n, answer) in answers.into_iter().enumerate() {
        let mut body = timeout(PATIENCE, answer).await.unwrap().unwrap().into_body();
        let data = timeout(PATIENCE, body.data()).await.unwrap().unwrap().unwrap();
        assert_eq!(data, format!("/{n}"));
    }
}

#[tokio::test]
async fn ground_is_told_in_which_version_a_request_came_unless_it_is_the_usual_one() {
    let world = world().await;
    let received = async || world.asked().await.head.fields.get(RECEIVED).cloned();
    let _lying = world.get("/", "farhop-received: 2.0\r\n").await;
    assert_eq!(received().await, None, "what a client says of it counts for nothing");
    let mut plain = world.client().await;
    plain.write_all(b"GET http://site.test/old HTTP/1.0\r\nhost: site.test\r\n\r\n").await.unwrap();
    assert_eq!(received().await.unwrap(), "1.0");
    let mut older = within(&world).await;
    say(&mut older, "/older", "").await;
    assert_eq!(received().await.unwrap(), "1.1");
    let client = world.connect("site.test:443").await;
    let tls = handshake(client, config(&world, true, &["h2"]), "site.test").await.unwrap();
    let (requests, connection) = h2::client::handshake(tls).await.unwrap();
    let driving = tokio::spawn(async move { drop(connection.await) });
    let request = http::Request::get("https://site.test/new").body(()).unwrap();
    let _answer = requests.ready().await.unwrap().send_request(request, true).unwrap();
    assert_eq!(received().await, None);
    driving.abort();
}

#[tokio::test]
async fn promises_answer_within_and_a_plain_page_promises_nothing_to_a_secure_one() {
    let world = world().await;
    let mut client = within(&world).await;
    say(&mut client, "/", "").await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let mut style = farhop_htotp::RequestHead { path: "/a.css".into(), ..asked.clone() };
    style.fields.remove(RECEIVED);
    style.fields.insert("referer", HeaderValue::from_static("https://site.test/"));
    let plain = farhop_htotp::RequestHead { scheme: "http".into(), path: "/b.css".into(), ..style.clone() };
    let promise = sender.promise(&style, Priority::default()).unwrap();
    let other = sender.promise(&plain, Priority::default()).unwrap();
    sender.answer(
        &head(&[("content-type", "text/html"), ("cache-control", "no-store")]),
        Coding::Identity,
        None,
    );
    sender.write("<link rel=stylesheet href=a.css>".into()).await.unwrap();
    sender.finish(None);
    hear(&mut client, "a.css").await;
    for promise in [promise, other] {
        let mut push = world.hop.push(promise).unwrap();
        push.answer(&head(support::UNCACHEABLE), Coding::Identity, None);
        push.write("body{}".into()).await.unwrap();
        push.finish(None);
    }
    let referer = "referer: https://site.test/\r\n";
    say(&mut client, "/a.css", referer).await;
    hear(&mut client, "body{}").await;
    assert_eq!(world.crossed(), 1, "the page alone was asked for");
    say(&mut client, "/b.css", referer).await;
    assert_eq!(world.asked().await.head.url(), "https://site.test/b.css");
}

#[tokio::test]
async fn a_websocket_within_carries_words_both_ways() {
    let world = world().await;
    let mut client = within(&world).await;
    let fields = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
                  sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    say(&mut client, "/socket", fields).await;
    let Asked { head: asked, mut sender, mut receiver, .. } = world.asked().await;
    assert_eq!(
        (asked.scheme.as_str(), &asked.fields["upgrade"]),
        ("https", &HeaderValue::from_static("websocket"))
    );
    let switching = ResponseHead { status: StatusCode::SWITCHING_PROTOCOLS, ..head(&[]) };
    sender.answer(&switching, Coding::Identity, None);
    hear(&mut client, "\r\n\r\n").await;
    for word in 0..20u8 {
        client.write_all(&[word; 3]).await.unwrap();
        assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Body(vec![word; 3].into()));
        sender.write(vec![word; 2].into()).await.unwrap();
        let mut down = [0; 2];
        timeout(PATIENCE, client.read_exact(&mut down)).await.unwrap().unwrap();
        assert_eq!(down, [word; 2]);
    }
}

#[tokio::test]
async fn the_last_word_of_a_websocket_comes_through_though_its_client_leaves_without_tls_own_goodbye() {
    let world = world().await;
    let mut client = within(&world).await;
    let fields = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
                  sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    say(&mut client, "/socket", fields).await;
    let Asked { mut sender, mut receiver, .. } = world.asked().await;
    let switching = ResponseHead { status: StatusCode::SWITCHING_PROTOCOLS, ..head(&[]) };
    sender.answer(&switching, Coding::Identity, None);
    hear(&mut client, "\r\n\r\n").await;
    client.write_all(b"goodbye").await.unwrap();
    client.flush().await.unwrap();
    let (mut connection, _) = client.into_inner();
    connection.shutdown().await.unwrap();
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Body("goodbye".into()));
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Ended);
    // It may still hear what the other side says to that.
    sender.write("and you".into()).await.unwrap();
    sender.finish(None);
    let mut heard = Vec::new();
    timeout(PATIENCE, connection.read_to_end(&mut heard)).await.unwrap().unwrap();
    assert!(!heard.is_empty(), "sealed, but there");
}

#[tokio::test]
async fn a_websocket_over_http2_is_the_same_at_ground() {
    let world = world().await;
    let client = world.connect("site.test:443").await;
    let tls = handshake(client, config(&world, true, &["h2"]), "site.test").await.unwrap();
    let (requests, mut connection) = h2::client::handshake(tls).await.unwrap();
    // The server's settings have to be here before an extended CONNECT may be sent.
    let ready = requests.clone();
    let allowed = async {
        while !ready.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = allowed => {}
        ended = &mut connection => panic!("{ended:?}"),
    }
    tokio::spawn(async move { drop(connection.await) });
    let mut request = http::Request::connect("https://site.test/socket").body(()).unwrap();
    request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    request.headers_mut().insert("sec-websocket-version", HeaderValue::from_static("13"));
    let (answer, mut up) = requests.clone().ready().await.unwrap().send_request(request, false).unwrap();
    let Asked { head: asked, mut sender, mut receiver, .. } = world.asked().await;
    assert_eq!((asked.method.as_str(), asked.url().as_str()), ("GET", "https://site.test/socket"));
    assert_eq!(asked.fields["upgrade"], "websocket");
    let switching = ResponseHead { status: StatusCode::SWITCHING_PROTOCOLS, ..head(&[]) };
    sender.answer(&switching, Coding::Identity, None);
    let answered = timeout(PATIENCE, answer).await.unwrap().unwrap();
    assert_eq!(answered.status(), 200);
    let mut down = answered.into_body();
    up.send_data("up".into(), false).unwrap();
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Body("up".into()));
    sender.write("down".into()).await.unwrap();
    assert_eq!(timeout(PATIENCE, down.data()).await.unwrap().unwrap().unwrap(), "down");
    let counters = world.bus.counters();
    assert_eq!((counters.websockets(), counters.websockets_within_http2()), (1, 1));
}

#[tokio::test]
async fn what_is_for_another_name_or_protocol_goes_through_with_every_byte() {
    let world = world().await;
    for round in 1..=2 {
        goes_through(&world, "site.test", "h2", "hidden.test").await;
        let counted = (bypassed(&world, Bypass::NameDiffers), bypassed(&world, Bypass::Learned));
        assert_eq!(counted, (1, round - 1), "by name it is known the second time");
    }
    for round in 1..=2 {
        goes_through(&world, "chat.test", "xmpp-client", "chat.test").await;
        // The second is not even looked at.
        let counted = (bypassed(&world, Bypass::UnknownAlpn), bypassed(&world, Bypass::Learned));
        assert_eq!(counted, (1, round));
    }

    let mut ssh = world.connect("shell.test:443").await;
    ssh.write_all(b"SSH-2.0-client\r\n").await.unwrap();
    assert_eq!(tunnelled(&world).await, ("shell.test".into(), "SSH-2.0-client\r\n".into()));
    assert_eq!(bypassed(&world, Bypass::NotTls), 1);
    assert_eq!(world.bus.counters().intercepted(), 0);
}

#[tokio::test]
async fn a_host_that_the_ca_may_not_vouch_for_goes_through_at_once_and_nothing_is_prepared_for_it() {
    let permitted = vec!["site.test".parse().unwrap()].into();
    let world = world_under(&Terms { permitted, ..Terms::default() }, &["interception.enabled=true"]).await;
    // It waits for its server to begin, as those of mail do: nobody waits for its first word.
    let _silent = world.connect("other.test:443").await;
    let host = loop {
        match timeout(PATIENCE, world.hop.accept()).await.expect("a tunnel is wanted").unwrap() {
            Incoming::Prepare { host, .. } => panic!("{host} is prepared for nothing"),
            Incoming::Tunnel { asked, .. } => break asked.host,
            _ => {}
        }
    };
    assert_eq!((host.as_str(), bypassed(&world, Bypass::NoHost)), ("other.test", 1));
    assert_eq!(world.bus.counters().bypasses_learned(), 0);
    let mut client = within(&world).await;
    say(&mut client, "/", "").await;
    assert_eq!(world.asked().await.head.url(), "https://site.test/");
}

#[tokio::test]
async fn a_connection_to_an_address_that_names_a_host_goes_through() {
    let world = world().await;
    let client = world.connect("192.0.2.7:443").await;
    let going = tokio::spawn(handshake(client, config(&world, true, &["h2"]), "named.test"));
    assert_eq!(tunnelled(&world).await.0, "192.0.2.7");
    assert_eq!(bypassed(&world, Bypass::NameDiffers), 1);
    going.abort();
    let client = world.connect("192.0.2.7:443").await;
    let trusting = config(&world, true, &["http/1.1"]);
    let name = ServerName::from(std::net::IpAddr::from([192, 0, 2, 7]));
    let connecting = TlsConnector::from(trusting).connect(name, client);
    let mut client = timeout(PATIENCE, connecting).await.unwrap().unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: 192.0.2.7\r\n\r\n").await.unwrap();
    assert_eq!(world.asked().await.head.url(), "https://192.0.2.7/");
}

#[tokio::test]
async fn what_came_for_the_cookie_of_one_user_is_not_anothers() {
    let world = world().await;
    let ask = async |last: u8, cookie: &str| {
        let mut client = world.client_at([127, 0, 0, last].into()).await;
        client.write_all(b"CONNECT site.test:443 HTTP/1.1\r\nhost: site.test:443\r\n\r\n").await.unwrap();
        read_until(&mut client, &mut String::new(), "\r\n\r\n").await;
        let mut client = handshake(client, config(&world, true, &["http/1.1"]), "site.test").await.unwrap();
        say(&mut client, "/", &format!("cookie: {cookie}\r\n")).await;
        client
    };
    for (last, cookie, body) in [(1, "u=A", "for A"), (2, "u=B", "for B")] {
        let mut first = ask(last, cookie).await;
        let mut asked = world.asked().await;
        assert_eq!(asked.head.fields["cookie"], cookie);
        asked.sender.answer(&head(CACHEABLE), Coding::Identity, None);
        asked.sender.write(body.into()).await.unwrap();
        asked.sender.finish(None);
        hear(&mut first, body).await;
        // One's own is kept for oneself.
        hear(&mut ask(last, cookie).await, body).await;
    }
    assert_eq!(world.crossed(), 2);
}

#[tokio::test]
async fn what_is_held_stands_in_for_an_origin_that_fails_and_not_for_one_that_cannot_prove_who_it_is() {
    let world = world().await;
    let fields = head(&[
        ("content-type", "text/plain"),
        ("cache-control", "max-age=0, stale-if-error=600"),
        ("etag", "\"1\""),
    ]);
    let mut client = within(&world).await;
    say(&mut client, "/", "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&fields, Coding::Identity, None);
    asked.sender.write("as it was".into()).await.unwrap();
    asked.sender.finish(None);
    hear(&mut client, "as it was").await;
    for (token, status, stands_in) in [
        ("connection_refused", "200", true),
        ("tls_certificate_error", "502", false),
        ("client_certificate_wanted", "502", false),
    ] {
        let mut client = within(&world).await;
        say(&mut client, "/", "").await;
        world.asked().await.sender.fail(Failure { token: token.into(), ..failure() });
        let got = hear(&mut client, if stands_in { "as it was" } else { "</p>\n" }).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{token}: {got}");
        assert_eq!(got.contains("as it was"), stands_in, "{token}: {got}");
    }
}

#[tokio::test]
async fn a_request_for_another_host_than_the_connections_is_misdirected() {
    let world = world().await;
    let mut client = within(&world).await;
    client.write_all(b"GET / HTTP/1.1\r\nhost: other.test\r\n\r\n").await.unwrap();
    let got = hear(&mut client, "\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 421 "), "{got}");
    assert_eq!(world.crossed(), 0);
}

#[tokio::test]
async fn without_consent_nothing_is_looked_into() {
    let world = world_with(&["interception.enabled=true", "interception.bypass=[\".site.test\"]"]).await;
    let client = world.connect("www.site.test:443").await;
    let going = tokio::spawn(handshake(client, config(&world, true, &["h2"]), "www.site.test"));
    assert!(is_hello(&tunnelled(&world).await.1));
    assert_eq!(bypassed(&world, Bypass::Configured), 1);
    going.abort();
}

#[tokio::test]
async fn an_https_url_without_connect_is_refused_as_before() {
    let world = world().await;
    let mut client = world.client().await;
    client.write_all(b"GET https://site.test/ HTTP/1.1\r\nhost: site.test\r\n\r\n").await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "CONNECT only").await;
    assert!(got.starts_with("HTTP/1.1 400 "), "{got}");
}
