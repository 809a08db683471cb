//! A host in the one form in which rules compare it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// RFC 1035 §2.3.4, without the root's dot.
const LONGEST_NAME: usize = 253;

/// A host: a DNS name in lower case and ASCII (IDNA), without the root's dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Host {
    /// A name; no label of it is empty.
    Name(Box<str>),
    /// An address; IPv4 inside IPv6 counts as IPv4.
    Address(IpAddr),
}

/// A text that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a host; write it like example.org or 192.0.2.1")]
pub struct NotAHost;

impl Host {
    /// The name itself, then what is left after each label: `a.b.c`, `b.c`, `c`. Nothing for an address.
    pub fn suffixes(&self) -> impl Iterator<Item = &str> {
        let mut rest = match self {
            Host::Name(name) => Some(&**name),
            Host::Address(_) => None,
        };
        std::iter::from_fn(move || {
            let suffix = rest?;
            rest = suffix.split_once('.').map(|(_, rest)| rest);
            Some(suffix)
        })
    }

    /// The site that this host is of, as people and browsers see it: the registrable domain of a name (by the public
    /// suffix list), else the host itself.
    #[must_use]
    pub fn site(&self) -> Host {
        match self {
            Host::Name(name) => Host::Name(psl::domain_str(name).unwrap_or(name).into()),
            Host::Address(_) => self.clone(),
        }
    }

    /// Whether it is no site but what the names of many sites end in, such as `co.uk` or `github.io` (by the public suffix
    /// list; a name of a domain that the list does not know is none).
    #[must_use]
    pub fn is_public_suffix(&self) -> bool {
        let Host::Name(name) = self else { return false };
        psl::suffix(name.as_bytes()).is_some_and(|it| it.is_known() && it.as_bytes() == name.as_bytes())
    }
}

impl FromStr for Host {
    type Err = NotAHost;

    /// Reads a host as a URL, a CONNECT or a person writes it: any case, any script, with or without the root's dot;
    /// IPv6 with or without brackets.
    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<Ipv6Addr>() {
            return Ok(Host::Address(IpAddr::V6(address).to_canonical()));
        }
        let name = match url::Host::parse(text).map_err(|_| NotAHost)? {
            url::Host::Domain(name) => name,
            url::Host::Ipv4(address) => return Ok(Host::Address(address.into())),
            url::Host::Ipv6(address) => return Ok(Host::Address(IpAddr::V6(address).to_canonical())),
        };
        let name = name.strip_suffix('.').unwrap_or(&name);
        // URLs allow more, but no host has such a name: it is a slip, or a pattern in the wrong place.
        let in_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(in_names);
        let is_good = name.len() <= LONGEST_NAME && name.split('.').all(is_label);
        if is_good { Ok(Host::Name(name.into())) } else { Err(NotAHost) }
    }
}

impl TryFrom<String> for Host {
    type Error = NotAHost;
    fn try_from(text: String) -> Result<Self, NotAHost> {
        text.parse()
    }
}

impl From<Host> for String {
    fn from(host: Host) -> String {
        host.to_string()
    }
}

/// As [`Host::from_str`] reads it back, IPv6 without brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, NotAHost> {
        text.parse::<Host>().map(|host| host.to_string())
    }

    #[test]
    fn one_host_has_one_form_however_it_is_written() {
        for text in ["example.org", "EXAMPLE.org", "Example.Org."] {
            assert_eq!(read(text).as_deref(), Ok("example.org"), "{text}");
        }
        for text in ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "bu\u{308}cher.example"] {
            assert_eq!(read(text).as_deref(), Ok("xn--bcher-kva.example"), "{text}");
        }
        for text in ["192.0.2.1", "192.0.2.1.", "0xc0.0.2.1", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]"] {
            assert_eq!(read(text).as_deref(), Ok("192.0.2.1"), "{text}");
        }
        for text in ["2001:db8::1", "[2001:DB8::1]", "2001:db8:0::1"] {
            assert_eq!(read(text).as_deref(), Ok("2001:db8::1"), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = format!("{}.example", "a".repeat(250));
        for text in
            ["", ".", "a..b", ".a", "a b", "a:443", "a/b", "*.a", "a*.b", "[1.2.3.4]", "1.2.3.4.5", &long]
        {
            assert_eq!(read(text), Err(NotAHost), "{text}");
        }
    }

    #[test]
    fn suffixes_end_at_label_borders() {
        let host: Host = "www.a.example".parse().unwrap();
        assert_eq!(host.suffixes().collect::<Vec<_>>(), ["www.a.example", "a.example", "example"]);
        assert_eq!("192.0.2.1".parse::<Host>().unwrap().suffixes().count(), 0);
    }

    #[test]
    fn a_site_is_a_registrable_domain() {
        let site = |text: &str| text.parse::<Host>().unwrap().site().to_string();
        assert_eq!(site("www.shop.example.co.uk"), "example.co.uk");
        assert_eq!(site("someone.github.io"), "someone.github.io");
        assert_eq!(site("192.0.2.1"), "192.0.2.1");
        assert_eq!(site("router"), "router");
    }

    #[test]
    fn what_many_sites_end_in_is_told_from_a_site() {
        for (text, expected) in [
            ("co.uk", true),
            ("CO.UK.", true),
            ("com", true),
            ("github.io", true),
            ("example.co.uk", false),
            ("someone.github.io", false),
            ("uk.example", false),
            ("router", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(text.parse::<Host>().unwrap().is_public_suffix(), expected, "{text}");
        }
    }
}
