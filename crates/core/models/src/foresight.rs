//! What a model foresees, and what is to be done about it.

use url::Url;

use crate::needs::Needs;

/// What is done about something foreseen, by how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// A connection to its origin is made.
    Connect,
    /// It is promised, and fetched once the browser asks.
    Promise,
    /// It is promised, fetched and pushed.
    Push,
}

/// From here on a connection is worth making.
const CONNECT: f64 = 0.3;
/// From here on a promise is: it costs the link some dozens of bytes.
const PROMISE: f64 = 0.6;
/// From here on its bytes are, where what was sent of late was used; two visits of two reach it.
const PUSH: f64 = 0.85;
/// The same where more than a tenth of what was sent was not: four of four.
const DOUBTED: f64 = 0.91;
/// The same where more than a quarter was not: nine of nine.
const DISTRUSTED: f64 = 0.945;

impl Means {
    /// For something that is as sure as this, in a model of which so many percent of what was sent is used. `None`: nothing.
    pub(crate) fn of(confidence: f64, trust: u8) -> Option<Means> {
        let push = match trust {
            90.. => PUSH,
            75.. => DOUBTED,
            _ => DISTRUSTED,
        };
        match confidence {
            _ if confidence >= push => Some(Means::Push),
            _ if confidence >= PROMISE => Some(Means::Promise),
            _ if confidence >= CONNECT => Some(Means::Connect),
            _ => None,
        }
    }

    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Means::Connect => "connect",
            Means::Promise => "promise",
            Means::Push => "push",
        }
    }
}

/// A resource that the page will probably need.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// Where it is.
    pub url: Url,
    /// How it is asked for.
    pub needs: Needs,
    /// How sure that is, in percent.
    pub confidence: u8,
    /// What to do; `None`: only to see whether the visit asks for it.
    pub means: Option<Means>,
    /// The user's own visits have taught it; else others' have, so that it is fetched without credentials.
    pub own: bool,
}
