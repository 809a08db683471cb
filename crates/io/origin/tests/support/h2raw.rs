//! An HTTP/2 origin made of frames, for what no server would send. Only for the tests beside it.

use super::tls::*;
use super::*;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::server::TlsStream;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const LAST: u8 = END_STREAM | END_HEADERS;

pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const HTTP_1_1_REQUIRED: u32 = 13;

/// A frame as it came.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends(&self) -> bool {
        self.flags & END_STREAM != 0
    }

    /// The error of a RST_STREAM.
    pub fn error(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

/// The origin's side of a connection.
pub struct Wire(TlsStream<TcpStream>);

impl Wire {
    /// Answers the preface. `settings` are id and value of each.
    pub async fn open(mut stream: TlsStream<TcpStream>, settings: &[(u16, u32)]) -> Wire {
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut wire = Wire(stream);
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        wire.send(SETTINGS, 0, 0, &payload).await;
        wire
    }

    /// Sends a frame. The client may have had enough before.
    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.is_ok() && self.0.flush().await.is_ok()
    }

    async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        let mut frame = Frame { kind: head[3], flags: head[4], stream, payload: vec![0; length] };
        self.0.read_exact(&mut frame.payload).await.ok()?;
        Some(frame)
    }

    /// The streams that the client opens before it has heard all that was sent; `None` at the end.
    pub async fn opened_meanwhile(&mut self) -> Option<Vec<u32>> {
        self.send(PING, 0, 0, b"heard it").await;
        let mut streams = Vec::new();
        loop {
            let frame = self.frame().await?;
            match frame.kind {
                PING if frame.payload == b"heard it" => return Some(streams),
                HEADERS => streams.push(frame.stream),
                _ => {}
            }
        }
    }

    /// What comes of the body of `stream`, of `least` bytes or up to its end.
    pub async fn body(&mut self, stream: u32, least: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < least {
            let frame = self.next().await.unwrap();
            assert_eq!((frame.stream, frame.kind == RST_STREAM), (stream, false));
            if frame.kind == DATA {
                body.extend(&frame.payload);
            }
            if frame.ends() {
                break;
            }
        }
        body
    }

    /// Lets the client send so many more bytes on all streams together.
    pub async fn widen(&mut self, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes()).await;
    }

    /// The next frame of an exchange or of its errors; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            match frame.kind {
                SETTINGS if frame.flags == 0 => {
                    self.send(SETTINGS, 1, 0, &[]).await;
                }
                DATA | HEADERS | RST_STREAM | GOAWAY => return Some(frame),
                _ => {}
            }
        }
    }

    /// The next stream that is opened; `None` at the end.
    pub async fn request(&mut self) -> Option<u32> {
        loop {
            let frame = self.next().await?;
            if frame.kind == HEADERS {
                return Some(frame.stream);
            }
        }
    }

    /// Answers 200 without a body.
    pub async fn answer(&mut self, stream: u32) {
        self.send(HEADERS, LAST, stream, &fields(&[(":status", "200")])).await;
    }

    pub async fn reset(&mut self, stream: u32, error: u32) {
        self.send(RST_STREAM, 0, stream, &error.to_be_bytes()).await;
    }

    pub async fn go_away(&mut self, last: u32) {
        self.send(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat()).await;
    }

    /// Reads until the client has left.
    pub async fn drain(mut self) {
        while self.next().await.is_some() {}
    }
}

/// A field section without compression (RFC 7541 §6.2.2).
pub fn fields(lines: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    lines.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// An origin that speaks HTTP/2 in frames, and a client that trusts it.
pub async fn raw_origin<F, Fut>(settings: &'static [(u16, u32)], serve: F) -> (Origin, Client)
where
    F: Fn(Wire, usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    let serve = Arc::new(serve);
    let origin = origin_within(config, move |stream, number| {
        let serve = serve.clone();
        async move { serve(Wire::open(stream, settings).await, number).await }
    })
    .await;
    (origin, client_trusting(trusting(&root), Settings::default()))
}

/// The same with a way for each connection to tell the test what it has seen.
pub async fn telling_origin<T, F, Fut>(serve: F) -> (Origin, Client, UnboundedReceiver<T>)
where
    T: Send + 'static,
    F: Fn(Wire, UnboundedSender<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (told, heard) = unbounded_channel();
    let (origin, client) = raw_origin(&[], move |wire, _| serve(wire, told.clone())).await;
    (origin, client, heard)
}
