//! WebSocket upgrades (RFC 6455 §4.1): the handshake and the bytes behind it. What the bytes mean is for the two at
//! their ends.

use crate::error::Error;
use crate::pool::Lent;
use crate::request::Request;
use crate::response::Response;
use crate::sending::{Failed, Sending};
use crate::settings::Settings;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What came of asking for a WebSocket.
#[derive(Debug)]
pub enum Upgraded {
    /// The origin agreed (101).
    Switched {
        /// End-to-end fields; `Sec-WebSocket-Accept` only if the request had the key that it belongs to.
        fields: HeaderMap,
        /// What both sides say from now on.
        stream: UpgradedStream,
    },
    /// It answered with anything else.
    Answered(Box<Response>),
}

/// The bytes of a WebSocket. Shutting it down ends this side's half.
#[derive(Debug)]
pub struct UpgradedStream(TokioIo<hyper::upgrade::Upgraded>);

/// Asks for a WebSocket on the connection that `connecting` gives.
pub(crate) async fn ask(
    mut request: Request,
    settings: &Arc<Settings>,
    connecting: impl Future<Output = Result<Lent, Error>>,
) -> Result<Upgraded, Error> {
    if request.method != Method::GET || !request.upload.is_empty() {
        return Err(Error::InvalidRequest("a WebSocket is asked for by GET without a body".into()));
    }
    let given = given_key(&request.fields)?;
    let key = given.clone().map_or_else(new_key, Ok)?;
    request.fields.insert(SEC_WEBSOCKET_KEY, key.clone());
    request.fields.entry(SEC_WEBSOCKET_VERSION).or_insert(HeaderValue::from_static("13"));
    let mut sending = Sending::new(request, Arc::new(|_, _, _| {}), settings)?;
    let mut head = sending.head().http1()?;
    head.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    head.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));

    let mut lent = connecting.await?;
    let mut response = match sending.exchange(&mut lent, head).await {
        Ok(response) => response,
        Err(Failed::For(error)) => return Err(error),
        Err(_) => return Err(Error::Closed),
    };
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Upgraded::Answered(Box::new(sending.http1_response(lent, response)?)));
    }
    check(response.headers(), &key)?;
    let stream = hyper::upgrade::on(&mut response).await;
    let stream = stream.map_err(|error| Error::UpgradeFailed(error.to_string()))?;
    let mut fields = response.into_parts().0.headers;
    crate::hop::strip_hop_by_hop(&mut fields);
    if given.is_none() {
        fields.remove(SEC_WEBSOCKET_ACCEPT);
    }
    Ok(Upgraded::Switched { fields, stream: UpgradedStream(TokioIo::new(stream)) })
}

/// The key of the client, if it gives one: sixteen bytes in base64 (RFC 6455 §4.1).
fn given_key(fields: &HeaderMap) -> Result<Option<HeaderValue>, Error> {
    let mut keys = fields.get_all(SEC_WEBSOCKET_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let is_key = BASE64.decode(key).is_ok_and(|bytes| bytes.len() == 16);
    if !is_key || keys.next().is_some() {
        return Err(Error::InvalidRequest("its Sec-WebSocket-Key is malformed".into()));
    }
    Ok(Some(key.clone()))
}

fn new_key() -> Result<HeaderValue, Error> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::UpgradeFailed("this system has no random numbers".into()))?;
    Ok(HeaderValue::try_from(BASE64.encode(bytes)).expect("base64 is visible ASCII"))
}

/// RFC 6455 §4.1, items 2 to 4 of what a client must check.
fn check(fields: &HeaderMap, key: &HeaderValue) -> Result<(), Error> {
    let failed = |what: &str| Err(Error::UpgradeFailed(what.into()));
    if !is_only(fields, UPGRADE, |value| value.eq_ignore_ascii_case(b"websocket")) {
        return failed("Upgrade does not say websocket");
    }
    let says_upgrade = fields.get_all(CONNECTION).iter().any(|value| {
        let mut items = value.as_bytes().split(|&byte| byte == b',');
        items.any(|item| item.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
    });
    if !says_upgrade {
        return failed("Connection does not say upgrade");
    }
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(GUID);
    let wanted = BASE64.encode(hash.finish());
    if !is_only(fields, SEC_WEBSOCKET_ACCEPT, |value| value == wanted.as_bytes()) {
        return failed("Sec-WebSocket-Accept is not that of the key");
    }
    Ok(())
}

/// Whether there is one field of this name, and its value is right.
fn is_only(fields: &HeaderMap, name: HeaderName, is_right: impl Fn(&[u8]) -> bool) -> bool {
    let mut values = fields.get_all(name).iter();
    values.next().is_some_and(|value| is_right(value.as_bytes())) && values.next().is_none()
}

impl AsyncRead for UpgradedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for UpgradedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_the_answer_to_this_very_key_is_taken() {
        // The example of RFC 6455 §1.3.
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        let accept = ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let good = [("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade"), accept];
        assert_eq!(check(&fields(&good), &key), Ok(()));
        for missing in 0..good.len() {
            let mut rest = good.to_vec();
            rest.remove(missing);
            assert!(check(&fields(&rest), &key).is_err(), "without {:?}", good[missing]);
        }
        let other = HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA==");
        assert!(check(&fields(&good), &other).is_err());
    }

    #[test]
    fn keys_are_sixteen_bytes() {
        assert_eq!(given_key(&HeaderMap::new()), Ok(None));
        assert!(given_key(&fields(&[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")])).unwrap().is_some());
        for bad in ["", "AAAA", "dGhlIHNhbXBsZSBub25jZQ", "!hlIHNhbXBsZSBub25jZQ=="] {
            assert!(given_key(&fields(&[("sec-websocket-key", bad)])).is_err(), "{bad}");
        }
        assert_ne!(new_key().unwrap(), new_key().unwrap());
    }
}
