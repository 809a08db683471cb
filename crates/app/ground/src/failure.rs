//! What the remote is told when there is no (whole) answer: the failing side, the status that its client gets, an
//! RFC 9209 error type and a line for people.

use std::fmt::Display;

use farhop_htotp::frame::{Failure, Side};
use farhop_origin::Error;

use crate::prefix::Mismatch;

fn failure(side: Side, status: u16, token: &str, detail: String) -> Failure {
    Failure { side, status, token: token.into(), detail }
}

/// The side as events name it.
pub(crate) fn side(failure: &Failure) -> farhop_events::Side {
    match failure.side {
        Side::User => farhop_events::Side::User,
        // The hop itself cannot fail here: what ground says of it is ground's.
        Side::Link => farhop_events::Side::Ground,
        Side::Origin => farhop_events::Side::Origin,
    }
}

/// The origin, or the way to it, failed; or the request is none that can be sent.
pub(crate) fn origin(error: &Error) -> Failure {
    let side = match error {
        Error::InvalidRequest(_) | Error::UploadFailed(_) => Side::User,
        _ => Side::Origin,
    };
    failure(side, error.status().as_u16(), error.proxy_status(), error.to_string())
}

/// The origin's content coding is broken.
pub(crate) fn coding(error: &dyn Display) -> Failure {
    // RFC 9209 §2.3.18
    failure(Side::Origin, 502, "http_response_content_coding", error.to_string())
}

/// A resumed body is not the one that was cut.
pub(crate) fn mismatch(error: &Mismatch) -> Failure {
    failure(Side::Origin, 502, "resume_mismatch", error.to_string())
}

/// Ground itself cannot go on.
pub(crate) fn internal(error: &dyn Display) -> Failure {
    // RFC 9209 §2.3.25
    failure(Side::Link, 500, "proxy_internal_error", format!("ground: {error}"))
}

/// The remote asks for a component that this ground does not have.
pub(crate) fn no_component(name: &str) -> Failure {
    // RFC 9209 §2.3.2
    failure(Side::Link, 502, "destination_not_found", format!("ground has no component '{name}'"))
}

/// What is asked of the DNS component is no question.
pub(crate) fn no_question() -> Failure {
    bad_request(400, "this is no DNS question")
}

/// What is asked of the UDP component is no flow.
pub(crate) fn no_flow() -> Failure {
    bad_request(400, "this is no flow of datagrams")
}

/// There is no room for another flow.
pub(crate) fn too_many_flows() -> Failure {
    // RFC 9209 §2.3.12
    failure(Side::Link, 503, "connection_limit_reached", "ground: too many flows of datagrams".into())
}

/// The remote asks for a dictionary that ground has not, or no longer.
pub(crate) fn no_dictionary() -> Failure {
    // RFC 9209 §2.3.2
    failure(Side::Link, 502, "destination_not_found", "ground has no such dictionary".into())
}

/// No name server has answered.
pub(crate) fn no_name_server(error: String) -> Failure {
    // RFC 9209 §2.3.1
    failure(Side::Origin, 504, "dns_timeout", error)
}

/// The request cannot be sent to any origin.
pub(crate) fn bad_request(status: u16, detail: &str) -> Failure {
    // RFC 9209 §2.3.23
    failure(Side::User, status, "http_request_error", detail.into())
}

/// A promise is taken back: the remote asks if it is asked.
pub(crate) fn withdrawn(why: &dyn Display) -> Failure {
    failure(Side::Link, 502, "promise_withdrawn", why.to_string())
}
