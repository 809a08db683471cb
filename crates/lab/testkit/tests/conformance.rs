//! The judge of conformance has to find out a proxy that passes everything as it comes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::net::SocketAddr;

use farhop_testkit::conformance::run;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Connects each client with the first address that it names, and looks at nothing else.
async fn heedless_proxy() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut first = Vec::new();
                while !first.ends_with(b"\n") {
                    first.push(client.read_u8().await.unwrap());
                }
                let text = String::from_utf8_lossy(&first).into_owned();
                let host = text.split("http://").nth(1).unwrap().split('/').next().unwrap();
                let mut origin = TcpStream::connect(host).await.unwrap();
                origin.write_all(&first).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut origin).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_proxy_that_looks_at_nothing_is_found_out() {
    let proxy = heedless_proxy().await;
    for (case, finding) in [
        ("A plain GET", "no origin-form"),
        ("A plain GET", "Via []"),
        ("Content-Length before Transfer-Encoding", "forwarded with no reading"),
        ("Host other than the target", "Host ["),
        ("Credentials for the proxy", "proxy-authorization went along"),
        ("A body that ends before its length", "instead of an answer"),
        ("Responses: heads: A space before a colon", "without a reading"),
        ("Responses: heads: Fields of the connection", "keep-alive came along"),
        ("Responses: where the body ends: Content-Length twice, different", "without a reading"),
        ("A second response behind the first", "after: "),
    ] {
        let verdicts = run(proxy, case).await;
        assert_eq!(verdicts.len(), 1, "{case}");
        let verdict = &verdicts[0];
        assert!(!verdict.pass && verdict.seen.contains(finding), "{case}: {finding} not in {}", verdict.seen);
    }
}
