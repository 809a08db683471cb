//! CONNECT through both ends: bytes both ways, half-closed connections, and why there is no tunnel.

use farhop_testkit::pattern::bytes_at;
use farhop_testkit::urgent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::{Local, raw};

const SIZE: usize = 3 << 20;

async fn connect(local: &Local, target: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(local.proxy).await.unwrap();
    let text = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    let said = raw(&mut stream, &text, |said| said.contains("\r\n\r\n")).await;
    (stream, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_said_everything_still_hears_everything() {
    let local = Local::allowed(&["--set", "remote.connect_ports=1-65535"]).await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        let mut heard = Vec::new();
        // Answers only once the other side has ended its half.
        stream.read_to_end(&mut heard).await.unwrap();
        stream.write_all(&bytes_at(2, 0, SIZE)).await.unwrap();
        heard
    });
    let (mut stream, said) = connect(&local, &target).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    stream.write_all(&bytes_at(1, 0, SIZE)).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).await.unwrap();
    assert!(serving.await.unwrap() == bytes_at(1, 0, SIZE), "what went up is not what was sent");
    assert!(got == bytes_at(2, 0, SIZE), "what came down is not what was sent: {} bytes", got.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_said_everything_still_hears_everything() {
    let local = Local::allowed(&["--set", "remote.connect_ports=1-65535"]).await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        stream.write_all(b"that is all").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        heard
    });
    let (mut stream, mut said) = connect(&local, &target).await;
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.ends_with("that is all"), "{said}");
    stream.write_all(&bytes_at(3, 0, SIZE)).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(serving.await.unwrap() == bytes_at(3, 0, SIZE), "what went up is not what was sent");
}

/// RFC 959 §4.1.3 and RFC 854: what interrupts a transfer is marked as urgent, so that the other side passes over what waits before it.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_keeps_its_mark_and_so_does_its_answer() {
    let local = Local::allowed(&["--set", "remote.connect_ports=1-65535"]).await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().to_string();
    // Ground has said that it takes marks once one tunnel has been answered.
    for said in ["hello", "\r\n"] {
        let (near, _) = connect(&local, &target).await;
        let (mut far, _) = server.accept().await.unwrap();
        [&near, &far].into_iter().for_each(|stream| farhop_netdev::keep_urgent_in_place(stream).unwrap());
        far.write_all(said.as_bytes()).await.unwrap();
        let (got, _) = urgent::hear(&near, said.len()).await;
        assert_eq!(got, said.as_bytes());
        if said == "hello" {
            continue;
        }
        let mut both = [near, far];
        for (from, to) in [(0, 1), (1, 0)] {
            let [from, to] = both.get_disjoint_mut([from, to]).unwrap();
            // Interrupt and data mark.
            from.write_all(b"\xff\xf4\xff").await.unwrap();
            urgent::say(from, 0xf2).await;
            from.write_all(b"ABOR\r\n").await.unwrap();
            let heard = urgent::hear(to, 10).await;
            assert_eq!(heard, (b"\xff\xf4\xff\xf2ABOR\r\n".to_vec(), vec![3]));
        }
    }
}

/// The first is cut off, since it was told 200 before anyone had connected; the second is told why.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_cannot_be_reached_resets_its_client_and_is_told_at_the_next_try() {
    let local = Local::allowed(&["--set", "remote.connect_ports=1-65535"]).await;
    let held = TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let target = held.local_addr().unwrap().to_string();
    let (mut stream, said) = connect(&local, &target).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let error = stream.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let (_, said) = connect(&local, &target).await;
    assert!(said.starts_with("HTTP/1.1 502 "), "{said}");
    assert!(said.contains("Proxy-Status: farhop-ground; error=connection_refused"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_that_policy_does_not_allow_are_refused_at_once() {
    let local = Local::allowed(&[]).await;
    let (_, said) = connect(&local, "127.0.0.1:25").await;
    assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
    assert!(said.contains("add it to 'connect_ports'"), "{said}");
    assert_eq!(local.counters().await["requests_crossed"], 0);
}
