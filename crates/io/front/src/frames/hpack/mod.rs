//! Reads field blocks (HPACK, RFC 7541) to their end whatever the fields in them, so that one bad field does not cost the
//! state that a whole connection shares. Writes them in the plainest form. Pure.

mod huffman;
mod table;

pub use table::Field;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use table::Table;

/// RFC 7541 §5.1 sets no bound; no number of a block has a use for more bits.
const LONGEST_NUMBER: u32 = 28;

/// The connection's state.
#[derive(Debug, Default)]
pub struct Decoder {
    table: Table,
}

/// A block that can't be read: what follows it can't be either (RFC 9113 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecodable;

impl Decoder {
    /// As a connection begins.
    pub fn new() -> Decoder {
        Decoder { table: Table::new() }
    }

    /// Reads a whole block and gives its fields, one after the other.
    ///
    /// # Errors
    /// It is out of its grammar, or names what was never sent.
    pub fn decode(&mut self, mut block: &[u8], mut take: impl FnMut(Field)) -> Result<(), Undecodable> {
        let mut may_resize = true;
        while let Some(&first) = block.first() {
            let field = match first {
                0b1000_0000.. => {
                    self.table.find(number(&mut block, 7).ok_or(Undecodable)?).ok_or(Undecodable)?
                }
                0b0100_0000.. => {
                    let field = self.literal(&mut block, 6).ok_or(Undecodable)?;
                    self.table.insert(field.clone());
                    field
                }
                0b0010_0000.. => {
                    // RFC 7541 §4.2: only ahead of all fields.
                    let most = number(&mut block, 5).filter(|_| may_resize).ok_or(Undecodable)?;
                    self.table.resize(most).ok_or(Undecodable)?;
                    continue;
                }
                _ => self.literal(&mut block, 4).ok_or(Undecodable)?,
            };
            may_resize = false;
            take(field);
        }
        Ok(())
    }

    /// A field whose name may have a number (RFC 7541 §6.2).
    fn literal(&self, block: &mut &[u8], prefix: u32) -> Option<Field> {
        let name = match number(block, prefix)? {
            0 => string(block)?,
            number => self.table.find(number)?.name,
        };
        Some(Field { name, value: string(block)? })
    }
}

/// Writes a field that nobody is to keep (RFC 7541 §6.2.2), its strings as they are.
pub fn write(name: &[u8], value: &[u8], block: &mut BytesMut) {
    block.put_u8(0);
    for text in [name, value] {
        write_number(text.len(), block);
        block.put_slice(text);
    }
}

/// RFC 7541 §5.1, beside a bit of zero.
fn write_number(number: usize, block: &mut BytesMut) {
    let Some(mut rest) = number.checked_sub(127) else { return block.put_u8(number as u8) };
    block.put_u8(127);
    while rest >= 128 {
        block.put_u8((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.put_u8(rest as u8);
}

/// RFC 7541 §5.1: a number that begins in the last `prefix` bits of a byte.
fn number(block: &mut &[u8], prefix: u32) -> Option<usize> {
    let most = (1 << prefix) - 1;
    let mut number = usize::from(byte(block)?) & most;
    if number < most {
        return Some(number);
    }
    for shift in (0..LONGEST_NUMBER).step_by(7) {
        let next = byte(block)?;
        number += usize::from(next & 127) << shift;
        if next < 128 {
            return Some(number);
        }
    }
    None
}

/// RFC 7541 §5.2. It is copied: what the table keeps must not hold a whole block.
fn string(block: &mut &[u8]) -> Option<Bytes> {
    let is_coded = *block.first()? >= 128;
    let length = number(block, 7)?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    if is_coded { huffman::decode(text).map(Bytes::from) } else { Some(Bytes::copy_from_slice(text)) }
}

fn byte(block: &mut &[u8]) -> Option<u8> {
    let first = *block.first()?;
    block.advance(1);
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Undecodable> {
        let mut fields = Vec::new();
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |field| fields.push((text(&field.name), text(&field.value))))?;
        Ok(fields)
    }

    fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn what_was_sent_before_has_a_number() {
        let mut decoder = Decoder::new();
        // Numbers 2, 7 and 4; then a literal that is kept, and one with a name of the static table.
        let first = [&[0x82, 0x87, 0x84, 0x40][..], b"\x03X-a\x02\0b", b"\x41\x05a.net"].concat();
        let whole = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/"),
            ("X-a", "\0b"),
            (":authority", "a.net"),
        ];
        assert_eq!(decoded(&mut decoder, &first), Ok(pairs(&whole)));
        assert_eq!(decoded(&mut decoder, &[0xbe, 0xbf]), Ok(pairs(&[whole[4], whole[3]])));
        // Forgotten, and not to be named again.
        assert_eq!(decoded(&mut decoder, &[0x20, 0x82]), Ok(pairs(&whole[..1])));
        assert_eq!(decoded(&mut decoder, &[0xbe]), Err(Undecodable));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut decoder = Decoder::new();
        // 32 + 1 + 95 bytes each: 32 of them fill the table.
        let kept = |letter: u8| [&[0x40, 1, letter, 95][..], &[b'v'; 95]].concat();
        for letter in 0..33 {
            decoded(&mut decoder, &kept(b'A' + letter)).unwrap();
        }
        // Number 62 + 31.
        assert_eq!(decoded(&mut decoder, &[0xdd]).unwrap()[0].0, "B");
        assert_eq!(decoded(&mut decoder, &[0xde]), Err(Undecodable));
    }

    #[test]
    fn blocks_out_of_their_grammar_are_not_decoded() {
        for block in [
            &b"\x80"[..],
            b"\xff\xff\xff\xff\xff\xff\x01",
            b"\x82\x20",
            b"\x3f\xe2\x1f",
            b"\x00\x03x",
            b"\x00",
            b"\x00\x01x\x81\x00",
            b"\xc0",
        ] {
            assert_eq!(decoded(&mut Decoder::new(), block), Err(Undecodable), "{block:?}");
        }
        assert_eq!(decoded(&mut Decoder::new(), b"\x3f\xe1\x1f"), Ok(vec![]), "4096 bytes are allowed");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fields in proptest::collection::vec((".{0,300}", ".{0,300}"), 0..10)) {
            let mut block = BytesMut::new();
            for (name, value) in &fields {
                write(name.as_bytes(), value.as_bytes(), &mut block);
            }
            prop_assert_eq!(decoded(&mut Decoder::new(), &block), Ok(fields));
        }

        #[test]
        fn any_bytes_are_read_or_not(blocks in proptest::collection::vec(any::<Vec<u8>>(), 0..4)) {
            let mut decoder = Decoder::new();
            for block in blocks {
                let _ = decoded(&mut decoder, &block);
            }
        }
    }
}
