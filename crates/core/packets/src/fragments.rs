//! Datagrams put together from the pieces in which their packets come (RFC 791 §3.2, RFC 8200 §4.5). Handed the time.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crate::read::Packet;

/// How long the rest of a packet is waited for. RFC 791 has 15 s; on the wires of a local network pieces come together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packets that may be unfinished, and bytes of them all.
const MOST: usize = 256;
const MOST_BYTES: usize = 1 << 20;
/// The largest payload of a packet; over IPv4 its header is counted.
const LARGEST: usize = 65_535;
const HEADER_V4: usize = 20;

/// What tells a packet: its ends, what it is of, its identification.
type Name = (IpAddr, IpAddr, u8, u32);

#[derive(Debug)]
struct Open {
    begun: Duration,
    /// Its place among all that were begun.
    number: u64,
    pieces: BTreeMap<usize, Vec<u8>>,
    /// How long it is, once its last piece is here.
    length: Option<usize>,
}

impl Open {
    fn held(&self) -> usize {
        self.pieces.values().map(Vec::len).sum()
    }

    /// All of it, where nothing is missing.
    fn whole(&self) -> Option<Vec<u8>> {
        (self.length == Some(self.held())).then(|| self.pieces.values().flatten().copied().collect())
    }

    /// Whether a piece fits to those that are here. RFC 5722, RFC 8200 §4.5: where two overlap, the packet is nobody's who means well.
    fn fits(&self, offset: usize, length: usize, more: bool) -> bool {
        let before = self.pieces.range(..=offset).next_back();
        let after = self.pieces.range(offset..).next();
        let end = offset + length;
        let last = self.pieces.last_key_value().map_or(0, |(offset, piece)| offset + piece.len());
        before.is_none_or(|(start, piece)| start + piece.len() <= offset)
            && after.is_none_or(|(start, _)| *start >= end)
            && self.length.is_none_or(|length| more && end <= length)
            && (more || last <= end)
    }
}

/// Pieces of packets that are not whole yet.
#[derive(Debug, Default)]
pub struct Fragments {
    open: HashMap<Name, Open>,
    held: usize,
    begun: u64,
}

impl Fragments {
    /// Adds a piece; gives the payload of its packet where that is whole with it.
    pub fn push(&mut self, now: Duration, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let part = packet.fragment?;
        let name = (packet.from, packet.to, packet.protocol, part.id);
        self.give_up(now, name, packet.payload.len());
        self.begun += 1;
        let open = self.open.entry(name).or_insert_with(|| Open {
            begun: now,
            number: self.begun,
            pieces: BTreeMap::new(),
            length: None,
        });
        let largest = if packet.from.is_ipv4() { LARGEST - HEADER_V4 } else { LARGEST };
        let is_good = !packet.payload.is_empty()
            && part.offset + packet.payload.len() <= largest
            && (!part.more || packet.payload.len().is_multiple_of(8))
            && open.fits(part.offset, packet.payload.len(), part.more);
        if !is_good {
            self.forget(name);
            return None;
        }
        open.pieces.insert(part.offset, packet.payload.to_vec());
        self.held += packet.payload.len();
        if !part.more {
            open.length = Some(part.offset + packet.payload.len());
        }
        let whole = open.whole()?;
        self.forget(name);
        Some(whole)
    }

    /// Forgets what has waited too long, and the oldest where `coming` bytes of `name` find no room.
    fn give_up(&mut self, now: Duration, name: Name, coming: usize) {
        if self.open.values().any(|open| now >= open.begun + PATIENCE) {
            self.open.retain(|_, open| now < open.begun + PATIENCE);
            self.held = self.open.values().map(Open::held).sum();
        }
        while self.held + coming > MOST_BYTES || (self.open.len() >= MOST && !self.open.contains_key(&name)) {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.number).map(|(name, _)| *name);
            let Some(oldest) = oldest else { return };
            self.forget(oldest);
        }
    }

    fn forget(&mut self, name: Name) {
        self.held -= self.open.remove(&name).map_or(0, |open| open.held());
    }
}
