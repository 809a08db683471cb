//! The other side, for what stock servers do not do: HTTP/1.x and HTTP/2 with pushes of a share of a page, and TLS that
//! takes 0-RTT and answers it in the server's first flight. Serves bytes that it is given, and nothing else.

mod multiplexed;
mod one_by_one;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ServerConfig;

use crate::connect::Stream;
use crate::tls::TlsStream;

/// Bytes that a client may send along with its first flight.
const EARLY: u32 = 16 << 10;

/// What is served.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// Bytes and media type, by path and query.
    pub files: HashMap<String, (Bytes, &'static str)>,
    /// What each path's answer pushes over HTTP/2 where the client lets it, in order.
    pub pushes: HashMap<String, Vec<String>>,
    /// What it waits before each answer.
    pub delay: Duration,
    /// Answers on one HTTP/1.1 connection, at most; none for no limit.
    pub requests: Option<usize>,
    /// Streams that a client may have open (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    pub streams: Option<u32>,
}

impl Content {
    /// Pushes this share of what a path names, evenly spread: the n-th where n times the share passes a whole number.
    pub fn push_share(&mut self, path: &str, named: &[String], share: f64) {
        let passed = |count: usize| (count as f64 * share + 1e-9).floor();
        let chosen = named.iter().enumerate().filter(|(place, _)| passed(place + 1) > passed(*place));
        let chosen: Vec<String> = chosen.map(|(_, path)| path.clone()).collect();
        self.pushes.insert(path.to_owned(), chosen);
    }
}

/// TLS as this server has it: tickets whose sessions may begin with 0-RTT, answers in its first flight.
///
/// # Errors
/// The chain does not fit the key, or is none.
pub fn tls(
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    key: rustls::pki_types::PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.max_early_data_size = EARLY;
    config.send_half_rtt_data = true;
    Ok(config)
}

/// Serves one connection to its end, in the clear: HTTP/1.x, or HTTP/2 where `multiplexed`.
///
/// # Errors
/// The connection breaks, or its client speaks something else.
pub async fn serve_plain(stream: impl Stream, content: Arc<Content>, multiplexed: bool) -> io::Result<()> {
    if multiplexed {
        multiplexed::serve(stream, content, "http").await
    } else {
        one_by_one::serve(stream, content).await
    }
}

/// Serves one connection over TLS to its end, with what ALPN chose.
///
/// # Errors
/// As [`serve_plain`], or the handshake fails.
pub async fn serve_tls(
    stream: impl Stream,
    content: Arc<Content>,
    config: Arc<ServerConfig>,
) -> io::Result<()> {
    let tls = rustls::ServerConnection::new(config).map_err(io::Error::other)?;
    let stream = TlsStream::accept(stream, tls).await?;
    if stream.alpn() == Some(b"h2") {
        multiplexed::serve(stream, content, "https").await
    } else {
        one_by_one::serve(stream, content).await
    }
}
