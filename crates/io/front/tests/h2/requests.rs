//! Which requests come out, and what is refused.

use crate::client::{ask, pair, pair_with, send, whole};
use crate::support::{head, next};
use farhop_front::{Settings, Target};
use http::Request;

#[tokio::test(start_paused = true)]
async fn requests_come_beside_each_other_and_are_answered_in_any_order() {
    let (mut client, mut connection) = pair().await;
    let responses: Vec<_> = (0..100).map(|n| ask(&mut client, "GET", &format!("/{n}"))).collect();
    let mut exchanges = Vec::new();
    for _ in 0..100 {
        exchanges.push(next(&mut connection).await);
    }
    for exchange in exchanges.into_iter().rev() {
        let Target::Absolute { path, .. } = &exchange.head.target else { panic!("absolute") };
        let text = path.to_string();
        exchange.responder.respond(head(200, &[]), text.into()).await.unwrap();
    }
    for (n, response) in responses.into_iter().enumerate() {
        assert_eq!(whole(response).await.unwrap().0.body(), &format!("/{n}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_arrives_with_its_fields_untouched_and_its_cookies_joined() {
    let (mut client, mut connection) = pair().await;
    let fields = [("priority", "u=0, i"), ("cookie", "a=1"), ("cookie", "b=2"), ("x-empty", "")];
    let _asked = send(&mut client, "GET", "/x?y", &fields, true);
    let exchange = next(&mut connection).await;
    let mut lines: Vec<_> = exchange
        .head
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, ["cookie: a=1; b=2", "host: a.example", "priority: u=0, i", "x-empty: "]);
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_forwarded_is_answered_and_the_connection_goes_on() {
    let (mut client, mut connection) = pair().await;
    let long = format!("https://a.example/{}", "x".repeat(40_000));
    for (method, uri, field, status) in [
        ("GET", "https://b.example/", None, 421),
        ("GET", "http://a.example/", None, 421),
        ("GET", "https://a.example/", Some(("host", "b.example")), 400),
        ("GET", "https://a.example/", Some(("x", "spaced ")), 400),
        ("HEAD", "https://a.example/", Some(("x", "\tspaced")), 400),
        ("CONNECT", "a.example:443", None, 501),
        ("GET", &long, None, 414),
    ] {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some((name, value)) = field {
            request = request.header(name, value);
        }
        let (response, _) = client.send_request(request.body(()).unwrap(), true).unwrap();
        let next_response = ask(&mut client, "GET", "/next");
        let exchange = next(&mut connection).await;
        exchange.responder.respond(head(200, &[]), "fine".into()).await.unwrap();
        let (refusal, _) = whole(response).await.unwrap();
        assert_eq!(refusal.status(), status, "{method} {uri}");
        let cause = refusal.headers()["proxy-status"].to_str().unwrap();
        assert!(cause.starts_with("farhop; error=http_request_error"), "{cause}");
        assert_eq!(refusal.body().is_empty(), method == "HEAD");
        assert_eq!(whole(next_response).await.unwrap().0.body(), "fine");
    }
}

#[tokio::test(start_paused = true)]
async fn heads_beyond_their_limits_are_refused() {
    let (mut client, mut connection) = pair().await;
    let names: Vec<_> = (0..300).map(|n| format!("x-{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let large = "x".repeat(70_000);
    for fields in [&many[..], &[("x", large.as_str())]] {
        let (response, _) = send(&mut client, "GET", "/", fields, true);
        let next_response = ask(&mut client, "GET", "/next");
        let exchange = next(&mut connection).await;
        exchange.responder.respond(head(200, &[]), "fine".into()).await.unwrap();
        assert_eq!(response.await.unwrap().status(), 431);
        assert_eq!(whole(next_response).await.unwrap().0.body(), "fine");
    }
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_allowed_wait_for_one_to_end() {
    let (mut client, mut connection) = pair_with(Settings { streams: 1, ..Settings::default() }).await;
    let first = ask(&mut client, "GET", "/1");
    let exchange = next(&mut connection).await;
    let mut client = client.ready().await.unwrap();
    let second = ask(&mut client, "GET", "/2");
    exchange.responder.respond(head(200, &[]), "one".into()).await.unwrap();
    drop(exchange.body);
    assert_eq!(whole(first).await.unwrap().0.body(), "one");
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(200, &[]), "two".into()).await.unwrap();
    assert_eq!(whole(second).await.unwrap().0.body(), "two");
}
