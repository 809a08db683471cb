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

#[test]
fn a_text_of_very_many_frames_is_refused() {
    let base = text(2_000, 1);
    let mut coded = compress_against(&base, &text(2_000, 2), 9).unwrap().to_vec();
    for _ in 0..100 {
        coded.extend_from_slice(&compress(b"", 3).unwrap());
    }
    assert!(matches!(decode(&base, &coded, 4_096), Err(SqueezeError::Invalid { .. })));
}

/// A text that streams against a base in such chunks; what it takes, with a name of 16 bytes, and what it would take by itself.
/// `None` where it is not begun against the base.
fn streamed(base: &[u8], text: &[u8], (first, chunk): (usize, usize), level: i32) -> Option<(usize, usize)> {
    let (beginning, rest) = text.split_at(first.min(text.len()));
    let mut alone = Encoder::new(level, None).unwrap();
    let mut by_itself = alone.chunk(beginning).unwrap().len();
    let (mut encoder, coded) = DeltaEncoder::begin(base, beginning, level, 16).unwrap()?;
    let (mut coded, mut given) = (coded.to_vec(), beginning.len());
    for chunk in rest.chunks(chunk) {
        coded.extend_from_slice(&encoder.chunk(chunk).unwrap());
        by_itself += alone.chunk(chunk).unwrap().len();
        given += chunk.len();
        assert_eq!(so_far(base, &coded), text[..given], "each byte comes at once");
    }
    coded.extend_from_slice(&encoder.finish(&[]).unwrap().0);
    by_itself += alone.finish(&[]).unwrap().len();
    assert_eq!(decode(base, &coded, 1000).unwrap(), text);
    Some((coded.len() + 16, by_itself))
}

/// What came of a stream that goes on.
fn so_far(base: &[u8], coded: &[u8]) -> Vec<u8> {
    let mut decoder = HopDecoder::against(base).unwrap();
    decoder.feed(Bytes::copy_from_slice(coded));
    let mut decoded = Vec::new();
    while let Some(piece) = decoder.pull().unwrap() {
        decoded.extend_from_slice(&piece);
    }
    decoded
}

/// Like [`text`], with one word in `changed` other than it was.
fn changed(words: u64, every: u64) -> Vec<u8> {
    let (old, new) = (text(words, 1), text(words, 2));
    let mut words = old.split(|byte| *byte == b' ').zip(new.split(|byte| *byte == b' ')).zip(0..);
    let mut one = || words.next().map(|((old, new), at)| if at % every == 0 { new } else { old });
    std::iter::from_fn(&mut one).collect::<Vec<_>>().join(&b' ')
}

#[test]
fn a_text_that_streams_is_a_small_part_of_what_it_is_alone_where_it_has_changed_little() {
    let (before, after) = (text(20_000, 1), changed(20_000, 20));
    assert!(streamed(&before, &after, (4_000, 30_000), 1).is_none(), "there is no time for it");
    for level in [3, 6, 9] {
        let (taken, by_itself) = streamed(&before, &after, (4_000, 30_000), level).unwrap();
        assert!(taken * 4 < by_itself, "{taken} of {by_itself} at {level}");
    }
}

/// However it goes on: what was saved at the beginning is not spent again.
#[test]
fn a_text_that_streams_and_turns_out_to_be_another_takes_no_more_than_by_itself() {
    let before = text(20_000, 1);
    let lines = |seed| {
        text(3_000, seed).chunks(40).map(|line| [line, b"</p>\n"].concat()).collect::<Vec<_>>().concat()
    };
    let noise: Vec<u8> =
        text(30_000, 9).iter().zip(text(30_000, 4)).map(|(a, b)| a.wrapping_mul(b)).collect();
    for (rest, chunk, level) in [
        (text(60_000, 5), 30_000, 9),
        (text(60_000, 5), 2_000, 3),
        (text(60_000, 5), 2_000, 6),
        (text(60_000, 5), 2_000, 12),
        (lines(7), 2_000, 6),
        (noise, 8_000, 9),
        // It goes on as it began, for a while.
        ([changed(15_000, 30), text(20_000, 8)].concat(), 8_000, 3),
        // Of its own beginning it makes as much use as by itself.
        ([text(9_000, 6), text(9_000, 6), text(9_000, 6)].concat(), 8_000, 9),
    ] {
        let turned = [&before[..6_000], &rest].concat();
        let (taken, by_itself) = streamed(&before, &turned, (6_000, chunk), level).unwrap();
        // What is as good as noise is within this of itself, coded in one way or another.
        let noise = by_itself / 256;
        assert!(taken <= by_itself + noise, "{taken} of {by_itself}, in chunks of {chunk} at {level}");
    }
}

#[test]
fn what_begins_like_no_base_is_not_streamed_against_it() {
    let before = text(20_000, 1);
    assert!(streamed(&before, &text(20_000, 2), (6_000, 8_000), 9).is_none());
    assert!(streamed(&before, &before, (100, 8_000), 9).is_none(), "there is not enough of it to tell");
    assert!(DeltaEncoder::begin(b"", &before, 9, 16).is_err());
}

proptest! {
    #[test]
    fn a_text_that_streams_comes_back_whatever_it_turns_out_to_be(
        rests in proptest::collection::vec((0u64..4, 1u64..3_000), 0..5),
        first in 3_000usize..9_000,
        chunk in 300usize..40_000,
        level in 3i32..10,
    ) {
        let before = text(3_000, 0);
        let rest: Vec<u8> = rests.iter().flat_map(|(seed, words)| text(*words, *seed)).collect();
        let whole = [&before[..], &rest].concat();
        let (taken, by_itself) = streamed(&before, &whole, (first, chunk), level).unwrap();
        prop_assert!(taken <= by_itself + by_itself / 256 + 32, "{taken} of {by_itself}");
    }
}
