//! Address ranges in CIDR notation. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, `10.0.0.0/8` or `fd00::/8`; a bare address is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    base: IpAddr,
    prefix: u8,
}

/// Why a text is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// No address, or a prefix longer than the address.
    #[error("'{0}' is no address range, write it like '10.0.0.0/8' or 'fd00::/8'")]
    Malformed(String),
    /// An address within the range instead of its first.
    #[error("'{text}' has bits set beyond its prefix, did you mean '{meant}'?")]
    HostBits {
        /// What was written.
        text: String,
        /// The range around it.
        meant: Cidr,
    },
}

impl Cidr {
    pub(crate) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Cidr {
        Cidr { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    pub(crate) const fn v6(segments: [u16; 8], prefix: u8) -> Cidr {
        let [a, b, c, d, e, f, g, h] = segments;
        Cidr { base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
    }

    /// Whether `address` lies within; addresses of the other family never do.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                masked(address, self.prefix) == self.base
            }
            _ => false,
        }
    }
}

/// `address` with all bits after the first `prefix` cleared.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let malformed = || CidrError::Malformed(text.into());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| malformed())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix.map(str::trim) {
            None => longest,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|&prefix| prefix <= longest).ok_or_else(malformed)?
            }
            Some(_) => return Err(malformed()),
        };
        let cidr = Cidr { base: masked(address, prefix), prefix };
        if cidr.base == address {
            Ok(cidr)
        } else {
            Err(CidrError::HostBits { text: text.into(), meant: cidr })
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written_back() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "127.0.0.1/32", "::1/128"] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), text);
        }
        assert_eq!("127.0.0.1".parse::<Cidr>().unwrap().to_string(), "127.0.0.1/32");
    }

    #[test]
    fn what_is_no_range_is_refused_with_advice() {
        for text in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8", "a/8"] {
            assert!(matches!(text.parse::<Cidr>(), Err(CidrError::Malformed(_))), "{text}");
        }
        let error = "10.1.2.3/8".parse::<Cidr>().unwrap_err();
        assert!(error.to_string().ends_with("did you mean '10.0.0.0/8'?"), "{error}");
    }

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        let range: Cidr = "172.16.0.0/12".parse().unwrap();
        let holds = |text: &str| range.contains(text.parse().unwrap());
        assert!(holds("172.16.0.0") && holds("172.31.255.255"));
        assert!(!holds("172.15.255.255") && !holds("172.32.0.0") && !holds("::ffff:172.16.0.1"));
    }
}
