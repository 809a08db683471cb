//! CONNECT where its TLS may be looked into: the client's handshake is answered here, at once, while ground resolves,
//! connects and verifies; what is asked inside goes the way of every request. Whatever does not look like a browser that
//! trusts our CA goes through untouched, with every byte that was read of it, and is learned for next time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use farhop_authority::Leaves;
use farhop_consent::{Decision, Lesson, Stage};
use farhop_events::{AnsweredFrom, Bypass, Event, Side};
use farhop_front::tls::{self, HandshakeError, Opening, speaks_http};
use farhop_front::{Connection, Responder, Tunnel};
use http::Method;
use rustls::sign::CertifiedKey;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::Remote;
use crate::answers::Trouble;
use crate::carry::Carried;
use crate::clients::{self, Client};
use crate::consent::told;
use crate::exchange::Exchange;
use crate::login::Login;
use crate::request::Way;
use crate::tunnel::Wish;
use crate::uplink::Carrier;

/// How long a client may take for its first word. One that is silent waits for the server to begin.
const PATIENCE: Duration = Duration::from_secs(1);
/// Who leaves within this time of the handshake, having asked nothing, has not liked what it saw. A connection that a
/// browser made ahead of need is kept for longer.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How long a client that names no protocol in its handshake may take for its first word inside: who speaks HTTP without
/// naming it has a request to make, and who waits for the server to begin would wait for ever.
const QUIET: Duration = Duration::from_secs(3);

/// A type of RFC 9209 §2.3.
const BAD_CERTIFICATE: &str = "tls_certificate_error";
/// What ground says of answers that break a rule, which browsers may overlook (RFC 9209 §2.3). One says nothing of the host's others.
const SLOPPY: [&str; 2] = ["http_protocol_error", "http_response_header_section_size"];
/// Ground's word for an origin that asks for a certificate of the user's, whether it would do without one or not.
const CLIENT_CERTIFICATE: &str = "client_certificate_wanted";
/// Ground's word for a handshake that an origin broke off without saying what it can't do.
const CUT_OFF: &str = "tls_cut_off";

/// A connection that can be looked into.
struct Fit {
    tunnel: Tunnel,
    key: Arc<CertifiedKey>,
    /// Its client has named HTTP in its handshake (ALPN).
    names_http: bool,
}

/// Why a connection is not looked into after all.
enum Unfit {
    /// It goes through untouched.
    Other { tunnel: Tunnel, why: Bypass, lesson: Option<Lesson> },
    /// Its client has left without a word.
    Gone,
}

impl Wish {
    /// Answers CONNECT: looks into it where everybody agrees, else lets it through.
    pub(crate) async fn connect(self, remote: Arc<Remote>, client: IpAddr, responder: Responder) {
        let decision = self.decide(&remote, client);
        let Some((carrier, tunnel)) = self.grant(&remote, responder).await else { return };
        self.go_on(&remote, client, decision, carrier, tunnel).await;
    }

    /// What was decided is done.
    pub(crate) async fn go_on(
        self,
        remote: &Arc<Remote>,
        client: IpAddr,
        decision: Decision,
        carrier: Carrier,
        tunnel: Tunnel,
    ) {
        match (decision, remote.leaves()) {
            (Decision::Intercept, Some(leaves)) => match leaves.may_vouch_for(self.bare_host()) {
                Ok(()) => {
                    self.announce(remote, &carrier);
                    self.intercept(remote, leaves, carrier, tunnel, client).await;
                }
                // Known before the client has said a word: neither it nor ground is kept busy with what comes to nothing.
                Err(error) => {
                    tracing::debug!(target: "farhop", "no certificate for {}: {error}", self.host);
                    self.tell_bypassed(remote, Bypass::NoHost, None);
                    self.pass(remote, &carrier, tunnel, || {}).await;
                }
            },
            (Decision::Intercept, None) => self.pass(remote, &carrier, tunnel, || {}).await,
            (Decision::PassThrough(why), _) => {
                if remote.leaves().is_some() {
                    let (why, detail) = told(why);
                    self.tell_bypassed(remote, why, detail);
                }
                self.pass(remote, &carrier, tunnel, || {}).await;
            }
        }
    }

    /// Lets ground resolve, connect and verify, unless it was just told to.
    fn announce(&self, remote: &Remote, carrier: &Carrier) {
        let host = self.bare_host();
        let word = (carrier.generation, self.user.id, host.to_ascii_lowercase(), self.port);
        if remote.announced().is_news(word, Instant::now()) {
            carrier.hop.prepare(self.user.id, "https", host, self.port);
        }
    }

    pub(crate) fn decide(&self, remote: &Remote, client: IpAddr) -> Decision {
        remote.consent().decide(&self.user, client, self.bare_host(), self.port)
    }

    async fn intercept(
        self,
        remote: &Arc<Remote>,
        leaves: &Leaves,
        carrier: Carrier,
        tunnel: Tunnel,
        client: IpAddr,
    ) {
        let Fit { tunnel, key, names_http } = match self.look(remote, leaves, tunnel).await {
            Ok(fit) => fit,
            Err(Unfit::Other { tunnel, why, lesson }) => {
                let learn = |lesson| remote.consent().learn(lesson, client, self.bare_host(), self.port);
                if let Some(lesson) = lesson {
                    learn(lesson);
                }
                self.tell_bypassed(remote, why, None);
                // No server of TLS speaks first, but to complain; next time nobody waits for the client to.
                return self.pass(remote, &carrier, tunnel, || learn(Lesson::NotTls)).await;
            }
            Err(Unfit::Gone) => return self.ended(remote, AnsweredFrom::Remote, &Carried::default()),
        };
        match tls::accept(tunnel, key, &self.host, self.port, remote.within()).await {
            Ok(connection) => {
                remote.consent().trusted(client, self.bare_host(), self.port);
                let (host, port) = (self.host.clone(), self.port);
                remote.bus().emit(Event::Intercepted { exchange: self.id, host, port });
                self.converse(remote, connection, client, names_http).await;
            }
            Err(error) => self.refused(remote, client, &error),
        }
    }

    /// The client's handshake has come to nothing, and what that says of the client is learned.
    pub(crate) fn refused(&self, remote: &Remote, client: IpAddr, error: &HandshakeError) {
        match error {
            HandshakeError::Distrusted(_) | HandshakeError::Incompatible(_) => {
                remote.consent().learn(Lesson::Distrusted, client, self.bare_host(), self.port);
            }
            HandshakeError::Left(_) => {
                remote.consent().left(Stage::Handshake, client, self.bare_host(), self.port);
            }
            _ => {}
        }
        self.failed(remote, Side::User, error.to_string(), None);
    }

    /// Reads the client's first word and finds the certificate that answers it; nothing is answered yet.
    async fn look(&self, remote: &Remote, leaves: &Leaves, tunnel: Tunnel) -> Result<Fit, Unfit> {
        let unfit = |tunnel, why, lesson| Err(Unfit::Other { tunnel, why, lesson });
        match tls::open(tunnel, patience(remote, PATIENCE)).await {
            Opening::Other { tunnel } => unfit(tunnel, Bypass::NotTls, Some(Lesson::NotTls)),
            // It may wait for the server to begin, or be slow: nothing is known of the host by it.
            Opening::Silent { tunnel } => unfit(tunnel, Bypass::NotTls, None),
            Opening::Gone => Err(Unfit::Gone),
            // Encrypted (ECH, RFC 9849) or hidden: who it is for is not ours to know. On a connection to an address that may be another
            // host each time; to a host by its name this client will do so again, and no connection is prepared for it in vain.
            Opening::Hello { sni, tunnel, .. } if !is_for(sni.as_deref(), self.bare_host()) => {
                let is_address = self.bare_host().parse::<IpAddr>().is_ok();
                unfit(tunnel, Bypass::NameDiffers, (!is_address).then_some(Lesson::NameDiffers))
            }
            Opening::Hello { alpn, tunnel, .. } if !speaks_http(&alpn) => {
                unfit(tunnel, Bypass::UnknownAlpn, Some(Lesson::UnknownAlpn))
            }
            Opening::Hello { alpn, tunnel, .. } => match leaves.for_host(self.bare_host()) {
                Ok(key) => Ok(Fit { tunnel, key, names_http: !alpn.is_empty() }),
                Err(error) => {
                    tracing::debug!(target: "farhop", "no certificate for {}: {error}", self.host);
                    unfit(tunnel, Bypass::NoHost, None)
                }
            },
        }
    }

    /// Serves what the client asks inside, several requests at a time where the protocol has them, until the last of them
    /// has ended: a WebSocket outlives the HTTP before it.
    async fn converse(
        &self,
        remote: &Arc<Remote>,
        mut connection: Connection,
        address: IpAddr,
        names_http: bool,
    ) {
        let begun = Instant::now();
        let says_http = tokio::select! {
            says_http = says_http(&mut connection, names_http, patience(remote, QUIET)) => says_http,
            () = remote.draining() => true,
            () = remote.gate().withdrawn(&self.pass) => true,
        };
        if !says_http {
            remote.consent().learn(Lesson::NotHttpWithin, address, self.bare_host(), self.port);
            return self.failed(remote, Side::User, "the client does not speak HTTP inside TLS".into(), None);
        }
        let (user, pass) = (self.user.clone(), self.pass.clone());
        let login = Login::new(remote.uplink().clone());
        let client = Client { address, user, pass, login };
        let withdrawn = remote.gate().withdrawn(&self.pass);
        tokio::pin!(withdrawn);
        let mut switches = remote.consent().switches();
        let mut has_asked = false;
        let mut exchanges = JoinSet::new();
        let has_left = loop {
            let incoming = tokio::select! {
                // What was asked after the switch is not read.
                biased;
                Ok(()) = switches.changed() => match self.decide(remote, address) {
                    Decision::Intercept => continue,
                    _ => break false,
                },
                incoming = connection.next_request() => incoming,
                Some(_) = exchanges.join_next() => continue,
                () = remote.draining() => {
                    // What is under way comes to its end by itself.
                    exchanges.detach_all();
                    break false;
                }
                // The answers under way are for who could ask for them still.
                () = &mut withdrawn => break false,
            };
            match incoming {
                Ok(Some(mut incoming)) => {
                    if !std::mem::replace(&mut has_asked, true) {
                        remote.consent().went_on(Stage::FirstRequest, address, self.bare_host(), self.port);
                    }
                    // What was said or learned meanwhile counts from the next connection on.
                    if self.decide(remote, address) != Decision::Intercept {
                        incoming.responder.close_after();
                    }
                    let (remote, client) = (Arc::clone(remote), client.clone());
                    exchanges.spawn(async move {
                        clients::serve_within(&remote, incoming, &client, Way::Intercepted).await
                    });
                }
                Ok(None) => break true,
                Err(error) => {
                    tracing::debug!(target: "farhop", "client {address}, within {}: {error}", self.host);
                    break true;
                }
            }
        };
        if has_left
            && !has_asked
            && begun.elapsed() < patience(remote, if names_http { AT_ONCE } else { QUIET })
        {
            remote.consent().left(Stage::FirstRequest, address, self.bare_host(), self.port);
        }
        drop(connection);
        while exchanges.join_next().await.is_some() {}
        self.ended(remote, AnsweredFrom::Remote, &Carried::default());
    }

    fn tell_bypassed(&self, remote: &Remote, why: Bypass, detail: Option<String>) {
        let (host, port) = (self.host.clone(), self.port);
        remote.bus().emit(Event::Bypassed { exchange: self.id, host, port, why, detail });
    }
}

/// So long, or as long as an answer takes that has to cross a slow network of the clients'.
pub(crate) fn patience(remote: &Remote, least: Duration) -> Duration {
    remote.within().trips.trips().patience(least)
}

/// Whether what is said inside is HTTP, as far as it can be told. Who has named it may say a bad request, which is answered so, and be
/// silent for as long as it likes: browsers connect ahead of need.
async fn says_http(connection: &mut Connection, names_http: bool, patience: Duration) -> bool {
    // Who has left is judged by when it did.
    names_http || timeout(patience, connection.speaks_http()).await.is_ok_and(|word| word != Some(false))
}

impl Exchange {
    /// Learns from what ground says of an origin that cannot be looked into: what was asked next of the same connection
    /// would fail in the same way, so the connection ends and the client is told to come again.
    pub(crate) fn learn_from(&self, remote: &Remote, responder: &mut Responder, trouble: &mut Trouble) {
        if self.fetch.head.scheme != "https" {
            return;
        }
        if trouble.token == BAD_CERTIFICATE || SLOPPY.contains(&&*trouble.token) {
            trouble.host = self.fetch.url.host_str().map(str::to_owned);
            trouble.detail += "; whoever wants it all the same can switch this site off at http://farhop.internal/, and the browser judges by itself";
        }
        let Some((host, port)) = self.place() else { return };
        let lesson = match lesson(&trouble.token) {
            Some(lesson) => lesson,
            None if trouble.token == CUT_OFF && remote.consent().cut_off(host, port) => Lesson::NotHttp,
            None => return,
        };
        remote.consent().learn(lesson, self.client, host, port);
        responder.close_after();
        trouble.detail += "; from now on its connections go through untouched: reload the page";
        // Without a lesson, as where the name is none, it would come again for ever.
        let passes = remote.consent().decide(&self.user, self.client, host, port) != Decision::Intercept;
        trouble.reloads = passes
            && self.fetch.head.method == Method::GET
            && farhop_bundle::is_navigation(&self.fetch.head.fields);
        // Who asks for a certificate does so before it looks at the request. Browsers come again by themselves; of other clients not all do.
        trouble.passes_elsewhere = passes
            && (trouble.token == CLIENT_CERTIFICATE || self.fetch.is_repeatable())
            && self.fetch.head.fields.contains_key("sec-fetch-mode");
    }

    /// Notes that the origin has answered, so that what its handshakes came to before says nothing of it.
    pub(crate) fn heard_from(&self, remote: &Remote) {
        if self.fetch.head.scheme == "https"
            && let Some((host, port)) = self.place()
        {
            remote.consent().answered(host, port);
        }
    }

    /// Where it is asked.
    fn place(&self) -> Option<(&str, u16)> {
        let url = &self.fetch.url;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
        Some((host, url.port_or_known_default()?))
    }
}

impl Trouble {
    /// Whether it is about who the origin is, or about what only a browser can speak with it.
    pub(crate) fn is_for_the_browser(&self) -> bool {
        self.token == BAD_CERTIFICATE || lesson(&self.token).is_some()
    }
}

/// What a failure of a request teaches (types of RFC 9209 §2.3, and words of ground's own).
fn lesson(token: &str) -> Option<Lesson> {
    match token {
        CLIENT_CERTIFICATE => Some(Lesson::ClientCertificate),
        // Browsers may speak what ground does not, older versions of TLS say.
        "not_http" | "tls_protocol_error" | "tls_alert_received" => Some(Lesson::NotHttp),
        _ => None,
    }
}

/// Whether a handshake that names `sni` is for `host`. One that names a host on a connection to an address expects the host's
/// certificate, which says nothing of the address: ground could not verify it.
fn is_for(sni: Option<&str>, host: &str) -> bool {
    sni.is_none_or(|sni| same(sni, host))
}

fn same(one: &str, other: &str) -> bool {
    let bare = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_for_the_host_of_its_connect() {
        for (sni, host, fits) in [
            (Some("A.example"), "a.example", true),
            (Some("a.example."), "a.example", true),
            (Some("b.example"), "a.example", false),
            (Some("www.a.example"), "a.example", false),
            (Some("a.example"), "192.0.2.1", false),
            (Some("a.example"), "2001:db8::1", false),
            (Some("192.0.2.1"), "192.0.2.1", true),
            (None, "192.0.2.1", true),
            (None, "a.example", true),
        ] {
            assert_eq!(is_for(sni, host), fits, "{sni:?} {host}");
        }
    }

    #[test]
    fn only_what_a_browser_could_do_better_by_itself_teaches_a_bypass() {
        assert_eq!(lesson("client_certificate_wanted"), Some(Lesson::ClientCertificate));
        assert_eq!(lesson("not_http"), Some(Lesson::NotHttp));
        // One answer that breaks a rule says nothing of the host's others.
        for token in [
            "http_protocol_error",
            "tls_certificate_error",
            "connection_refused",
            "dns_error",
            "http_response_incomplete",
            // Not the first time.
            CUT_OFF,
        ] {
            assert_eq!(lesson(token), None, "{token}");
        }
    }
}
