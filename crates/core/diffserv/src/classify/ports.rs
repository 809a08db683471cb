//! Ranges of ports and of addresses, as rules have them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Ports from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

/// Addresses that share their leading bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Net {
    /// The first of them.
    pub address: IpAddr,
    /// How many leading bits count.
    pub prefix: u8,
}

impl Ports {
    /// Whether `port` is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl Net {
    /// Whether `address` is one of them; IPv4 inside IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let address = address.to_canonical();
        let differ = bits(self.address) ^ bits(address);
        self.address.is_ipv4() == address.is_ipv4()
            && differ.checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ports { first, last } if first == last => write!(f, "{first}"),
            Ports { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Net {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let digits = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            "" if !text.contains('/') => width,
            _ if digits => prefix.parse().map_err(|_| ())?,
            _ => return Err(()),
        };
        if prefix <= width { Ok(Net { address, prefix }) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_their_own_and_nothing_else() {
        let holds = |net: &str, address: &str| net.parse::<Net>().unwrap().contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "255.0.0.1") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("::/0", "2001:db8::1") && !holds("2001:db8::/32", "2001:db9::1"));
        assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.6"));
        assert!(holds("10.0.0.0/8", "::ffff:10.0.0.1"));
        for text in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "x", "::/129"] {
            assert_eq!(text.parse::<Net>(), Err(()), "{text}");
        }
    }
}
