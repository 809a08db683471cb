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
use crate::portal;
use crate::users::User;

/// Whose a request from `address` is and by what, else the answer that asks who it is: 407, which leaves the connection open. The
/// portal's pages asked for as of a server are refused: a browser gives its password for a proxy to none but the proxy that it has.
///
/// What else is asked of the proxy itself and not through it (`/proxy.pac`, which browsers fetch before they know of any
/// password) is its address's.
pub(crate) async fn identify(
    remote: &Remote,
    address: IpAddr,
    asked: &RequestHead,
) -> Result<(User, Pass), (Head, Bytes)> {
    if portal::is_open(asked) {
        return Ok((remote.users().at(address), Pass::Open));
    }
    let refused = match remote.gate().admit(address, &asked.fields).await {
        Admission::Open => return Ok((remote.users().at(address), Pass::Open)),
        Admission::As(account) => return Ok((remote.users().named(&account.name), Pass::Account(account))),
        Admission::Refused(refused) => refused,
    };
    if matches!(asked.target, Target::Origin(_)) {
        // RFC 9110 §15.5.4. Browsers take 407 for an attack where they use no proxy (§15.5.8), and 401 would have them show, and
        // keep for any host of this name, a question of a server's.
        let why = "these pages are for who has given a name and a password: set this proxy in the browser, then open http://farhop.internal/";
        let trouble = Trouble::new(StatusCode::FORBIDDEN, Side::User, "http_request_denied", why);
        return Err(trouble.page(remote.next_exchange()));
    }
    // RFC 9110 §15.5.8.
    let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    let trouble = Trouble::new(status, Side::User, "http_request_denied", refused.why());
    let (mut head, page) = trouble.page(remote.next_exchange());
    head.fields.insert(PROXY_AUTHENTICATE, challenge(&remote.settings().auth.realm));
    Err((head, page))
}
