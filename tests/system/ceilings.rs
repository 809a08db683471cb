//! What can wait is never sent faster than the settings say, and what goes beside it has the rest of the link.

use farhop_testkit::pattern::bytes_at;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{InProcess, raw};

const SIZE: usize = 400_000;

/// Sends so many bytes to whoever says something.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut said = [0; 64];
                if stream.read(&mut said).await.is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(&bytes_at(1, 0, SIZE)).await;
                }
            });
        }
    });
    at
}

/// A tunnel whose client begins with these bytes: by them it is known at the remote.
async fn tunnel(ends: &InProcess, target: &str, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(ends.proxy).await.unwrap();
    // In one go: what comes later finds the tunnel open.
    let first = String::from_utf8(first.to_vec()).unwrap();
    let asked = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n{first}");
    let said = raw(&mut stream, &asked, |said| said.contains("\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_a_ceiling_keeps_to_it_while_others_have_the_link() {
    let sets = [
        "remote.connect_ports=1-65535",
        "ground.ceiling.0.of=peer-to-peer",
        "ground.ceiling.0.rate=8 kbit/s",
        "ground.ceiling.1.of=bulk",
        "ground.ceiling.1.hours=00:00-00:01",
    ];
    let ends = InProcess::with("geo-hylas2", &sets).await;
    let at = server().await;
    let mut peers = tunnel(&ends, &at, b"\x13BitTorrent protocol").await;
    let mut had = 0;
    let mut buffer = vec![0; 16 * 1024];
    // It has begun.
    had += peers.read(&mut buffer).await.unwrap();
    let mut other = tunnel(&ends, &at, b"hello").await;
    let mut got = vec![0; SIZE];
    let whole = other.read_exact(&mut got);
    tokio::pin!(whole);
    loop {
        tokio::select! {
            done = &mut whole => {
                done.unwrap();
                break;
            }
            count = peers.read(&mut buffer) => had += count.unwrap(),
        }
    }
    assert!(got == bytes_at(1, 0, SIZE));
    // A kilobyte a second, and what is saved up meanwhile is little however long this took to be polled.
    assert!(had > 0 && had < SIZE / 2, "{had}");
}
