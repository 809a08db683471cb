//! The keys of Initial packets, which everyone can derive (RFC 9001 §5.2, RFC 9369 §3.3), and what they protect.

use rustls::Side;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Version};

use super::packet::{Packet, V1, V2};

/// RFC 9001 §5.4.2: the sample begins as if the packet's number had so many bytes.
const LONGEST_NUMBER: usize = 4;

/// What protects a client's Initial packets.
pub(super) struct Keys {
    version: u32,
    /// The connection id from which they are derived.
    destination: Vec<u8>,
    client: DirectionalKeys,
}

impl Keys {
    /// Those of a connection whose first packet this is.
    pub(super) fn of(packet: &Packet<'_>) -> Option<Keys> {
        // As the server has them, to whom the client is the other side.
        let client = derived(packet.version, packet.destination, Side::Server)?.remote;
        Some(Keys { version: packet.version, destination: packet.destination.to_vec(), client })
    }

    /// Whether this packet's would be the same.
    pub(super) fn are_of(&self, packet: &Packet<'_>) -> bool {
        self.version == packet.version && self.destination == packet.destination
    }

    /// What the packet carries, unless it was made with other keys.
    pub(super) fn open(&self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let mut bytes = packet.bytes.to_vec();
        let (header, protected) = bytes.split_at_mut_checked(packet.number_at)?;
        let (number, sealed) = protected.split_at_mut_checked(LONGEST_NUMBER)?;
        let sample = sealed.get(..self.client.header.sample_len())?;
        let first = header.first_mut()?;
        self.client.header.decrypt_in_place(sample, first, number).ok()?;
        let length = usize::from(*first & 3) + 1;
        // RFC 9000 §17.1: cut to its last bytes; a client has sent fewer Initial packets than one of these can count.
        let number = number[..length].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (header, payload) = bytes.split_at_mut_checked(packet.number_at + length)?;
        let opened = self.client.packet.decrypt_in_place(number, header, payload).ok()?;
        Some(opened.to_vec())
    }
}

fn derived(version: u32, destination: &[u8], side: Side) -> Option<rustls::quic::Keys> {
    let version = match version {
        V1 => Version::V1,
        V2 => Version::V2,
        _ => return None,
    };
    Some(TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?.keys(destination, side, version))
}

/// A client's datagram with one Initial packet of these frames, as tests and the fuzz target make them: its keys derived from one
/// connection id, and sent to another.
pub(super) fn seal(
    version: u32,
    (derived_from, destination): (&[u8], &[u8]),
    number: u32,
    frames: &[u8],
) -> Option<Vec<u8>> {
    let keys = derived(version, derived_from, Side::Client)?.local;
    let tag = keys.packet.tag_len();
    let kind: u8 = if version == V2 { 0xd3 } else { 0xc3 };
    let mut header = vec![kind];
    header.extend(version.to_be_bytes());
    header.push(u8::try_from(destination.len()).ok()?);
    header.extend(destination);
    // No id of its own, no token, and a length of two bytes.
    header.extend([0, 0]);
    let number_at = header.len() + 2;
    let around = number_at + LONGEST_NUMBER + tag;
    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(super::LEAST - around), 0);
    let length = u16::try_from(LONGEST_NUMBER + payload.len() + tag).ok().filter(|it| *it < 1 << 14)?;
    header.extend((0x4000 | length).to_be_bytes());
    header.extend(number.to_be_bytes());
    let sealed = keys.packet.encrypt_in_place(number.into(), &header, &mut payload).ok()?;
    payload.extend(sealed.as_ref());
    let (first, rest) = header.split_first_mut()?;
    let sample = payload.get(..keys.header.sample_len())?;
    keys.header.encrypt_in_place(sample, first, &mut rest[number_at - 1..]).ok()?;
    header.extend(payload);
    Some(header)
}
