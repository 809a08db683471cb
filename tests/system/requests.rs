//! HTTP through both ends: what a client may expect of any proxy, with the bytes checked.

use std::io::Write as _;

use bytes::Bytes;
use farhop_testkit::pattern::{Checker, bytes_at};
use farhop_testkit::{File, HostileOrigin, Site, Step};
use http::{Method, header};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Frame;
use tokio::net::TcpStream;

use crate::support::{Local, get, raw, request, send};

fn empty() -> http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible> {
    Empty::new().boxed()
}

/// An origin that answers its first connection with this text.
async fn saying(text: &'static str) -> HostileOrigin {
    HostileOrigin::playing(vec![vec![Step::ReadHead, Step::Send(text.into()), Step::Close]]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn head_has_the_fields_of_get_and_no_body() {
    let local = Local::allowed(&[]).await;
    let site = Site::new().file("/f", File::pattern(1, 70_000)).serve().await;
    let head = send(local.proxy, request(Method::HEAD, &site.url("/f")).body(empty()).unwrap()).await;
    assert_eq!((head.status, head.bytes.len(), head.field("content-length")), (200, 0, "70000"));
    let whole = get(local.proxy, &site.url("/f")).await;
    assert!(whole.bytes == bytes_at(1, 0, 70_000));
    assert_eq!(head.field("etag"), whole.field("etag"));
    assert!(whole.field("via").starts_with("1.1 farhop ("), "{whole:?}");
}

/// A text of 20 KB that no coding brings below 8 KB, as origins serve it.
fn gzipped_text() -> (String, File) {
    let text: String = bytes_at(3, 0, 10_000).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
    gzip.write_all(text.as_bytes()).unwrap();
    let file = File::new("text/html", gzip.finish().unwrap()).field("content-encoding", "gzip");
    (text, file.field("cache-control", "no-store"))
}

fn as_browsers(method: Method, url: &str) -> http::Request<crate::support::Body> {
    request(method, url).header(header::ACCEPT_ENCODING, "gzip, deflate").body(empty()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn head_of_a_text_that_crosses_in_another_coding_is_the_head_of_its_get() {
    let local = Local::allowed(&[]).await;
    let (text, file) = gzipped_text();
    let site = Site::new().file("/", file).serve().await;
    let whole = send(local.proxy, as_browsers(Method::GET, &site.url("/"))).await;
    assert_eq!((whole.text(), whole.field("content-encoding")), (text, ""));
    let head = send(local.proxy, as_browsers(Method::HEAD, &site.url("/"))).await;
    let comparable = |answer: &crate::support::Answer| {
        let mut fields = answer.fields.clone();
        // Of the exchange, not of the page; a length may be left out (RFC 9110 §9.3.2).
        for name in [header::DATE, header::VIA, header::CONTENT_LENGTH] {
            fields.remove(name);
        }
        fields
    };
    assert_eq!(comparable(&head), comparable(&whole));
    assert!(["", "20000"].contains(&head.field("content-length")), "{head:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_waits_for_its_end_only_where_the_link_carries_it_in_a_moment() {
    // In one go its length is known beforehand; streamed it is not.
    for (link, length) in [("geo-20m", "20000"), ("geo-256k", "")] {
        let local = Local::allowed(&["--link", link]).await;
        let (text, file) = gzipped_text();
        let site = Site::new().file("/", file).serve().await;
        let answer = send(local.proxy, as_browsers(Method::GET, &site.url("/"))).await;
        assert_eq!((answer.text(), answer.field("content-length")), (text, length), "{link}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_give_their_part_whether_or_not_the_whole_is_held() {
    let local = Local::allowed(&[]).await;
    let held = File::pattern(2, 50_000).field("cache-control", "max-age=600");
    let site = Site::new().file("/held", held).file("/far", File::pattern(2, 9_000_000)).serve().await;
    get(local.proxy, &site.url("/held")).await;
    for path in ["/held", "/far"] {
        let ask = |range: &'static str| {
            let request = request(Method::GET, &site.url(path)).header(header::RANGE, range).body(empty());
            send(local.proxy, request.unwrap())
        };
        let part = ask("bytes=1000-2999").await;
        assert_eq!(part.status, 206, "{path}");
        assert!(part.field("content-range").starts_with("bytes 1000-2999/"), "{path}: {part:?}");
        assert!(part.bytes == bytes_at(2, 1000, 2000), "{path}");
        let beyond = ask("bytes=99999999-").await;
        assert_eq!(beyond.status, 416, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn early_hints_arrive_before_the_answer() {
    let local = Local::allowed(&[]).await;
    let origin = saying(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload; as=style\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    )
    .await;
    let mut stream = TcpStream::connect(local.proxy).await.unwrap();
    let text = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.url("/"), origin.address());
    let said = raw(&mut stream, &text, |said| said.ends_with("hello")).await;
    let (hints, answer) = said.split_once("HTTP/1.1 200 ").expect(&said);
    assert!(hints.starts_with("HTTP/1.1 103 ") && hints.contains("rel=preload"), "{said}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_expects_continue_is_told_to_go_on_or_gets_the_refusal() {
    let local = Local::allowed(&[]).await;
    let site = Site::new().serve().await;
    let head = |url: &str, host| {
        format!("POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    };
    let mut stream = TcpStream::connect(local.proxy).await.unwrap();
    let said =
        raw(&mut stream, &head(&site.url("/up"), site.address()), |said| said.contains("\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 100 "), "{said}");
    let receipt = format!("5 bytes, {}", blake3::hash(b"hello").to_hex());
    let said = raw(&mut stream, "hello", |said| said.ends_with(&receipt)).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");

    let refusing =
        saying("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n").await;
    let mut stream = TcpStream::connect(local.proxy).await.unwrap();
    let text = head(&refusing.url("/up"), refusing.address());
    let said = raw(&mut stream, &text, |said| said.ends_with("no\n")).await;
    assert!(said.contains("HTTP/1.1 413 "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_reach_a_client_that_takes_them() {
    let local = Local::allowed(&[]).await;
    let origin = saying(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n",
    )
    .await;
    let asked = request(Method::GET, &origin.url("/")).header("te", "trailers").header("connection", "te");
    let answer = send(local.proxy, asked.body(empty()).unwrap()).await;
    assert_eq!((answer.text().as_str(), answer.whole), ("hello", true));
    assert_eq!(answer.trailers.expect("trailers came").get("x-sum").unwrap(), "42");
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_their_order() {
    let local = Local::allowed(&[]).await;
    let slow = std::time::Duration::from_millis(300);
    let site = Site::new()
        .file("/1", File::new("text/plain", "first.").delay(slow))
        .file("/2", File::new("text/plain", "second."))
        .file("/3", File::new("text/plain", "third."))
        .serve()
        .await;
    let ask = |path: &str, close: &str| {
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n{close}\r\n", site.url(path), site.address())
    };
    let text = [ask("/1", ""), ask("/2", ""), ask("/3", "Connection: close\r\n")].concat();
    let mut stream = TcpStream::connect(local.proxy).await.unwrap();
    let said = raw(&mut stream, &text, |_| false).await;
    assert_eq!(said.matches("HTTP/1.1 200 ").count(), 3, "{said}");
    let at = |word: &str| said.find(word).unwrap_or_else(|| panic!("no {word} in {said}"));
    assert!(at("first.") < at("second.") && at("second.") < at("third."), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_streamed_and_arrive_as_they_were_sent() {
    const SIZE: u64 = 24 << 20;
    const PIECE: u64 = 64 << 10;
    let local = Local::allowed(&[]).await;
    let site = Site::new().serve().await;
    let mut hasher = blake3::Hasher::new();
    for at in (0..SIZE).step_by(PIECE as usize) {
        hasher.update(&bytes_at(4, at, PIECE as usize));
    }
    let receipt = format!("{SIZE} bytes, {}", hasher.finalize().to_hex());
    for sized in [true, false] {
        let pieces =
            (0..SIZE).step_by(PIECE as usize).map(|at| Ok(Frame::data(bytes_at(4, at, PIECE as usize))));
        let body = BodyExt::boxed(StreamBody::new(futures_util::stream::iter(pieces)));
        let asked = request(Method::PUT, &site.url("/up"));
        let asked = if sized { asked.header(header::CONTENT_LENGTH, SIZE) } else { asked };
        let answer = send(local.proxy, asked.body(body).unwrap()).await;
        assert_eq!((answer.status, answer.text()), (200, receipt.clone()), "with a length: {sized}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_crosses_unchanged() {
    const SIZE: u64 = 48 << 20;
    let local = Local::allowed(&[]).await;
    let site = Site::new().file("/big", File::pattern(5, SIZE)).serve().await;
    let asked = request(Method::GET, &site.url("/big")).body(empty()).unwrap();
    let mut body = crate::support::open(local.proxy, asked).await.into_body();
    let mut checker = Checker::new(5);
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap_or_default();
        checker.check(&data).expect("every byte is the origin's");
    }
    assert_eq!(checker.checked(), SIZE);
}
