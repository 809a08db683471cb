//! What origins do that is no file: WebSocket echo, server-sent events, long polls.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::net::{Ipv4Addr, SocketAddr};

use farhop_workload::origins::live::{ECHO, EVENTS, POLL, clock};
use farhop_workload::origins::{OriginSpec, OriginsSpec, serve};
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

async fn origin() -> (tempfile::TempDir, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let origin = OriginSpec::new("live.test", Ipv4Addr::LOCALHOST, folder.path());
    let ready = serve(&OriginsSpec::on_free_ports(vec![origin], folder.path())).await.unwrap();
    (folder, ready.origins[0].http)
}

async fn get(origin: SocketAddr, path: &str) -> http::Response<hyper::body::Incoming> {
    let stream = TcpStream::connect(origin).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(path).header("host", "live.test");
    sender.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn every_message_of_a_websocket_comes_back_and_a_close_is_answered() {
    let (_folder, origin) = origin().await;
    let stream = TcpStream::connect(origin).await.unwrap();
    let url = format!("ws://live.test{ECHO}");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    for message in [Message::text("grüß Gott"), Message::binary(vec![7; 70_000]), Message::text("")] {
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket.close(None).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_close());
}

#[tokio::test]
async fn what_asks_for_no_websocket_is_told_that_there_is_one() {
    let (_folder, origin) = origin().await;
    assert_eq!(get(origin, ECHO).await.status(), 426);
    assert_eq!(get(origin, "/.lab/other").await.status(), 404);
}

#[tokio::test]
async fn events_come_one_by_one_each_with_the_time_it_was_written() {
    let (_folder, origin) = origin().await;
    let before = clock();
    let answer = get(origin, &format!("{EVENTS}?count=5&every=20")).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let times: Vec<u64> = text.lines().filter_map(|line| line.strip_prefix("data: ")?.parse().ok()).collect();
    assert_eq!(times.len(), 5, "{text}");
    assert!(times[0] >= before && times.is_sorted(), "{text}");
    assert!(times[4] - times[0] >= 80_000, "four pauses of 20 ms: {text}");
}

#[tokio::test]
async fn a_long_poll_is_answered_when_its_time_has_come() {
    let (_folder, origin) = origin().await;
    let before = clock();
    let text = get(origin, &format!("{POLL}?after=50")).await.into_body().collect().await.unwrap().to_bytes();
    let told: u64 = String::from_utf8(text.to_vec()).unwrap().trim().parse().unwrap();
    assert!(told >= before + 50_000);
}
