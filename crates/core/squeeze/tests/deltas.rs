//! Bodies coded against others that their reader has: smaller, exact, bounded.
#![allow(clippy::unwrap_used)] // helpers of tests

use bytes::Bytes;
use farhop_squeeze::*;
use proptest::prelude::*;

fn decode(base: &[u8], coded: &[u8], cut: usize) -> Result<Vec<u8>, SqueezeError> {
    let mut decoder = HopDecoder::against(base)?;
    let mut decoded = Vec::new();
    for chunk in coded.chunks(cut) {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(piece) = decoder.pull()? {
            assert!(piece.len() <= PIECE);
            decoded.extend_from_slice(&piece);
        }
    }
    assert!(decoder.is_complete());
    Ok(decoded)
}

/// Text of so many words that says nothing twice, or nearly so.
fn text(words: u64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("<p>{:x} ", state >> 33)
    };
    (0..words).map(|_| word()).collect::<String>().into_bytes()
}

proptest! {
    #[test]
    fn a_body_against_another_comes_back_whatever_the_cut(
        base in proptest::collection::vec(any::<u8>(), 1..4000),
        body in proptest::collection::vec(any::<u8>(), 0..4000),
        kept in 0usize..4000,
        cut in 1usize..700,
        level in 1i32..19,
    ) {
        let body = [&base[..kept.min(base.len())], &body].concat();
        let coded = compress_against(&base, &body, level).unwrap();
        prop_assert_eq!(decode(&base, &coded, cut).unwrap(), body);
    }

    #[test]
    fn no_bytes_against_any_base_make_a_decoder_fail_but_in_words(base in proptest::collection::vec(any::<u8>(), 1..300), coded in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(mut decoder) = HopDecoder::against(&base) {
            decoder.feed(coded.into());
            while let Ok(Some(piece)) = decoder.pull() {
                prop_assert!(!piece.is_empty() && piece.len() <= PIECE);
            }
        }
    }
}

#[test]
fn a_text_that_has_changed_little_is_a_small_part_of_what_it_is_alone() {
    let before = text(20_000, 1);
    let mut after = before.clone();
    // One word in twenty is another.
    let changed = text(1_000, 2);
    for (at, word) in changed.chunks(12).enumerate() {
        let at = at * after.len() / (changed.len() / 12 + 1);
        after[at..at + word.len()].copy_from_slice(word);
    }
    for level in [1, 9, 19] {
        let alone = compress(&after, level).unwrap().len();
        let against = compress_against(&before, &after, level).unwrap();
        assert!(against.len() * 5 < alone, "{} of {alone} at {level}", against.len());
        assert_eq!(decode(&before, &against, 1000).unwrap(), after);
    }
}

#[test]
fn all_of_the_largest_base_serves_the_last_byte_of_the_largest_body() {
    let whole = text(200_000, 3);
    let (base, rest) = whole.split_at(LARGEST_BASE);
    let repeated = [&rest[..LARGEST_BASE / 2], &base[..LARGEST_BASE / 2]].concat();
    let coded = compress_against(base, &repeated, 9).unwrap();
    assert!(coded.len() < compress(&repeated, 9).unwrap().len() * 6 / 10, "{}", coded.len());
    assert_eq!(decode(base, &coded, 9000).unwrap(), repeated);
}

#[test]
fn another_base_than_it_was_coded_against_is_noticed_by_the_end() {
    let (before, after) = (text(2_000, 1), [text(2_000, 1), text(10, 2)].concat());
    let coded = compress_against(&before, &after, 9).unwrap();
    let mut other = before.clone();
    other[1000] ^= 1;
    assert!(decode(&other, &coded, 500).is_err());
}

#[test]
fn what_is_too_large_empty_or_looks_like_a_trained_dictionary_is_no_base() {
    let dictionary = [&0xec30_a437_u32.to_le_bytes()[..], b"and so on"].concat();
    for base in [vec![], vec![b'a'; LARGEST_BASE + 1], dictionary] {
        assert!(!can_be_base(&base));
        assert!(HopDecoder::against(&base).is_err());
        assert!(compress_against(&base, b"body", 3).is_err());
    }
    assert!(matches!(
        compress_against(b"base", &vec![b'a'; LARGEST_BASE + 1], 3),
        Err(SqueezeError::TooLarge(LARGEST_BASE))
    ));
}

#[test]
fn a_window_beyond_the_bound_is_refused() {
    let body = vec![b'a'; 5 << 20];
    let mut coded = Vec::new();
    let mut encoder = zstd::stream::write::Encoder::new(&mut coded, 3).unwrap();
    encoder.window_log(DELTA_WINDOW_LOG + 1).unwrap();
    std::io::Write::write_all(&mut encoder, &body).unwrap();
    encoder.finish().unwrap();
    assert!(decode(b"base", &coded, 4096).is_err());
}
