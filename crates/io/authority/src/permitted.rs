//! Whom a CA may vouch for: name constraints (RFC 5280 §4.2.1.10), which the users' systems enforce, whatever becomes
//! of the key. Pure.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rcgen::{CidrSubnet, GeneralSubtree, NameConstraints};
use x509_parser::extensions::{GeneralName, GeneralSubtree as Parsed};

use crate::error::AuthorityError;
use crate::subject::Subject;

/// A domain with all below it, or a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subtree {
    /// `example.org` stands for itself and every name that ends in `.example.org`.
    Domain(String),
    /// The addresses that share these leading bits.
    Range {
        /// The first of them.
        network: IpAddr,
        /// How many bits count.
        prefix: u8,
    },
}

impl FromStr for Subtree {
    type Err = AuthorityError;

    /// Reads `example.org`, `10.0.0.0/8` or a lone address. Names below a domain alone cannot be permitted: the form that says so
    /// is refused.
    fn from_str(text: &str) -> Result<Self, AuthorityError> {
        let wrong = || AuthorityError::Subtree(text.to_owned());
        if let Some((network, prefix)) = text.split_once('/') {
            let network: IpAddr = network.parse().map_err(|_| wrong())?;
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= width(network)).ok_or_else(wrong)?;
            // `10.1.2.3/8` is more often a slip than a wish for all of 10/8.
            return if first(network, prefix) == network {
                Ok(Subtree::Range { network, prefix })
            } else {
                Err(wrong())
            };
        }
        let below = text.strip_prefix("*.").or_else(|| text.strip_prefix('.'));
        match (below, Subject::parse(below.unwrap_or(text))) {
            // RFC 952: such labels are slips.
            (_, Some(Subject::Name(name)))
                if name.split('.').any(|label| label.starts_with('-') || label.ends_with('-')) =>
            {
                Err(wrong())
            }
            (None, Some(Subject::Name(name))) => Ok(Subtree::Domain(name)),
            (Some(_), Some(Subject::Name(domain))) => {
                Err(AuthorityError::BelowOnly { pattern: text.to_owned(), domain })
            }
            // As it is written out: `1.2.3`, which URLs read as 1.2.0.3, is more often a slip.
            (None, Some(Subject::Address(network))) if text.parse() == Ok(network) => {
                Ok(Subtree::Range { network, prefix: width(network) })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Subtree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subtree::Domain(name) => f.write_str(name),
            Subtree::Range { network, prefix } => write!(f, "{network}/{prefix}"),
        }
    }
}

impl Subtree {
    fn holds(&self, subject: &Subject) -> bool {
        match (self, subject) {
            (Subtree::Domain(domain), Subject::Name(name)) => {
                let below = name.strip_suffix(domain.as_str());
                below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
            }
            (Subtree::Range { network, prefix }, Subject::Address(address)) => {
                first(*address, *prefix) == *network
            }
            _ => false,
        }
    }
}

/// Everything that a CA may vouch for; all hosts where it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permitted(Vec<Subtree>);

impl From<Vec<Subtree>> for Permitted {
    fn from(subtrees: Vec<Subtree>) -> Self {
        Permitted(subtrees)
    }
}

impl Permitted {
    /// The domains and ranges; none where every host is permitted.
    pub fn subtrees(&self) -> &[Subtree] {
        &self.0
    }

    pub(crate) fn permits(&self, subject: &Subject) -> bool {
        self.0.is_empty() || self.0.iter().any(|subtree| subtree.holds(subject))
    }

    /// As the extension. A kind of name that it does not mention would be free of it (RFC 5280 §4.2.1.10), so the
    /// other kind is excluded as a whole.
    pub(crate) fn to_extension(&self) -> Option<NameConstraints> {
        if self.0.is_empty() {
            return None;
        }
        let permitted = self.0.iter().map(|subtree| match subtree {
            Subtree::Domain(name) => GeneralSubtree::DnsName(name.clone()),
            Subtree::Range { network, prefix } => range(*network, *prefix),
        });
        let mut excluded = Vec::new();
        if !self.0.iter().any(|subtree| matches!(subtree, Subtree::Domain(_))) {
            excluded.push(GeneralSubtree::DnsName(String::new()));
        }
        if !self.0.iter().any(|subtree| matches!(subtree, Subtree::Range { .. })) {
            excluded.push(range(IpAddr::from([0; 4]), 0));
            excluded.push(range(IpAddr::from([0; 16]), 0));
        }
        Some(NameConstraints { permitted_subtrees: permitted.collect(), excluded_subtrees: excluded })
    }

    /// What the permitted subtrees of a certificate say; `None` where they say what this crate never writes.
    pub(crate) fn from_extension(subtrees: &[Parsed<'_>]) -> Option<Permitted> {
        let read = |subtree: &Parsed<'_>| match subtree.base {
            GeneralName::DNSName(name) => Some(Subtree::Domain(name.to_owned())),
            GeneralName::IPAddress(bytes) => {
                let (network, mask) = bytes.split_at(bytes.len() / 2);
                let prefix = mask.iter().map(|byte| byte.count_ones() as u8).sum();
                Some(Subtree::Range { network: address(network)?, prefix })
            }
            _ => None,
        };
        subtrees.iter().map(read).collect::<Option<_>>().map(Permitted)
    }
}

impl fmt::Display for Permitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("any host");
        }
        let subtrees: Vec<_> = self.0.iter().map(Subtree::to_string).collect();
        f.write_str(&subtrees.join(", "))
    }
}

fn range(network: IpAddr, prefix: u8) -> GeneralSubtree {
    GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(network, prefix))
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first address of the range that `address` lies in.
fn first(address: IpAddr, prefix: u8) -> IpAddr {
    let kept = |width: u32| u128::MAX.checked_shl(width.saturating_sub(prefix.into())).unwrap_or(0);
    match address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() & kept(32) as u32).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & kept(128)).into()),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(entries: &[&str]) -> Permitted {
        entries.iter().map(|entry| entry.parse().unwrap()).collect::<Vec<Subtree>>().into()
    }

    fn permits(entries: &[&str], host: &str) -> bool {
        permitted(entries).permits(&Subject::parse(host).unwrap())
    }

    #[test]
    fn without_an_entry_every_host_is_permitted() {
        assert!(permits(&[], "example.org") && permits(&[], "192.0.2.1"));
    }

    #[test]
    fn a_domain_stands_for_itself_and_what_is_below_it() {
        for entry in ["example.org", "EXAMPLE.org."] {
            assert!(permits(&[entry], "example.org") && permits(&[entry], "a.b.example.org"), "{entry}");
            assert!(!permits(&[entry], "anexample.org") && !permits(&[entry], "org"), "{entry}");
            assert!(!permits(&[entry], "192.0.2.1"), "{entry}");
        }
    }

    #[test]
    fn what_would_be_less_than_a_domain_is_refused() {
        for entry in ["*.example.org", ".example.org"] {
            let words = entry.parse::<Subtree>().unwrap_err().to_string();
            assert!(words.contains("cannot stand for the names below example.org alone"), "{words}");
        }
    }

    #[test]
    fn a_range_stands_for_its_addresses() {
        assert!(permits(&["10.0.0.0/8"], "10.255.0.1") && !permits(&["10.0.0.0/8"], "11.0.0.1"));
        assert!(permits(&["192.0.2.7"], "192.0.2.7") && !permits(&["192.0.2.7"], "192.0.2.8"));
        assert!(permits(&["0.0.0.0/0"], "8.8.8.8") && !permits(&["0.0.0.0/0"], "2001:db8::1"));
        assert!(permits(&["2001:db8::/32"], "2001:db8:1::") && !permits(&["::/0"], "example.org"));
    }

    #[test]
    fn slips_are_refused_by_name() {
        for text in [
            "",
            "*",
            "*.*.org",
            "10.1.2.3/8",
            "10.0.0.0/33",
            "::/129",
            "a/8",
            "*.10.0.0.1",
            "a b",
            "1.2.3",
            "2130706433",
            "-",
            "-a.org",
            "a-.org",
        ] {
            let error = text.parse::<Subtree>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is neither a domain")), "{error}");
        }
    }

    #[test]
    fn an_entry_reads_back_as_it_is_shown() {
        let all = permitted(&["example.org", "10.0.0.0/8", "2001:db8::/32"]);
        assert_eq!(all.to_string(), "example.org, 10.0.0.0/8, 2001:db8::/32");
        assert_eq!(permitted(&all.to_string().split(", ").collect::<Vec<_>>()), all);
    }
}
