//! Small pages, over every way to them, each byte compared.

use std::io;
use std::path::Path;

use bytes::Bytes;
use farhop_testkit::pattern::bytes_at;
use futures_util::future::try_join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::load::Client;
use super::origin::wrong;
use super::place::HOST;

/// How many there are, and how many pictures each has, of so many bytes.
const PAGES: u64 = 12;
const PICTURES: u64 = 4;
const PICTURE: usize = 12_000;

/// A file of a page: its path, and what it has to be.
struct Part {
    path: String,
    bytes: Bytes,
}

/// The document of a page, and then all that it needs.
fn parts(page: u64) -> Vec<Part> {
    let at = |name: &str| format!("/page-{page}/{name}");
    let pictures = (0..PICTURES).map(|picture| Part {
        path: at(&format!("{picture}.gif")),
        bytes: bytes_at(1 + page * PICTURES + picture, 0, PICTURE),
    });
    let pictures: Vec<_> = pictures.collect();
    let images: String = pictures.iter().map(|it| format!("<img src=\"{}\" alt>\n", it.path)).collect();
    let text = "<p>Words that a page is made of, many of them alike.</p>\n".repeat(60);
    let document = format!(
        "<!doctype html>\n<html lang=en>\n<title>Page {page}</title>\n<link rel=stylesheet href=style.css>\n\
         <script src=app.js></script>\n{images}{text}</html>\n"
    );
    let style = format!("body {{ margin: {page}px }}\n").repeat(80);
    let script = format!("console.log({page});\n").repeat(80);
    let texts = [("", document), ("style.css", style), ("app.js", script)];
    let texts = texts.into_iter().map(|(name, text)| Part { path: at(name), bytes: text.into() });
    texts.chain(pictures).collect()
}

/// Writes all of them as files of a site.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    for page in 0..PAGES {
        std::fs::create_dir(folder.join(format!("page-{page}")))?;
        for Part { path, bytes } in parts(page) {
            let file = if path.ends_with('/') { format!("{path}index.html") } else { path };
            std::fs::write(folder.join(file.trim_start_matches('/')), bytes)?;
        }
    }
    Ok(())
}

/// One over plain HTTP through the proxy, on one connection.
pub(super) async fn plain(client: &mut Client<'_>) -> io::Result<u64> {
    let stream = TcpStream::connect(client.map.proxy).await?;
    one_by_one(stream, &format!("http://{HOST}"), Some(client.credentials()), client.below(PAGES)).await
}

/// One over TLS that is looked into.
pub(super) async fn secure(client: &mut Client<'_>) -> io::Result<u64> {
    let stream = client.visitor()?.secure(HOST, &["http/1.1"]).await?;
    one_by_one(stream, "", None, client.below(PAGES)).await
}

/// One over plain HTTP, caught on its way.
pub(super) async fn caught(client: &mut Client<'_>) -> io::Result<u64> {
    let stream = TcpStream::connect((client.map.site.ip(), 80)).await?;
    one_by_one(stream, "", None, client.below(PAGES)).await
}

/// One over TLS that is caught and carried untouched.
pub(super) async fn caught_secure(client: &mut Client<'_>) -> io::Result<u64> {
    let stream = client.caught()?.secure(HOST, &["http/1.1"]).await?;
    one_by_one(stream, "", None, client.below(PAGES)).await
}

/// One over HTTP/2, all at once; with `leave` the streams of its pictures are left as soon as they are asked for.
pub(super) async fn at_once(client: &mut Client<'_>, leave: bool) -> io::Result<u64> {
    let stream = client.visitor()?.secure(HOST, &["h2"]).await?;
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let mut all = parts(client.below(PAGES)).into_iter();
    let fetch = |part: Part| {
        let mut sender = sender.clone();
        async move {
            let asked = ask(&format!("https://{HOST}{}", part.path), None)?;
            let answer = sender.send_request(asked).await.map_err(io::Error::other)?;
            compared(answer, &part).await
        }
    };
    let mut bytes = 0;
    if let Some(document) = all.next() {
        bytes += fetch(document).await?;
    }
    let rest = try_join_all(all.map(fetch));
    match leave {
        // Dropping a request before its answer has come resets its stream.
        true => drop(tokio::time::timeout(std::time::Duration::from_millis(20), rest).await),
        false => bytes += rest.await?.iter().sum::<u64>(),
    }
    drop(sender);
    // Nobody asks any more: it says goodbye and ends.
    let _ = connection.await;
    Ok(bytes)
}

/// What the remote itself tells its users.
pub(super) async fn portal(client: &mut Client<'_>) -> io::Result<u64> {
    let mut bytes = 0;
    for url in ["http://farhop.internal/", "http://farhop.internal/proxy.pac"] {
        let stream = TcpStream::connect(client.map.proxy).await?;
        let mut sender = speak(stream).await?;
        let asked = ask(url, Some(&client.credentials()))?;
        let answer = sender.send_request(asked).await.map_err(io::Error::other)?;
        if answer.status() != StatusCode::OK {
            return Err(io::Error::other(format!("{url} is answered {}", answer.status())));
        }
        bytes += answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes().len() as u64;
    }
    Ok(bytes)
}

/// HTTP/1.1 on a connection.
pub(super) async fn speak<S>(stream: S) -> io::Result<http1::SendRequest<Empty<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A request for `target`, as a proxy or an origin wants it.
pub(super) fn ask(target: &str, credentials: Option<&str>) -> io::Result<Request<Empty<Bytes>>> {
    let host = target.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(HOST);
    let mut asked = Request::builder().uri(target).header("accept", "*/*");
    if !target.starts_with("https:") {
        asked = asked.header("host", host);
    }
    if let Some(credentials) = credentials {
        asked = asked.header("proxy-authorization", credentials);
    }
    asked.body(Empty::new()).map_err(io::Error::other)
}

async fn one_by_one<S>(stream: S, base: &str, credentials: Option<String>, page: u64) -> io::Result<u64>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut sender = speak(stream).await?;
    let mut bytes = 0;
    for part in parts(page) {
        let asked = ask(&format!("{base}{}", part.path), credentials.as_deref())?;
        sender.ready().await.map_err(io::Error::other)?;
        let answer = sender.send_request(asked).await.map_err(io::Error::other)?;
        bytes += compared(answer, &part).await?;
    }
    Ok(bytes)
}

async fn compared(answer: http::Response<hyper::body::Incoming>, part: &Part) -> io::Result<u64> {
    let Part { path, bytes } = part;
    if answer.status() != StatusCode::OK {
        return Err(io::Error::other(format!("{path} is answered {}", answer.status())));
    }
    let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    match body == *bytes {
        true => Ok(body.len() as u64),
        false => Err(wrong(&format!("{path} has {} other bytes", body.len()))),
    }
}
