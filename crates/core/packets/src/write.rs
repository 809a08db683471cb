//! What goes: datagrams, what ICMP says of them (RFC 792, RFC 4443), and segments with other addresses.

use std::net::{IpAddr, SocketAddr};

use crate::read::{Packet, TCP, UDP};
use crate::sum;

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const FRAGMENT: u8 = 44;
const HOPS: u8 = 64;
/// The least that every path takes (RFC 8200 §5), so that nobody has to say how large a packet may be.
const LEAST_MTU: usize = 1280;
/// What fits into the largest packet: over IPv6 the length of the payload is counted, over IPv4 that of all.
const LARGEST: usize = 65_535 - 8;

/// Why a datagram does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// Nobody listens at the port.
    PortUnreachable,
    /// There is no way to the host.
    HostUnreachable,
    /// No packet of more bytes than these, headers counted, gets there.
    TooBig(u16),
}

/// The packets of a datagram: one over IPv4, which routers cut as they need; over IPv6 pieces that every path takes. None where it is too large for any, or
/// its ends are of different families. `id` tells it from others of these ends.
pub fn datagram(from: SocketAddr, to: SocketAddr, payload: &[u8], id: u32) -> Vec<Vec<u8>> {
    let room = if from.is_ipv4() { LARGEST - 20 } else { LARGEST };
    if payload.len() > room || from.is_ipv4() != to.is_ipv4() {
        return Vec::new();
    }
    let whole = udp(from, to, payload);
    match (from.ip(), to.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => vec![packet(from.ip(), to.ip(), UDP, id as u16, &whole)],
        _ if whole.len() + 40 <= LEAST_MTU => vec![packet(from.ip(), to.ip(), UDP, 0, &whole)],
        _ => {
            let size = (LEAST_MTU - 40 - 8) & !7;
            let last = (whole.len() - 1) / size;
            let pieces = whole.chunks(size).enumerate();
            let piece = |(number, piece): (usize, &[u8])| {
                let field = (number * size) as u16 | u16::from(number < last);
                let [a, b] = field.to_be_bytes();
                let part = [&[UDP, 0, a, b], &id.to_be_bytes()[..], piece].concat();
                packet(from.ip(), to.ip(), FRAGMENT, 0, &part)
            };
            pieces.map(piece).collect()
        }
    }
}

fn udp(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len();
    let mut whole = Vec::with_capacity(length);
    for number in [from.port(), to.port(), length as u16, 0] {
        whole.extend_from_slice(&number.to_be_bytes());
    }
    whole.extend_from_slice(payload);
    let sum = !sum::folded(&[sum::pseudo(from.ip(), to.ip(), UDP, length), sum::words(&whole)]);
    // RFC 768: zero would say that there is none.
    whole[6..8].copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
    whole
}

/// What tells `client` that its datagrams to `to` do not arrive, in the name of that place. `None` where they are of different families.
pub fn complaint(what: Complaint, client: SocketAddr, to: SocketAddr) -> Option<Vec<u8>> {
    if client.is_ipv4() != to.is_ipv4() {
        return None;
    }
    // RFC 792: the header of what did not arrive, and eight bytes of it. They tell the client whose it was.
    let quoted = packet(client.ip(), to.ip(), UDP, 0, &udp(client, to, &[]));
    let (protocol, kind, code, size) = match (what, to.is_ipv4()) {
        (Complaint::PortUnreachable, true) => (ICMP, 3, 3, 0),
        (Complaint::HostUnreachable, true) => (ICMP, 3, 1, 0),
        (Complaint::TooBig(size), true) => (ICMP, 3, 4, size), // RFC 1191
        (Complaint::PortUnreachable, false) => (ICMP_V6, 1, 4, 0),
        (Complaint::HostUnreachable, false) => (ICMP_V6, 1, 3, 0),
        (Complaint::TooBig(size), false) => (ICMP_V6, 2, 0, size.max(LEAST_MTU as u16)),
    };
    let [high, low] = size.to_be_bytes();
    let mut said = [&[kind, code, 0, 0, 0, 0, high, low], &quoted[..]].concat();
    let counts_addresses = protocol == ICMP_V6;
    let pseudo = if counts_addresses { sum::pseudo(to.ip(), client.ip(), protocol, said.len()) } else { 0 };
    let sum = !sum::folded(&[pseudo, sum::words(&said)]);
    said[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(packet(to.ip(), client.ip(), protocol, 0, &said))
}

/// A packet of this payload.
fn packet(from: IpAddr, to: IpAddr, protocol: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(40 + payload.len());
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&(20 + payload.len() as u16).to_be_bytes());
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&[0, 0, HOPS, protocol, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let sum = !sum::folded(&[sum::words(&out)]);
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (from, to) => {
            let octets = |address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
            out.extend_from_slice(&[protocol, HOPS]);
            out.extend_from_slice(&octets(from));
            out.extend_from_slice(&octets(to));
        }
    }
    out.extend_from_slice(payload);
    out
}

/// Gives a segment other ends, and checksums that change as they do. False where this is no whole segment, or one of another
/// family: it is as it was then.
#[must_use]
pub fn readdress(bytes: &mut [u8], from: SocketAddr, to: SocketAddr) -> bool {
    let Some(packet) = Packet::read(bytes) else { return false };
    let is_v4 = from.is_ipv4();
    if packet.segment().is_none() || packet.from.is_ipv4() != is_v4 || to.is_ipv4() != is_v4 {
        return false;
    }
    let payload = packet.place.start;
    let (addresses, new) = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (12..20, [from.octets(), to.octets()].concat()),
        (IpAddr::V6(from), IpAddr::V6(to)) => (8..40, [from.octets(), to.octets()].concat()),
        _ => return false,
    };
    debug_assert_eq!(packet.protocol, TCP);
    let old = bytes[addresses.clone()].to_vec();
    bytes[addresses].copy_from_slice(&new);
    if is_v4 {
        sum::adjust(&mut bytes[10..12], &old, &new);
    }
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    let old_ports = bytes[payload..payload + 4].to_vec();
    bytes[payload..payload + 4].copy_from_slice(&ports);
    let sum = &mut bytes[payload + 16..payload + 18];
    sum::adjust(sum, &old, &new);
    sum::adjust(sum, &old_ports, &ports);
    true
}
