//! What went wrong on a connection, out of what hyper and h2 say of it. Pure.

use crate::error::Error;
use crate::sending::Failed;
use crate::upload::upload_error;
use crate::vet::Fault;
use farhop_front::h1::Refusal;
use h2::Reason;
use rustls::AlertDescription;
use std::io;

/// Before there was a response head, in HTTP/1.
pub(crate) fn http1_head(error: &hyper::Error, host: &str) -> Error {
    if error.is_parse_too_large() {
        return Error::HeadTooLarge;
    }
    if error.is_parse() {
        return Error::Malformed(error.to_string());
    }
    if error.is_user() {
        let cause = std::error::Error::source(error).unwrap_or(error);
        return upload_error(cause);
    }
    match malformed(error) {
        Some(cause) if is_too_large(cause) => Error::HeadTooLarge,
        Some(cause) if fault(cause) == Some(Fault::NotHttp) => Error::NotHttp,
        Some(cause) if fault(cause) == Some(Fault::Flood) => Error::TooManyInformational,
        Some(cause) if is_renegotiation(cause) => Error::ClientCertificateWanted { host: host.into() },
        Some(cause) => Error::Malformed(cause.to_string()),
        None => Error::Closed,
    }
}

/// Whether vetting says that a head exceeds its bounds.
fn is_too_large(cause: &io::Error) -> bool {
    matches!(fault(cause), Some(Fault::Refused(Refusal::HeadTooLarge | Refusal::TooManyFields)))
}

/// What vetting found.
fn fault(cause: &io::Error) -> Option<Fault> {
    cause.get_ref().and_then(|fault| fault.downcast_ref::<Fault>()).copied()
}

/// Whether the origin gave up because the handshake was not begun anew (RFC 5246 §7.2.2), which TLS 1.2 lets it ask for
/// once it has seen a request. Servers do so where only some of their pages want a client certificate.
fn is_renegotiation(cause: &io::Error) -> bool {
    let alert = cause.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(alert, Some(rustls::Error::AlertReceived(AlertDescription::HandshakeFailure)))
}

/// Within a body, in HTTP/1.
pub(crate) fn http1_body(error: &hyper::Error) -> Error {
    match malformed(error) {
        Some(cause) if !error.is_incomplete_message() => Error::BodyMalformed(cause.to_string()),
        _ => Error::BodyIncomplete,
    }
}

/// The I/O error by which hyper, or vetting below it, says that a peer broke the grammar.
fn malformed(error: &hyper::Error) -> Option<&io::Error> {
    let cause = std::error::Error::source(error)?.downcast_ref::<io::Error>()?;
    matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData).then_some(cause)
}

/// Before anything was sent, in HTTP/2.
pub(crate) fn http2_unsent(error: &h2::Error) -> Failed {
    if error.is_io() || error.is_go_away() || error.is_reset() {
        return Failed::Unsent;
    }
    Failed::For(Error::InvalidRequest(error.to_string()))
}

/// Before there was a response head, in HTTP/2.
pub(crate) fn http2_head(error: &h2::Error) -> Failed {
    if error.is_library() {
        return Failed::For(Error::Malformed(broken_rule(error)));
    }
    if error.is_remote() {
        return match error.reason() {
            Some(Reason::HTTP_1_1_REQUIRED) => Failed::WantsHttp1,
            // RFC 9113 §6.8: streams beyond the last one named fail so, those before it go on.
            _ if error.is_go_away() => Failed::GoneAway,
            Some(Reason::REFUSED_STREAM) => Failed::Unprocessed,
            _ => Failed::For(Error::Closed),
        };
    }
    Failed::Unanswered
}

/// Within a body, in HTTP/2.
pub(crate) fn http2_body(error: &h2::Error) -> Error {
    if error.is_library() { Error::BodyMalformed(broken_rule(error)) } else { Error::BodyIncomplete }
}

/// What h2 found the origin to have done, by the name that RFC 9113 §7 has for it.
fn broken_rule(error: &h2::Error) -> String {
    error.reason().map_or_else(|| error.to_string(), |reason| format!("{reason:?} in HTTP/2"))
}
