//! Looks at what a client begins with at a port of plain HTTP, and gives every byte back. Only a whole head that may be
//! forwarded, and is for the address that the client connected to, is HTTP for us: all else is the client's and its
//! server's to understand.

use std::net::SocketAddr;

use bytes::BytesMut;
use farhop_front::h1::{HeadScanner, Section};
use farhop_front::{RequestHead, Settings, Target, Tunnel};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::settle;

/// What a client begins with. The tunnel still has all of it to read.
#[derive(Debug)]
pub(super) enum Opening {
    /// A request to a server.
    Http { tunnel: Tunnel },
    /// Something else.
    Other { tunnel: Tunnel },
    /// It has left without a word, or has none for longer than a server of HTTP would wait.
    Gone,
}

/// What the bytes so far are.
enum Reading {
    Request,
    Other,
    NeedMore,
}

/// Waits for a first request to a server at `at`. No server of this port speaks first.
pub(super) async fn open(mut tunnel: Tunnel, at: SocketAddr, settings: &Settings) -> Opening {
    let mut buffer = BytesMut::new();
    match timeout(settings.idle_timeout, tunnel.read_buf(&mut buffer)).await {
        Ok(Ok(count)) if count > 0 => {}
        _ => return Opening::Gone,
    }
    let reading = timeout(settings.head_timeout(), read_on(&mut tunnel, &mut buffer, at, settings)).await;
    tunnel.unread(buffer.freeze());
    match reading {
        Ok(Reading::Request) => Opening::Http { tunnel },
        _ => Opening::Other { tunnel },
    }
}

/// Reads into `buffer` until it is clear what it is, or no more comes.
async fn read_on(tunnel: &mut Tunnel, buffer: &mut BytesMut, at: SocketAddr, settings: &Settings) -> Reading {
    let mut scanner = HeadScanner::new(Section::Request);
    loop {
        let reading = read(&mut scanner, buffer, at, settings);
        // Whoever reads on meets the end too.
        if !matches!(reading, Reading::NeedMore)
            || !matches!(tunnel.read_buf(buffer).await, Ok(count) if count > 0)
        {
            return reading;
        }
    }
}

fn read(scanner: &mut HeadScanner, buffer: &[u8], at: SocketAddr, settings: &Settings) -> Reading {
    if !may_be_request(buffer) {
        return Reading::Other;
    }
    let range = match scanner.scan(buffer, &settings.head) {
        Ok(Some(range)) => range,
        Ok(None) => return Reading::NeedMore,
        Err(_) => return Reading::Other,
    };
    match RequestHead::parse(&buffer[range], &settings.head) {
        // Absolute targets and CONNECT are for a proxy, which its client has chosen to have there.
        Ok(RequestHead { target: target @ (Target::Origin(_) | Target::Asterisk), fields, .. })
            if settle(target.clone(), &fields, at).is_some() =>
        {
            Reading::Request
        }
        _ => Reading::Other,
    }
}

/// Whether a request to a server can begin so: a method in capitals and a path. It tells other protocols apart by their
/// first bytes, so that none of them waits for the end of a head.
fn may_be_request(bytes: &[u8]) -> bool {
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'-').count();
    match &bytes[method..] {
        [] => method <= 32,
        [b' '] => method > 0,
        [b' ', b'/' | b'*', ..] => method > 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    /// What becomes of `text`, written at once or byte by byte, and all that is read of the tunnel then.
    async fn opened(text: &str, piece: usize) -> (bool, String) {
        let (mut client, far) = duplex(4096);
        let text = text.to_owned();
        let expected = text.clone();
        let writing = tokio::spawn(async move {
            for piece in text.as_bytes().chunks(piece) {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            client
        });
        let opening = open(Tunnel::over(far), "192.0.2.1:80".parse().unwrap(), &Settings::default()).await;
        let (is_http, mut tunnel) = match opening {
            Opening::Http { tunnel } => (true, tunnel),
            Opening::Other { tunnel } => (false, tunnel),
            Opening::Gone => panic!("it is still there"),
        };
        let mut back = vec![0; expected.len()];
        tunnel.read_exact(&mut back).await.unwrap();
        drop(writing.await.unwrap());
        (is_http, String::from_utf8(back).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_to_the_address_are_told_from_all_else_and_no_byte_is_lost() {
        for (text, wanted) in [
            ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\nmore", true),
            ("M-SEARCH * HTTP/1.1\r\nHost: a.example\r\n\r\n", false),
            ("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: 192.0.2.9\r\n\r\n", false),
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", false),
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", false),
            ("GET / HTTP/1.1\nHost: a.example\n\n", false),
            ("SSH-2.0-x\r\n", false),
            ("\u{16}\u{3}\u{1}", false),
            ("get / HTTP/1.1\r\n", false),
        ] {
            for piece in [text.len(), 1] {
                assert_eq!(opened(text, piece).await, (wanted, text.to_owned()), "{text:?} by {piece}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_is_nobodys_request() {
        assert_eq!(opened("GET / HT", 8).await, (false, "GET / HT".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_without_a_word_is_gone() {
        let (client, far) = duplex(64);
        drop(client);
        let opening = open(Tunnel::over(far), "192.0.2.1:80".parse().unwrap(), &Settings::default()).await;
        assert!(matches!(opening, Opening::Gone));
    }
}
