//! Answers a client's handshake, and says why when it comes to nothing.

use crate::connection::{Connection, Protocol, Tunnel};
use crate::h1::Refusal;
use crate::scope::Scope;
use crate::settings::Settings;
use crate::socket::Socket;
use rustls::AlertDescription;
use rustls::sign::CertifiedKey;
use std::io;
use std::sync::Arc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Why a handshake came to nothing. The client's connection is closed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client says that it does not accept the certificate: it trusts other authorities, or this host's own
    /// certificate only. Unintercepted it may well go on.
    #[error("the client does not accept the certificate: {0}")]
    Distrusted(io::Error),
    /// The client saw the certificate and left, without a word or with one that is not about certificates. Apps that trust their
    /// own certificate only often do, and so do browsers when another connection to the host was quicker.
    #[error("the client left when it had seen the certificate: {0}")]
    Left(io::Error),
    /// The client and this end have no cipher, signature or the like in common. Its origin may be less particular.
    #[error("TLS handshake: {0}")]
    Incompatible(io::Error),
    /// Anything else.
    #[error("TLS handshake: {0}")]
    Failed(io::Error),
    /// The client did not go on for longer than allowed.
    #[error("TLS handshake: the client sent nothing for too long")]
    TimedOut,
    /// No certificate can be for this host.
    #[error("TLS handshake: {0}")]
    Host(Refusal),
}

/// Goes through the handshake with `certificate`, which is for `host`, within [`Settings::head_timeout()`]. The requests
/// of the connection that it gives are all for `https://host:port`; for another Host they are answered 421.
///
/// Whether the client resumes a session or goes through a whole handshake, and whether HTTP/2 or HTTP/1.1 is spoken,
/// is the client's choice.
///
/// # Errors
/// The client didn't go through with it.
pub async fn accept(
    tunnel: Tunnel,
    certificate: Arc<CertifiedKey>,
    host: &str,
    port: u16,
    settings: Arc<Settings>,
) -> Result<Connection, HandshakeError> {
    let scope = Scope::new(host, port).map_err(HandshakeError::Host)?;
    let acceptor = TlsAcceptor::from(settings.sessions.with(certificate));
    let handshake = acceptor.accept(tunnel).into_fallible();
    let stream = match timeout(settings.head_timeout(), handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err((error, tunnel))) => return Err(classify(error, tunnel.has_written())),
        Err(_) => return Err(HandshakeError::TimedOut),
    };
    let protocol = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    Ok(Connection::within(stream, protocol, scope, settings))
}

/// `presented` says that the client has been sent the certificate.
fn classify(error: io::Error, presented: bool) -> HandshakeError {
    let left = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    if presented && left {
        return HandshakeError::Left(error);
    }
    match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        // RFC 8446 §6.2: what a client says of a certificate, or of the status that it misses with it.
        Some(rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::BadCertificateStatusResponse,
        )) => HandshakeError::Distrusted(error),
        // It may be the certificate all the same: who leaves the choice of the word to a library, or makes it itself, says
        // handshake_failure, internal_error or user_canceled.
        Some(rustls::Error::AlertReceived(_)) if presented => HandshakeError::Left(error),
        Some(rustls::Error::PeerIncompatible(_)) => HandshakeError::Incompatible(error),
        _ => HandshakeError::Failed(error),
    }
}

impl Socket for TlsStream<Tunnel> {
    fn reset_on_close(&mut self) {
        self.get_mut().0.reset_on_close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_certificate_is_told_apart() {
        let alert = |description| {
            io::Error::new(io::ErrorKind::InvalidData, rustls::Error::AlertReceived(description))
        };
        let distrusted =
            |error, presented| matches!(classify(error, presented), HandshakeError::Distrusted(_));
        for word in [42, 43, 44, 45, 46, 48, 49, 113] {
            assert!(distrusted(alert(AlertDescription::from(word)), true), "{word}");
        }
        for word in [40, 47, 51, 70, 71, 80, 90, 112, 116, 200] {
            let classified = |presented| classify(alert(AlertDescription::from(word)), presented);
            assert!(matches!(classified(true), HandshakeError::Left(_)), "{word}");
            assert!(matches!(classified(false), HandshakeError::Failed(_)), "{word}: of something else");
        }
        let incompatible = rustls::Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon);
        let classified = classify(io::Error::new(io::ErrorKind::InvalidData, incompatible), true);
        assert!(matches!(classified, HandshakeError::Incompatible(_)));
        let ended = || io::ErrorKind::UnexpectedEof.into();
        assert!(matches!(classify(ended(), true), HandshakeError::Left(_)));
        assert!(matches!(classify(ended(), false), HandshakeError::Failed(_)));
    }
}
