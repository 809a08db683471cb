//! What can be wrong with an origin's certificate, and with a handshake, in words for those who see the error page.

use std::fmt;

/// Why a certificate is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateProblem {
    /// Its time is over.
    #[error("it expired on {since}")]
    Expired {
        /// As HTTP writes dates.
        since: String,
    },
    /// Its time has not begun.
    #[error("it is not valid before {from}")]
    NotYetValid {
        /// As HTTP writes dates.
        from: String,
    },
    /// It is in order, and one above it in its chain is not.
    #[error("that of {issuer}, above it in its chain, does not count: {problem}")]
    OfIssuer {
        /// The name of the one above.
        issuer: String,
        /// What is wrong with that one.
        problem: Box<CertificateProblem>,
    },
    /// It is another's.
    #[error("it is for {}", Names(names))]
    WrongHost {
        /// Host names and addresses that it is for, in its order, with the reason beside those that only look like the one asked for.
        names: Vec<String>,
    },
    /// Nobody but itself vouches for it.
    #[error("it is self-signed: nobody else vouches for it")]
    SelfSigned,
    /// Whoever vouches for it is not known.
    #[error("its issuer is not one that is trusted here: {issuer}")]
    UnknownIssuer {
        /// The issuer's name as the certificate says it.
        issuer: String,
    },
    /// Whoever vouches for it has the name of one that is trusted, and not its key.
    #[error("its issuer is not one that is trusted here: {issuer} is only the name of one that is")]
    OtherIssuer {
        /// The name.
        issuer: String,
    },
    /// The origin shows no certificate of its issuer, or of one above that; it can be fetched (RFC 5280 §4.2.2.1).
    #[error("the certificate of its issuer is missing: {issuer}")]
    IssuerMissing {
        /// The issuer's name.
        issuer: String,
        /// The URL from which it can be had.
        at: String,
    },
    /// Its key, or that of one above it, can be broken.
    #[error("a key in it is weak: {0}")]
    WeakKey(String),
    /// A signature in its chain can be forged.
    #[error("a signature in it is weak: {0}")]
    WeakSignature(String),
    /// Its issuer has taken it back.
    #[error("it was revoked")]
    Revoked,
    /// It says of itself that it counts only with its issuer's word that it was not revoked (RFC 7633), and there is none; the text
    /// says what of it there is.
    #[error("it may only be shown with a current word of its issuer that it is good (must-staple), and {0}")]
    Unstapled(&'static str),
    /// It is for mail, code or people.
    #[error("it is not for web servers")]
    NotForServers,
    /// It, or one above it in its chain, is put to a use that it is not for.
    #[error("{0}")]
    Misused(&'static str),
    /// Whether it is good can't be found out here; a browser may know more.
    #[error("it can't be verified here: {0}")]
    Unverifiable(String),
    /// It breaks the rules in some other way.
    #[error("it is malformed: {0}")]
    Malformed(String),
}

impl CertificateProblem {
    /// Whether browsers may have ways to judge that there are none of here.
    pub(crate) fn is_left_to_browsers(&self) -> bool {
        matches!(self, CertificateProblem::Unverifiable(_) | CertificateProblem::IssuerMissing { .. })
    }
}

/// Names said in one breath, the first few of them.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SAID: usize = 5;
        if self.0.is_empty() {
            return f.write_str("no host at all");
        }
        f.write_str(&self.0.iter().take(SAID).map(String::as_str).collect::<Vec<_>>().join(", "))?;
        match self.0.len().saturating_sub(SAID) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Why a handshake came to nothing although no certificate was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeFailure {
    /// The origin gave up and said why.
    #[error("the origin answered with the alert {0}")]
    Alert(String),
    /// It gave up and said why, and the reason is one that passes: a server that cannot work just then says so.
    #[error("the origin answered with the alert {0}, which may pass")]
    Transient(String),
    /// What it sent is no TLS, or not as it should be.
    #[error("{0}")]
    Protocol(String),
    /// It closed or reset the connection.
    #[error("the origin closed the connection")]
    Closed,
    /// It took too long.
    #[error("the handshake took too long")]
    TimedOut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_host_says_whose_it_is() {
        let said = |count: usize| {
            let names = (0..count).map(|number| format!("{number}.example")).collect();
            CertificateProblem::WrongHost { names }.to_string()
        };
        assert_eq!(said(0), "it is for no host at all");
        assert_eq!(said(2), "it is for 0.example, 1.example");
        assert!(said(7).ends_with("4.example and 2 more"), "{}", said(7));
    }
}
