//! How the remote reaches ground: over QUIC, over TCP, or over whichever answers, QUIC with a head start. UDP is
//! blocked in many networks, and only trying tells (RFC 8305 does the same with addresses).

mod throttled;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::sleep;

use crate::identity::PublicKey;
use crate::learned::Learned;
use crate::path::PathPlan;
use crate::quic::{self, CarrierError};
use crate::{Connection, Kind, tcp};

/// What a remote rides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Whichever answers.
    Either,
    /// This one alone.
    Only(Kind),
}

/// No carrier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The one that was tried, or whose word is final.
    #[error(transparent)]
    One(#[from] CarrierError),
    /// Neither came to be.
    #[error("{quic}; and {tcp}")]
    Neither {
        /// Why not over QUIC.
        quic: CarrierError,
        /// Why not over TCP.
        tcp: CarrierError,
    },
}

/// Calls ground, as often as needed.
#[derive(Debug, Clone)]
pub struct Dialers {
    quic: quic::Dialer,
    tcp: tcp::Dialer,
    choice: Choice,
    /// What settings say of the path.
    plan: PathPlan,
    doubts: throttled::Doubts,
}

impl Dialers {
    /// Those of a remote on a path like `plan`.
    pub fn new(quic: quic::Dialer, tcp: tcp::Dialer, choice: Choice, plan: &PathPlan) -> Self {
        Dialers { quic, tcp, choice, plan: *plan, doubts: throttled::Doubts::default() }
    }

    /// What carriers have measured of the ways to grounds.
    pub fn learned(&self) -> &Learned {
        self.quic.learned()
    }

    /// What this end rides on.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Calls `addr` and waits until it has proved to hold one of `keys`. With [`Choice::Either`] the `favourite` is
    /// called first, the other after a while or when that has failed; the first answer is kept.
    ///
    /// # Errors
    /// Nobody answers, or who answers is somebody else.
    pub async fn connect(
        &self,
        addr: SocketAddr,
        keys: &[PublicKey],
        favourite: Kind,
    ) -> Result<Connection, CallError> {
        self.doubts.drop_trial();
        if let Choice::Only(kind) = self.choice {
            return Ok(self.call(kind, addr, keys).await?);
        }
        let first = self.call(favourite, addr, keys);
        let second = self.call(favourite.other(), addr, keys);
        tokio::pin!(first, second);
        let first_error = tokio::select! {
            answer = &mut first => match answer {
                Ok(connection) => return Ok(connection),
                Err(error) => Some(error),
            },
            () = sleep(self.head_start(addr)) => None,
        };
        let (first, second) = match first_error {
            Some(error) if is_final(&error) => return Err(error.into()),
            Some(error) => (error, second.await),
            None => tokio::select! {
                answer = &mut first => match answer {
                    Ok(connection) => return Ok(connection),
                    Err(error) if is_final(&error) => return Err(error.into()),
                    Err(error) => (error, second.await),
                },
                answer = &mut second => match answer {
                    Ok(connection) => return Ok(connection),
                    Err(error) if is_final(&error) => return Err(error.into()),
                    Err(error) => match first.await {
                        Ok(connection) => return Ok(connection),
                        Err(first) => (first, Err(error)),
                    },
                },
            },
        };
        let second = match second {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        Err(match favourite {
            Kind::Quic => CallError::Neither { quic: first, tcp: second },
            Kind::Tcp => CallError::Neither { quic: second, tcp: first },
        })
    }

    /// An answer over QUIC takes one round trip. Where none is known, TCP may be called in vain: that costs little, and QUIC
    /// still answers a round trip before it.
    fn head_start(&self, addr: SocketAddr) -> Duration {
        let seen = || self.learned().of(addr.ip()).round_trip.map_or(Duration::ZERO, |seen| seen.least);
        let known = if self.plan.rtt.is_zero() { seen() } else { self.plan.rtt };
        Duration::from_millis(250).max(known * 5 / 4)
    }

    /// Calls `addr` over QUIC without waiting for the answer, where a ground with one of `keys` was reached before.
    pub fn early(&self, addr: SocketAddr, keys: &[PublicKey]) -> Option<quic::Early> {
        if self.choice == Choice::Only(Kind::Tcp) { None } else { self.quic.early(addr, keys) }
    }

    /// Calls `addr` over this kind alone.
    ///
    /// # Errors
    /// As [`Dialers::connect`].
    pub async fn call(
        &self,
        kind: Kind,
        addr: SocketAddr,
        keys: &[PublicKey],
    ) -> Result<Connection, CarrierError> {
        match kind {
            Kind::Quic => self.quic.connect(addr, keys).await.map(Connection::Quic),
            Kind::Tcp => self.tcp.connect(addr, keys).await.map(Connection::Tcp),
        }
    }

    /// This end's public key.
    pub fn public_key(&self) -> PublicKey {
        self.quic.public_key()
    }
}

/// Whether the other way would lead to the same: a ground has answered, and keys do not fit.
fn is_final(error: &CarrierError) -> bool {
    matches!(error, CarrierError::Stranger { .. } | CarrierError::Denied { .. })
}
