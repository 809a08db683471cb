//! Closed lists of words that events use and counters are kept by.

use serde::{Deserialize, Serialize};

/// How loud an event is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something an operator should look at.
    Warn,
    /// One line for each exchange, and the carriers' comings and goings.
    Info,
    /// Each decision.
    Debug,
}

/// A closed list of words, each with its place in the list.
pub trait Word: Copy + 'static {
    /// Every word, in the order of [`Word::index`].
    const ALL: &'static [Self];
    /// The place of this word in [`Word::ALL`].
    fn index(self) -> usize;
    /// The word as it stands in JSON.
    fn as_str(self) -> &'static str;
}

macro_rules! words {
    ($(
        $(#[doc = $list_doc:literal])*
        pub enum $list:ident {$(
            $(#[doc = $doc:literal])*
            $word:ident = $text:literal,
        )*}
    )*) => {$(
        $(#[doc = $list_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $list {$(
            $(#[doc = $doc])*
            #[serde(rename = $text)]
            $word,
        )*}

        impl Word for $list {
            const ALL: &'static [Self] = &[$($list::$word),*];
            fn index(self) -> usize {
                self as usize
            }
            fn as_str(self) -> &'static str {
                match self { $($list::$word => $text),* }
            }
        }
    )*};
}

words! {
    /// Why a request crossed the long hop.
    pub enum Crossing {
        /// A page was gone to, and its document was not held: nobody could have known.
        Navigation = "navigation",
        /// Nothing was held and nobody had promised it: a resource not discovered.
        Undiscovered = "undiscovered",
        /// A response was held, but it was too old to use without asking.
        Stale = "stale",
        /// A promise existed for this URL, but a request field differed.
        Mismatch = "mismatch",
        /// A promise that answers once had answered already.
        Spent = "spent",
        /// A promise that answers once was made to another page load.
        OtherLoad = "other_load",
        /// A promise was not wanted: the page was left, the user had too many open, or the answer was held then.
        Refused = "refused",
        /// Nobody asked for a promise in time.
        Lapsed = "lapsed",
        /// The carrier was lost under a promise.
        PromiseLost = "promise_lost",
        /// The carrier was lost under its answer: the rest is asked for.
        Resumed = "resumed",
        /// Ground took its promise back: the origin failed, or a budget ran out.
        PromiseWithdrawn = "promise_withdrawn",
        /// The method changes something at the origin, or carries a body.
        Method = "method",
        /// The user asked for the origin's own word (reload, `no-cache`).
        Reload = "reload",
        /// Of what the request asks for no more than a part is held.
        Range = "range",
        /// A CONNECT tunnel: what it carries cannot be seen.
        Tunnel = "tunnel",
        /// A WebSocket: nothing of it can be held.
        Upgrade = "upgrade",
    }

    /// Where an answer came from.
    pub enum AnsweredFrom {
        /// The repository of the remote held it: nothing crossed.
        Repository = "repository",
        /// A promise, whole before it was asked for.
        PromiseEarly = "promise_early",
        /// A promise that was still on its way: streamed as it arrived.
        PromiseOnTheWay = "promise_on_the_way",
        /// The repository held it, stale: the link was down, or the origin failed.
        Stale = "stale",
        /// The repository held it and the origin confirmed it.
        Validated = "validated",
        /// The origin, through ground.
        Asked = "asked",
        /// The remote itself: an error page, or a refusal.
        Remote = "remote",
    }

    /// Why a TLS connection went through untouched.
    pub enum Bypass {
        /// Interception is off at this remote.
        Off = "off",
        /// It went to a port on which nothing is intercepted.
        Port = "port",
        /// What it went to is no host that a certificate could be for.
        NoHost = "no_host",
        /// Users are asked first, and this one has not agreed.
        NotAgreed = "not_agreed",
        /// The user has switched interception off.
        SwitchedOff = "switched_off",
        /// The user has switched it off for this site.
        SiteSwitchedOff = "site_switched_off",
        /// The operator lists the host.
        Configured = "configured",
        /// A built-in list names the host.
        BuiltIn = "built_in",
        /// Experience: it could not be intercepted before.
        Learned = "learned",
        /// The name in the handshake is not the one that CONNECT named: the real one is encrypted (ECH), or hidden.
        NameDiffers = "name_differs",
        /// The client offered only protocols (ALPN) that are not spoken here.
        UnknownAlpn = "unknown_alpn",
        /// The client spoke something else than TLS, or waited for the server to begin.
        NotTls = "not_tls",
    }

    /// How a promise ended.
    pub enum PromiseEnd {
        /// A request took it.
        Used = "used",
        /// The remote did not want it and stopped its push.
        Cancelled = "cancelled",
        /// Nobody asked for it before it lapsed.
        Lapsed = "lapsed",
        /// The page was left.
        PageLeft = "page_left",
        /// The carrier was lost under it.
        Lost = "lost",
        /// Ground took it back.
        Withdrawn = "withdrawn",
    }

    /// Which part of the way failed.
    pub enum Side {
        /// The browser: went away, or sent what cannot be read.
        User = "user",
        /// The remote itself.
        Remote = "remote",
        /// The long hop.
        Link = "link",
        /// Ground itself.
        Ground = "ground",
        /// The origin, or the way from ground to it.
        Origin = "origin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_at_their_index_and_read_back_from_json() {
        for (index, word) in Crossing::ALL.iter().enumerate() {
            assert_eq!(word.index(), index);
            let json = serde_json::to_string(word).unwrap();
            assert_eq!(json, format!("\"{}\"", word.as_str()));
            assert_eq!(serde_json::from_str::<Crossing>(&json).unwrap(), *word);
        }
    }
}
