//! A packet as the code sees it: its length in front, zeros behind as far as anyone looks.

use crate::field::{self, BLOCK, Block};

/// Bytes of the length in front of a packet.
pub(crate) const LENGTH: usize = 2;

/// Coefficients of one repair. A Cauchy matrix (Blömer et al., "An XOR-based erasure-resilient coding scheme", 1995):
/// 1 ÷ (x − y), with x from the repair's number and y from the packet's, no x being a y. Every square part of such a
/// matrix can be inverted, so that over one window any losses are made good by as many repairs.
pub(crate) fn coefficient(repair: u8, sequence: u32) -> u8 {
    field::inverse((0x80 | repair) ^ (sequence & 0x7f) as u8)
}

/// A packet with its length, or a sum of such.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Symbol(Vec<Block>);

impl Symbol {
    /// The symbol of `packet`, of at most 65,535 bytes.
    pub(crate) fn of(packet: &[u8]) -> Symbol {
        let mut symbol = Symbol::default();
        symbol.fill(packet);
        symbol
    }

    /// Becomes the symbol of `packet`, in the memory that is there.
    pub(crate) fn fill(&mut self, packet: &[u8]) {
        let length = u16::try_from(packet.len()).unwrap_or(u16::MAX).to_be_bytes();
        self.0.clear();
        self.0.resize((LENGTH + packet.len()).div_ceil(BLOCK), [0; BLOCK]);
        let bytes = self.0.as_flattened_mut();
        bytes[..LENGTH].copy_from_slice(&length);
        bytes[LENGTH..LENGTH + packet.len()].copy_from_slice(packet);
    }

    /// A sum as it came from the wire.
    pub(crate) fn from_wire(bytes: &[u8]) -> Symbol {
        let mut blocks = vec![[0; BLOCK]; bytes.len().div_ceil(BLOCK)];
        blocks.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
        Symbol(blocks)
    }

    /// Its first `len` bytes, for the wire.
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        let bytes = self.0.as_flattened();
        &bytes[..len.min(bytes.len())]
    }

    /// Adds the sum of `factor × symbol`, as long as the longest.
    pub(crate) fn add(&mut self, terms: &[(u8, &Symbol)]) {
        let longest = terms.iter().map(|(_, symbol)| symbol.0.len()).max().unwrap_or(0);
        if longest > self.0.len() {
            self.0.resize(longest, [0; BLOCK]);
        }
        let terms: Vec<_> = terms.iter().map(|(factor, symbol)| (*factor, symbol.0.as_slice())).collect();
        field::add_products(&mut self.0, &terms);
    }

    /// Multiplies by `factor`.
    pub(crate) fn scale(&mut self, factor: u8) {
        field::scale(&mut self.0, factor);
    }

    /// The packet, if this is one: a length that fits, and nothing but zeros behind.
    pub(crate) fn packet(&self) -> Option<&[u8]> {
        let bytes = self.0.as_flattened();
        let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (packet, behind) = rest.split_at_checked(length)?;
        (!packet.is_empty() && behind.iter().all(|byte| *byte == 0)).then_some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_found_again_in_its_symbol_and_garbage_is_none() {
        for length in [1, 61, 62, 63, 1452] {
            let packet = vec![0xa5; length];
            assert_eq!(Symbol::of(&packet).packet(), Some(packet.as_slice()));
        }
        assert_eq!(Symbol::default().packet(), None);
        assert_eq!(Symbol::of(&[]).packet(), None);
        assert_eq!(Symbol::from_wire(&[0, 200, 1, 2]).packet(), None);
        assert_eq!(Symbol::from_wire(&[0, 1, 1, 2]).packet(), None, "something behind its end");
    }

    #[test]
    fn no_coefficient_is_zero_and_one_repair_uses_none_twice() {
        for repair in [0, 1, 127] {
            let mut row: Vec<u8> = (1000..1128).map(|sequence| coefficient(repair, sequence)).collect();
            row.sort_unstable();
            row.dedup();
            assert_eq!((row.len(), row.contains(&0)), (128, false));
        }
    }
}
