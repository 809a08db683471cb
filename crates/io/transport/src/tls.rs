//! Handshakes between ends that know each other's keys: TLS 1.3 with raw public keys both ways
//! (RFC 7250), each pinned. There is no certificate, no authority and no way to skip the check.
//! It must not know sockets or paths; `quic` puts these configurations to use.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    ServerConfig, SignatureScheme,
};

use crate::identity::{Identity, PublicKey};

/// The protocol that both ends must speak (`docs/htotp.md`).
pub const ALPN: &[u8] = b"htotp/1";

/// The access-denied alert (RFC 8446 §6.2): sent to a peer whose key is not listed.
pub(crate) const ACCESS_DENIED: u8 = 49;

/// Before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410 §4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Before the 32 bytes of an Ed25519 seed in PKCS #8 (RFC 8410 §7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// What the verifier saw of the last handshake that it judged, so that a refusal can name the key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Option<PublicKey>>>);

impl Seen {
    /// The peer's key, once it has presented one.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<PublicKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client's side of a handshake with an end that bears one of `accepted`.
pub(crate) fn client(
    identity: &Identity,
    accepted: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    seen: &Seen,
) -> Result<ClientConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned::new(accepted, seen, &provider));
    let resolver = AlwaysResolvesClientRawPublicKeys::new(certified(identity)?);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous() // the builder's name for "own verifier": ours is stricter than the default
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session is not verified again: a key that was struck off the list would still come in. See `early`.
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// The server's side of a handshake with any end that bears one of `accepted`.
pub(crate) fn server(
    identity: &Identity,
    accepted: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    seen: &Seen,
) -> Result<ServerConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned::new(accepted, seen, &provider));
    let resolver = AlwaysResolvesServerRawPublicKeys::new(certified(identity)?);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The key of a peer whose handshake has succeeded, from what the carrier calls its certificates.
pub(crate) fn peer_key(certificates: &[CertificateDer<'_>]) -> Option<PublicKey> {
    certificates.first().and_then(from_spki)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certified(identity: &Identity) -> Result<Arc<CertifiedKey>, Error> {
    let pkcs8 = PrivatePkcs8KeyDer::from([PKCS8_PREFIX.as_slice(), identity.seed()].concat());
    let signer = rustls::crypto::ring::sign::any_eddsa_type(&pkcs8)?;
    let spki = [SPKI_PREFIX.as_slice(), identity.public().as_bytes()].concat();
    // RFC 7250 §3: the SubjectPublicKeyInfo takes the certificate's place.
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki)], signer)))
}

fn from_spki(spki: &CertificateDer<'_>) -> Option<PublicKey> {
    let key = spki.as_ref().strip_prefix(SPKI_PREFIX.as_slice())?;
    key.try_into().ok().map(PublicKey::from_bytes)
}

/// Accepts the listed keys and verifies that the peer holds the secret half.
struct Pinned {
    accepted: Box<dyn Fn(&PublicKey) -> bool + Send + Sync>,
    seen: Seen,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

impl Pinned {
    fn new(
        accepted: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
        seen: &Seen,
        provider: &Arc<CryptoProvider>,
    ) -> Self {
        Pinned { accepted: Box::new(accepted), seen: seen.clone(), provider: provider.clone() }
    }

    fn check(&self, spki: &CertificateDer<'_>) -> Result<(), Error> {
        let key = from_spki(spki).ok_or(CertificateError::BadEncoding)?;
        *self.seen.lock() = Some(key);
        if (self.accepted)(&key) {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into()) // sends ACCESS_DENIED
        }
    }

    fn verify(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &spki, signature, algorithms)
    }
}

/// TLS 1.2 knows no raw keys here and is never offered; rustls asks nevertheless.
fn never_tls12() -> Error {
    Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered)
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>, // keys are pinned, names say nothing
        _ocsp_response: &[u8],
        _now: UnixTime, // raw keys have no dates; they are struck off the list instead
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(never_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(never_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a handshake in memory; gives what each side says of it.
    fn handshake(client: ClientConfig, server: ServerConfig) -> (Result<(), Error>, Result<(), Error>) {
        let name = ServerName::try_from("farhop").unwrap();
        let mut near = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
        let mut far = rustls::ServerConnection::new(Arc::new(server)).unwrap();
        let mut outcome = (Ok(()), Ok(()));
        for _ in 0..4 {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            while near.wants_write() {
                near.write_tls(&mut up).unwrap();
            }
            far.read_tls(&mut up.as_slice()).unwrap();
            outcome.1 = outcome.1.and(far.process_new_packets().map(drop));
            while far.wants_write() {
                far.write_tls(&mut down).unwrap();
            }
            near.read_tls(&mut down.as_slice()).unwrap();
            outcome.0 = outcome.0.and(near.process_new_packets().map(drop));
        }
        if outcome == (Ok(()), Ok(())) {
            assert!(!near.is_handshaking() && !far.is_handshaking());
        }
        outcome
    }

    fn ends() -> (Identity, Identity) {
        (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]))
    }

    fn only(key: PublicKey) -> impl Fn(&PublicKey) -> bool + Send + Sync + 'static {
        move |seen| *seen == key
    }

    #[test]
    fn ends_that_list_each_other_shake_hands_and_see_each_others_keys() {
        let (remote, ground) = ends();
        let (at_remote, at_ground) = (Seen::default(), Seen::default());
        let client = client(&remote, only(ground.public()), &at_remote).unwrap();
        let server = server(&ground, only(remote.public()), &at_ground).unwrap();
        assert_eq!(handshake(client, server), (Ok(()), Ok(())));
        assert_eq!((at_remote.key(), at_ground.key()), (Some(ground.public()), Some(remote.public())));
    }

    #[test]
    fn each_end_refuses_a_key_that_it_does_not_list() {
        let (remote, ground) = ends();
        let refused = Err(Error::from(CertificateError::ApplicationVerificationFailure));
        let denied = Err(Error::AlertReceived(rustls::AlertDescription::AccessDenied));
        let seen = Seen::default();

        let lists = |identity: &Identity| only(identity.public());
        let client_side = client(&remote, lists(&remote), &Seen::default()).unwrap();
        let server_side = server(&ground, lists(&remote), &Seen::default()).unwrap();
        assert_eq!(handshake(client_side, server_side), (refused.clone(), denied.clone()));

        let client_side = client(&remote, lists(&ground), &Seen::default()).unwrap();
        let server_side = server(&ground, lists(&ground), &seen).unwrap();
        assert_eq!(handshake(client_side, server_side), (denied, refused));
        assert_eq!(seen.key(), Some(remote.public()));
    }

    #[test]
    fn presenting_a_listed_key_without_its_secret_half_is_refused() {
        let (remote, ground) = ends();
        let impostor = Identity::from_seed([3; 32]);
        let spki = [SPKI_PREFIX.as_slice(), ground.public().as_bytes()].concat();
        let forged =
            CertifiedKey::new(vec![CertificateDer::from(spki)], certified(&impostor).unwrap().key.clone());
        let client = client(&remote, only(ground.public()), &Seen::default()).unwrap();
        let mut server = server(&impostor, only(remote.public()), &Seen::default()).unwrap();
        server.cert_resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(forged)));
        assert_eq!(handshake(client, server).0, Err(Error::from(CertificateError::BadSignature)));
    }

    #[test]
    fn a_peer_that_speaks_another_protocol_is_refused() {
        let (remote, ground) = ends();
        let mut client = client(&remote, only(ground.public()), &Seen::default()).unwrap();
        client.alpn_protocols = vec![b"htotp/9".to_vec()];
        let server = server(&ground, only(remote.public()), &Seen::default()).unwrap();
        assert_eq!(handshake(client, server).1, Err(Error::NoApplicationProtocol));
    }

    #[test]
    fn a_client_without_a_key_is_refused() {
        let (_, ground) = ends();
        let verifier = Pinned::new(only(ground.public()), &Seen::default(), &provider());
        let mut anonymous = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        anonymous.alpn_protocols = vec![ALPN.to_vec()];
        let server = server(&ground, |_| true, &Seen::default()).unwrap();
        assert!(handshake(anonymous, server).1.is_err());
    }
}
