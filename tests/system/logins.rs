//! Logins that count for a connection (NTLM; RFC 4559 §6): they work, and are nobody else's.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::{Local, PATIENCE};

/// As browsers ask for a page.
const BROWSER: &str = "user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36\r\n\
    accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nsec-fetch-site: none\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";

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
/// then on. What it says may be kept for long, and `/away` leads to all else.
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

async fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
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
    let (local, origin) = (Local::allowed(&[]).await, origin().await);
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
    drop((alice, bob));
    assert_eq!(ask(&mut connect().await, origin, "").await.1, "no");
}
