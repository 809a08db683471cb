//! HTTP/2, server side: answers beside each other, with pushes ahead of the answer that names them (RFC 9113 §8.4).

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode};

use super::Content;
use crate::connect::Stream;

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: impl Stream,
    content: Arc<Content>,
    scheme: &'static str,
) -> io::Result<()> {
    let mut builder = h2::server::Builder::new();
    if let Some(streams) = content.streams {
        builder.max_concurrent_streams(streams);
    }
    let mut connection = builder.handshake::<_, Bytes>(stream).await.map_err(io::Error::other)?;
    let mut answers = tokio::task::JoinSet::new();
    while let Some(request) = connection.accept().await {
        let (request, respond) = request.map_err(io::Error::other)?;
        answers.spawn(answer(request, respond, content.clone(), scheme));
    }
    Ok(())
}

/// A client that wants no more of it is no error.
async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    content: Arc<Content>,
    scheme: &'static str,
) -> Result<(), h2::Error> {
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let authority = uri.authority().map(|authority| authority.to_string()).unwrap_or_default();
    tokio::time::sleep(content.delay).await;
    for pushed in content.pushes.get(&path).into_iter().flatten() {
        let promise =
            Request::builder().method(Method::GET).uri(format!("{scheme}://{authority}{pushed}")).body(());
        let Ok(promise) = promise else { continue };
        // A client that takes no pushes, or has as many open as it allows, gets none.
        let Ok(mut push) = respond.push_request(promise) else { break };
        // The head goes with the promise: a client may refuse it before anything else is written, and `h2` would take the
        // reset of a stream whose head waits for room on the connection for an error of the whole.
        let (head, body) = found(&content, pushed);
        let Ok(stream) = push.send_response(head, body.is_empty()) else { continue };
        tokio::spawn(send(stream, body));
    }
    let (head, body) = found(&content, &path);
    send(respond.send_response(head, body.is_empty())?, body).await
}

fn found(content: &Content, path: &str) -> (Response<()>, Bytes) {
    let mut response = Response::new(());
    match content.files.get(path) {
        Some((body, media)) => {
            response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(media));
            (response, body.clone())
        }
        None => {
            *response.status_mut() = StatusCode::NOT_FOUND;
            (response, Bytes::new())
        }
    }
}

async fn send(mut stream: SendStream<Bytes>, mut body: Bytes) -> Result<(), h2::Error> {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(room) = room else { return Ok(()) };
        let piece = body.split_to(room?.min(body.len()));
        stream.send_data(piece, body.is_empty())?;
    }
    Ok(())
}
