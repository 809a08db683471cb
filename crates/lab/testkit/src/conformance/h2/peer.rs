//! The client of a case: says what it is told to and keeps, stream by stream, what comes.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::wire::{
    self, ACK, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS,
};

/// No answer takes so long unless none comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of a stream, or of the connection.
#[derive(Debug, Clone)]
pub(super) enum Came {
    Response {
        status: u16,
        body: Vec<u8>,
    },
    /// The stream was reset.
    Reset(String),
    /// The connection was ended.
    Ended(String),
    Nothing,
}

impl fmt::Display for Came {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Came::Response { status, body } => {
                let line = body.split(|&byte| byte == b'\n').next().unwrap_or_default();
                write!(f, "{status} '{}'", String::from_utf8_lossy(line))
            }
            Came::Reset(error) => write!(f, "reset {error}"),
            Came::Ended(error) => write!(f, "ended {error}"),
            Came::Nothing => f.write_str("nothing"),
        }
    }
}

#[derive(Debug, Default)]
struct Stream {
    status: Option<u16>,
    body: Vec<u8>,
    ended: bool,
    reset: Option<String>,
}

/// See the module.
pub(super) struct Peer<S> {
    stream: S,
    got: Vec<u8>,
    streams: HashMap<u32, Stream>,
    goaway: Option<String>,
    closed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// Begins the connection, properly or not at all.
    pub(super) async fn start(stream: S, preface: bool) -> Peer<S> {
        let mut peer = Peer { stream, got: Vec::new(), streams: HashMap::new(), goaway: None, closed: false };
        if preface {
            peer.send(&[PREFACE, &wire::frame(SETTINGS, 0, 0, b"")].concat()).await;
        }
        peer
    }

    /// Sends bytes; whoever has closed already is read all the same.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        let _ = timeout(PATIENCE, sent).await;
    }

    /// Sends an ordinary request.
    pub(super) async fn get(&mut self, stream: u32, authority: &str, path: &str) {
        let fields = [(":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", path)];
        let block: Vec<u8> =
            fields.iter().flat_map(|(name, value)| wire::field(name.as_bytes(), value.as_bytes())).collect();
        self.send(&wire::frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)).await;
    }

    /// What becomes of a stream.
    pub(super) async fn outcome(&mut self, stream: u32) -> Came {
        loop {
            if let Some(Stream { status, body, ended, reset }) = self.streams.get(&stream) {
                match (status, reset) {
                    (Some(status), _) if *ended => {
                        return Came::Response { status: *status, body: body.clone() };
                    }
                    (_, Some(error)) => return Came::Reset(error.clone()),
                    _ => {}
                }
            }
            if let Some(came) = self.over() {
                return came;
            }
            if !self.read().await {
                return Came::Nothing;
            }
        }
    }

    /// How the connection ends.
    pub(super) async fn end(&mut self) -> Came {
        loop {
            if self.closed {
                return self.over().unwrap_or(Came::Nothing);
            }
            if !self.read().await {
                return Came::Nothing;
            }
        }
    }

    fn over(&self) -> Option<Came> {
        self.closed.then(|| Came::Ended(self.goaway.clone().unwrap_or_else(|| "silently".into())))
    }

    /// Reads some; `false` when nothing comes.
    async fn read(&mut self) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        match timeout(PATIENCE, self.stream.read(&mut buffer)).await {
            Err(_) => return false,
            Ok(Ok(0) | Err(_)) => self.closed = true,
            Ok(Ok(count)) => self.got.extend_from_slice(&buffer[..count]),
        }
        while let Some(frame) = wire::take(&mut self.got) {
            self.take(frame).await;
        }
        true
    }

    async fn take(&mut self, frame: Frame) {
        let Frame { kind, flags, stream, payload } = frame;
        match kind {
            SETTINGS if flags & ACK == 0 => self.send(&wire::frame(SETTINGS, ACK, 0, b"")).await,
            GOAWAY => self.goaway = Some(wire::error(payload.get(4..).unwrap_or_default())),
            HEADERS | DATA | RST_STREAM => {
                let entry = self.streams.entry(stream).or_default();
                match kind {
                    HEADERS => {
                        let status = wire::status(&payload);
                        // Informational heads come before, trailers after the one that counts.
                        if entry.status.is_none() && status.is_some_and(|status| status >= 200) {
                            entry.status = status;
                        }
                    }
                    DATA => entry.body.extend_from_slice(&payload),
                    _ => entry.reset = Some(wire::error(&payload)),
                }
                entry.ended |= kind != RST_STREAM && flags & END_STREAM != 0;
            }
            _ => {}
        }
    }
}
