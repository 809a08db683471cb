//! Opens connections that speak HTTP: TCP, TLS where the scheme says so, with an issuer that the origin has left out of its
//! chain, and what both sides agree to speak on it.

use crate::connect::{Connector, Destination};
use crate::error::Error;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::pool::Opened;
use crate::request::Scheme;
use crate::settings::Settings;
use crate::tls::{CertificateProblem, HandshakeFailure, Protocol, Tls, Trust};
use farhop_front::trips::round_trip;
use std::sync::Arc;

/// Issuers of one chain that are fetched at the most.
const ISSUERS: usize = 3;

/// What is offered to an origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// The best first.
    pub(crate) protocols: &'static [Protocol],
    /// How many exchanges it lets be under way on an HTTP/2 connection, if it has said so on another.
    pub(crate) streams: Option<usize>,
}

impl Offer {
    /// HTTP/1 and nothing else.
    pub(crate) const HTTP1: Offer = Offer { protocols: &[Protocol::Http1], streams: None };
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Opener {
    connector: Connector,
    tls: Tls,
    settings: Arc<Settings>,
}

impl Opener {
    pub(crate) fn new(connector: Connector, trust: Trust, settings: Arc<Settings>) -> Opener {
        let tls = Tls::new(trust);
        Opener { connector, tls, settings }
    }

    /// Opens a connection; within TLS it speaks one of what is offered, else HTTP/1. A handshake that is cut off without a word is begun
    /// anew, once: who looks for what an origin can't do learns nothing from a server that has just been restarted, and
    /// nothing of any request has been said.
    ///
    /// # Errors
    /// There is none.
    pub(crate) async fn open(
        &self,
        scheme: Scheme,
        destination: &Destination,
        offer: &Offer,
    ) -> Result<Opened, Error> {
        let mut opened = self.open_once(scheme, destination, offer).await;
        if let Err(Error::Tls { failure: HandshakeFailure::Closed, .. }) = opened {
            opened = self.open_once(scheme, destination, offer).await;
        }
        let mut fetched = Vec::new();
        while fetched.len() < ISSUERS
            && let Err(Error::Certificate { problem: CertificateProblem::IssuerMissing { at, .. }, .. }) = &opened
            // One that is known and does not help is not fetched again.
            && !self.tls.issuers().knows(at)
            && let Some(issuer) = self.issuer(at).await
        {
            self.tls.issuers().keep(at.clone(), issuer);
            fetched.push(at.clone());
            opened = self.open_once(scheme, destination, offer).await;
        }
        if matches!(opened, Err(Error::Certificate { .. })) {
            // Anybody may have said so, and another time it may be true.
            fetched.iter().for_each(|url| self.tls.issuers().forget(url));
        }
        opened
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// As [`open`](Self::open), whatever comes of it.
    pub(crate) async fn open_once(
        &self,
        scheme: Scheme,
        destination: &Destination,
        offer: &Offer,
    ) -> Result<Opened, Error> {
        let stream = self.connector.connect(destination).await?;
        if scheme == Scheme::Http {
            return Http1::start(stream, &self.settings).await.map(Opened::Http1);
        }
        let trip = round_trip(&stream);
        let patience = self.settings.connect_timeout();
        let (stream, protocol) = self.tls.connect(stream, destination, offer.protocols, patience).await?;
        match protocol {
            Protocol::Http1 => Http1::start(stream, &self.settings).await.map(Opened::Http1),
            Protocol::Http2 => {
                Http2::start(stream, &self.settings, trip, offer.streams).await.map(Opened::Http2)
            }
        }
    }
}
