//! A server to try clients on: `cargo run -p farhop-front --example serve -- 127.0.0.1:8443 [CERTIFICATE FILE]`.
//!
//! It answers `https://a.example` as the remote would inside a CONNECT, over TLS with a certificate made for the run:
//! `/BYTES` with so many bytes, an upload with its length, a WebSocket with whatever it sends. For instance
//!
//! ```text
//! curl --connect-to a.example:443:127.0.0.1:8443 --cacert FILE https://a.example/1000
//! h2load -n 20000 -c 4 -m 100 --connect-to=127.0.0.1:8443 https://a.example/1000
//! ```

#![allow(clippy::unwrap_used)] // an example fails by panicking

#[path = "../tests/support/mod.rs"]
mod support;

use bytes::Bytes;
use farhop_front::{Exchange, Settings, Target, Tunnel, WriteError, tls};
use std::error::Error;
use std::sync::Arc;
use support::{Authority, HOST, head};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("usage: serve ADDRESS [CERTIFICATE FILE]")?;
    let authority = Arc::new(Authority::new());
    if let Some(file) = arguments.next() {
        std::fs::write(file, &authority.pem)?;
    }
    let settings = Arc::new(Settings::default());
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, authority.clone(), settings.clone()));
    }
}

async fn serve(stream: TcpStream, authority: Arc<Authority>, settings: Arc<Settings>) {
    let accepting = tls::accept(Tunnel::over(stream), authority.leaf.clone(), HOST, 443, settings);
    let mut connection = match accepting.await {
        Ok(connection) => connection,
        Err(error) => return println!("{error}"),
    };
    loop {
        match connection.next_request().await {
            Ok(Some(exchange)) => drop(tokio::spawn(answer(exchange))),
            Ok(None) => return,
            Err(error) => return println!("{error}"),
        }
    }
}

async fn answer(exchange: Exchange) -> Result<(), WriteError> {
    let Exchange { head: asked, mut body, responder } = exchange;
    if asked.upgrade.is_some() {
        let mut tunnel = responder.tunnel(head(101, &[])).await?;
        let (mut reader, mut writer) = tokio::io::split(&mut tunnel);
        tokio::io::copy(&mut reader, &mut writer).await?;
        return Ok(writer.shutdown().await?);
    }
    let mut uploaded = 0;
    while let Ok(Some(data)) = body.data().await {
        uploaded += data.len();
    }
    if uploaded > 0 {
        return responder.respond(head(200, &[]), format!("{uploaded}\n").into()).await;
    }
    let mut rest: usize = match &asked.target {
        Target::Absolute { path, .. } => path.path().trim_start_matches('/').parse().unwrap_or(0),
        _ => 0,
    };
    let mut response = responder.start(head(200, &[]), Bytes::new()).await?;
    while rest > 0 {
        let piece = rest.min(16 * 1024);
        response.send(vec![b'x'; piece].into()).await?;
        rest -= piece;
    }
    response.finish(None).await
}
