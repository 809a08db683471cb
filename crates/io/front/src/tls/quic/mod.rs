//! Reads the ClientHello of a QUIC connection out of its client's Initial packets, as anyone on the path may: their keys follow from what
//! stands beside them in the clear (RFC 9001 §5.2, RFC 9369 §3.3). Nothing is hidden from whoever passes by, and nothing is
//! changed. Pure.
//!
//! ```text
//! datagram ── Packet ──> Keys ──> frames ──> Pieces ──> read_message
//!             split      open                 from the first byte on
//! ```

mod keys;
mod packet;
mod pieces;
#[cfg(test)]
mod tests;

use keys::Keys;
use packet::{Packet, crypto_frames};
use pieces::Pieces;

use super::hello::{Reading, read_message};

/// RFC 9000 §14.1: a datagram with an Initial packet of a client's has so many bytes at least, else servers discard it.
const LEAST: usize = 1200;
/// So many datagrams are looked at: browsers' hellos have come with the second, or with the fourth where some are lost.
const MOST_DATAGRAMS: u32 = 16;
/// So many packets of each: one of every kind that a client can put into one (RFC 9000 §12.2).
const MOST_PACKETS: usize = 4;

/// What has been read of a connection so far: a few kilobytes at the most, whatever comes.
#[derive(Default)]
pub struct Initials {
    keys: Option<Keys>,
    pieces: Pieces,
    datagrams: u32,
}

impl Initials {
    /// A datagram of the client's; to be called with each of them, from the first on, while it needs more. What comes twice, or in
    /// another order, or with a piece of the hello here and the next there, is read all the same.
    pub fn read(&mut self, datagram: &[u8]) -> Reading {
        self.datagrams += 1;
        let reading = self.take(datagram).map_or(Reading::Other, |()| read_message(self.pieces.beginning()));
        let is_over = self.datagrams >= MOST_DATAGRAMS || self.keys.is_none();
        if reading == Reading::NeedMore && is_over { Reading::Other } else { reading }
    }

    /// Takes the pieces of a hello out of a datagram; `None` where they can be none.
    fn take(&mut self, datagram: &[u8]) -> Option<()> {
        let mut rest = Some(datagram).filter(|it| it.len() >= LEAST).unwrap_or_default();
        for _ in 0..MOST_PACKETS {
            let Some((packet, after)) = Packet::split(rest) else { break };
            rest = after;
            let Some(payload) = self.open(&packet) else { continue };
            for (at, piece) in crypto_frames(&payload)? {
                self.pieces.add(at, piece)?;
            }
        }
        Some(())
    }

    /// The frames of an Initial packet; `None` where it is no such, or was not made with these keys.
    fn open(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        if !packet.is_initial {
            return None;
        }
        // RFC 9001 §5.2: they stay the first packet's when the server has named itself anew …
        let own = self.keys.as_ref();
        if let Some(payload) = own.and_then(|keys| keys.open(packet)) {
            return Some(payload);
        }
        if own.is_some_and(|keys| keys.are_of(packet)) {
            return None;
        }
        // … but not after a Retry or another version, where the hello begins anew.
        let keys = Keys::of(packet)?;
        let payload = keys.open(packet)?;
        (self.keys, self.pieces) = (Some(keys), Pieces::default());
        Some(payload)
    }
}

/// Reads pieces of the input, each as long as its first two bytes say: as datagrams, and as what stands in Initial packets.
pub fn fuzz_initials(data: &[u8]) {
    let (mut raw, mut sealed, mut rest) = (Initials::default(), Initials::default(), data);
    let mut number = 0;
    while let [high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        let (piece, after) = after.split_at(length);
        (rest, number) = (after, number + 1);
        raw.read(piece);
        let Some(datagram) = keys::seal(packet::V1, (b"fuzz", b"fuzz"), number, piece) else { continue };
        let reading = sealed.read(&datagram);
        assert!(sealed.keys.is_some(), "what was sealed so opens");
        let is_over = number >= MOST_DATAGRAMS;
        assert!(!(is_over && reading == Reading::NeedMore), "it is asked on for ever");
    }
}
