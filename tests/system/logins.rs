//! Logins that count for a connection (NTLM; RFC 4559 §6): they work, are nobody else's, and end with the connection.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::{Local, PATIENCE};

/// As browsers ask for a page.
const BROWSER: &str = "user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36\r\n\
    accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nsec-fetch-site: none\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";

/// Less than ground keeps connections for that nobody uses.
const SOON: Duration = Duration::from_secs(30);
/// The key of RFC 6455 §1.3, and what answers it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Reads up to the end of a head; empty at the end of the connection.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

/// Serves one connection as IIS does: who has said the third message of a login in answer to the second is who asks from
/// then on. What it says may be kept for long, and `/away` leads to all else. It agrees to WebSockets of who is logged in, and
/// says on them what it hears.
async fn serve(mut stream: TcpStream) {
    let (mut greeted, mut person) = (false, None::<String>);
    loop {
        let asked = head(&mut stream).await;
        if asked.is_empty() {
            return;
        }
        let said = asked.lines().find_map(|line| line.strip_prefix("authorization: ntlm "));
        let challenge = match said {
            Some("one") => {
                (greeted, person) = (true, None);
                " two"
            }
            Some(third) if greeted => {
                person = third.strip_prefix("three-").map(str::to_owned);
                ""
            }
            _ => "",
        };
        if person.is_some() && asked.contains("\r\nupgrade: websocket\r\n") {
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                 sec-websocket-accept: {ACCEPT}\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let (mut reader, mut writer) = stream.split();
            // Until the client has gone, in whatever way.
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
            return;
        }
        let answer = match &person {
            Some(_) if asked.starts_with("get /away ") => {
                "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            Some(person) => {
                let text = format!("hello {person}");
                format!(
                    "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                )
            }
            None => format!(
                "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: NTLM{challenge}\r\ncontent-length: 2\r\n\r\nno"
            ),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The origin, and how many connections to it are open.
async fn origin() -> (SocketAddr, watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (opened, open) = watch::channel(0);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let opened = opened.clone();
            opened.send_modify(|open| *open += 1);
            tokio::spawn(async move {
                serve(stream).await;
                opened.send_modify(|open| *open -= 1);
            });
        }
    });
    (address, open)
}

/// Asks on a connection that stays, and gives head and body.
async fn ask(client: &mut TcpStream, origin: SocketAddr, authorization: &str) -> (String, String) {
    let field = match authorization {
        "" => String::new(),
        _ => format!("authorization: NTLM {authorization}\r\n"),
    };
    ask_for(client, origin, "/", &field).await
}

async fn ask_for(client: &mut TcpStream, origin: SocketAddr, path: &str, fields: &str) -> (String, String) {
    let request = format!("GET http://{origin}{path} HTTP/1.1\r\nhost: {origin}\r\n{BROWSER}{fields}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let asked = async {
        let head = head(client).await;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        client.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    };
    timeout(PATIENCE, asked).await.expect("an answer comes")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_of_a_connection_works_and_passes_to_no_other() {
    let (local, (origin, mut open)) = (Local::allowed(&[]).await, origin().await);
    let connect = || async { TcpStream::connect(local.proxy).await.unwrap() };
    let (mut alice, mut bob, mut nobody) = (connect().await, connect().await, connect().await);

    let (refused, _) = ask(&mut alice, origin, "").await;
    assert!(refused.starts_with("http/1.1 401 "), "{refused}");
    assert!(refused.contains("\r\nproxy-support: session-based-authentication\r\n"), "{refused}");
    // Two people log in at the same time.
    for client in [&mut alice, &mut bob] {
        let (challenged, _) = ask(client, origin, "one").await;
        assert!(challenged.contains("www-authenticate: ntlm two\r\n"), "{challenged}");
    }
    assert_eq!(ask(&mut alice, origin, "three-alice").await.1, "hello alice");
    assert_eq!(ask(&mut bob, origin, "three-bob").await.1, "hello bob");
    for _ in 0..2 {
        assert_eq!(ask(&mut alice, origin, "").await.1, "hello alice");
        assert_eq!(ask(&mut bob, origin, "").await.1, "hello bob");
        // Neither by their connections nor by what was said on them.
        assert_eq!(ask(&mut nobody, origin, "").await.1, "no");
    }
    // Nor where a redirect leads somebody who is logged in.
    assert!(ask_for(&mut alice, origin, "/away", "").await.0.starts_with("http/1.1 302 "));
    assert_eq!(ask(&mut alice, origin, "").await.1, "hello alice");
    assert_eq!(ask(&mut nobody, origin, "").await.1, "no");
    let both = *open.borrow();
    drop((alice, bob));
    timeout(SOON, open.wait_for(|open| *open == both - 2))
        .await
        .expect("they end at the origin, too")
        .unwrap();
    assert_eq!(ask(&mut connect().await, origin, "").await.1, "no");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_logs_in_by_its_connection() {
    let (local, (origin, mut open)) = (Local::allowed(&[]).await, origin().await);
    let mut client = TcpStream::connect(local.proxy).await.unwrap();
    let upgrade = |authorization: &str| {
        format!(
            "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\
             authorization: NTLM {authorization}\r\n"
        )
    };
    let (challenged, _) = ask_for(&mut client, origin, "/", &upgrade("one")).await;
    assert!(challenged.contains("www-authenticate: ntlm two\r\n"), "{challenged}");
    let fields = upgrade("three-carol");
    let request = format!("GET http://{origin}/ HTTP/1.1\r\nhost: {origin}\r\n{BROWSER}{fields}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let switched = timeout(PATIENCE, head(&mut client)).await.expect("an answer comes");
    assert!(switched.starts_with("http/1.1 101 "), "{switched}");
    client.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    timeout(PATIENCE, client.read_exact(&mut heard)).await.expect("it is heard").unwrap();
    assert_eq!(&heard, b"hello");
    drop(client);
    timeout(SOON, open.wait_for(|open| *open == 0)).await.expect("it ends at the origin, too").unwrap();
}
