//! A browser that needs a response sooner, or later, than it said when it asked (RFC 9218 §7): over HTTP/2 inside a CONNECT,
//! frame by frame, since no library says it.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Coding, Priority};
use farhop_transport::hop::Incoming;
use rustls::pki_types::ServerName;
use support::{Asked, PATIENCE, UNCACHEABLE, World, head, tls_client, world_over, world_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const INTERCEPTED: &[&str] = &["interception.enabled=true"];

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const PRIORITY_UPDATE: u8 = 16;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A browser with one connection to `site.test`, and room for everything.
struct Browser(TlsStream<TcpStream>);

impl Browser {
    async fn new(world: &World) -> Browser {
        let client = world.connect("site.test:443").await;
        let connector = TlsConnector::from(tls_client(world, true, &["h2"]));
        let mut browser =
            Browser(connector.connect(ServerName::try_from("site.test").unwrap(), client).await.unwrap());
        browser.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        // SETTINGS_INITIAL_WINDOW_SIZE; the connection's own window is another (RFC 9113 §6.9.2).
        browser.say(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]).await;
        browser.say(WINDOW_UPDATE, 0, 0, &[0x40, 0, 0, 0]).await;
        browser
    }

    async fn say(&mut self, kind: u8, flags: u8, stream: u32, content: &[u8]) {
        let length = (content.len() as u32).to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat();
        self.0.write_all(&frame).await.unwrap();
        self.0.flush().await.unwrap();
    }

    async fn get(&mut self, stream: u32, path: &str) {
        let fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "site.test"),
            (":path", path),
            ("accept", "*/*"),
            ("referer", "https://site.test/"),
        ];
        // Literals that nobody keeps (RFC 7541 §6.2.2).
        let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
        let block: Vec<u8> =
            fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
        self.say(HEADERS, END_STREAM | END_HEADERS, stream, &block).await;
    }

    /// Gives a request another priority.
    async fn reorder(&mut self, stream: u32, priority: &str) {
        let content = [&stream.to_be_bytes()[..], priority.as_bytes()].concat();
        self.say(PRIORITY_UPDATE, 0, 0, &content).await;
    }

    /// Reads on to the next stream's end; how many bytes of bodies came before it.
    async fn ended(&mut self) -> (u32, usize) {
        let mut bytes = 0;
        loop {
            let mut header = [0; 9];
            timeout(PATIENCE, self.0.read_exact(&mut header)).await.unwrap().unwrap();
            let mut content = vec![0; u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize];
            timeout(PATIENCE, self.0.read_exact(&mut content)).await.unwrap().unwrap();
            let stream = u32::from_be_bytes(header[5..].try_into().unwrap());
            match header[3] {
                DATA => bytes += content.len(),
                HEADERS => {}
                _ => continue,
            }
            if header[4] & END_STREAM != 0 {
                return (stream, bytes);
            }
        }
    }
}

#[tokio::test]
async fn what_is_under_way_across_the_hop_is_overtaken_by_what_the_browser_needs_first_after_all() {
    const LENGTH: usize = 1_000_000;
    let world = world_over("geo-hylas2", INTERCEPTED).await;
    let mut browser = Browser::new(&world).await;
    browser.get(1, "/first").await;
    browser.get(3, "/second").await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        let Asked { head: asked, sender, .. } = world.asked().await;
        sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
        answers.push((asked.path, sender));
    }
    answers.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (_, mut sender) in answers {
        tokio::spawn(async move {
            sender.write(Bytes::from(vec![b'x'; LENGTH])).await.unwrap();
            sender.finish(None);
        });
    }
    // A second of the link each: long before the first is through, ground has heard of this.
    browser.reorder(3, "u=0").await;
    let (stream, bytes) = browser.ended().await;
    assert!(stream == 3 && bytes < 2 * LENGTH, "stream {stream} ends first, after {bytes} bytes");
    assert_eq!(browser.ended().await.0, 1);
}

#[tokio::test]
async fn ground_is_told_what_the_browser_says_of_a_promise_it_waits_for() {
    let world = world_with(INTERCEPTED).await;
    let mut browser = Browser::new(&world).await;
    browser.get(1, "/").await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    let image = RequestHead { path: "/a.jpg".into(), ..asked };
    let late = Priority { urgency: 5, incremental: true };
    let promise = sender.promise(&image, late).unwrap();
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    assert_eq!(browser.ended().await.0, 1);
    browser.get(3, "/a.jpg").await;
    let mut told = Vec::new();
    for (said, urgency) in [(None, 5), (Some("u=2, i"), 2), (Some("u=6, i"), 6)] {
        if let Some(said) = said {
            browser.reorder(3, said).await;
        }
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("ground is told").unwrap();
        let Incoming::Wanted { promise: wanted, priority } = incoming else { panic!("{incoming:?}") };
        assert_eq!(wanted, promise);
        told.push((priority.urgency, urgency));
    }
    assert!(told.iter().all(|(said, meant)| said == meant), "{told:?}");
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.finish(None);
    assert_eq!(browser.ended().await.0, 3);
}
