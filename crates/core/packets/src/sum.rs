//! The Internet checksum (RFC 1071), and what changes in it where a few bytes change (RFC 1624).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The sum of 16-bit words, an odd last byte filled up.
pub(crate) fn words(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    fold(sum + rest.first().map_or(0, |last| u64::from(*last) << 8)).into()
}

/// The folded sum of parts, each of which but the last has an even length.
pub(crate) fn folded(parts: &[u32]) -> u16 {
    fold(parts.iter().map(|part| u64::from(*part)).sum())
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What stands before a payload where its checksum counts addresses too (RFC 9293 §3.1, RFC 8200 §8.1).
pub(crate) fn pseudo(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> u32 {
    let address = |address| match address {
        IpAddr::V4(address) => words(&Ipv4Addr::octets(&address)),
        IpAddr::V6(address) => words(&Ipv6Addr::octets(&address)),
    };
    u32::from(folded(&[
        address(from),
        address(to),
        u32::from(protocol),
        words(&(length as u32).to_be_bytes()),
    ]))
}

/// Changes a checksum as the change of these bytes does. What was wrong stays wrong.
pub(crate) fn adjust(field: &mut [u8], old: &[u8], new: &[u8]) {
    let before = u16::from_be_bytes([field[0], field[1]]);
    let sum = folded(&[u32::from(!before), u32::from(!folded(&[words(old)])), words(new)]);
    field[..2].copy_from_slice(&(!sum).to_be_bytes());
}
