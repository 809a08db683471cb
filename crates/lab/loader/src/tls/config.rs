//! The client's TLS settings, and the sessions it keeps from load to load. Each kind of handshake has its own: what a full
//! one learns must not make the next one short.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};

use crate::settings::Handshake;

/// Settings for full handshakes, and for those that resume.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    full: ClientConfig,
    resumed: ClientConfig,
    early: ClientConfig,
}

impl Sessions {
    /// Trusts these roots and holds no session yet.
    pub(crate) fn new(roots: RootCertStore) -> Result<Sessions, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut full = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        full.resumption = Resumption::disabled();
        // A ticket is used once (RFC 8446 §C.4); servers give a few at a time, and a page may need more connections.
        let mut resumed = full.clone();
        resumed.resumption = Resumption::in_memory_sessions(64);
        let mut early = full.clone();
        early.resumption = Resumption::in_memory_sessions(64);
        early.enable_early_data = true;
        Ok(Sessions { full, resumed, early })
    }

    /// For one connection that speaks `alpn`.
    pub(crate) fn config(&self, handshake: Handshake, alpn: &[u8]) -> Arc<ClientConfig> {
        let mut config = match handshake {
            Handshake::Plain | Handshake::Full => self.full.clone(),
            Handshake::Resumed => self.resumed.clone(),
            Handshake::ZeroRtt => self.early.clone(),
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        Arc::new(config)
    }
}
