//! The client's side, over TLS as it comes from a browser.

use crate::support::secured;
use bytes::Bytes;
use farhop_front::{Connection, Settings};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};

/// A client, and the connection that serves it.
pub(crate) async fn pair_with(settings: Settings) -> (SendRequest<Bytes>, Connection) {
    let (stream, connection) = secured(&["h2"], settings).await;
    // As browsers have it: one slow stream does not use up what the connection may carry.
    let mut builder = h2::client::Builder::new();
    builder.initial_connection_window_size(4 << 20);
    let (client, driver) = builder.handshake(stream).await.unwrap();
    // How it ends is for the tests to see at their streams.
    tokio::spawn(async move { drop(driver.await) });
    (client.ready().await.unwrap(), connection)
}

pub(crate) async fn pair() -> (SendRequest<Bytes>, Connection) {
    pair_with(Settings::default()).await
}

/// Asks for `https://a.example{path}` with no body.
pub(crate) fn ask(client: &mut SendRequest<Bytes>, method: &str, path: &str) -> ResponseFuture {
    send(client, method, path, &[], true).0
}

/// Begins a request.
pub(crate) fn send(
    client: &mut SendRequest<Bytes>,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    ended: bool,
) -> (ResponseFuture, SendStream<Bytes>) {
    let mut request = Request::builder().method(method).uri(format!("https://a.example{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    client.send_request(request.body(()).unwrap(), ended).unwrap()
}

/// The head, the whole body and the trailers of a response; or why it broke off.
pub(crate) async fn whole(
    response: ResponseFuture,
) -> Result<(Response<Bytes>, Option<HeaderMap>), h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let body = rest(&mut stream).await?;
    Ok((Response::from_parts(head, body), stream.trailers().await?))
}

/// All that is still to come of a body.
pub(crate) async fn rest(stream: &mut RecvStream) -> Result<Bytes, h2::Error> {
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        body.extend_from_slice(&data);
        stream.flow_control().release_capacity(data.len()).unwrap();
    }
    Ok(body.into())
}
