//! The connection below a carrier, whichever it rides on: what the ends want to know of it.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::congestion::{self, Driven};
use crate::identity::PublicKey;
use crate::quic::CarrierError;
use crate::tcp;

/// What a carrier rides on. Clones are the same connection.
#[derive(Debug, Clone)]
pub enum Connection {
    /// One QUIC connection.
    Quic(quinn::Connection),
    /// TLS over a few TCP connections.
    Tcp(tcp::Connection),
}

/// The kind of a connection, as logs and events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// QUIC.
    Quic,
    /// TCP.
    Tcp,
}

impl Kind {
    /// The one that it is not.
    #[must_use]
    pub fn other(self) -> Kind {
        match self {
            Kind::Quic => Kind::Tcp,
            Kind::Tcp => Kind::Quic,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Quic => "quic",
            Kind::Tcp => "tcp",
        })
    }
}

impl From<quinn::Connection> for Connection {
    fn from(connection: quinn::Connection) -> Self {
        Connection::Quic(connection)
    }
}

impl From<tcp::Connection> for Connection {
    fn from(connection: tcp::Connection) -> Self {
        Connection::Tcp(connection)
    }
}

/// What both ends call a connection. They draw it from its handshake (RFC 8446 §7.5), so each knows it without a word of the
/// other, no two connections share one, and nobody else can say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name(u64);

impl Name {
    pub(crate) const LABEL: &[u8] = b"EXPORTER-farhop-name";

    /// As a number of at most 62 bits, which HTOTP carries.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl From<[u8; 8]> for Name {
    fn from(drawn: [u8; 8]) -> Self {
        Name(u64::from_be_bytes(drawn) >> 2)
    }
}

impl Connection {
    /// Which it is.
    pub fn kind(&self) -> Kind {
        match self {
            Connection::Quic(_) => Kind::Quic,
            Connection::Tcp(_) => Kind::Tcp,
        }
    }

    /// How many connections it rides on: over TCP further ones join while it is in use.
    pub fn lanes(&self) -> usize {
        match self {
            Connection::Quic(_) => 1,
            Connection::Tcp(connection) => *connection.lanes().borrow(),
        }
    }

    /// What both ends call it; none before the handshake is over at this end.
    pub fn name(&self) -> Option<Name> {
        match self {
            Connection::Quic(connection) => quic_name(connection),
            Connection::Tcp(connection) => connection.name(),
        }
    }

    /// The peer.
    pub fn remote_address(&self) -> SocketAddr {
        match self {
            Connection::Quic(connection) => connection.remote_address(),
            Connection::Tcp(connection) => connection.remote_address(),
        }
    }

    /// Round-trip time, as far as it is known.
    pub fn rtt(&self) -> Duration {
        match self {
            Connection::Quic(connection) => connection.rtt(),
            Connection::Tcp(connection) => connection.rtt(),
        }
    }

    /// How what this end sends on it is driven, where it is not the kernel's affair.
    pub fn driven(&self) -> Option<Driven> {
        match self {
            Connection::Quic(connection) => congestion::driven(connection),
            Connection::Tcp(_) => None,
        }
    }

    /// Why it ended, if it has, in the words of an end with the key `own` that reached it at `addr`.
    pub fn close_reason(&self, addr: SocketAddr, own: PublicKey) -> Option<CarrierError> {
        match self {
            Connection::Quic(connection) => {
                connection.close_reason().map(|error| CarrierError::explain(&error, addr, own))
            }
            Connection::Tcp(connection) => connection.close_reason(),
        }
    }

    /// Completes when it has ended.
    pub async fn closed(&self) {
        match self {
            Connection::Quic(connection) => drop(connection.closed().await),
            Connection::Tcp(connection) => drop(connection.closed().await),
        }
    }
}

/// What both ends call a connection over QUIC; none before the handshake is over at this end.
pub(crate) fn quic_name(connection: &quinn::Connection) -> Option<Name> {
    let mut drawn = [0; 8];
    connection.export_keying_material(&mut drawn, Name::LABEL, b"").ok()?;
    Some(Name::from(drawn))
}
