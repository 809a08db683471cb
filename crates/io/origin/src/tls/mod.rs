//! TLS towards origins: the handshake, and why there is none. Knows nothing of requests.

mod crl;
mod facts;
mod issuers;
mod ocsp;
mod problem;
mod roots;
mod trust;
mod verifier;

pub use problem::{CertificateProblem, HandshakeFailure};
pub use trust::{Trust, TrustError};

use crate::connect::Destination;
use crate::error::Error;
use issuers::Issuers;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, CertificateError, ClientConfig, InvalidMessage, OtherError, SignatureScheme};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use verifier::Verifier;

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Shakes hands with origins.
#[derive(Clone)]
pub(crate) struct Tls {
    config: ClientConfig,
    issuers: Arc<Issuers>,
}

impl Tls {
    pub(crate) fn new(trust: Trust) -> Tls {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let issuers = Arc::new(Issuers::default());
        let verifier = Arc::new(Verifier::new(trust, issuers.clone(), &provider));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites for both versions")
            .dangerous() // the verifier is ours: it asks for more than rustls' own, never for less
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        // A ticket would tell an origin that two connections are of one user, or of one ground, and a resumed
        // session is not judged again. Origins are near: there is little to win.
        config.resumption = Resumption::disabled();
        Tls { config, issuers }
    }

    /// What is put into chains that lack it.
    pub(crate) fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// Shakes hands within `patience` and judges the certificate; `offered` is what this side would speak, the best first.
    ///
    /// # Errors
    /// There is no connection to this very host on which a request may be sent.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        destination: &Destination,
        offered: &[Protocol],
        patience: Duration,
    ) -> Result<(TlsStream<TcpStream>, Protocol), Error> {
        let host = destination.host().to_owned();
        // RFC 6066 §3: the name is sent without the dot that makes it absolute.
        let name = ServerName::try_from(host.strip_suffix('.').unwrap_or(&host).to_owned())
            .map_err(|_| Error::InvalidRequest(format!("host '{host}' can't be asked for by TLS")))?;
        let asked = Arc::new(ClientCertificate::default());
        let mut config = self.config.clone();
        config.alpn_protocols = offered.iter().map(|protocol| protocol.alpn().to_vec()).collect();
        config.client_auth_cert_resolver = asked.clone();
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let shaken = timeout(patience, connecting).await;
        let failed = |failure| Error::Tls { host: host.clone(), failure };
        let result = shaken.map_err(|_| failed(HandshakeFailure::TimedOut))?;
        let refused = match &result {
            Ok(_) => None,
            Err(error) => refused_certificate(error),
        };
        if let Some(problem) = refused {
            return Err(Error::Certificate { host, problem });
        }
        // Whether it would do without one can't be known in advance, and only the user's own client can answer.
        if asked.wanted.load(Ordering::Relaxed) {
            return Err(Error::ClientCertificateWanted { host });
        }
        let stream = result.map_err(|error| failed(failure(&error)))?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

impl Protocol {
    /// RFC 7301 §6, RFC 9113 §3.2.
    fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
        }
    }
}

/// Has no certificate to show, and remembers having been asked for one.
#[derive(Debug, Default)]
struct ClientCertificate {
    wanted: AtomicBool,
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.wanted.store(true, Ordering::Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

fn rustls_cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn refused_certificate(error: &io::Error) -> Option<CertificateProblem> {
    match rustls_cause(error)? {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
            cause.downcast_ref::<CertificateProblem>().cloned()
        }
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
            Some(CertificateProblem::Malformed("the origin does not have the key to it".into()))
        }
        rustls::Error::InvalidCertificate(other) => Some(CertificateProblem::Malformed(other.to_string())),
        rustls::Error::NoCertificatesPresented => {
            Some(CertificateProblem::Malformed("the origin shows none".into()))
        }
        _ => None,
    }
}

fn failure(error: &io::Error) -> HandshakeFailure {
    use InvalidMessage::{CertificatePayloadTooLarge, HandshakePayloadTooLarge};
    match rustls_cause(error) {
        Some(rustls::Error::AlertReceived(alert)) if may_pass(*alert) => {
            HandshakeFailure::Transient(format!("{alert:?}"))
        }
        Some(rustls::Error::AlertReceived(alert)) => HandshakeFailure::Alert(format!("{alert:?}")),
        // It is TLS, and more of it than is held for a stranger.
        Some(rustls::Error::InvalidMessage(HandshakePayloadTooLarge | CertificatePayloadTooLarge)) => {
            let what = "its certificate chain, or another message of its handshake, is longer than the 64 kB that are taken here";
            HandshakeFailure::Protocol(what.into())
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            HandshakeFailure::Protocol("what the origin sent is no TLS".into())
        }
        Some(other) => HandshakeFailure::Protocol(other.to_string()),
        None => HandshakeFailure::Closed,
    }
}

/// Whether an alert (RFC 8446 §6.2) says more of the moment than of what the origin can: balancers without a server behind them,
/// and servers without their certificates, send these.
fn may_pass(alert: AlertDescription) -> bool {
    use AlertDescription::{AccessDenied, CloseNotify, InternalError, UnrecognisedName, UserCanceled};
    matches!(alert, AccessDenied | CloseNotify | InternalError | UnrecognisedName | UserCanceled)
}
