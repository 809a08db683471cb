//! RFC 9111 through both ends: what an origin allows decides when it is asked, and what clients get meanwhile.

use farhop_testkit::behaviours::{Origins, SETTING};
use farhop_testkit::pattern::bytes_at;
use farhop_testkit::{File, HostileOrigin, Site, Step};
use http::{Method, header};
use http_body_util::{BodyExt as _, Empty};

use crate::support::{Answer, Local, get, request, send, until};

/// An origin that gives these answers, one to a connection, the last to all that follow. Each is a status line's rest and
/// fields, and a body.
async fn giving(answers: &[(&str, &str)]) -> HostileOrigin {
    let script = |(head, body): &(&str, &str)| {
        let length = if head.starts_with("304") {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let text = format!("HTTP/1.1 {head}\r\n{length}Connection: close\r\n\r\n{body}");
        vec![Step::ReadHead, Step::Send(text.into()), Step::Close]
    };
    HostileOrigin::playing(answers.iter().map(script).collect()).await
}

async fn get_with(local: &Local, url: &str, name: header::HeaderName, value: &str) -> Answer {
    let request = request(Method::GET, url).header(name, value);
    send(local.proxy, request.body(Empty::new().boxed()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_asks_for_the_client_and_for_what_is_held() {
    let local = Local::allowed(&[]).await;
    let origin = giving(&[
        ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"held\"", "what is held"),
        ("304 Not Modified\r\nETag: \"held\"", ""),
        ("304 Not Modified\r\nETag: \"own\"", ""),
    ])
    .await;
    let url = origin.url("/page");
    assert_eq!(get(local.proxy, &url).await.text(), "what is held");
    // Its last byte is here before it can be found.
    let held =
        async || get_with(&local, &url, header::CACHE_CONTROL, "only-if-cached, max-stale").await.status;
    until("it is held", async || (held().await == 200).then_some(())).await;
    let ask = || get_with(&local, &url, header::IF_NONE_MATCH, "\"own\"");
    let given = ask().await;
    assert_eq!((given.status, given.text()), (200, "what is held".into()));
    assert_eq!(given.field("cache-status"), "farhop-remote; fwd=stale; fwd-status=304");
    assert_eq!(ask().await.status, 304);
    let asked = origin.heads()[1].to_ascii_lowercase();
    assert!(asked.contains("if-none-match: \"own\", \"held\"\r\n"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_fails_is_stood_in_for_as_it_has_allowed() {
    let local = Local::allowed(&[]).await;
    let origin = giving(&[
        ("200 OK\r\nCache-Control: max-age=0, stale-if-error=600", "while it worked"),
        ("503 Service Unavailable\r\nCache-Control: max-age=600", "broken"),
    ])
    .await;
    let url = origin.url("/page");
    get(local.proxy, &url).await;
    for _ in 0..2 {
        let given = get(local.proxy, &url).await;
        assert_eq!((given.status, given.text()), (200, "while it worked".into()));
        assert_eq!(given.field("cache-status"), "farhop-remote; fwd=stale; fwd-status=503");
    }
    drop(origin);
    assert_eq!(get(local.proxy, &url).await.text(), "while it worked", "nor does it listen any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_stale_is_given_at_once_and_renewed_behind() {
    let local = Local::allowed(&[]).await;
    let origin = giving(&[
        ("200 OK\r\nCache-Control: max-age=0, stale-while-revalidate=600", "old"),
        ("200 OK\r\nCache-Control: max-age=600", "new"),
    ])
    .await;
    let url = origin.url("/page");
    get(local.proxy, &url).await;
    assert_eq!(get(local.proxy, &url).await.text(), "old");
    until("it is renewed", async || (get(local.proxy, &url).await.text() == "new").then_some(())).await;
    assert_eq!(origin.heads().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_need_validation_are_left_out_of_what_is_given_without() {
    let local = Local::allowed(&[]).await;
    let said = "200 OK\r\nCache-Control: max-age=600, no-cache=\"X-Once\"\r\nX-Once: 1\r\nX-Ever: 1";
    let origin = giving(&[(said, "body")]).await;
    let first = get(local.proxy, &origin.url("/page")).await;
    assert_eq!((first.field("x-once"), first.field("x-ever")), ("1", "1"));
    let second = get(local.proxy, &origin.url("/page")).await;
    assert_eq!((second.field("x-once"), second.field("x-ever")), ("", "1"));
    assert_eq!(origin.heads().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_become_the_whole() {
    let local = Local::allowed(&[]).await;
    let file = File::pattern(7, 100_000).field("cache-control", "max-age=600");
    let site = Site::new().file("/f", file).serve().await;
    for range in ["bytes=60000-99999", "bytes=0-29999", "bytes=30000-59999"] {
        let part = get_with(&local, &site.url("/f"), header::RANGE, range).await;
        assert_eq!((part.status, part.whole), (206, true), "{range}");
    }
    // Parts are put together when their last byte has been passed on.
    until("all parts are held", async || {
        (local.counters().await["stored"].as_u64() == Some(3)).then_some(())
    })
    .await;
    let whole = get(local.proxy, &site.url("/f")).await;
    assert_eq!((whole.status, whole.whole), (200, true));
    assert!(whole.bytes == bytes_at(7, 0, 100_000));
    assert_eq!(local.counters().await["requests_crossed"], 3);
}

/// The behaviours of the table that a client sees. `./run measure 5` does the same with a satellite in between.
async fn behaves(secure: bool) {
    let origins = Origins::start(secure).await;
    let folder = tempfile::tempdir().unwrap();
    let (root, own) = (folder.path().join("root.pem"), folder.path().join("own.pem"));
    std::fs::write(&root, origins.root()).unwrap();
    let (trust, own_name) = (format!("ground.origin.roots={}", root.display()), own.display().to_string());
    let mut options = vec!["--set", "remote.connect_ports=1-65535", "--set", SETTING];
    if secure {
        let ports = "remote.interception.ports=1-65535";
        options.extend(["--intercept", "--ca-out", &own_name, "--set", ports, "--set", &trust]);
    }
    let mut local = Local::allowed(&options).await;
    let authority = if secure { std::fs::read_to_string(&own).unwrap() } else { String::new() };
    let verdicts = origins.run(local.proxy, &authority).await;
    local.program.assert_runs();
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| verdict.wrong.is_some()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(verdicts.len() >= 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviours_hold_in_the_clear() {
    behaves(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviours_hold_inside_tls_that_is_looked_into() {
    behaves(true).await;
}
