//! `Cache-Status`: what a cache did with a request, for whoever looks into it (RFC 9211).

use std::fmt::{Display, Formatter, Result};
use std::time::SystemTime;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{Scope, Stored};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// How a request was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// RFC 9211 §2.1: answered from the store; seconds of freshness that are left (§2.5), less than 0 for a stale answer.
    Hit {
        /// RFC 9211 §2.4.
        ttl: i64,
    },
    /// RFC 9211 §2.2: it went on towards the origin.
    Forwarded {
        /// Why.
        why: Forward,
        /// Status of what came for it, where that is not what the client gets (§2.3).
        status: Option<u16>,
        /// Whether what came was stored (§2.6).
        stored: bool,
        /// Whether a request that was under way already answers it (§2.7).
        collapsed: bool,
    },
}

/// RFC 9211 §2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the parameter's own value
pub enum Forward {
    Bypass,
    Method,
    UriMiss,
    VaryMiss,
    Request,
    Stale,
    Partial,
}

impl Forward {
    /// All there are.
    pub const ALL: [Forward; 7] = [
        Forward::Bypass,
        Forward::Method,
        Forward::UriMiss,
        Forward::VaryMiss,
        Forward::Request,
        Forward::Stale,
        Forward::Partial,
    ];

    /// The value of `fwd`.
    pub fn as_str(self) -> &'static str {
        match self {
            Forward::Bypass => "bypass",
            Forward::Method => "method",
            Forward::UriMiss => "uri-miss",
            Forward::VaryMiss => "vary-miss",
            Forward::Request => "request",
            Forward::Stale => "stale",
            Forward::Partial => "partial",
        }
    }
}

impl Handling {
    /// An answer from the store at `now`.
    pub fn hit(stored: &Stored, scope: Scope, now: SystemTime) -> Handling {
        let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Handling::Hit { ttl: seconds(stored.lifetime(scope)) - seconds(stored.age(now)) }
    }

    /// Adds the word of `cache`, a token, to a response's fields. RFC 9211 §2: each cache comes after those nearer to the origin.
    pub fn tell(&self, cache: &str, fields: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&format!("{cache}{self}")) {
            fields.append(CACHE_STATUS, value);
        }
    }
}

/// The parameters, as they follow the cache's name.
impl Display for Handling {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Handling::Hit { ttl } => write!(f, "; hit; ttl={ttl}"),
            Handling::Forwarded { why, status, stored, collapsed } => {
                write!(f, "; fwd={}", why.as_str())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={status}")?;
                }
                f.write_str(if *stored { "; stored" } else { "" })?;
                f.write_str(if *collapsed { "; collapsed" } else { "" })
            }
        }
    }
}
