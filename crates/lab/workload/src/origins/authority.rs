//! The throwaway CA of one testbed and the TLS settings of its origins. The CA's key lives in this process alone; that of
//! the leaves is given out only for servers of others that stand in for an origin.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// Largest TLS record in bytes: the first can be shown a round trip earlier than with the usual 16 KB.
pub(super) const TLS_RECORD_BYTES: usize = 4096;

/// Why the CA could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A certificate could not be made, mostly for a name that is none.
    #[error("no certificate for '{name}': {source}")]
    Certificate {
        /// The name asked for.
        name: String,
        /// What rcgen says.
        source: rcgen::Error,
    },
    /// TLS cannot be set up with them.
    #[error("TLS settings of the origins: {0}")]
    Tls(#[from] rustls::Error),
}

/// A CA made for one run.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    leaf_key: KeyPair,
}

impl Authority {
    /// Makes a new CA and the one key that all its leaves share.
    ///
    /// # Errors
    /// The machine has no randomness to give.
    pub(super) fn make() -> Result<Authority, AuthorityError> {
        let named = |source| AuthorityError::Certificate { name: "Farhop lab CA".into(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Farhop lab CA (throwaway)");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(named)?;
        let certificate = params.self_signed(&key).map_err(named)?;
        Ok(Authority {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            leaf_key: KeyPair::generate().map_err(named)?,
        })
    }

    /// The CA's certificate, PEM.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Base64 SHA-256 of the leaves' SubjectPublicKeyInfo.
    pub(super) fn spki(&self) -> String {
        let info = self.leaf_key.subject_public_key_info();
        base64(ring::digest::digest(&ring::digest::SHA256, &info).as_ref())
    }

    /// The identity of one origin: a leaf of its own and the key that all leaves share.
    ///
    /// # Errors
    /// The name is no host name.
    pub(super) fn identity(&self, name: &str, address: IpAddr) -> Result<Identity<'_>, AuthorityError> {
        let named = |source| AuthorityError::Certificate { name: name.into(), source };
        let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(named)?;
        params.subject_alt_names.push(SanType::IpAddress(address));
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = params.signed_by(&self.leaf_key, &self.issuer).map_err(named)?;
        Ok(Identity { leaf, authority: self })
    }
}

/// What an origin proves who it is with.
pub(super) struct Identity<'a> {
    leaf: Certificate,
    authority: &'a Authority,
}

impl Identity<'_> {
    /// The chain that goes to clients, PEM. As public sites do, the intermediate goes along: the size of the flight counts
    /// on a slow link.
    pub(super) fn chain_pem(&self) -> String {
        self.leaf.pem() + self.authority.pem()
    }

    /// The leaf's key, PEM.
    pub(super) fn key_pem(&self) -> String {
        self.authority.leaf_key.serialize_pem()
    }

    /// The TLS settings of a server with it: HTTP/2 and HTTP/1.1 by ALPN, small records.
    ///
    /// # Errors
    /// TLS cannot be set up with it.
    pub(super) fn server(&self) -> Result<rustls::ServerConfig, AuthorityError> {
        let chain = vec![self.leaf.der().clone(), self.authority.certificate.clone()];
        let key = PrivatePkcs8KeyDer::from(self.authority.leaf_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key.into())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.max_fragment_size = Some(TLS_RECORD_BYTES);
        Ok(config)
    }
}

/// RFC 4648 §4, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            if place <= group.len() {
                out.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_vectors_of_rfc_4648() {
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused_by_name() {
        let authority = Authority::make().unwrap();
        let error =
            authority.identity("bad name\u{e9}", "127.0.0.1".parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with("no certificate for 'bad name"), "{error}");
    }
}
