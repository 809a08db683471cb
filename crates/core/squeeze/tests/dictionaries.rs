//! Dictionaries that are trained: they make bodies of their kind smaller, exactly, or are none.
#![allow(clippy::unwrap_used)] // helpers of tests

use bytes::Bytes;
use farhop_squeeze::*;
use proptest::prelude::*;
use std::sync::LazyLock;

/// A page of a site: what all have, and its own words.
fn page(number: u64) -> Bytes {
    let frame = |part: &str| -> String {
        let line = |at: u64| {
            let word = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 + part.len() as u64);
            format!("<li class=\"{part}-{at}\"><a href=\"/{part}/{word:x}\">{:x}</a>\n", word.rotate_left(17))
        };
        (0..40).map(line).collect()
    };
    let own: String =
        (0..20).map(|at| format!("<p>{:x}\n", (number * 1_000 + at).wrapping_mul(2_654_435_761))).collect();
    format!("{}{own}{}", frame("head"), frame("footer")).into()
}

fn pages(numbers: std::ops::Range<u64>) -> Vec<Bytes> {
    numbers.map(page).collect()
}

static TRAINED: LazyLock<Bytes> = LazyLock::new(|| train(&pages(0..24), None).unwrap());

fn decode(dictionary: &[u8], coded: &[u8], cut: usize) -> Result<Vec<u8>, SqueezeError> {
    let mut decoder = HopDecoder::with_dictionary(dictionary)?;
    let mut decoded = Vec::new();
    for chunk in coded.chunks(cut) {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(piece) = decoder.pull()? {
            decoded.extend_from_slice(&piece);
        }
    }
    assert!(decoder.is_complete());
    Ok(decoded)
}

#[test]
fn a_page_that_was_not_seen_takes_less_than_half_with_what_others_have_taught() {
    let (unseen, dictionary) = (page(1_000), &*TRAINED);
    assert!(is_dictionary(dictionary) && !can_be_base(dictionary));
    for level in [1, 9, 19] {
        let alone = compress(&unseen, level).unwrap().len();
        let taught = compress_with(dictionary, &unseen, level).unwrap();
        assert!(taught.len() * 2 < alone, "{} of {alone} at {level}", taught.len());
        assert_eq!(decode(dictionary, &taught, 100).unwrap(), unseen);
    }
}

#[test]
fn bodies_that_have_nothing_in_common_teach_nothing() {
    let noise = |seed: u64| -> Bytes {
        let mut state = seed;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..2_000).map(|_| byte()).collect::<Vec<u8>>().into()
    };
    let bodies: Vec<Bytes> = (1..30).map(noise).collect();
    assert_eq!(train(&bodies, None), None);
}

#[test]
fn few_or_tiny_bodies_teach_nothing_and_do_no_harm() {
    for samples in
        [vec![], pages(0..1), pages(0..3), vec![Bytes::new(); 40], vec![Bytes::from_static(b"a"); 40]]
    {
        assert_eq!(train(&samples, None), None);
    }
}

#[test]
fn one_that_is_no_better_than_what_there_is_is_not_taken() {
    assert_eq!(train(&pages(100..124), Some(&TRAINED)), None);
    let other: Vec<Bytes> = pages(100..124)
        .iter()
        .map(|page| {
            String::from_utf8(page.to_vec()).unwrap().replace("li class", "div data-kind").replace('7', "w")
        })
        .map(Bytes::from)
        .collect();
    assert!(train(&other, Some(&TRAINED)).is_some(), "the site has changed");
}

#[test]
fn another_dictionary_than_it_was_coded_with_is_noticed() {
    let other =
        train(&pages(500..524).iter().map(|page| page.slice(200..)).collect::<Vec<_>>(), None).unwrap();
    assert_ne!(other, *TRAINED);
    let coded = compress_with(&TRAINED, &page(7_000), 9).unwrap();
    assert!(decode(&other, &coded, 500).is_err());
}

#[test]
fn what_is_too_long_or_no_dictionary_is_refused() {
    let long = vec![b'a'; LARGEST_TAUGHT + 1];
    assert_eq!(compress_with(&TRAINED, &long, 3), Err(SqueezeError::TooLarge(LARGEST_TAUGHT)));
    for bytes in [&b""[..], b"a text", &[&TRAINED[..], &vec![0; LARGEST_DICTIONARY]].concat()] {
        assert!(compress_with(bytes, b"body", 3).is_err());
        assert!(HopDecoder::with_dictionary(bytes).is_err());
    }
}

#[test]
fn the_longest_body_comes_back_and_takes_no_more_than_is_said() {
    let body = [&pages(0..40).concat()[..], &vec![b'b'; LARGEST_TAUGHT]].concat()[..LARGEST_TAUGHT].to_vec();
    let coded = compress_with(&TRAINED, &body, 19).unwrap();
    assert_eq!(decode(&TRAINED, &coded, 1_000).unwrap(), body);
}

proptest! {
    #[test]
    fn a_body_with_a_dictionary_comes_back_whatever_the_cut(
        own in proptest::collection::vec(any::<u8>(), 0..4000),
        number in any::<u32>(),
        cut in 1usize..700,
        level in 1i32..19,
    ) {
        let body = [&page(u64::from(number))[..], &own].concat();
        let coded = compress_with(&TRAINED, &body, level).unwrap();
        prop_assert_eq!(decode(&TRAINED, &coded, cut).unwrap(), body);
    }

    #[test]
    fn no_bytes_make_a_decoder_fail_but_in_words(
        spoiled in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..40),
        coded in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut dictionary = TRAINED.to_vec();
        for (at, byte) in spoiled {
            let at = 4 + usize::from(at) % (dictionary.len() - 4);
            dictionary[at] = byte;
        }
        let _ = compress_with(&dictionary, &page(1), 3);
        if let Ok(mut decoder) = HopDecoder::with_dictionary(&dictionary) {
            decoder.feed(coded.into());
            while let Ok(Some(piece)) = decoder.pull() {
                prop_assert!(!piece.is_empty() && piece.len() <= PIECE);
            }
        }
    }
}
