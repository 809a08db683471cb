//! The origins themselves behave as their names say: a test that leans on them must not be fooled.

use farhop_testkit::{File, HostileOrigin, Manners, Site, Step, pattern};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends `request` and reads what comes until the other side ends or `most` bytes are there.
async fn ask(address: std::net::SocketAddr, request: &str, most: usize) -> (Vec<u8>, std::io::Result<()>) {
    let mut stream = TcpStream::connect(address).await.expect("the origin listens");
    stream.write_all(request.as_bytes()).await.expect("the origin reads");
    let mut answer = Vec::new();
    let mut piece = [0; 65536];
    while answer.len() < most {
        match stream.read(&mut piece).await {
            Ok(0) => return (answer, Ok(())),
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(error) => return (answer, Err(error)),
        }
    }
    (answer, Ok(()))
}

fn text(answer: &(Vec<u8>, std::io::Result<()>)) -> String {
    String::from_utf8_lossy(&answer.0).into_owned()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_refusing_origin_refuses() {
    let origin = HostileOrigin::with(Manners::Refuses).await;
    let error = TcpStream::connect(origin.address()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_reset_is_a_reset_and_a_close_is_a_close() {
    let origin = HostileOrigin::with(Manners::ResetsInBody).await;
    let answer = ask(origin.address(), GET, usize::MAX).await;
    assert_eq!(answer.1.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let origin = HostileOrigin::with(Manners::ClosesWithoutAnswer).await;
    let mut stream = TcpStream::connect(origin.address()).await.unwrap();
    // More than a head: what is left unread must not turn the close into a reset.
    stream.write_all(format!("{GET}and a body that nobody reads").as_bytes()).await.unwrap();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap(), 0);
    drop(stream);
    assert_eq!(origin.heads(), [GET]);
}

#[tokio::test]
async fn a_lying_origin_sends_half_of_what_it_announced() {
    let origin = HostileOrigin::with(Manners::ClosesInBody).await;
    let mut stream = TcpStream::connect(origin.address()).await.unwrap();
    stream.write_all(GET.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("Content-Length: 20") && answer.ends_with("\r\n\r\n0123456789"), "{answer}");
}

#[tokio::test]
async fn endless_origins_send_as_much_as_anyone_takes() {
    for manners in Manners::ALL.into_iter().filter(|it| format!("{it:?}").starts_with("Endless")) {
        let origin = HostileOrigin::with(manners).await;
        let (answer, outcome) = ask(origin.address(), GET, 1 << 20).await;
        assert!(answer.len() >= 1 << 20 && outcome.is_ok(), "{manners:?} stopped at {}", answer.len());
    }
}

#[tokio::test]
async fn scripts_follow_the_connections_and_the_last_one_stays() {
    let say = |text: &'static str| vec![Step::ReadHead, Step::Send(text.into()), Step::Close];
    let origin = HostileOrigin::playing(vec![say("one"), say("two")]).await;
    for expected in ["one", "two", "two"] {
        assert_eq!(text(&ask(origin.address(), GET, usize::MAX).await), expected);
    }
    assert_eq!(origin.connections(), 3);
}

async fn get(origin: &farhop_testkit::SiteOrigin, path: &str, fields: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n");
    text(&ask(origin.address(), &request, usize::MAX).await)
}

#[tokio::test]
async fn conditional_requests_are_answered_304_while_the_file_is_the_same() {
    let origin = Site::new()
        .file("/a", File::new("text/plain", "hello").field("cache-control", "no-cache"))
        .serve()
        .await;
    let first = get(&origin, "/a", "").await;
    assert!(first.starts_with("HTTP/1.1 200") && first.ends_with("\r\n\r\nhello"), "{first}");
    assert!(first.contains("cache-control: no-cache"));
    let etag = first.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let again = get(&origin, "/a", &format!("If-None-Match: {etag}\r\n")).await;
    assert!(again.starts_with("HTTP/1.1 304") && again.ends_with("\r\n\r\n"), "{again}");
    origin.put("/a", File::new("text/plain", "changed"));
    let changed = get(&origin, "/a", &format!("If-None-Match: {etag}\r\n")).await;
    assert!(changed.starts_with("HTTP/1.1 200") && changed.ends_with("changed"));
    assert_eq!(origin.times("/a"), 3);
    assert_eq!(origin.asked()[1].fields["if-none-match"], etag);
}

#[tokio::test]
async fn ranges_are_parts_of_the_whole() {
    let origin = Site::new().file("/a", File::new("text/plain", "0123456789")).serve().await;
    for (range, expected) in [("2-4", "234"), ("7-", "789"), ("-2", "89"), ("8-99", "89")] {
        let answer = get(&origin, "/a", &format!("Range: bytes={range}\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 206") && answer.ends_with(&format!("\r\n\r\n{expected}")),
            "{answer}"
        );
    }
    assert!(get(&origin, "/a", "Range: bytes=10-\r\n").await.starts_with("HTTP/1.1 416"));
    assert!(get(&origin, "/a", "Range: bytes=4-2\r\n").await.starts_with("HTTP/1.1 200"));
    let stale = get(&origin, "/a", "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n").await;
    assert!(stale.starts_with("HTTP/1.1 200") && stale.ends_with("0123456789"), "{stale}");
}

#[tokio::test]
async fn large_files_come_whole_and_right() {
    let origin = Site::new().file("/big", File::pattern(5, 3_000_001)).serve().await;
    let (answer, _) =
        ask(origin.address(), "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", usize::MAX).await;
    let body = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let mut checker = pattern::Checker::new(5);
    assert_eq!(checker.check(&answer[body..]), Ok(()));
    assert_eq!(checker.checked(), 3_000_001);
}

#[tokio::test]
async fn uploads_are_acknowledged_with_their_hash() {
    let origin = Site::new().serve().await;
    let request = "POST /up HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let answer = text(&ask(origin.address(), request, usize::MAX).await);
    assert!(answer.ends_with(&format!("5 bytes, {}", blake3::hash(b"hello").to_hex())), "{answer}");
}
