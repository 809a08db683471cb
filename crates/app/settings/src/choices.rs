//! Settings that are one word of a few.

use std::fmt;
use std::str::FromStr;

/// A type whose values are words, and how they are read and shown.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $value,)+
        }

        impl $name {
            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }
        }

        impl FromStr for $name {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                match text {
                    $($word => Ok($name::$value),)+
                    _ => Err(()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

choice! {
    /// What the long hop is crossed with.
    CarrierKind {
        /// QUIC, or TCP where that does not pass.
        Auto = "auto",
        /// QUIC alone.
        Quic = "quic",
        /// TCP alone.
        Tcp = "tcp",
    }
}

choice! {
    /// By what the streams of an end go to the TCP connections of a carrier.
    Spreading {
        /// To each connection in turn.
        RoundRobin = "round-robin",
        /// One connection is kept for what is urgent.
        Priority = "priority",
    }
}

choice! {
    /// What the remote does for connections.
    Role {
        /// Carries connections as they are.
        Transport = "transport",
        /// Serves HTTP.
        Application = "application",
        /// Each for what it is for.
        Both = "both",
    }
}

impl Role {
    /// Whether connections are carried as they are.
    pub fn carries(self) -> bool {
        self != Role::Application
    }

    /// Whether HTTP is served.
    pub fn serves_http(self) -> bool {
        self != Role::Transport
    }
}

choice! {
    /// When losses are repaired without asking for what was lost.
    Fec {
        /// As measured loss calls for it.
        Auto = "auto",
        /// Never.
        Off = "off",
    }
}

choice! {
    /// A direction of a link.
    Direction {
        /// From the users to the gateway.
        Return = "return",
        /// From the gateway to the users.
        Forward = "forward",
    }
}

choice! {
    /// How much is logged, in words that `tracing` filters have, too.
    LogLevel {
        /// Only what stopped something from working.
        Error = "error",
        /// Also what may soon.
        Warn = "warn",
        /// Also each exchange, in one line.
        Info = "info",
        /// Also each decision.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_shown_and_no_others() {
        for kind in [CarrierKind::Auto, CarrierKind::Quic, CarrierKind::Tcp] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for text in ["", "QUIC", "quic ", "udp"] {
            assert_eq!(text.parse::<CarrierKind>(), Err(()), "{text:?}");
        }
    }
}
