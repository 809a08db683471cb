//! Whom a leaf certificate names: a host as it was asked for, brought into the one form that certificates know. Pure.

use std::fmt;
use std::net::IpAddr;

use url::Host;

/// A host that a certificate can name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A DNS name: ASCII (RFC 5890 A-labels), lower case, without a dot at its end.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl Subject {
    /// Reads a host as URLs and CONNECT write it. `None` where no certificate can name it: a wildcard above all, which
    /// would vouch for hosts that nobody asked for.
    pub(crate) fn parse(host: &str) -> Option<Subject> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return Some(Subject::Address(address));
        }
        match Host::parse(host).ok()? {
            Host::Ipv4(address) => Some(Subject::Address(address.into())),
            Host::Ipv6(address) => Some(Subject::Address(address.into())),
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                is_name(name).then(|| Subject::Name(name.to_owned()))
            }
        }
    }
}

/// RFC 1034 §3.1 lengths; the underscore is no letter of host names, but browsers ask for hosts that have it.
fn is_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(good);
    name.len() <= 253 && name.split('.').all(is_label)
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Name(name) => f.write_str(name),
            Subject::Address(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(host: &str) -> Option<String> {
        Subject::parse(host).map(|subject| subject.to_string())
    }

    #[test]
    fn a_host_is_the_same_subject_however_it_is_written() {
        for host in ["www.example.org", "WWW.Example.ORG", "www.example.org."] {
            assert_eq!(parsed(host).as_deref(), Some("www.example.org"), "{host}");
        }
        assert_eq!(parsed("Bücher.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(parsed("a_b.example").as_deref(), Some("a_b.example"));
        let address = Subject::Address("2001:db8::1".parse().unwrap());
        for host in ["2001:db8::1", "[2001:db8::1]", "[2001:DB8:0::1]"] {
            assert_eq!(Subject::parse(host), Some(address.clone()), "{host}");
        }
        for host in ["192.0.2.1", "0xc0.0.2.1"] {
            assert_eq!(Subject::parse(host), Some(Subject::Address("192.0.2.1".parse().unwrap())), "{host}");
        }
    }

    #[test]
    fn what_no_certificate_may_name_is_no_subject() {
        let long_label = format!("{}.example", "a".repeat(64));
        let long_name = vec!["a".repeat(50); 6].join(".");
        for host in [
            "",
            ".",
            "*.example.org",
            "*",
            "a..b",
            ".example.org",
            "example.org..",
            "a b",
            "a/b",
            "a:80",
            "a\0b",
            "[::1",
            "::1]",
            "fe80::1%eth0",
            "a@b",
            &long_label,
            &long_name,
        ] {
            assert_eq!(Subject::parse(host), None, "{host:?}");
        }
    }
}
