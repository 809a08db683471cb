//! `https://farhop.internal/`: the portal inside TLS, for who trusts the CA. Browsers try TLS first; where that could only
//! end in a warning they are told no at once, and go on without it.

use std::net::IpAddr;
use std::sync::Arc;

use farhop_events::{AnsweredFrom, Side};
use farhop_front::{Connection, Head, Responder, Scheme, tls};
use http::{HeaderMap, StatusCode};
use rustls::sign::CertifiedKey;
use tokio::task::JoinSet;

use super::{HOST, Place, serve};
use crate::Remote;
use crate::answers::Trouble;
use crate::carry::Carried;
use crate::tunnel::Wish;

impl Wish {
    /// Answers a CONNECT to the portal's host. Nothing of it crosses, and nobody's switches matter: there is nothing to
    /// look into.
    pub(crate) async fn show_portal(self, remote: &Arc<Remote>, place: Place, responder: Responder) {
        let client = place.client.ip();
        let Some(key) = self.portal_key(remote, client) else {
            let detail = "the pages of this proxy are at http://farhop.internal/, without TLS";
            let trouble = Trouble::new(StatusCode::NOT_FOUND, Side::Remote, "http_request_denied", detail);
            return self.fail(remote, responder, trouble).await;
        };
        let granted = Head { status: StatusCode::OK, fields: HeaderMap::new() };
        let Ok(tunnel) = responder.tunnel(granted).await else { return };
        match tls::accept(tunnel, key, HOST, self.port, remote.within()).await {
            Ok(connection) => {
                remote.consent().trusted(client, HOST, self.port);
                self.show(remote, connection, place).await;
                self.ended(remote, AnsweredFrom::Remote, &Carried::default());
            }
            Err(error) => self.refused(remote, client, &error),
        }
    }

    /// The portal's own certificate; `None` where there is none, or where this client has not believed it of late.
    fn portal_key(&self, remote: &Remote, client: IpAddr) -> Option<Arc<CertifiedKey>> {
        let is_usual = self.port == Scheme::Https.default_port();
        let leaves = remote.leaves().filter(|_| is_usual)?;
        if remote.consent().is_learned(client, HOST, self.port) {
            return None;
        }
        leaves.for_host(HOST).ok()
    }

    async fn show(&self, remote: &Arc<Remote>, mut connection: Connection, place: Place) {
        let mut answers = JoinSet::new();
        let withdrawn = remote.gate().withdrawn(&self.pass);
        tokio::pin!(withdrawn);
        loop {
            let incoming = tokio::select! {
                incoming = connection.next_request() => incoming,
                Some(_) = answers.join_next() => continue,
                () = remote.draining() => break,
                () = &mut withdrawn => break,
            };
            let Ok(Some(incoming)) = incoming else { break };
            let (remote, user) = (Arc::clone(remote), self.user.clone());
            answers.spawn(async move { serve(&remote, incoming, &user, place).await });
        }
        while answers.join_next().await.is_some() {}
    }
}
