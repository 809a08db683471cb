//! The Huffman code of field strings (RFC 7541 §5.2 and Appendix B). It is canonical, so that the lengths say it all. Pure.

use std::sync::LazyLock;

/// Ends no string: a string that has it in it is an error (RFC 7541 §5.2).
const EOS: usize = 256;

/// Length of the code of each byte in bits, and of EOS.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Codes of one length. They follow each other, and those of the next length follow them.
struct Group {
    length: u32,
    first: u64,
    /// The code after the last of them, moved to the top of 32 bits.
    end: u64,
    /// Where their symbols begin among all.
    start: usize,
}

/// The groups by length, and all symbols in the order of their codes.
static CODE: LazyLock<(Vec<Group>, Vec<usize>)> = LazyLock::new(|| {
    let mut symbols: Vec<usize> = (0..LENGTHS.len()).collect();
    symbols.sort_by_key(|&symbol| (LENGTHS[symbol], symbol));
    let (mut groups, mut code, mut last, mut start) = (Vec::new(), 0u64, 0, 0);
    for alike in symbols.chunk_by(|&one, &other| LENGTHS[one] == LENGTHS[other]) {
        let length = u32::from(LENGTHS[alike[0]]);
        code <<= length - last;
        let first = code;
        code += alike.len() as u64;
        groups.push(Group { length, first, end: code << (32 - length), start });
        (last, start) = (length, start + alike.len());
    }
    (groups, symbols)
});

/// Decodes a string; `None` when it has EOS in it, or ends in anything but fewer than eight ones.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let (groups, symbols) = &*CODE;
    let mut out = Vec::with_capacity(input.len() * 8 / 5);
    let mut bytes = input.iter();
    // The next bits, from the top, and how many of them there are.
    let (mut window, mut held) = (0u64, 0u32);
    loop {
        while held <= 56
            && let Some(&byte) = bytes.next()
        {
            window |= u64::from(byte) << (56 - held);
            held += 8;
        }
        if held == 0 {
            return Some(out);
        }
        // What is missing at the end counts as ones, as a string is filled up.
        let ahead = (window >> 32) | (u64::from(u32::MAX) >> held.min(32));
        // The code is complete: the last group ends where 32 bits do.
        let group = groups.iter().find(|group| ahead < group.end)?;
        if group.length > held {
            let is_filling = held < 8 && ahead == u64::from(u32::MAX);
            return is_filling.then_some(out);
        }
        let at = group.start + ((ahead >> (32 - group.length)) - group.first) as usize;
        match symbols[at] {
            EOS => return None,
            // Below 256.
            symbol => out.push(symbol as u8),
        }
        window <<= group.length;
        held -= group.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(text: &[u8]) -> Vec<u8> {
        let (groups, symbols) = &*CODE;
        let mut bits = Vec::new();
        for &byte in text {
            let group =
                groups.iter().find(|group| group.length == u32::from(LENGTHS[usize::from(byte)])).unwrap();
            let place = symbols.iter().position(|&symbol| symbol == usize::from(byte)).unwrap() - group.start;
            let code = group.first + place as u64;
            bits.extend((0..group.length).rev().map(|shift| (code >> shift & 1) as u8));
        }
        bits.resize(bits.len().next_multiple_of(8), 1);
        bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
    }

    #[test]
    fn the_code_is_complete_and_its_last_word_is_eos() {
        let (groups, symbols) = &*CODE;
        assert_eq!(groups.last().unwrap().end, 1 << 32);
        assert_eq!(symbols.last(), Some(&EOS));
    }

    #[test]
    fn what_is_filled_up_wrongly_or_has_eos_in_it_is_none() {
        // 'a' is 00011: three bits are left.
        assert_eq!(decode(&[0b0001_1111]).as_deref(), Some(&b"a"[..]));
        assert_eq!(decode(&[0b0001_1110]), None);
        assert_eq!(decode(&[0b0001_1111, 0xff]), None, "a whole byte too many");
        assert_eq!(decode(&[0xff; 4]), None, "EOS");
        assert_eq!(decode(&[]).as_deref(), Some(&b""[..]));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }

        #[test]
        fn any_input_is_decoded_or_refused(input in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(text) = decode(&input) {
                prop_assert_eq!(encode(&text), input);
            }
        }
    }
}
