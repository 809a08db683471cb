//! Variable-length integers as QUIC writes them (RFC 9000 §16): 1, 2, 4 or 8 bytes, up to 2^62 − 1.

use bytes::{Buf, BufMut};

/// The largest value that fits.
pub const MAX: u64 = (1 << 62) - 1;

/// Bytes that `value` takes.
pub fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends `value`; values above [`MAX`] are clamped to it (ids and lengths never come near).
pub fn put(out: &mut impl BufMut, value: u64) {
    let value = value.min(MAX);
    match size(value) {
        1 => out.put_u8(value as u8),
        2 => out.put_u16(value as u16 | 0x4000),
        4 => out.put_u32(value as u32 | 0x8000_0000),
        _ => out.put_u64(value | 0xc000_0000_0000_0000),
    }
}

/// Reads a value, or `None` (nothing consumed) while bytes are missing.
pub fn take(input: &mut impl Buf) -> Option<u64> {
    let first = *input.chunk().first()?;
    let length = 1usize << (first >> 6);
    if input.remaining() < length {
        return None;
    }
    Some(match length {
        1 => u64::from(input.get_u8()),
        2 => u64::from(input.get_u16() & 0x3fff),
        4 => u64::from(input.get_u32() & 0x3fff_ffff),
        _ => input.get_u64() & MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_appendix_a_decode() {
        let cases: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (mut bytes, value) in cases {
            assert_eq!(take(&mut bytes), Some(value));
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken(value in 0..=MAX) {
            let mut out = Vec::new();
            put(&mut out, value);
            prop_assert_eq!(out.len(), size(value));
            prop_assert_eq!(take(&mut &out[..out.len() - 1]), None);
            prop_assert_eq!(take(&mut &out[..]), Some(value));
        }
    }
}
