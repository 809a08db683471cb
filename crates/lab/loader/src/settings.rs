//! What a load is made with. Plain data; the defaults are those of today's browsers, as far as the loader knows the thing.

use std::time::Duration;

use crate::connect::SocketOptions;

/// How objects are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.x over one or more connections to each origin.
    Http1(Persistence),
    /// HTTP/2 (RFC 9113) over one connection to each origin.
    Http2(Push),
    /// HTTP/3 (RFC 9114) over one QUIC connection to each origin, with full handshakes, without a proxy.
    Http3,
}

/// How long an HTTP/1.x connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// One request for each connection, in the words of HTTP/1.0 (RFC 1945).
    NonPersistent,
    /// One request after the other (RFC 9112 §9.3).
    Persistent,
    /// So many requests ahead of their answers (RFC 9112 §9.3.2); 1 is the same as [`Persistence::Persistent`].
    Pipelined(usize),
}

impl Persistence {
    /// Requests that may be unanswered on a connection.
    pub(crate) fn depth(self) -> usize {
        match self {
            Persistence::NonPersistent | Persistence::Persistent => 1,
            Persistence::Pipelined(depth) => depth.max(1),
        }
    }
}

/// What becomes of server pushes (RFC 9113 §8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    /// The server is told not to push (`SETTINGS_ENABLE_PUSH` = 0).
    Off,
    /// The server may push, and each push is reset as soon as it is promised.
    Refused,
    /// Pushes answer requests.
    Accepted,
}

/// How a connection becomes secure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Not at all.
    Plain,
    /// Every connection with a full handshake.
    Full,
    /// With a session of before, where there is one ([`Loader::prime`](crate::Loader::prime)).
    Resumed,
    /// The same, and the first request goes along with the client's first flight (RFC 8446 §2.3).
    ZeroRtt,
}

/// Windows of HTTP/2 that the loader grants, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Of each stream.
    pub stream: u32,
    /// Of the connection.
    pub connection: u32,
}

/// How a page is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How objects are asked for.
    pub protocol: Protocol,
    /// How connections become secure; has to fit the scheme of the page's URLs.
    pub handshake: Handshake,
    /// Connections to one origin at a time, at most; HTTP/2 and HTTP/3 have one.
    pub connections: usize,
    /// When another connection is tried beside one that does not stand yet; each time that it passes, until one stands.
    pub retry: Option<Duration>,
    /// Receive buffer of each connection in bytes, as the kernel understands it (`SO_RCVBUF`); none leaves it to the kernel.
    pub receive_buffer: Option<usize>,
    /// Whether what a connection says first goes along with its SYN (TCP Fast Open, RFC 7413), where its origin has given a cookie
    /// before ([`Loader::prime`](crate::Loader::prime)).
    pub fast_open: bool,
    /// Requests of HTTP/2 or HTTP/3 under way at a time, at most; the server may allow fewer.
    pub streams: usize,
    /// Windows of HTTP/2 and HTTP/3.
    pub windows: Windows,
    /// A connection on which nothing was under way for so long is closed.
    pub idle: Option<Duration>,
    /// Host and port of a proxy that every request goes through; https through CONNECT.
    pub proxy: Option<(String, u16)>,
    /// Whether images may come recoded: then they need the size of the original in pixels, not its bytes.
    pub may_recode: bool,
    /// When the load is given up.
    pub patience: Duration,
}

impl Default for Settings {
    /// HTTP/1.1 over six connections, in the clear.
    fn default() -> Settings {
        Settings {
            protocol: Protocol::Http1(Persistence::Persistent),
            handshake: Handshake::Plain,
            connections: 6,
            retry: None,
            receive_buffer: None,
            fast_open: false,
            streams: 100,
            // Chromium's: 6 MB and 15 MB.
            windows: Windows { stream: 6 << 20, connection: 15 << 20 },
            idle: None,
            proxy: None,
            may_recode: false,
            patience: Duration::from_secs(300),
        }
    }
}

impl Settings {
    /// What they ask of each connection's socket.
    pub(crate) fn socket_options(&self) -> SocketOptions {
        SocketOptions { receive_buffer: self.receive_buffer, fast_open: self.fast_open }
    }
}
