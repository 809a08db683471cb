//! WebSockets through the remote: the opening handshake crosses as a request, then bytes go both ways as they come.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_transport::hop::Arrival;
use http::StatusCode;
use support::{Asked, PATIENCE, World, answer, head, read_until, world};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn ask(world: &World) -> TcpStream {
    let mut client = world.client().await;
    let request = "GET http://site.test/socket HTTP/1.1\r\nhost: site.test\r\nupgrade: websocket\r\n\
                   connection: keep-alive, Upgrade\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    client
}

fn switching() -> farhop_htotp::ResponseHead {
    let fields = &[("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")];
    farhop_htotp::ResponseHead { status: StatusCode::SWITCHING_PROTOCOLS, ..head(fields) }
}

#[tokio::test]
async fn words_cross_one_by_one_both_ways_until_both_have_ended() {
    let world = world().await;
    let mut client = ask(&world).await;
    let Asked { head, mut sender, mut receiver, .. } = world.asked().await;
    assert_eq!(head.fields["upgrade"], "websocket");
    assert_eq!(head.fields["sec-websocket-key"], "dGhlIHNhbXBsZSBub25jZQ==");
    assert!(!head.fields.contains_key("connection"));
    sender.answer(&switching(), Coding::Identity, None);
    let mut got = String::new();
    read_until(&mut client, &mut got, "\r\n\r\n").await;
    let lower = got.to_lowercase();
    assert!(lower.starts_with("http/1.1 101 "), "{got}");
    for field in ["upgrade: websocket", "connection: upgrade", "sec-websocket-accept: s3pp"] {
        assert!(lower.contains(field), "{field} in {got}");
    }
    // Each word is answered by the next: none can wait for more to come.
    for word in 0..100u8 {
        client.write_all(&[word; 3]).await.unwrap();
        let up = timeout(PATIENCE, receiver.next()).await.unwrap();
        assert_eq!(up, Arrival::Body(Bytes::from(vec![word; 3])));
        sender.write(Bytes::from(vec![word; 5])).await.unwrap();
        let mut down = [0; 5];
        timeout(PATIENCE, client.read_exact(&mut down)).await.unwrap().unwrap();
        assert_eq!(down, [word; 5]);
    }
    client.shutdown().await.unwrap();
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Ended);
    sender.write("bye".into()).await.unwrap();
    sender.finish(None);
    assert_eq!(answer(client).await, "bye");
    let counters = world.bus.counters();
    assert_eq!(counters.crossed(farhop_events::Crossing::Upgrade), 1);
    assert_eq!((counters.websockets(), counters.websockets_within_http2()), (1, 0));
}

#[tokio::test]
async fn an_origin_that_refuses_is_answered_like_any_other() {
    let world = world().await;
    let mut client = ask(&world).await;
    let Asked { mut sender, mut receiver, .. } = world.asked().await;
    let no = farhop_htotp::ResponseHead {
        status: StatusCode::FORBIDDEN,
        ..head(&[("content-type", "text/plain"), ("content-length", "2")])
    };
    sender.answer(&no, Coding::Identity, None);
    sender.write("no".into()).await.unwrap();
    sender.finish(None);
    let mut got = String::new();
    read_until(&mut client, &mut got, "\r\n\r\nno").await;
    assert!(got.starts_with("HTTP/1.1 403 "), "{got}");
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Ended);
    // The connection goes on as HTTP.
    client.write_all(b"GET http://site.test/next HTTP/1.1\r\nhost: site.test\r\n\r\n").await.unwrap();
    assert_eq!(world.asked().await.head.path, "/next");
}

#[tokio::test]
async fn what_breaks_behind_it_breaks_the_client() {
    let mut world = world().await;
    for loses_carrier in [false, true] {
        let mut client = ask(&world).await;
        let Asked { sender, receiver, .. } = world.asked().await;
        sender.answer(&switching(), Coding::Identity, None);
        let mut got = String::new();
        read_until(&mut client, &mut got, "\r\n\r\n").await;
        if loses_carrier {
            world.lose_carrier().await;
            world.forget().await;
        }
        drop((sender, receiver));
        assert!(timeout(PATIENCE, client.read(&mut [0])).await.unwrap().is_err(), "an end would be a lie");
    }
}
