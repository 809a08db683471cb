//! Logins that count for a connection and not for a request (NTLM, Negotiate; RFC 4559 §6): from the first request of a
//! client's connection that may begin one, ground is told of each that it came by this connection, and keeps the origin's
//! connections apart by that. What is asked so is for whoever sits at the other end of the connection, whatever it says:
//! nothing that is held answers it, and nothing of it is kept. When the client's connection ends, ground is told, and what is
//! logged in ends, too.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use farhop_events::ExchangeId;
use farhop_htotp::RequestHead;
use farhop_htotp::head::CLIENT_CONNECTION;
use http::HeaderValue;

use crate::uplink::Uplink;

/// What is to be known of one connection of a client. Clones are of the same; who answers a request of it has one.
#[derive(Clone)]
pub(crate) struct Login(Arc<Connection>);

struct Connection {
    /// The user who may log in on it, and what ground calls it.
    name: OnceLock<(u64, HeaderValue)>,
    uplink: Uplink,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Login").field(&self.0.name).finish()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // While there is no carrier ground cannot be told; what it keeps ends when it was not used for long.
        if let (Some((user, name)), Some(carrier)) = (self.name.get(), self.uplink.now())
            && let Ok(name) = name.to_str()
        {
            carrier.hop.leave(*user, name);
        }
    }
}

impl Login {
    /// A connection has begun of which ground is told over `uplink`.
    pub(crate) fn new(uplink: Uplink) -> Login {
        Login(Arc::new(Connection { name: OnceLock::new(), uplink }))
    }

    /// A request of `user` came by this connection.
    pub(crate) fn mark(&self, id: ExchangeId, user: u64, head: &mut RequestHead) {
        // What a client says of that is nothing that ground may believe.
        head.fields.remove(CLIENT_CONNECTION);
        let name = match head.logs_in_connection() {
            true => Some(self.0.name.get_or_init(|| (user, new_name(id)))),
            false => self.0.name.get(),
        };
        if let Some((_, name)) = name {
            head.fields.insert(CLIENT_CONNECTION, name.clone());
        }
    }
}

/// A name that no other connection has had: of one run the number of the exchange tells them apart, of several the time.
fn new_name(id: ExchangeId) -> HeaderValue {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    HeaderValue::try_from(format!("{:x}-{id}", since.as_nanos()))
        .expect("digits and a dash are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uplink::Left;
    use http::header::AUTHORIZATION;
    use http::{HeaderMap, Method};

    fn marked(login: &Login, id: u64, authorization: &'static str) -> Option<String> {
        let (scheme, authority, path) = ("http".into(), "site.test".into(), "/".into());
        let mut fields = HeaderMap::from_iter([(CLIENT_CONNECTION, HeaderValue::from_static("a-lie"))]);
        if !authorization.is_empty() {
            fields.insert(AUTHORIZATION, HeaderValue::from_static(authorization));
        }
        let mut head = RequestHead { method: Method::GET, scheme, authority, path, fields };
        login.mark(ExchangeId(id), 1, &mut head);
        head.fields.get(CLIENT_CONNECTION).map(|name| name.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_connection_has_a_name_from_its_first_login_on_and_shares_it_with_none() {
        let login = || Login::new(Uplink::new(tokio::sync::watch::channel(None).1, Left::default()));
        let (one, other) = (login(), login());
        assert_eq!(marked(&one, 1, ""), None);
        assert_eq!(marked(&one, 2, "Basic eDp5"), None);
        let name = marked(&one, 3, "NTLM TlRMTVNTUAABAAAA");
        assert!(name.is_some());
        assert_eq!(
            [marked(&one, 4, "NTLM TlRMTVNTUAADAAAA"), marked(&one, 5, "")],
            [name.clone(), name.clone()]
        );
        assert_eq!(marked(&other, 6, ""), None);
        assert_ne!(marked(&other, 7, "Negotiate YIIF"), name);
    }
}
