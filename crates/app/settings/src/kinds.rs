//! The small types that only settings need: address ranges, port ranges, names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use farhop_diffserv::classify::Net;

/// A range of addresses, `192.0.2.0/24`; a lone address is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    /// The first address of the range: bits beyond the prefix are zero.
    pub network: IpAddr,
    /// How many leading bits count.
    pub prefix: u8,
}

impl Cidr {
    /// Whether `address` lies in the range. An IPv4 address written inside IPv6 (`::ffff:a.b.c.d`) counts as
    /// IPv4, since sockets that serve both families report it so.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                network.to_bits() == address.to_bits() & mask(self.prefix, 32) as u32
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                network.to_bits() == address.to_bits() & mask(self.prefix, 128)
            }
            _ => false,
        }
    }

    /// The same as rules of the classifier have it.
    pub fn net(&self) -> Net {
        Net { address: self.network, prefix: self.prefix }
    }
}

/// The `width` low bits with the upper `prefix` of them set.
fn mask(prefix: u8, width: u32) -> u128 {
    let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    let host_bits = width - u32::from(prefix);
    if host_bits >= 128 { 0 } else { all & !((1u128 << host_bits) - 1) }
}

impl FromStr for Cidr {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
        let network: IpAddr = address.parse().map_err(|_| ())?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            "" if !text.contains('/') => width,
            // `+8` would parse as a number.
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().map_err(|_| ())?,
            _ => return Err(()),
        };
        if prefix > width {
            return Err(());
        }
        let cidr = Cidr { network, prefix };
        // `10.1.2.3/8` is more often a slip than a wish for all of 10/8.
        cidr.contains(network).then_some(cidr).ok_or(())
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// A port, or a range of ports with both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The lowest port, at least 1.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

impl PortRange {
    /// Whether `port` lies in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    /// Whether a port lies in both ranges.
    pub fn overlaps(self, other: PortRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl FromStr for PortRange {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().map_err(|_| ());
        let range = PortRange { first: port(first)?, last: port(last)? };
        (range.first >= 1 && range.first <= range.last).then_some(range).ok_or(())
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// A span of each day in UTC, such as `22:00-06:00`; it may pass midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hours {
    /// Minutes after midnight at which it begins.
    pub from: u16,
    /// Minutes after midnight at which it is over.
    pub to: u16,
}

impl FromStr for Hours {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (from, to) = text.split_once('-').ok_or(())?;
        let two = |text: &str| {
            let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| is_two).ok_or(())
        };
        let time = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':').ok_or(())?;
            let (hours, minutes) = (two(hours)?, two(minutes)?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes).ok_or(())
        };
        let hours = Hours { from: time(from)?, to: time(to)? };
        (hours.from != hours.to).then_some(hours).ok_or(())
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hours { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

/// What a user has of the link, in hundredths of what others have: `anna=200`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserWeight {
    /// A name, or the address of a client.
    pub user: String,
    /// From 1 to 10,000.
    pub hundredths: u32,
}

impl FromStr for UserWeight {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (user, weight) = text.rsplit_once('=').ok_or(())?;
        let (user, weight) = (user.trim(), weight.trim());
        let is_good = !user.is_empty() && !user.contains([' ', ',']) && !weight.starts_with('+');
        let hundredths = weight.parse().ok().filter(|it| is_good && (1..=10_000).contains(it)).ok_or(())?;
        Ok(UserWeight { user: user.into(), hundredths })
    }
}

impl fmt::Display for UserWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.user, self.hundredths)
    }
}

/// A host, by name or address, with a port. IPv6 addresses stand in brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The name or address, without brackets.
    pub host: String,
    /// The port, at least 1.
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = text.rsplit_once(':').ok_or(())?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(())?;
        let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
            Some(Some(inner)) if inner.parse::<std::net::Ipv6Addr>().is_ok() => inner,
            Some(_) => return Err(()),
            // A bare IPv6 address has colons of its own: which one ends the host cannot be told.
            None if host.is_empty() || host.contains([':', '/', ' ']) => return Err(()),
            None => host,
        };
        Ok(HostPort { host: host.into(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// What a peer is called in logs, events and commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerName(String);

impl PeerName {
    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PeerName {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let length = (1..=64).contains(&text.len());
        (length && text.bytes().all(good)).then(|| PeerName(text.into())).ok_or(())
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What explanations call a rule. It may have the name of one that Farhop comes with, which have blanks in theirs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(String);

impl FromStr for RuleName {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let are_words = text.split(' ').all(|word| word.parse::<PeerName>().is_ok());
        (text.len() <= 64 && are_words).then(|| RuleName(text.into())).ok_or(())
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a field with cache directives for chosen caches (RFC 9213).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TargetField(String);

impl TargetField {
    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TargetField {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        // That one is for all caches, and has another syntax.
        let is_own = !text.eq_ignore_ascii_case("cache-control");
        let length = (1..=64).contains(&text.len());
        (length && is_own && text.bytes().all(good)).then(|| TargetField(text.into())).ok_or(())
    }
}

impl fmt::Display for TargetField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A share in hundredths, written `50 %`; of one core where more than `100 %` makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(pub u32);

impl Percent {
    /// As a fraction: 0.5 for `50 %`.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl FromStr for Percent {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_suffix('%').ok_or(())?.trim_end();
        // `+5` would parse as a number.
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then_some(digits).ok_or(())?.parse().map(Percent).map_err(|_| ())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// Whether a network device can have this name (the kernel's `dev_valid_name`), without what lists and rules read as their own.
pub(crate) fn is_device_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
    (1..=15).contains(&name.len()) && name.bytes().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_ranges_hold_their_own_and_nothing_else() {
        let holds =
            |range: &str, address: &str| range.parse::<Cidr>().unwrap().contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.255.255"));
        assert!(!holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("192.0.2.7", "192.0.2.7"));
        assert!(!holds("192.0.2.7", "192.0.2.6"));
        assert!(holds("0.0.0.0/0", "255.255.255.255"));
        assert!(!holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("::/0", "2001:db8::1"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(!holds("2001:db8::/32", "2001:db9::1"));
        assert!(holds("127.0.0.0/8", "::ffff:127.0.0.1"));
    }

    #[test]
    fn slips_in_address_ranges_are_refused() {
        for text in ["10.1.2.3/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "example.org", ""] {
            assert_eq!(text.parse::<Cidr>(), Err(()), "{text}");
        }
    }

    #[test]
    fn hosts_with_ports_read_in_all_three_forms() {
        let read = |text: &str| text.parse::<HostPort>().map(|it| (it.host, it.port));
        assert_eq!(read("ground.example:4433"), Ok(("ground.example".into(), 4433)));
        assert_eq!(read("192.0.2.1:4433"), Ok(("192.0.2.1".into(), 4433)));
        assert_eq!(read("[2001:db8::1]:4433"), Ok(("2001:db8::1".into(), 4433)));
        for text in ["ground.example", "2001:db8::1:4433", "a:0", ":1", "[x]:1", "http://a:1", "a:99999"] {
            assert_eq!(read(text), Err(()), "{text}");
        }
    }

    #[test]
    fn shares_are_whole_hundredths_with_their_sign() {
        assert_eq!(
            ["50 %", "0%", "150 %"].map(str::parse),
            [Ok(Percent(50)), Ok(Percent(0)), Ok(Percent(150))]
        );
        assert_eq!(Percent(50).to_string(), "50 %");
        for text in ["50", "%", "-1 %", "+1 %", "0.5 %", "a %", ""] {
            assert_eq!(text.parse::<Percent>(), Err(()), "{text}");
        }
    }

    #[test]
    fn a_field_for_chosen_caches_is_any_but_the_one_for_all() {
        assert_eq!("CDN-Cache-Control".parse::<TargetField>().unwrap().to_string(), "CDN-Cache-Control");
        for text in ["", "Cache-Control", "cdn cache", "cdn:", "a,b"] {
            assert_eq!(text.parse::<TargetField>(), Err(()), "{text}");
        }
    }

    #[test]
    fn a_rule_may_have_the_name_of_any_that_farhop_comes_with() {
        for rule in farhop_diffserv::classify::standard() {
            assert!(rule.name.parse::<RuleName>().is_ok(), "{}", rule.name);
        }
        for text in ["", " a", "a ", "a  b", "a\tb", "Farhop's carrier", &"a ".repeat(33)] {
            assert_eq!(text.parse::<RuleName>(), Err(()), "{text}");
        }
    }

    #[test]
    fn port_ranges_include_both_ends() {
        let range: PortRange = "8000-8999".parse().unwrap();
        assert!(
            range.contains(8000) && range.contains(8999) && !range.contains(9000) && !range.contains(7999)
        );
        for text in ["0", "9-8", "65536", "-1", ""] {
            assert_eq!(text.parse::<PortRange>(), Err(()), "{text}");
        }
    }

    #[test]
    fn a_users_weight_is_a_name_and_hundredths() {
        let weight: UserWeight = "anna = 200".parse().unwrap();
        assert_eq!(
            (weight.user.as_str(), weight.hundredths, weight.to_string()),
            ("anna", 200, "anna=200".into())
        );
        assert!("2001:db8::1=50".parse::<UserWeight>().is_ok());
        for text in ["anna", "=5", "anna=0", "anna=10001", "anna=x", "anna=+5", "a b=5"] {
            assert_eq!(text.parse::<UserWeight>(), Err(()), "{text}");
        }
    }

    #[test]
    fn hours_are_two_times_of_a_day() {
        let hours: Hours = "22:00-06:30".parse().unwrap();
        assert_eq!((hours.from, hours.to, hours.to_string()), (1320, 390, "22:00-06:30".into()));
        for text in
            ["22:00", "22-06", "24:00-06:00", "22:60-06:00", "6:00-7:00", "06:00-06:00", "+6:00-07:00"]
        {
            assert_eq!(text.parse::<Hours>(), Err(()), "{text}");
        }
    }
}
