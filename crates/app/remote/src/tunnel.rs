//! A tunnel across the hop, for a CONNECT that is not looked into (`intercept` decides that) or a connection that was caught
//! (`transparent`). The client of a CONNECT hears of success at once and its first bytes cross together with the wish
//! for the tunnel; when ground cannot connect, the client's connection is reset and the next CONNECT is told why.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use farhop_diffserv::classify::Flow;
use farhop_events::{AnsweredFrom, Crossing, Event, ExchangeId, Side};
use farhop_front::{Departure, Head, Responder, Tunnel};
use farhop_htotp::frame::{self, Class, Failure};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::Remote;
use crate::answers::Trouble;
use crate::auth::Pass;
use crate::calls::Signalling;
use crate::carry::{Carried, Passed, Word, carry};
use crate::class;
use crate::shown::{self, Shown};
use crate::udp::is_of_sip;
use crate::uplink::Carrier;
use crate::users::User;

/// What a record of TLS begins with that tells of an end or an error (RFC 8446 §5.1).
const TLS_ALERT: u8 = 21;

/// A tunnel that is wanted.
pub(crate) struct Wish {
    pub(crate) id: ExchangeId,
    pub(crate) user: User,
    /// Where the client is.
    pub(crate) client: IpAddr,
    /// By what the client came in: when it is good no more, this ends.
    pub(crate) pass: Pass,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The address that the client connected to, if its connection was caught. What is carried as it is goes there.
    pub(crate) at: Option<IpAddr>,
    /// The address of the client, if servers are to see it.
    pub(crate) name: Option<IpAddr>,
    /// The class of its port, if the operator's lists give it one.
    pub(crate) listed: Option<Class>,
    pub(crate) started: Instant,
}

/// What is looked at of what a tunnel carries.
struct Watched<'a> {
    shown: Shown,
    /// What it counts as.
    class: Class,
    /// Of one by a port of SIP.
    signalling: Option<Signalling<'a>>,
}

impl Wish {
    /// Answers 200 and gives the raw connection, unless there is a reason to refuse.
    pub(crate) async fn grant(&self, remote: &Remote, responder: Responder) -> Option<(Carrier, Tunnel)> {
        let settings = remote.settings();
        if !settings.connect_ports.iter().any(|range| range.contains(self.port)) {
            let detail = format!("CONNECT to port {} is not allowed; add it to 'connect_ports'", self.port);
            let trouble = Trouble::new(StatusCode::FORBIDDEN, Side::Remote, "http_request_denied", detail);
            self.fail(remote, responder, trouble).await;
            return None;
        }
        if let Some(trouble) = remote.unreachable().why(&self.host, self.port, Instant::now()) {
            self.fail(remote, responder, trouble).await;
            return None;
        }
        let carrier = tokio::select! {
            carrier = remote.uplink().carrier(Instant::now() + remote.outage()) => carrier,
            // Nothing can be read by a client that is gone, and nothing was sent for it.
            Departure::Reset = responder.departure() => return None,
        };
        let Some(carrier) = carrier else {
            self.fail(remote, responder, Trouble::no_carrier()).await;
            return None;
        };
        let head = Head { status: StatusCode::OK, fields: HeaderMap::new() };
        let tunnel = responder.tunnel(head).await.ok()?;
        Some((carrier, tunnel))
    }

    /// Carries what the client says to its host, unseen. `server_first` is told if the host speaks before the client
    /// does, and not TLS.
    pub(crate) async fn pass(
        &self,
        remote: &Remote,
        carrier: &Carrier,
        tunnel: Tunnel,
        server_first: impl Fn(),
    ) {
        remote.bus().emit(Event::RequestCrossed {
            exchange: self.id,
            page: None,
            why: Crossing::Tunnel,
            field: None,
        });
        let mut begins = self.flow();
        shown::hear(&mut begins, tunnel.early().to_vec());
        let class = remote.rules().of_connection(remote.now(), begins, self.listed);
        let destination = self.at.map_or_else(|| self.bare_host().to_owned(), |at| at.to_string());
        let asked = frame::Tunnel {
            tunnel: self.id.0,
            user: self.user.id,
            class,
            host: destination,
            port: self.port,
            client: self.name,
            marked: false,
        };
        let (sender, receiver) = carrier.hop.open_tunnel(asked);
        let hear = |word: Word<'_>| match word {
            Word::Opened => {
                let (host, port) = (self.host.clone(), self.port);
                remote.bus().emit(Event::TunnelOpened { exchange: self.id, host, port });
            }
            // A server of TLS whose patience is at an end says so.
            Word::ServerFirst(said) if said.first() == Some(&TLS_ALERT) => {}
            Word::ServerFirst(_) => server_first(),
            Word::Failed(failure) => self.unreachable(remote, failure),
        };
        let idle = match (self.at, remote.settings()) {
            (Some(_), settings) => settings.transparent.idle,
            (None, settings) => settings.timeouts.tunnel_idle,
        };
        let over = remote.gate().withdrawn(&self.pass);
        let settings = remote.settings();
        let calls = remote.flows.get().filter(|_| is_of_sip(self.port, &settings)).map(|flows| flows.calls());
        let signalling = calls.map(Signalling::of);
        let watched = Mutex::new(Watched { shown: Shown::new(self.flow()), class, signalling });
        let judge = |passed: Passed<'_>| self.judge(remote, &watched, &passed);
        let carried = carry(tunnel, sender, receiver, idle, over, hear, judge).await;
        if !carried.failed {
            self.ended(remote, AnsweredFrom::Asked, &carried);
        }
    }

    /// What is known of it before its client says anything.
    fn flow(&self) -> Flow {
        let mut flow = class::connection(self.client, &self.host, self.port);
        if let Some(at) = self.at {
            flow.to.set_ip(at);
        }
        flow
    }

    /// Another class, where it shows by what passes that it has one.
    fn judge(&self, remote: &Remote, watched: &Mutex<Watched<'_>>, passed: &Passed<'_>) -> Option<Class> {
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Watched { shown, class, signalling } = &mut *watched;
        let now = remote.now();
        let may_differ = match *passed {
            Passed::Said(bytes) => {
                signalling.iter_mut().for_each(|it| it.said(Instant::now(), bytes));
                shown.said(now, bytes)
            }
            Passed::Heard(bytes) => {
                signalling.iter_mut().for_each(|it| it.heard(Instant::now(), bytes));
                shown.passed(now, bytes.len())
            }
        };
        if !may_differ {
            return None;
        }
        let judged = remote.rules().of_connection(now, shown.flow().clone(), self.listed);
        (std::mem::replace(class, judged) != judged).then_some(judged)
    }

    /// The host without the brackets of an IPv6 address.
    pub(crate) fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// As events name it: a connection that was caught has asked for nothing but itself.
    pub(crate) fn method(&self) -> &'static str {
        if self.at.is_some() { "TCP" } else { "CONNECT" }
    }

    /// As events and logs show where it leads.
    pub(crate) fn url(&self, remote: &Remote) -> String {
        remote.bus().url(&format!("{}:{}", self.host, self.port))
    }

    /// Ground could not connect: the client will be cut off, and told when it asks again.
    fn unreachable(&self, remote: &Remote, failure: &Failure) {
        let trouble = Trouble::from_ground(failure);
        // That an address does not answer says nothing of the name that its client knows it by.
        if trouble.side == Side::Origin && self.at.is_none() {
            remote.unreachable().note(&self.host, self.port, trouble.clone(), Instant::now());
        }
        self.failed(remote, trouble.side, trouble.detail, None);
    }

    /// Answers with an error page, and tells why.
    pub(crate) async fn fail(&self, remote: &Remote, responder: Responder, trouble: Trouble) {
        let (head, page) = trouble.page(self.id);
        // The client may be gone too; the event says what failed first.
        let _ = responder.respond(head, page).await;
        self.failed(remote, trouble.side, trouble.detail, Some(trouble.status.as_u16()));
    }

    pub(crate) fn failed(&self, remote: &Remote, side: Side, error: String, status: Option<u16>) {
        remote.bus().emit(Event::Failed {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.method().into(),
            url: self.url(remote),
            side,
            error,
            status,
            bytes: 0,
        });
    }

    pub(crate) fn ended(&self, remote: &Remote, from: AnsweredFrom, carried: &Carried) {
        remote.bus().emit(Event::Answered {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.method().into(),
            url: self.url(remote),
            status: 200,
            from,
            bytes: carried.down,
            upload_bytes: carried.up,
            first_byte_ms: 0,
            total_ms: self.started.elapsed().as_millis() as u64,
        });
    }
}
