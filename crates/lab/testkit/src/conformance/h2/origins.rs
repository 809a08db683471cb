//! The origins of what is answered over HTTP/2: one listener that every loopback address reaches, so that the address says whose
//! case a connection belongs to. A request without a body gets the case's frames, one with a body an honest answer.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::answers::Case;
use super::wire::{self, ACK, DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PING, PREFACE, SETTINGS};

/// What an honest answer says.
pub(super) const HONEST: &str = "an honest answer";

/// Where the origin of a case is.
pub(super) fn host(case: usize) -> Ipv4Addr {
    assert!(case < 200, "there are addresses for 200 cases");
    Ipv4Addr::new(127, 38, 0, case as u8 + 1)
}

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Origins {
    port: u16,
    task: AbortHandle,
}

impl Drop for Origins {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Origins {
    pub(super) async fn start(cases: Arc<Vec<Case>>, acceptor: TlsAcceptor) -> Origins {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.expect("this machine has free ports");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let task = tokio::spawn(accept(listener, cases, acceptor)).abort_handle();
        Origins { port, task }
    }

    pub(super) fn address(&self, case: usize) -> SocketAddr {
        SocketAddr::from((host(case), self.port))
    }
}

async fn accept(listener: TcpListener, cases: Arc<Vec<Case>>, acceptor: TlsAcceptor) {
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (cases, acceptor) = (cases.clone(), acceptor.clone());
        connections.spawn(async move {
            let Ok(SocketAddr::V4(address)) = stream.local_addr() else { return };
            let number = usize::from(address.ip().octets()[3]).wrapping_sub(1);
            let Some(case) = cases.get(number) else { return };
            if let Ok(stream) = acceptor.accept(stream).await {
                // Who has gone wants no answer.
                let _ = serve(stream, case, &address.to_string()).await;
            }
        });
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    case: &Case,
    authority: &str,
) -> std::io::Result<()> {
    let mut greeting = vec![0; PREFACE.len()];
    stream.read_exact(&mut greeting).await?;
    stream.write_all(&wire::frame(SETTINGS, 0, 0, b"")).await?;
    stream.flush().await?;
    let (mut got, mut buffer, mut with_body) = (Vec::new(), vec![0; 16 * 1024], HashSet::new());
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        got.extend_from_slice(&buffer[..count]);
        while let Some(Frame { kind, flags, stream: number, payload }) = wire::take(&mut got) {
            if kind == DATA && !payload.is_empty() {
                with_body.insert(number);
            }
            let says = match kind {
                SETTINGS if flags & ACK == 0 => wire::frame(SETTINGS, ACK, 0, b""),
                PING if flags & ACK == 0 => wire::frame(PING, ACK, 0, &payload),
                HEADERS | DATA if flags & END_STREAM != 0 && with_body.contains(&number) => honest(number),
                HEADERS | DATA if flags & END_STREAM != 0 => case.frames.bytes(authority, number),
                _ => continue,
            };
            let ends = case.closes && matches!(kind, HEADERS | DATA) && !with_body.contains(&number);
            stream.write_all(&says).await?;
            stream.flush().await?;
            if ends {
                return stream.shutdown().await;
            }
        }
    }
}

fn honest(stream: u32) -> Vec<u8> {
    let head = wire::field(b":status", b"200");
    let head = wire::frame(HEADERS, END_HEADERS, stream, &head);
    [head, wire::frame(DATA, END_STREAM, stream, HONEST.as_bytes())].concat()
}

/// Names of all of them, for their certificate.
pub(super) fn addresses(cases: usize) -> impl Iterator<Item = IpAddr> {
    (0..cases).map(|case| host(case).into())
}
