//! QUIC endpoints whose peers know each other's keys: [`Dialer`] at the remote, [`Listener`] at
//! ground. They give established `quinn::Connection`s; what is said on them is HTOTP's affair.

mod accept;
mod connect;
mod error;

use std::sync::Arc;

use quinn::EndpointConfig;
use quinn_proto::HashedConnectionIdGenerator;
use ring::{hkdf, hmac};

use crate::identity::Identity;

pub use accept::{Accepted, DuplicateKey, Listener, Peers, Refused};
pub use connect::Dialer;
pub use error::CarrierError;

/// Endpoint settings that survive a restart: whoever holds the identity can tell the peers of an
/// earlier process that their connections are gone (stateless reset, RFC 9000 §10.3.2).
fn lasting_config(identity: &Identity) -> EndpointConfig {
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &derive(identity, b"stateless reset"));
    // Connection ids carry a checksum under this key, so that stray packets are not answered.
    let mut id_key = [0; 8];
    id_key.copy_from_slice(&derive(identity, b"connection ids")[..8]);
    let id_key = u64::from_be_bytes(id_key);
    let mut config = EndpointConfig::new(Arc::new(reset_key));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(id_key)));
    config
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
