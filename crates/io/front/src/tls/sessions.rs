//! What the TLS connections of one program have in common: the ciphers, and the key of the tickets by which a client
//! resumes a session instead of going through a whole handshake.

use super::hello::SPOKEN;
use rustls::crypto::hash::HashAlgorithm;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ConfigBuilder, ServerConfig, SupportedCipherSuite, WantsVersions};
use std::fmt;
use std::sync::Arc;

/// Shared by the connections that are to know each other's tickets; clones are one. Its keys live in memory and turn
/// over every few hours.
#[derive(Clone)]
pub struct Sessions {
    common: Arc<ServerConfig>,
}

impl Sessions {
    /// A configuration that presents this certificate.
    pub(super) fn with(&self, certificate: Arc<CertifiedKey>) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.common);
        config.cert_resolver = Arc::new(Presented(Some(certificate)));
        Arc::new(config)
    }
}

impl Default for Sessions {
    fn default() -> Self {
        let builder: ConfigBuilder<ServerConfig, WantsVersions> =
            ServerConfig::builder_with_provider(Arc::new(provider()));
        let mut config = builder
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("the provider has suites of both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Presented(None)));
        // Over a few metres, and at the rate of a satellite, any of the ciphers is quick enough for any client.
        config.ignore_client_order = true;
        config.alpn_protocols = SPOKEN.map(<[u8]>::to_vec).into();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        match ring::Ticketer::new() {
            Ok(ticketer) => config.ticketer = ticketer,
            Err(error) => tracing::warn!(%error, "no key for TLS tickets: no session will be resumed"),
        }
        Sessions { common: Arc::new(config) }
    }
}

/// The suites of ring, those with SHA-256 before those with SHA-384, which costs a handshake several times as much. Who has
/// only the others gets one of them.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| {
        let common = match suite {
            SupportedCipherSuite::Tls12(suite) => &suite.common,
            SupportedCipherSuite::Tls13(suite) => &suite.common,
        };
        common.hash_provider.algorithm() != HashAlgorithm::SHA256
    });
    provider
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// The certificate of one connection, whatever the client names: that it is the right one was seen to before.
#[derive(Debug)]
struct Presented(Option<Arc<CertifiedKey>>);

impl ResolvesServerCert for Presented {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}
