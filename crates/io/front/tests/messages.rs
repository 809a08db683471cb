//! Messages over UDP and TCP: each has its answer, none waits for another, and what is too much is turned away.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::net::SocketAddr;
use std::time::Duration;

use farhop_front::{Messages, Over};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// Says what it was told and how; "slow" never has an answer, "nothing" none.
async fn served() -> SocketAddr {
    // The port may be somebody's over TCP.
    let messages = loop {
        if let Ok(messages) = Messages::bind(SocketAddr::from(([127, 0, 0, 1], 0))) {
            break messages;
        }
    };
    let at = messages.local_addr().unwrap();
    tokio::spawn(messages.serve(|_, message, over| async move {
        match &message[..] {
            b"slow" => std::future::pending().await,
            b"nothing" => None,
            _ => Some([if over == Over::Datagrams { &b"u"[..] } else { b"t" }, &message].concat()),
        }
    }));
    at
}

async fn say(stream: &mut TcpStream, message: &[u8]) {
    stream.write_u16(message.len() as u16).await.unwrap();
    stream.write_all(message).await.unwrap();
}

async fn hear(stream: &mut TcpStream) -> Vec<u8> {
    let hear = async {
        let mut message = vec![0; usize::from(stream.read_u16().await.unwrap())];
        stream.read_exact(&mut message).await.unwrap();
        message
    };
    timeout(PATIENCE, hear).await.unwrap()
}

#[tokio::test]
async fn each_message_has_its_answer_and_waits_for_no_other() {
    let at = served().await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for message in [&b"slow"[..], b"nothing", b"one"] {
        socket.send_to(message, at).await.unwrap();
    }
    let mut buffer = [0; 64];
    let (length, from) = timeout(PATIENCE, socket.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!((&buffer[..length], from), (&b"uone"[..], at));

    let mut stream = TcpStream::connect(at).await.unwrap();
    for message in [&b"slow"[..], b"nothing", b"two"] {
        say(&mut stream, message).await;
    }
    assert_eq!(hear(&mut stream).await, b"ttwo");
    let long = vec![7; 65_534];
    say(&mut stream, &long).await;
    assert_eq!(hear(&mut stream).await.len(), 65_535);
}

#[tokio::test]
async fn one_client_has_no_more_than_its_share_of_connections() {
    let at = served().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        say(&mut stream, b"here").await;
        assert_eq!(hear(&mut stream).await, b"there");
        streams.push(stream);
    }
    let mut one_more = TcpStream::connect(at).await.unwrap();
    assert_eq!(timeout(PATIENCE, one_more.read(&mut [0])).await.unwrap().unwrap_or(0), 0, "closed");
}
