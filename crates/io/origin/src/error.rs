//! Why a fetch failed: at which stage, whether trying again can help, and what a gateway says of it. Nothing here
//! does I/O.

use crate::guard::Refusal;
use crate::tls::{CertificateProblem, HandshakeFailure};
use farhop_units::format_duration;
use http::StatusCode;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How far an exchange with an origin had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The request can't be sent as it is.
    Request,
    /// Looking up the name.
    Resolve,
    /// Checking the addresses.
    Guard,
    /// Waiting for a free connection.
    Queue,
    /// Connecting.
    Connect,
    /// The TLS handshake, and judging the origin's certificate.
    Tls,
    /// Sending the request and waiting for the response head: the origin may have acted on the request.
    Exchange,
    /// Reading the response body.
    Body,
}

/// Why there is no response, or no whole one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request makes no sense to send.
    #[error("request can't be sent: {0}")]
    InvalidRequest(String),
    /// The name does not exist, or has no address.
    #[error("{host} has no address")]
    NotFound {
        /// The name.
        host: String,
    },
    /// The name servers failed.
    #[error("looking up {host} failed: {cause}")]
    Lookup {
        /// The name.
        host: String,
        /// What the resolver says.
        cause: String,
    },
    /// No name server answered in time.
    #[error("looking up {host} failed: no name server answered within {}{}", rounded(*after), asked_of(asked))]
    LookupTimedOut {
        /// The name.
        host: String,
        /// Which were asked.
        asked: String,
        /// How long that took.
        after: Duration,
    },
    /// No address of the host is one that may be connected to.
    #[error("{host}{} is refused as {refusal}: name its range in the settings if it is to be reached", at(host, *address))]
    Refused {
        /// The name or address asked for.
        host: String,
        /// Its first address that was refused.
        address: IpAddr,
        /// Why.
        refusal: Refusal,
    },
    /// All connections to this origin were busy for too long.
    #[error("all connections to {host} were busy for too long")]
    Busy {
        /// The origin.
        host: String,
    },
    /// Nobody listens there.
    #[error("{address} refused the connection")]
    ConnectRefused {
        /// Where.
        address: SocketAddr,
    },
    /// Nobody answers there.
    #[error("connecting to {host} took too long")]
    ConnectTimedOut {
        /// Where.
        host: String,
    },
    /// There is no way there.
    #[error("{address} can't be reached: {cause}")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        cause: String,
    },
    /// The origin's certificate does not prove that it is who it should be.
    #[error("the certificate of {host} is refused: {problem}")]
    Certificate {
        /// The origin.
        host: String,
        /// What is wrong with it.
        problem: CertificateProblem,
    },
    /// The origin wants to know who the user is by a certificate, which only the user's own browser can show. With TLS
    /// 1.2 it may say so only after it has seen a request.
    #[error("{host} asks for a client certificate")]
    ClientCertificateWanted {
        /// The origin.
        host: String,
    },
    /// There was no TLS handshake.
    #[error("no TLS with {host}: {failure}")]
    Tls {
        /// The origin.
        host: String,
        /// What went wrong.
        failure: HandshakeFailure,
    },
    /// Whoever gives the request body stopped within it.
    #[error("the request body ended early: {0}")]
    UploadFailed(String),
    /// The origin closed or reset the connection before it answered.
    #[error("the origin closed the connection without an answer")]
    Closed,
    /// The origin did not begin its answer in time.
    #[error("the origin took too long to answer")]
    FirstByteTimedOut,
    /// What answers there is not HTTP.
    #[error("what answers there speaks no HTTP")]
    NotHttp,
    /// What the origin sent is no response, or one that can be read in two ways.
    #[error("the origin's response is malformed: {0}")]
    Malformed(String),
    /// The response head exceeds its bounds.
    #[error("the origin's response head is too large")]
    HeadTooLarge,
    /// Informational responses without end.
    #[error("the origin sent too many informational responses")]
    TooManyInformational,
    /// 101 to a request that did not ask for it.
    #[error("the origin switched to another protocol unasked")]
    UnaskedUpgrade,
    /// 101 that does not answer the upgrade that was asked for.
    #[error("the origin's upgrade is not the one asked for: {0}")]
    UpgradeFailed(String),
    /// The connection ended or was reset within the body.
    #[error("the origin's response body ended early")]
    BodyIncomplete,
    /// Chunks or trailers out of their grammar.
    #[error("the origin's response body is malformed: {0}")]
    BodyMalformed(String),
    /// The origin paused within the body for too long.
    #[error("the origin sent nothing of its response body for too long")]
    BodyStalled,
}

/// A time that was waited, in a precision that matters.
fn rounded(time: Duration) -> String {
    let precision = if time < Duration::from_secs(1) { 1 } else { 100 };
    let steps = (time.as_millis() as u64 + precision / 2) / precision;
    format_duration(Duration::from_millis(steps * precision))
}

pub(crate) fn asked_of(servers: &str) -> String {
    if servers.is_empty() { String::new() } else { format!(" (asked: {servers}, see /etc/resolv.conf)") }
}

/// Where a name leads; nothing for what is an address already.
fn at(host: &str, address: IpAddr) -> String {
    if host.parse::<IpAddr>().is_ok() { String::new() } else { format!(" ({address})") }
}

impl Error {
    /// How far the exchange had come. Before [`Stage::Exchange`] the origin has seen nothing of the request.
    pub fn stage(&self) -> Stage {
        match self {
            Error::InvalidRequest(_) => Stage::Request,
            Error::NotFound { .. } | Error::Lookup { .. } | Error::LookupTimedOut { .. } => Stage::Resolve,
            Error::Refused { .. } => Stage::Guard,
            Error::Busy { .. } => Stage::Queue,
            Error::ConnectRefused { .. } | Error::ConnectTimedOut { .. } | Error::Unreachable { .. } => {
                Stage::Connect
            }
            Error::Certificate { .. } | Error::ClientCertificateWanted { .. } | Error::Tls { .. } => {
                Stage::Tls
            }
            Error::UploadFailed(_)
            | Error::Closed
            | Error::FirstByteTimedOut
            | Error::NotHttp
            | Error::Malformed(_)
            | Error::HeadTooLarge
            | Error::TooManyInformational
            | Error::UnaskedUpgrade
            | Error::UpgradeFailed(_) => Stage::Exchange,
            Error::BodyIncomplete | Error::BodyMalformed(_) | Error::BodyStalled => Stage::Body,
        }
    }

    /// Whether the same request may succeed a little later. Whether it may be sent again is another question:
    /// from [`Stage::Exchange`] on only if it is idempotent.
    pub fn retry_can_help(&self) -> bool {
        match self {
            Error::Lookup { .. }
            | Error::LookupTimedOut { .. }
            | Error::Busy { .. }
            | Error::ConnectRefused { .. }
            | Error::ConnectTimedOut { .. }
            | Error::Unreachable { .. }
            | Error::Closed
            | Error::FirstByteTimedOut
            | Error::BodyIncomplete
            | Error::BodyStalled => true,
            Error::InvalidRequest(_)
            | Error::NotFound { .. }
            | Error::Refused { .. }
            | Error::UploadFailed(_)
            | Error::NotHttp
            | Error::Malformed(_)
            | Error::HeadTooLarge
            | Error::TooManyInformational
            | Error::UnaskedUpgrade
            | Error::UpgradeFailed(_)
            | Error::Certificate { .. }
            | Error::ClientCertificateWanted { .. }
            | Error::BodyMalformed(_) => false,
            Error::Tls { failure, .. } => {
                use HandshakeFailure::{Closed, TimedOut, Transient};
                matches!(failure, Closed | TimedOut | Transient(_))
            }
        }
    }

    /// What a gateway answers in place of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Error::InvalidRequest(_) | Error::UploadFailed(_) => StatusCode::BAD_REQUEST,
            Error::Refused { .. } => StatusCode::FORBIDDEN,
            Error::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Error::LookupTimedOut { .. }
            | Error::ConnectTimedOut { .. }
            | Error::FirstByteTimedOut
            | Error::BodyStalled
            | Error::Tls { failure: HandshakeFailure::TimedOut, .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// What the remote is told: an error type of `Proxy-Status` (RFC 9209 §2.3), or a word of ours where more follows from
    /// it than from the type that it tells its client.
    pub fn proxy_status(&self) -> &'static str {
        match self {
            Error::InvalidRequest(_) | Error::UploadFailed(_) => "http_request_error",
            Error::NotFound { .. } | Error::Lookup { .. } => "dns_error",
            Error::LookupTimedOut { .. } => "dns_timeout",
            Error::Refused { .. } => "destination_ip_prohibited",
            Error::Busy { .. } => "connection_limit_reached",
            Error::ConnectRefused { .. } => "connection_refused",
            Error::ConnectTimedOut { .. } | Error::Tls { failure: HandshakeFailure::TimedOut, .. } => {
                "connection_timeout"
            }
            Error::Unreachable { .. } => "destination_ip_unroutable",
            Error::Certificate { problem, .. } if problem.is_left_to_browsers() => "tls_protocol_error",
            Error::Certificate { .. } => "tls_certificate_error",
            Error::ClientCertificateWanted { .. } => "client_certificate_wanted",
            Error::Tls { failure: HandshakeFailure::Alert(_), .. } => "tls_alert_received",
            // It may say nothing of the host: an outage looks the same.
            Error::Tls { failure: HandshakeFailure::Closed | HandshakeFailure::Transient(_), .. } => {
                "tls_cut_off"
            }
            Error::Tls { .. } => "tls_protocol_error",
            Error::Closed => "connection_terminated",
            Error::FirstByteTimedOut => "http_response_timeout",
            // Not what follows from one answer that breaks a rule.
            Error::NotHttp => "not_http",
            Error::Malformed(_) | Error::TooManyInformational | Error::BodyMalformed(_) => {
                "http_protocol_error"
            }
            Error::HeadTooLarge => "http_response_header_section_size",
            Error::UnaskedUpgrade | Error::UpgradeFailed(_) => "http_upgrade_failed",
            Error::BodyIncomplete => "http_response_incomplete",
            Error::BodyStalled => "connection_read_timeout",
        }
    }
}
