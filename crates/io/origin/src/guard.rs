//! Which addresses ground may be sent to. Pure; asked after names are resolved, about the very address that is then
//! connected to, so that a name can't change its mind in between.
//!
//! Tables follow the IANA special-purpose address registries (RFC 6890 and its updates).

use crate::cidr::Cidr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 0.0.0.0/8 and `::`.
    #[error("an unspecified address")]
    Unspecified,
    /// 127.0.0.0/8 and `::1`.
    #[error("a loopback address")]
    Loopback,
    /// RFC 1918.
    #[error("a private address")]
    Private,
    /// 169.254.0.0/16 and fe80::/10.
    #[error("a link-local address")]
    LinkLocal,
    /// 100.64.0.0/10 (RFC 6598).
    #[error("an address shared behind carrier-grade NAT")]
    Shared,
    /// fc00::/7 (RFC 4193).
    #[error("a unique local address")]
    UniqueLocal,
    /// fec0::/10 (RFC 3879).
    #[error("a site-local address")]
    SiteLocal,
    /// 224.0.0.0/4 and ff00::/8.
    #[error("a multicast address")]
    Multicast,
    /// 255.255.255.255.
    #[error("the broadcast address")]
    Broadcast,
    /// RFC 5737, RFC 3849, RFC 9637.
    #[error("a documentation address")]
    Documentation,
    /// RFC 2544, RFC 5180.
    #[error("a benchmarking address")]
    Benchmarking,
    /// Where clouds tell their machines secrets.
    #[error("a cloud metadata address")]
    Metadata,
    /// Everything else that is not for the public internet.
    #[error("a reserved address")]
    Reserved,
}

/// First match counts: metadata services lie within larger ranges.
const REFUSED_V4: &[(Cidr, Refusal)] = &[
    (Cidr::v4(169, 254, 169, 254, 32), Refusal::Metadata),
    (Cidr::v4(169, 254, 170, 2, 32), Refusal::Metadata), // AWS containers
    (Cidr::v4(168, 63, 129, 16, 32), Refusal::Metadata), // Azure, in public space
    (Cidr::v4(100, 100, 100, 200, 32), Refusal::Metadata), // Alibaba
    (Cidr::v4(192, 0, 0, 192, 32), Refusal::Metadata),   // Oracle
    (Cidr::v4(0, 0, 0, 0, 8), Refusal::Unspecified),
    (Cidr::v4(10, 0, 0, 0, 8), Refusal::Private),
    (Cidr::v4(100, 64, 0, 0, 10), Refusal::Shared),
    (Cidr::v4(127, 0, 0, 0, 8), Refusal::Loopback),
    (Cidr::v4(169, 254, 0, 0, 16), Refusal::LinkLocal),
    (Cidr::v4(172, 16, 0, 0, 12), Refusal::Private),
    (Cidr::v4(192, 0, 0, 0, 24), Refusal::Reserved),
    (Cidr::v4(192, 0, 2, 0, 24), Refusal::Documentation),
    (Cidr::v4(192, 88, 99, 0, 24), Refusal::Reserved), // 6to4 relays (RFC 7526)
    (Cidr::v4(192, 168, 0, 0, 16), Refusal::Private),
    (Cidr::v4(198, 18, 0, 0, 15), Refusal::Benchmarking),
    (Cidr::v4(198, 51, 100, 0, 24), Refusal::Documentation),
    (Cidr::v4(203, 0, 113, 0, 24), Refusal::Documentation),
    (Cidr::v4(224, 0, 0, 0, 4), Refusal::Multicast),
    (Cidr::v4(255, 255, 255, 255, 32), Refusal::Broadcast),
    (Cidr::v4(240, 0, 0, 0, 4), Refusal::Reserved),
];

/// What is refused by name; beyond these only 2000::/3 is the public internet.
const REFUSED_V6: &[(Cidr, Refusal)] = &[
    (Cidr::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), Refusal::Metadata), // AWS
    (Cidr::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Refusal::Metadata),  // Google
    (Cidr::v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Refusal::Unspecified),
    (Cidr::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Refusal::Loopback),
    (Cidr::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Refusal::UniqueLocal),
    (Cidr::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Refusal::LinkLocal),
    (Cidr::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Refusal::SiteLocal),
    (Cidr::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Refusal::Multicast),
    (Cidr::v6([0x2001, 0x2, 0, 0, 0, 0, 0, 0], 48), Refusal::Benchmarking),
    (Cidr::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Refusal::Documentation),
    (Cidr::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Refusal::Documentation),
];

const GLOBAL_UNICAST: Cidr = Cidr::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const PROTOCOL_ASSIGNMENTS: Cidr = Cidr::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23); // RFC 2928; Teredo too
const V4_MAPPED: Cidr = Cidr::v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96); // RFC 4291 §2.5.5.2
const V4_COMPATIBLE: Cidr = Cidr::v6([0; 8], 96); // RFC 4291 §2.5.5.1
const V4_TRANSLATED: Cidr = Cidr::v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96); // RFC 2765
const NAT64: Cidr = Cidr::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96); // RFC 6052
const SIX_TO_FOUR: Cidr = Cidr::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16); // RFC 3056
const TEREDO: Cidr = Cidr::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32); // RFC 4380

/// Refuses destinations that are not the public internet's, unless the settings name them.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allowed: Vec<Cidr>,
}

impl Guard {
    /// A guard that lets `allowed` ranges through besides the public internet.
    pub fn new(allowed: Vec<Cidr>) -> Guard {
        Guard { allowed }
    }

    /// Whether a connection to `address` may be made.
    ///
    /// # Errors
    /// What kind of address it is, or of the IPv4 address that is packed within it.
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        if self.allowed.iter().any(|range| range.contains(address)) {
            return Ok(());
        }
        match address {
            IpAddr::V4(_) => first_match(REFUSED_V4, address),
            IpAddr::V6(v6) => self.check_v6(v6),
        }
    }

    fn check_v6(&self, v6: Ipv6Addr) -> Result<(), Refusal> {
        let address = IpAddr::V6(v6);
        first_match(REFUSED_V6, address)?;
        // A gateway, a relay or this machine itself would turn these into the IPv4 address inside.
        for v4 in embedded(v6).into_iter().flatten() {
            self.check(IpAddr::V4(v4))?;
        }
        if V4_MAPPED.contains(address) || NAT64.contains(address) {
            return Ok(());
        }
        let public = GLOBAL_UNICAST.contains(address) && !PROTOCOL_ASSIGNMENTS.contains(address);
        if public { Ok(()) } else { Err(Refusal::Reserved) }
    }
}

fn first_match(table: &[(Cidr, Refusal)], address: IpAddr) -> Result<(), Refusal> {
    match table.iter().find(|(range, _)| range.contains(address)) {
        Some((_, refusal)) => Err(*refusal),
        None => Ok(()),
    }
}

/// IPv4 addresses packed into an IPv6 one, by each way there is.
fn embedded(v6: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let [_, a, b, c, d, e, f, g] = v6.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    let within = |range: Cidr| range.contains(IpAddr::V6(v6));
    if within(V4_MAPPED) || within(V4_COMPATIBLE) || within(V4_TRANSLATED) || within(NAT64) {
        return [v4(f, g), None];
    }
    if within(SIX_TO_FOUR) {
        return [v4(a, b), None];
    }
    if within(TEREDO) {
        // RFC 4380 §4: the server, and the client with its bits turned over.
        return [v4(b, c), v4(!f, !g)];
    }
    // RFC 5214 §6.1: ISATAP, in any prefix.
    if (d == 0 || d == 0x0200) && e == 0x5efe {
        return [v4(f, g), None];
    }
    [None, None]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses and what is said of each by a guard without exceptions.
    const VERDICTS: &[(&str, Option<Refusal>)] = &[
        ("1.1.1.1", None),
        ("9.255.255.255", None),
        ("11.0.0.0", None),
        ("93.184.216.34", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("128.0.0.0", None),
        ("169.253.255.255", None),
        ("169.255.0.0", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("192.0.1.0", None),
        ("192.167.255.255", None),
        ("192.169.0.0", None),
        ("198.17.255.255", None),
        ("198.20.0.0", None),
        ("223.255.255.255", None),
        ("0.0.0.0", Some(Refusal::Unspecified)),
        ("0.255.255.255", Some(Refusal::Unspecified)),
        ("10.0.0.0", Some(Refusal::Private)),
        ("10.255.255.255", Some(Refusal::Private)),
        ("100.64.0.0", Some(Refusal::Shared)),
        ("100.127.255.255", Some(Refusal::Shared)),
        ("100.100.100.200", Some(Refusal::Metadata)),
        ("127.0.0.1", Some(Refusal::Loopback)),
        ("127.255.255.255", Some(Refusal::Loopback)),
        ("168.63.129.16", Some(Refusal::Metadata)),
        ("169.254.0.1", Some(Refusal::LinkLocal)),
        ("169.254.169.254", Some(Refusal::Metadata)),
        ("169.254.170.2", Some(Refusal::Metadata)),
        ("172.16.0.0", Some(Refusal::Private)),
        ("172.31.255.255", Some(Refusal::Private)),
        ("192.0.0.1", Some(Refusal::Reserved)),
        ("192.0.0.192", Some(Refusal::Metadata)),
        ("192.0.2.1", Some(Refusal::Documentation)),
        ("192.88.99.1", Some(Refusal::Reserved)),
        ("192.168.1.1", Some(Refusal::Private)),
        ("198.18.0.1", Some(Refusal::Benchmarking)),
        ("198.19.255.255", Some(Refusal::Benchmarking)),
        ("198.51.100.7", Some(Refusal::Documentation)),
        ("203.0.113.7", Some(Refusal::Documentation)),
        ("224.0.0.1", Some(Refusal::Multicast)),
        ("239.255.255.255", Some(Refusal::Multicast)),
        ("240.0.0.1", Some(Refusal::Reserved)),
        ("255.255.255.254", Some(Refusal::Reserved)),
        ("255.255.255.255", Some(Refusal::Broadcast)),
        ("2606:4700::1111", None),
        ("2a00:1450:4001::200e", None),
        ("3ffe::1", None),
        ("::", Some(Refusal::Unspecified)),
        ("::1", Some(Refusal::Loopback)),
        ("100::1", Some(Refusal::Reserved)),
        ("5f00::1", Some(Refusal::Reserved)),
        ("fc00::1", Some(Refusal::UniqueLocal)),
        ("fdff:ffff::1", Some(Refusal::UniqueLocal)),
        ("fd00:ec2::254", Some(Refusal::Metadata)),
        ("fd20:ce::254", Some(Refusal::Metadata)),
        ("fe80::1", Some(Refusal::LinkLocal)),
        ("febf::1", Some(Refusal::LinkLocal)),
        ("fec0::1", Some(Refusal::SiteLocal)),
        ("ff02::1", Some(Refusal::Multicast)),
        ("2001:db8::1", Some(Refusal::Documentation)),
        ("3fff:fff::1", Some(Refusal::Documentation)),
        ("2001:2::1", Some(Refusal::Benchmarking)),
        ("2001:20::1", Some(Refusal::Reserved)),
        ("4000::1", Some(Refusal::Reserved)),
        // IPv4 inside IPv6.
        ("::ffff:1.1.1.1", None),
        ("::ffff:10.0.0.1", Some(Refusal::Private)),
        ("::ffff:127.0.0.1", Some(Refusal::Loopback)),
        ("::ffff:169.254.169.254", Some(Refusal::Metadata)),
        ("::127.0.0.1", Some(Refusal::Loopback)),
        ("::1.1.1.1", Some(Refusal::Reserved)),
        ("::ffff:0:10.0.0.1", Some(Refusal::Private)),
        ("::ffff:0:1.1.1.1", Some(Refusal::Reserved)),
        ("64:ff9b::1.1.1.1", None),
        ("64:ff9b::192.168.0.1", Some(Refusal::Private)),
        ("64:ff9b::169.254.169.254", Some(Refusal::Metadata)),
        ("64:ff9b:1::1.1.1.1", Some(Refusal::Reserved)),
        ("2002:101:101::1", None),
        ("2002:7f00:1::1", Some(Refusal::Loopback)),
        ("2002:a00:1::1", Some(Refusal::Private)),
        ("2001:0:101:101::fefe:fefe", Some(Refusal::Reserved)),
        ("2001:0:a00:1::fefe:fefe", Some(Refusal::Private)),
        ("2001:0:101:101::80ff:fffe", Some(Refusal::Loopback)),
        ("2a00::5efe:192.168.0.1", Some(Refusal::Private)),
        ("2a00::200:5efe:127.0.0.1", Some(Refusal::Loopback)),
        ("2a00::5efe:1.1.1.1", None),
    ];

    #[test]
    fn addresses_off_the_public_internet_are_refused_by_their_kind() {
        let guard = Guard::default();
        for (text, refusal) in VERDICTS {
            let verdict = guard.check(text.parse().unwrap()).err();
            assert_eq!(verdict, *refusal, "{text}");
        }
    }

    #[test]
    fn ranges_that_the_settings_name_are_let_through_and_no_more() {
        let guard = Guard::new(vec!["10.1.0.0/16".parse().unwrap(), "fd00:1::/32".parse().unwrap()]);
        let check = |text: &str| guard.check(text.parse().unwrap());
        assert_eq!(check("10.1.2.3"), Ok(()));
        assert_eq!(check("::ffff:10.1.2.3"), Ok(()));
        assert_eq!(check("64:ff9b::10.1.2.3"), Ok(()));
        assert_eq!(check("fd00:1::5"), Ok(()));
        assert_eq!(check("10.2.0.1"), Err(Refusal::Private));
        assert_eq!(check("fd00:2::5"), Err(Refusal::UniqueLocal));
        assert_eq!(check("127.0.0.1"), Err(Refusal::Loopback));
    }
}
