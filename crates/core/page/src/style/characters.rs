//! Sets of code points: which characters a page shows, which a font file has.

/// Blocks that came last and are looked through for the next character: an alphabet has no more.
const NEAR: usize = 4;

/// A set of code points, 64 to a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Characters {
    /// ASCII apart: most texts have nothing else.
    ascii: u128,
    /// In order, none empty.
    blocks: Vec<(u32, u64)>,
}

impl Characters {
    /// What a font has to draw of `text`: everything but white space and controls.
    pub(super) fn of(text: &str) -> Self {
        const DRAWN: u128 = !((1 << 33) - 1) & !(1 << 127);
        // All text of a page passes here: a byte costs one store, and the stores become bits once.
        let mut seen = [0u8; 256];
        for byte in text.bytes() {
            seen[usize::from(byte)] = 1;
        }
        let (ascii, others) = seen.split_at(128);
        let ascii =
            ascii.as_chunks().0.iter().rev().fold(0, |set: u128, bytes| set << 8 | u128::from(bits(bytes)));
        let mut blocks: Vec<(u32, u64)> = Vec::new();
        if others.contains(&1) {
            for character in text.chars().filter(|character| !character.is_ascii()) {
                let (block, bit) = (u32::from(character) / 64, 1 << (u32::from(character) % 64));
                match blocks.iter_mut().rev().take(NEAR).find(|(own, _)| *own == block) {
                    Some((_, bits)) => *bits |= bit,
                    None => blocks.push((block, bit)),
                }
            }
            blocks.sort_unstable_by_key(|(block, _)| *block);
            blocks.dedup_by(|(block, bits), (kept, all)| {
                let same = block == kept;
                *all |= if same { *bits } else { 0 };
                same
            });
        }
        Characters { ascii: ascii & DRAWN, blocks }
    }

    /// The space: not drawn, but a line is as high as the font that has it (CSS Inline 3, "strut").
    pub(super) fn space() -> Self {
        Self::of_ascii(1 << 32)
    }

    pub(super) fn of_ascii(ascii: u128) -> Self {
        Characters { ascii, blocks: Vec::new() }
    }

    /// Those of them that are ASCII, by their bits.
    pub(super) fn ascii(&self) -> u128 {
        self.ascii
    }

    pub(super) fn is_ascii(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ascii == 0 && self.blocks.is_empty()
    }

    /// Adds all of `other`; returns those that are new.
    pub(super) fn add(&mut self, other: &Characters) -> Characters {
        let mut new = Characters { ascii: other.ascii & !self.ascii, ..Characters::default() };
        self.ascii |= other.ascii;
        let (known, mut at) = (self.blocks.len(), 0);
        for &(block, bits) in &other.blocks {
            at += self.blocks[at..known].partition_point(|(own, _)| *own < block);
            let fresh = match self.blocks[at..known].first_mut() {
                Some((own, all)) if *own == block => bits & !std::mem::replace(all, *all | bits),
                _ => {
                    self.blocks.push((block, bits));
                    bits
                }
            };
            if fresh != 0 {
                new.blocks.push((block, fresh));
            }
        }
        if self.blocks.len() > known {
            self.blocks.sort_unstable_by_key(|(block, _)| *block);
        }
        new
    }

    /// Takes those in `ranges` (first and last code point) away; returns whether there were any.
    pub(super) fn take(&mut self, ranges: &[(u32, u32)]) -> bool {
        let mut any = false;
        for &(first, last) in ranges {
            if first < 128 {
                let upper = last.min(127);
                let mask = (u128::MAX >> (127 - upper)) & (u128::MAX << first);
                any |= self.ascii & mask != 0;
                self.ascii &= !mask;
            }
            let low = first.max(128);
            if low > last {
                continue;
            }
            let first = self.blocks.partition_point(|(block, _)| *block < low / 64);
            for (block, bits) in self.blocks[first..].iter_mut().take_while(|(block, _)| *block <= last / 64)
            {
                let start = low.saturating_sub(*block * 64).min(63);
                let end = (last - *block * 64).min(63);
                let mask = (u64::MAX >> (63 - end)) & (u64::MAX << start);
                any |= *bits & mask != 0;
                *bits &= !mask;
            }
        }
        self.blocks.retain(|(_, bits)| *bits != 0);
        any
    }
}

/// The eight `bytes`, each 0 or 1, as bits, the first one lowest: the product gathers them in its highest byte.
fn bits(bytes: &[u8; 8]) -> u8 {
    (u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Characters {
        Characters::of(text)
    }

    #[test]
    fn ranges_take_what_lies_in_them_and_nothing_else() {
        let cases = [
            ("abc", (0x61, 0x62), true, "c"),
            ("abc", (0, 0xff), true, ""),
            ("abc", (0x64, 0x10_ffff), false, "abc"),
            ("aäЖ", (0x80, 0xff), true, "aЖ"),
            ("aäЖ", (0x0, 0x10_ffff), true, ""),
            ("\u{f000}\u{f03f}\u{f040}", (0xf03f, 0xf040), true, "\u{f000}"),
            ("\u{7f}\u{80}", (0x80, 0x80), true, ""),
            ("~", (0x7e, 0x7e), true, ""),
        ];
        for (text, range, any, left) in cases {
            let mut characters = set(text);
            assert_eq!(characters.take(&[range]), any, "{text:?} {range:x?}");
            assert_eq!(characters, set(left), "{text:?} {range:x?}");
        }
    }

    #[test]
    fn white_space_needs_no_font() {
        assert!(set(" \n\t\r").is_empty());
        assert!(!set("\u{a0}").is_empty(), "a no-break space is drawn");
    }

    #[test]
    fn a_union_tells_what_is_new() {
        let mut characters = set("ab");
        assert!(characters.add(&set("b")).is_empty());
        assert_eq!(characters.add(&set("bcé")), set("cé"));
        assert_eq!(characters, set("abcé"));
        assert_eq!(characters.add(&set("ëЖéab日")), set("ëЖ日"));
        assert_eq!(characters.add(&set("Ωé")), set("Ω"));
        assert_eq!(characters, set("abcéëΩЖ日"));
    }

    #[test]
    fn characters_of_many_blocks_are_told_once() {
        let text = "日本語の文字と、かな交じりの文。日本語 и русский, Ελληνικά";
        let mut one_by_one = Characters::default();
        text.chars().for_each(|character| drop(one_by_one.add(&set(character.encode_utf8(&mut [0; 4])))));
        assert_eq!(set(text), one_by_one);
    }
}
