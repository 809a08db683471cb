//! Why there is no carrier, or no longer one, in words an operator can act on. Only here are quinn's
//! errors taken apart, and those of TLS over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use quinn::{ConnectionError, TransportErrorCode};
use rustls::{AlertDescription, CertificateError};

use crate::identity::PublicKey;
use crate::tls::ACCESS_DENIED;

/// What became of a carrier, or of the attempt to have one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CarrierError {
    /// The peer presented a key that this end does not list.
    #[error(
        "{addr} presents the key '{key}', which is not among its peer's keys in this end's settings: add it there if it is the right one"
    )]
    Stranger {
        /// Who.
        addr: SocketAddr,
        /// Its key.
        key: PublicKey,
    },
    /// The peer does not list this end's key.
    #[error("{addr} refuses this end's key: add '{own}' to this end's entry in the settings there")]
    Denied {
        /// Who refused.
        addr: SocketAddr,
        /// The key to be added there.
        own: PublicKey,
    },
    /// Nobody answered.
    #[error("{addr} did not answer within {} s: check the address, that the other end runs, and that UDP passes", after.as_secs_f32())]
    NoAnswer {
        /// Who was called.
        addr: SocketAddr,
        /// How long it was waited for.
        after: Duration,
    },
    /// No connection over TCP.
    #[error(
        "{addr} cannot be reached over TCP: {detail}; check the address, that the other end runs, and that TCP passes"
    )]
    Unreachable {
        /// Who was called.
        addr: SocketAddr,
        /// What the system says.
        detail: String,
    },
    /// A connection of a carrier over TCP has ended without a farewell.
    #[error("a TCP connection to {addr} has ended: {detail}")]
    Cut {
        /// The peer.
        addr: SocketAddr,
        /// What the system says.
        detail: String,
    },
    /// An established carrier fell silent for longer than the idle timeout.
    #[error("{addr} fell silent, the link may be cut")]
    Silent {
        /// The peer.
        addr: SocketAddr,
    },
    /// The peer has restarted and knows nothing of this carrier (stateless reset).
    #[error("{addr} has restarted and forgotten this carrier")]
    Restarted {
        /// The peer.
        addr: SocketAddr,
    },
    /// The peer closed the carrier on purpose.
    #[error("{addr} closed the carrier: {reason} (code {code})")]
    Closed {
        /// The peer.
        addr: SocketAddr,
        /// HTOTP's close code.
        code: u64,
        /// What it says.
        reason: String,
    },
    /// This end closed the carrier.
    #[error("this end closed the carrier to {addr}")]
    ClosedHere {
        /// The peer.
        addr: SocketAddr,
    },
    /// The peer takes no new carriers now.
    #[error("{addr} takes no new carriers, it may be shutting down")]
    Refusing {
        /// The peer.
        addr: SocketAddr,
    },
    /// The peer does not speak this protocol, or breaks it.
    #[error("{addr} does not speak htotp/1 as expected: {detail}")]
    Protocol {
        /// The peer.
        addr: SocketAddr,
        /// What went wrong.
        detail: String,
    },
    /// This end cannot call that address or set up the handshake.
    #[error("{addr} cannot be called: {detail}")]
    Setup {
        /// The address.
        addr: SocketAddr,
        /// Why.
        detail: String,
    },
}

impl CarrierError {
    /// Explains what quinn says about the connection of an end with the key `own` to `addr`.
    pub fn explain(error: &ConnectionError, addr: SocketAddr, own: PublicKey) -> Self {
        let denied = TransportErrorCode::crypto(ACCESS_DENIED);
        match error {
            ConnectionError::ConnectionClosed(close) if close.error_code == denied => {
                CarrierError::Denied { addr, own }
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
            {
                CarrierError::Refusing { addr }
            }
            ConnectionError::ConnectionClosed(close) => {
                CarrierError::Protocol { addr, detail: close.to_string() }
            }
            ConnectionError::ApplicationClosed(close) => CarrierError::Closed {
                addr,
                code: close.error_code.into_inner(),
                reason: String::from_utf8_lossy(&close.reason).into_owned(),
            },
            ConnectionError::TransportError(error) => {
                CarrierError::Protocol { addr, detail: error.to_string() }
            }
            ConnectionError::VersionMismatch => {
                CarrierError::Protocol { addr, detail: "no QUIC version in common".into() }
            }
            ConnectionError::Reset => CarrierError::Restarted { addr },
            ConnectionError::TimedOut => CarrierError::Silent { addr },
            ConnectionError::LocallyClosed => CarrierError::ClosedHere { addr },
            ConnectionError::CidsExhausted => {
                CarrierError::Setup { addr, detail: "no connection ids left".into() }
            }
        }
    }

    /// As [`CarrierError::explain`] for a handshake that failed, in which the peer had shown `key`.
    pub(super) fn explain_handshake(
        error: &ConnectionError,
        addr: SocketAddr,
        own: PublicKey,
        key: Option<PublicKey>,
    ) -> Self {
        let denied = TransportErrorCode::crypto(ACCESS_DENIED);
        match (error, key) {
            (ConnectionError::TransportError(error), Some(key)) if error.code == denied => {
                CarrierError::Stranger { addr, key }
            }
            _ => CarrierError::explain(error, addr, own),
        }
    }

    /// Explains the end of a TCP connection between an end with the key `own` and `addr`, which had shown `key` if their
    /// handshake went so far.
    pub(crate) fn explain_tcp(
        error: &io::Error,
        addr: SocketAddr,
        own: PublicKey,
        key: Option<PublicKey>,
    ) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match (tls, key) {
            (Some(rustls::Error::AlertReceived(AlertDescription::AccessDenied)), _) => {
                CarrierError::Denied { addr, own }
            }
            (
                Some(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
                Some(key),
            ) => CarrierError::Stranger { addr, key },
            (Some(error), _) => CarrierError::Protocol { addr, detail: error.to_string() },
            (None, None) => CarrierError::Unreachable { addr, detail: error.to_string() },
            (None, Some(_)) => CarrierError::Cut { addr, detail: error.to_string() },
        }
    }

    /// Whether calling again soon can help without anyone changing settings.
    pub fn retry_can_help(&self) -> bool {
        match self {
            CarrierError::NoAnswer { .. }
            | CarrierError::Unreachable { .. }
            | CarrierError::Cut { .. }
            | CarrierError::Silent { .. }
            | CarrierError::Restarted { .. }
            | CarrierError::Refusing { .. }
            | CarrierError::Closed { .. } => true,
            CarrierError::Stranger { .. }
            | CarrierError::Denied { .. }
            | CarrierError::ClosedHere { .. }
            | CarrierError::Protocol { .. }
            | CarrierError::Setup { .. } => false,
        }
    }
}
