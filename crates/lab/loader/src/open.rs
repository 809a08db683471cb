//! A connection that can be used: made, made again where it takes too long, through the proxy's tunnel, secured; with every
//! byte counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;

use crate::connect::BoxStream;
use crate::course::{Course, Origin};
use crate::h1::Wire;
use crate::settings::Handshake;
use crate::tls::TlsStream;

/// Connections that are tried beside each other, at most; the study's browser had five.
const ATTEMPTS: usize = 6;

/// Bytes that passed a connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// A connection whose bytes are counted.
pub(crate) struct Counted {
    stream: BoxStream,
    traffic: Arc<Traffic>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let done = Pin::new(&mut self.stream).poll_read(context, into);
        self.traffic.received.fetch_add((into.filled().len() - before) as u64, Ordering::Relaxed);
        done
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = &done {
            self.traffic.sent.fetch_add(*count as u64, Ordering::Relaxed);
        }
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Opens a connection to an origin: its place in the results, and itself.
///
/// # Errors
/// It cannot be made, in words.
pub(crate) async fn open(course: &Arc<Course>, origin: &Origin) -> Result<(usize, BoxStream), String> {
    let (place, stream) = dial(course, origin).await?;
    let settings = &course.settings;
    if !origin.secure {
        if settings.handshake != Handshake::Plain {
            return Err("it is no https, and the load wants a TLS handshake".into());
        }
        course.ready(place, None);
        return Ok((place, Box::new(stream)));
    }
    if settings.handshake == Handshake::Plain {
        return Err("it is https, and the load is to be in the clear".into());
    }
    let stream = match &settings.proxy {
        Some(_) => {
            let mut wire = Wire::new(stream);
            wire.tunnel(&origin.host, origin.port).await?;
            wire.stream
        }
        None => stream,
    };
    let alpn = course.alpn();
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| error.to_string())?;
    let tls = ClientConnection::new(course.sessions.config(settings.handshake, alpn), name);
    let tls = tls.map_err(|error| error.to_string())?;
    let tls = TlsStream::connect(stream, tls)
        .await
        .map_err(|error| format!("the TLS handshake failed: {error}"))?;
    // While the first flight is all there is, nothing is agreed yet.
    if tls.facts().resumed.get().is_some() && tls.alpn() != Some(alpn) && alpn == b"h2" {
        return Err("the server does not speak HTTP/2".into());
    }
    course.ready(place, Some(tls.facts()));
    Ok((place, Box::new(tls)))
}

/// Connects; each time that the timer passes without success another connection is tried beside those under way. The first
/// that stands is used. The others come to stand as well, as a browser's do, and are closed then.
async fn dial(course: &Arc<Course>, origin: &Origin) -> Result<(usize, Counted), String> {
    let mut attempts = JoinSet::new();
    let mut fault = String::new();
    let (mut begun, mut is_due) = (0, true);
    loop {
        if std::mem::take(&mut is_due) {
            attempts.spawn(attempt(course.clone(), origin.clone()));
            begun += 1;
        }
        let timer = async {
            match course.settings.retry.filter(|_| begun < ATTEMPTS) {
                Some(retry) => tokio::time::sleep(retry).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = attempts.join_next() => match done {
                Some(Ok(Ok(made))) => {
                    attempts.detach_all();
                    return Ok(made);
                }
                Some(Ok(Err(error))) => fault = error,
                Some(Err(error)) => fault = error.to_string(),
                None => return Err(fault),
            },
            () = timer => is_due = true,
        }
    }
}

async fn attempt(course: Arc<Course>, origin: Origin) -> Result<(usize, Counted), String> {
    let (place, traffic) = course.dialling(&origin);
    let (host, port) = match &course.settings.proxy {
        Some((host, port)) => (host.as_str(), *port),
        None => (origin.host.as_str(), origin.port),
    };
    let made = course.connector.connect(host, port, course.settings.socket_options()).await;
    let stream = made.map_err(|error| format!("no connection to {host}:{port}: {error}"))?;
    Ok((place, Counted { stream, traffic }))
}
