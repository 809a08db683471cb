//! What is known of a flow.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use farhop_consent::Host;
use farhop_units::{BitRate, Bytes};

use crate::dscp::Codepoint;

/// The protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What is known of a flow; what is not known yet is left empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// The protocol above IP.
    pub protocol: Protocol,
    /// Who began it.
    pub from: SocketAddr,
    /// Where it leads.
    pub to: SocketAddr,
    /// What its packets are marked with.
    pub dscp: Option<Codepoint>,
    /// The name in its hello, of TLS or QUIC (RFC 6066 §3).
    pub sni: Option<Host>,
    /// The protocols that its hello offers (RFC 7301).
    pub alpn: Vec<String>,
    /// Names that DNS answers seen had this destination for.
    pub names: Vec<Host>,
    /// The first bytes of who began it.
    pub first_bytes: Vec<u8>,
    /// How it has behaved.
    pub seen: Option<Seen>,
}

/// How a flow has behaved, both directions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// From the first of them to the last.
    pub over: Duration,
}

impl Flow {
    /// A flow of which only this is known.
    pub fn new(protocol: Protocol, from: SocketAddr, to: SocketAddr) -> Flow {
        let (alpn, names, first_bytes) = (Vec::new(), Vec::new(), Vec::new());
        Flow { protocol, from, to, dscp: None, sni: None, alpn, names, first_bytes, seen: None }
    }
}

impl Seen {
    /// The mean size of its packets.
    pub fn mean_packet(&self) -> Bytes {
        Bytes(self.bytes.0.checked_div(self.packets).unwrap_or(0))
    }

    /// The mean rate; `None` while there is no time between its packets.
    pub fn rate(&self) -> Option<BitRate> {
        let bits = u128::from(self.bytes.0) * 8 * 1_000_000_000;
        let rate = bits.checked_div(self.over.as_nanos())?;
        Some(BitRate(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

impl Protocol {
    /// As nftables and people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "tcp" => Ok(Protocol::Tcp),
            "udp" => Ok(Protocol::Udp),
            _ => Err(()),
        }
    }
}
