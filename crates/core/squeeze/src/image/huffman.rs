//! Huffman codes made for the symbols that one image has (ITU-T T.81, annexes K.2 and C).

/// Longest code of a JPEG.
const LONGEST: usize = 16;

/// A code: for each symbol its bits, and what describes it in the file.
pub(super) struct Code {
    /// Code and length of each symbol; length 0 where it does not occur.
    pub(super) words: [(u16, u8); 256],
    /// How many codes of each length from 1 to 16 there are.
    pub(super) lengths: [u8; LONGEST],
    /// Symbols, by code.
    pub(super) symbols: Vec<u8>,
}

impl Code {
    /// The shortest code for symbols that occur this often.
    pub(super) fn of(frequencies: &[u32; 256]) -> Code {
        let sizes = sizes(frequencies);
        let lengths = limited(&sizes);
        // Figure K.4: symbols by growing size.
        let mut symbols: Vec<u8> = (0..=255).filter(|symbol| sizes[usize::from(*symbol)] > 0).collect();
        symbols.sort_by_key(|symbol| sizes[usize::from(*symbol)]);
        // Annex C: codes count up within a length and shift when it grows.
        let mut words = [(0, 0); 256];
        let (mut code, mut next) = (0u32, symbols.iter());
        for (length, count) in (1u8..).zip(lengths) {
            for symbol in next.by_ref().take(usize::from(count)) {
                words[usize::from(*symbol)] = (code as u16, length);
                code += 1;
            }
            code <<= 1;
        }
        Code { words, lengths, symbols }
    }
}

/// Figure K.1: code sizes from frequencies. A 257th symbol takes the code of all ones, which no symbol may have.
fn sizes(frequencies: &[u32; 256]) -> [usize; 257] {
    let mut weights = [0u64; 257];
    for (weight, frequency) in weights.iter_mut().zip(frequencies) {
        *weight = u64::from(*frequency);
    }
    weights[256] = 1;
    let mut trees: Vec<Vec<usize>> =
        (0..257).map(|at| if weights[at] > 0 { vec![at] } else { Vec::new() }).collect();
    let mut sizes = [0; 257];
    loop {
        // The rarest two; among equals the higher symbol, so that the 257th ends with the longest code.
        let mut alive: Vec<usize> = (0..257).filter(|at| weights[*at] > 0).collect();
        alive.sort_by_key(|at| (weights[*at], usize::MAX - at));
        let &[first, second, ..] = &alive[..] else { return sizes };
        weights[first] += weights[second];
        weights[second] = 0;
        let joined = std::mem::take(&mut trees[second]);
        trees[first].extend(joined);
        for symbol in &trees[first] {
            sizes[*symbol] += 1;
        }
    }
}

/// Figures K.2 and K.3: how many codes of each length, none longer than 16, without the 257th symbol's.
fn limited(sizes: &[usize; 257]) -> [u8; LONGEST] {
    let mut counts = [0usize; 258];
    for size in sizes.iter().filter(|size| **size > 0) {
        counts[*size] += 1;
    }
    for length in (LONGEST + 1..counts.len()).rev() {
        while counts[length] > 0 {
            // Two of the longest become one a bit shorter, and a shorter one makes room for two.
            let shorter = (1..length - 1).rev().find(|shorter| counts[*shorter] > 0);
            let Some(shorter) = shorter else { break };
            counts[length] -= 2;
            counts[length - 1] += 1;
            counts[shorter + 1] += 2;
            counts[shorter] -= 1;
        }
    }
    // The 257th symbol has a code of the greatest length.
    if let Some(longest) = counts.iter().rposition(|count| *count > 0) {
        counts[longest] -= 1;
    }
    std::array::from_fn(|at| counts[at + 1] as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(frequencies: &[u32; 256]) {
        let code = Code::of(frequencies);
        let used: Vec<usize> = (0..256).filter(|at| frequencies[*at] > 0).collect();
        assert_eq!(code.symbols.len(), used.len());
        assert_eq!(code.lengths.iter().map(|count| usize::from(*count)).sum::<usize>(), used.len());
        for symbol in &used {
            let (word, length) = code.words[*symbol];
            assert!((1..=16).contains(&length), "{symbol}: {length}");
            assert!(u32::from(word) + 1 < 1 << length, "no code is all ones");
            for other in used.iter().filter(|other| *other != symbol) {
                let (longer, its_length) = code.words[*other];
                if its_length >= length {
                    assert_ne!(longer >> (its_length - length), word, "{symbol} begins {other}");
                }
            }
        }
    }

    #[test]
    fn frequencies_like_fibonaccis_are_kept_within_sixteen_bits() {
        let mut frequencies = [0; 256];
        let (mut one, mut two) = (1u32, 1u32);
        for frequency in frequencies.iter_mut().take(40) {
            *frequency = one;
            (one, two) = (two, one + two);
        }
        check(&frequencies);
    }

    #[test]
    fn one_symbol_has_a_code() {
        let mut frequencies = [0; 256];
        frequencies[7] = 3;
        check(&frequencies);
    }

    proptest! {
        #[test]
        fn codes_are_free_of_prefixes_and_of_all_ones(frequencies in proptest::collection::vec(prop_oneof![Just(0u32), 1u32..5, 0u32..1_000_000], 256)) {
            check(&frequencies.try_into().unwrap());
        }
    }
}
