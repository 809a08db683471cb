//! Whose a request is, as the rest of the remote asks.

use std::net::IpAddr;

use bytes::Bytes;
use farhop_events::Side;
use farhop_front::{Head, RequestHead, Target};
use http::StatusCode;
use http::header::PROXY_AUTHENTICATE;

use super::{Admission, Pass, challenge};
use crate::Remote;
use crate::answers::Trouble;
use crate::users::User;

/// Whose a request from `address` is and by what, else the answer that asks who it is: 407, which leaves the connection open.
///
/// What is asked of the proxy itself and not through it (`/proxy.pac`, which browsers fetch before they know of any
/// password) is its address's.
pub(crate) async fn identify(
    remote: &Remote,
    address: IpAddr,
    asked: &RequestHead,
) -> Result<(User, Pass), (Head, Bytes)> {
    if matches!(asked.target, Target::Origin(_) | Target::Asterisk) {
        return Ok((remote.users().at(address), Pass::Open));
    }
    let refused = match remote.gate().admit(address, &asked.fields).await {
        Admission::Open => return Ok((remote.users().at(address), Pass::Open)),
        Admission::As(account) => return Ok((remote.users().named(&account.name), Pass::Account(account))),
        Admission::Refused(refused) => refused,
    };
    // RFC 9110 §15.5.8.
    let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    let trouble = Trouble::new(status, Side::User, "http_request_denied", refused.why());
    let (mut head, page) = trouble.page(remote.next_exchange());
    head.fields.insert(PROXY_AUTHENTICATE, challenge(&remote.settings().auth.realm));
    Err((head, page))
}
