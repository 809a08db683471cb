//! The string coding of field sections: a fixed canonical Huffman code whose lengths were drawn from the
//! letters of paths, cookies and field values. A string that the code would lengthen goes as it is.

use std::sync::LazyLock;

/// Code length in bits of each byte value; part of the wire format (docs/htotp.md, "Strings").
#[rustfmt::skip]
pub const LENGTHS: [u8; 256] = [
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
     6, 12,  8, 12, 12,  8,  8, 12, 11, 11, 10,  9,  8,  6,  6,  5,
     6,  6,  6,  6,  6,  6,  5,  5,  5,  5,  7,  8, 13,  7, 13,  9,
    12,  7,  8,  8,  8,  7,  8,  8,  7,  7,  8,  8,  8,  8,  7,  7,
     8,  9,  7,  7,  7,  8,  8,  8,  8,  8,  9, 13, 14, 13, 14,  7,
    14,  5,  6,  6,  5,  4,  6,  7,  5,  5,  8,  7,  6,  6,  5,  5,
     7,  8,  5,  5,  5,  6,  7,  6,  8,  6,  8, 13, 11, 13, 11, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
];

const LONGEST: usize = 16;

struct Code {
    /// Per byte: its code, right-aligned.
    codes: [u32; 256],
    /// Per length: the first code, how many, and where their symbols begin in `symbols`.
    first: [(u32, u32, usize); LONGEST + 1],
    /// Symbols in code order.
    symbols: Vec<u8>,
}

static CODE: LazyLock<Code> = LazyLock::new(|| {
    let mut symbols: Vec<u8> = (0..=255).collect();
    symbols.sort_by_key(|s| (LENGTHS[usize::from(*s)], *s));
    let mut code = Code { codes: [0; 256], first: [(0, 0, 0); LONGEST + 1], symbols };
    let (mut next, mut index) = (0u32, 0usize);
    for length in 1..=LONGEST {
        next <<= 1;
        let start = index;
        while index < 256 && usize::from(LENGTHS[usize::from(code.symbols[index])]) == length {
            code.codes[usize::from(code.symbols[index])] = next + (index - start) as u32;
            index += 1;
        }
        code.first[length] = (next, (index - start) as u32, start);
        next += (index - start) as u32;
    }
    code
});

/// Bytes that `text` takes in the code.
pub fn size(text: &[u8]) -> usize {
    text.iter().map(|b| usize::from(LENGTHS[usize::from(*b)])).sum::<usize>().div_ceil(8)
}

/// Appends the code of `text`, its last byte filled up with ones.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0u64, 0u32);
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        bits = bits << length | u64::from(CODE.codes[usize::from(*byte)]);
        held += length;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        let fill = 8 - held;
        out.push((bits << fill | ((1 << fill) - 1)) as u8);
    }
}

/// Decodes; `None` when the input is no code, is filled up with anything but ones, or by a whole byte.
pub fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let code = &*CODE;
    let mut out = Vec::with_capacity(input.len() * 8 / 5);
    let (mut value, mut length) = (0u32, 0usize);
    for bit in input.iter().flat_map(|byte| (0..8).rev().map(move |shift| u32::from(byte >> shift & 1))) {
        value = value << 1 | bit;
        length += 1;
        if length > LONGEST {
            return None;
        }
        let (first, count, start) = code.first[length];
        if count > 0 && value >= first && value - first < count {
            out.push(code.symbols[start + (value - first) as usize]);
            (value, length) = (0, 0);
        }
    }
    (length < 8 && value == (1 << length) - 1).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_code_is_complete() {
        let kraft: u64 = LENGTHS.iter().map(|l| 1u64 << (LONGEST - usize::from(*l))).sum();
        assert_eq!(kraft, 1 << LONGEST);
    }

    #[test]
    fn paths_shrink_by_a_quarter_or_more() {
        let path = b"/assets/images/gallery/photo-2024-11.jpg?width=640";
        assert!(size(path) * 4 <= path.len() * 3, "{} of {}", size(path), path.len());
    }

    proptest! {
        #[test]
        fn encode_then_decode_is_identity(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&text, &mut out);
            prop_assert_eq!(out.len(), size(&text));
            prop_assert_eq!(decode(&out), Some(text));
        }

        #[test]
        fn any_input_decodes_or_is_refused(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(text) = decode(&input) {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, input);
            }
        }
    }
}
