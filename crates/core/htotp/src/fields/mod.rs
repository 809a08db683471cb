//! Field sections (heads and trailers): their lines, their compression, and which earlier sections both
//! ends hold. Nothing here knows of streams.

pub mod codec;
pub mod dictionary;
pub mod huffman;
pub mod shelf;

use bytes::Bytes;

pub use codec::{SectionError, SectionLimit};

/// One field line; names are lower-case, pseudo-fields begin with `:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Lower-case name.
    pub name: Bytes,
    /// Value as received.
    pub value: Bytes,
}

impl Line {
    /// A line from text.
    pub fn new(name: &str, value: &str) -> Self {
        Line {
            name: Bytes::copy_from_slice(name.as_bytes()),
            value: Bytes::copy_from_slice(value.as_bytes()),
        }
    }

    /// Bytes that it counts for: name, value and 32 (RFC 9113 §6.5.2).
    pub fn size(&self) -> usize {
        self.name.len() + self.value.len() + 32
    }
}

/// A field section, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines(pub Vec<Line>);

/// Names whose values describe the browser, not the site or the user: the only lines that a section may
/// take from a section of *another* origin (cookies and addresses never serve as reference there).
const PORTABLE: &[&str] = &[
    ":method",
    ":scheme",
    "user-agent",
    "accept",
    "accept-encoding",
    "accept-language",
    "upgrade-insecure-requests",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
    "sec-fetch-user",
    "sec-gpc",
    "dnt",
    "cache-control",
    "pragma",
];

impl Lines {
    /// Bytes that it counts for.
    pub fn size(&self) -> usize {
        self.0.iter().map(Line::size).sum()
    }

    /// The part that may serve as reference across origins.
    pub fn portable(&self) -> Lines {
        Lines(
            self.0
                .iter()
                .filter(|line| PORTABLE.iter().any(|p| p.as_bytes() == line.name))
                .cloned()
                .collect(),
        )
    }

    /// The URL of a request head.
    pub fn url(&self) -> Option<Vec<u8>> {
        let (scheme, authority, path) =
            (self.value(":scheme")?, self.value(":authority")?, self.value(":path")?);
        Some([scheme, &b"://"[..], authority, path].concat())
    }

    /// The value of the first line of that name.
    pub fn value(&self, name: &str) -> Option<&Bytes> {
        self.0.iter().find(|line| line.name == name.as_bytes()).map(|line| &line.value)
    }
}
