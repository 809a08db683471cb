//! What comes: the header of an IP packet (RFC 791, RFC 8200), and what TCP and UDP say in it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use crate::sum;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// Headers that may stand between that of IPv6 and its payload: hop-by-hop options, routing, fragment, destination options.
const OPTIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// More of them has no packet that means well.
const MOST_OPTIONS: usize = 4;

/// A packet whose header is sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Who sent it.
    pub from: IpAddr,
    /// Where it is to go.
    pub to: IpAddr,
    /// What its payload is of.
    pub protocol: u8,
    /// What follows IP's headers.
    pub payload: &'a [u8],
    /// Where its payload stands.
    pub(crate) place: Range<usize>,
    /// What part of a packet this is, if it is not whole.
    pub(crate) fragment: Option<Fragment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) id: u32,
    pub(crate) offset: usize,
    pub(crate) more: bool,
}

/// What stands in a segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its port of the sender …
    pub from: u16,
    /// … and of the receiver.
    pub to: u16,
    /// It opens a connection.
    pub opens: bool,
    /// It ends its sender's side.
    pub ends: bool,
    /// It ends the connection.
    pub resets: bool,
}

/// A datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Where it is to go.
    pub to: SocketAddr,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// `None` where this is no IP packet, or not all of one.
    pub fn read(bytes: &'a [u8]) -> Option<Packet<'a>> {
        match bytes.first()? >> 4 {
            4 => read_v4(bytes),
            6 => read_v6(bytes),
            _ => None,
        }
    }

    /// It is a part of a larger packet.
    pub fn is_fragment(&self) -> bool {
        self.fragment.is_some()
    }

    /// It is UDP's.
    pub fn is_udp(&self) -> bool {
        self.protocol == UDP
    }

    /// The header of a segment (RFC 9293 §3.1), if it is one and whole.
    pub fn segment(&self) -> Option<Segment> {
        if self.protocol != TCP || self.is_fragment() {
            return None;
        }
        let header = self.payload.first_chunk::<20>()?;
        let flags = header[13];
        let has = |flag: u8| flags & flag != 0;
        Some(Segment {
            from: u16::from_be_bytes([header[0], header[1]]),
            to: u16::from_be_bytes([header[2], header[3]]),
            opens: flags & 0x17 == 0x02, // SYN without ACK, RST and FIN
            ends: has(0x01),
            resets: has(0x04),
        })
    }

    /// The datagram that is its payload, if it is whole and its checksum right.
    pub fn datagram(&self) -> Option<Datagram<'a>> {
        if self.is_fragment() { None } else { self.datagram_in(self.payload) }
    }

    /// The datagram that a packet with this one's addresses has as `payload`.
    pub(crate) fn datagram_in<'b>(&self, payload: &'b [u8]) -> Option<Datagram<'b>> {
        let header = payload.first_chunk::<8>().filter(|_| self.protocol == UDP)?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let whole = payload.get(..usize::from(number(4)))?;
        // RFC 768: none, which RFC 8200 §8.1 does not allow.
        let is_unsummed = number(6) == 0 && self.from.is_ipv4();
        let sum = sum::folded(&[sum::pseudo(self.from, self.to, UDP, whole.len()), sum::words(whole)]);
        (is_unsummed || sum == 0xffff).then_some(())?;
        let (from, to) = (SocketAddr::new(self.from, number(0)), SocketAddr::new(self.to, number(2)));
        (from.port() > 0 && to.port() > 0).then_some(Datagram { from, to, payload: whole.get(8..)? })
    }
}

fn read_v4(bytes: &[u8]) -> Option<Packet<'_>> {
    let header = bytes.first_chunk::<20>()?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let place = usize::from(header[0] & 15) * 4..usize::from(number(2));
    if place.start < 20 {
        return None;
    }
    let (offset, more) = (usize::from(number(6) & 0x1fff) * 8, number(6) & 0x2000 != 0);
    let address =
        |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    Some(Packet {
        from: address(12),
        to: address(16),
        protocol: header[9],
        payload: bytes.get(place.clone())?,
        place,
        fragment: (more || offset > 0).then_some(Fragment { id: number(4).into(), offset, more }),
    })
}

fn read_v6(bytes: &[u8]) -> Option<Packet<'_>> {
    let header = bytes.first_chunk::<40>()?;
    let end = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| <[u8; 16]>::try_from(&header[at..at + 16]).ok().map(|it| IpAddr::V6(it.into()));
    let (mut protocol, mut start, mut fragment) = (header[6], 40, None);
    for _ in 0..MOST_OPTIONS {
        let next = bytes.get(start..end)?;
        if OPTIONS.contains(&protocol) && fragment.is_none() {
            let length = 8 + 8 * usize::from(*next.get(1)?);
            (protocol, start) = (next[0], start + length);
        } else if protocol == FRAGMENT && fragment.is_none() {
            let next = next.first_chunk::<8>()?;
            let field = u16::from_be_bytes([next[2], next[3]]);
            let id = u32::from_be_bytes([next[4], next[5], next[6], next[7]]);
            (protocol, start) = (next[0], start + 8);
            let part = Fragment { id, offset: usize::from(field & !7), more: field & 1 != 0 };
            // RFC 6946: one that is the whole packet.
            fragment = (part.more || part.offset > 0).then_some(part);
        } else {
            break;
        }
    }
    let place = start..end;
    let payload = bytes.get(place.clone())?;
    Some(Packet { from: address(8)?, to: address(24)?, protocol, payload, place, fragment })
}
