//! What the TLS connections of one program have in common: the ciphers, and the key of the tickets by which a client
//! resumes a session instead of going through a whole handshake.

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ConfigBuilder, ServerConfig, WantsVersions};
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
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        match ring::Ticketer::new() {
            Ok(ticketer) => config.ticketer = ticketer,
            Err(error) => tracing::warn!(%error, "no key for TLS tickets: no session will be resumed"),
        }
        Sessions { common: Arc::new(config) }
    }
}

/// All suites of ring but TLS 1.3's with SHA-384, which costs a handshake several times as much as SHA-256. Every client of
/// TLS 1.3 has one of the others (RFC 8446 §9.1), but not every client prefers it.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() != CipherSuite::TLS13_AES_256_GCM_SHA384);
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
