//! The header of IP before what an observer of the network is handed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who sent a packet, to whom, and what follows IP's header; `None` where that is not of `protocol`, or not its beginning. What
/// a device has put behind the packet, so that it is long enough, is left out.
pub(crate) fn read(packet: &[u8], protocol: u8) -> Option<(IpAddr, IpAddr, &[u8])> {
    match packet.first()? >> 4 {
        4 => v4(packet, protocol),
        6 => v6(packet, protocol),
        _ => None,
    }
}

/// RFC 791 §3.1.
fn v4(packet: &[u8], protocol: u8) -> Option<(IpAddr, IpAddr, &[u8])> {
    let header = packet.get(..20)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if header[9] != protocol || number(6) & 0x1fff != 0 {
        return None;
    }
    let address =
        |at: usize| Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(header.get(at..at + 4)?).ok()?)));
    let begins = usize::from(header[0] & 0xf).max(5) * 4;
    Some((address(12)?, address(16)?, within(packet, usize::from(number(2))).get(begins..)?))
}

/// RFC 8200 §3, without further headers.
fn v6(packet: &[u8], protocol: u8) -> Option<(IpAddr, IpAddr, &[u8])> {
    let (header, rest) = packet.split_at_checked(40)?;
    if header[6] != protocol {
        return None;
    }
    let address =
        |at: usize| Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(header.get(at..at + 16)?).ok()?)));
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    Some((address(8)?, address(24)?, within(rest, length)))
}

/// None is told of what is longer than the field can say, as segments are that a device is yet to cut.
fn within(bytes: &[u8], length: usize) -> &[u8] {
    if length == 0 { bytes } else { &bytes[..length.min(bytes.len())] }
}
