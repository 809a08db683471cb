//! QUIC endpoints whose peers know each other's keys: [`Dialer`] at the remote, [`Listener`] at
//! ground. They give established `quinn::Connection`s; what is said on them is HTOTP's affair.

mod accept;
mod connect;
mod early;
mod error;

use std::net::SocketAddr;
use std::sync::Arc;

use farhop_congestion::Choice;
use farhop_fec::{Counters, Secret, Sent, Terms};
use farhop_tuning::Decision;
use quinn::{AsyncUdpSocket, Connection, EndpointConfig};
use quinn_proto::HashedConnectionIdGenerator;
use ring::{hkdf, hmac};

use crate::congestion;
use crate::identity::Identity;
use crate::memory::Recall;
use crate::path::{End, PathPlan};
use crate::socket::fec::{FecSocket, Ties};
use crate::wake;

pub use accept::{Accepted, DuplicateKey, Listener, Peers, Refused};
pub use connect::Dialer;
pub use early::Early;
pub use error::CarrierError;

/// What the repair layer draws from a connection's keys; the version of its format is part of it.
const EXPORT_LABEL: &[u8] = b"EXPORTER-farhop-fec-1";

/// Endpoint settings that survive a restart: whoever holds the identity can tell the peers of an
/// earlier process that their connections are gone (stateless reset, RFC 9000 §10.3.2). What QUIC draws at random follows
/// from `seed` where there is one.
fn lasting_config(identity: &Identity, seed: Option<u64>) -> EndpointConfig {
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &derive(identity, b"stateless reset"));
    // Connection ids carry a checksum under this key, so that stray packets are not answered.
    let mut id_key = [0; 8];
    id_key.copy_from_slice(&derive(identity, b"connection ids")[..8]);
    let id_key = u64::from_be_bytes(id_key);
    let mut config = EndpointConfig::new(Arc::new(reset_key));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(id_key)));
    // First bytes below 0x40 are the repair layer's, so the peer must not grease the QUIC bit (RFC 9287).
    config.grease_quic_bit(false);
    config.rng_seed(seed.map(|seed| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        bytes
    }));
    config
}

/// The socket with a layer over it that repairs losses as far as the plan has it, for an end driven by `choice`.
fn layered(socket: Arc<dyn AsyncUdpSocket>, plan: &PathPlan, choice: Choice) -> Arc<FecSocket> {
    FecSocket::new(socket, Terms { most: f64::from(plan.repair) / 100.0, loud: choice.goes_by_loss_alone() })
}

/// What the repair layers of a socket have done.
#[derive(Debug, Clone, Default)]
pub struct Repairs(Option<Arc<FecSocket>>);

impl Repairs {
    /// Towards `addr`; `None` while there is no layer.
    pub fn counters(&self, addr: SocketAddr) -> Option<Counters> {
        self.0.as_ref()?.counters(addr)
    }

    /// How much of what is sent towards `addr` is repairs, and why; `None` where there could be some and there is no layer, since the
    /// other end has none or has not said hello yet.
    pub fn decided(&self, addr: SocketAddr, plan: &PathPlan) -> Option<Decision> {
        let most = f64::from(plan.repair) / 100.0;
        let sent = match plan.repair {
            0 => Sent::default(),
            _ => self.counters(addr)?.sent,
        };
        Some(farhop_tuning::repairs(sent.share, sent.loss, most))
    }
}

/// Brings the layer up for a connection whose peer has proved who it is. Hellos and first numbers are drawn from
/// its keys (RFC 8446 §7.5), so that nobody else can say or guess them.
fn protect(socket: &Arc<FecSocket>, connection: &Connection, end: End, recall: Recall) {
    wake::send_by(connection, socket, None);
    if !socket.repairs() {
        return;
    }
    let mut drawn = [0; 24];
    if let Err(error) = connection.export_keying_material(&mut drawn, EXPORT_LABEL, b"") {
        return tracing::warn!("no repairs: the connection exports no keys ({error:?})");
    }
    let token = |at: usize| std::array::from_fn(|index| drawn[at + index]);
    let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|index| drawn[at + index]));
    let (remote, ground) = ((token(0), number(16)), (token(8), number(20)));
    let (own, theirs) = if end == End::Remote { (remote, ground) } else { (ground, remote) };
    let secret = Secret { own: own.0, theirs: theirs.0, first_sent: own.1, first_received: theirs.1 };
    let ties =
        Ties { surcharge: congestion::surcharge(connection), ends: congestion::ends(connection), recall };
    socket.protect(connection.remote_address(), &secret, connection.rtt(), ties);
    wake::send_by(connection, socket, Some(secret.theirs));
}

/// The key that seals address validation tokens; lasting, so that a token outlives a restart.
fn token_key(identity: &Identity) -> Arc<hkdf::Prk> {
    Arc::new(hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &derive(identity, b"address tokens")))
}

/// 32 secret bytes for `purpose` (HKDF, RFC 5869), unrelated to those of any other purpose and of no
/// use for finding the identity's seed.
fn derive(identity: &Identity, purpose: &[u8]) -> [u8; 32] {
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"farhop identity v1").extract(identity.seed());
    let mut key = [0; 32];
    secret
        .expand(&[purpose], hkdf::HKDF_SHA256)
        .and_then(|output| output.fill(&mut key))
        .expect("HKDF-SHA-256 gives 32 bytes");
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_keys_last_as_long_as_the_identity_and_differ_by_purpose() {
        let identity = Identity::from_seed([7; 32]);
        assert_eq!(derive(&identity, b"a"), derive(&Identity::from_seed([7; 32]), b"a"));
        assert_ne!(derive(&identity, b"a"), derive(&identity, b"b"));
        assert_ne!(derive(&identity, b"a"), derive(&Identity::from_seed([8; 32]), b"a"));
    }
}
