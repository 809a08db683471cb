//! `dcb` and `dcz`: Brotli and zstd with a dictionary that the body names.
#![allow(clippy::unwrap_used)] // helpers of tests

use bytes::Bytes;
use farhop_squeeze::*;
use proptest::prelude::*;

const HASH: [u8; 32] = [0xab; 32];

fn dictionary() -> Vec<u8> {
    (0..2_000_u64)
        .map(|at| format!("function f{:x}() {{}}\n", at.wrapping_mul(2_654_435_761)))
        .collect::<String>()
        .into_bytes()
}

fn body() -> Vec<u8> {
    [&dictionary()[500..30_000], b"and something new", &dictionary()[100..9_000]].concat()
}

fn dcz(dictionary: &[u8], body: &[u8], hash: &[u8; 32]) -> Vec<u8> {
    let frame = compress_against(dictionary, body, 9).unwrap();
    [&[0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0][..], hash, &frame].concat()
}

fn dcb(dictionary: &[u8], body: &[u8], hash: &[u8; 32]) -> Vec<u8> {
    let mut coded = Vec::new();
    brotli::BrotliCompressCustomIoCustomDict(
        &mut brotli::IoReaderWrapper(&mut &body[..]),
        &mut brotli::IoWriterWrapper(&mut coded),
        &mut [0; 4096],
        &mut [0; 4096],
        &brotli::enc::BrotliEncoderParams { quality: 9, lgwin: 22, ..Default::default() },
        brotli::enc::StandardAlloc::default(),
        &mut |_, _, _, _| (),
        dictionary,
        std::io::Error::from(std::io::ErrorKind::UnexpectedEof),
    )
    .unwrap();
    [&[0xff, 0x44, 0x43, 0x42][..], hash, &coded].concat()
}

fn decode(coding: NamedCoding, dictionary: &[u8], coded: &[u8], cut: usize) -> Result<Vec<u8>, SqueezeError> {
    let mut decoder = Decoder::against(coding, dictionary, &HASH)?;
    let mut decoded = Vec::new();
    for chunk in coded.chunks(cut) {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(piece) = decoder.pull()? {
            assert!(piece.len() <= PIECE);
            decoded.extend_from_slice(&piece);
        }
    }
    decoder.end();
    while let Some(piece) = decoder.pull()? {
        decoded.extend_from_slice(&piece);
    }
    Ok(decoded)
}

type Encode = fn(&[u8], &[u8], &[u8; 32]) -> Vec<u8>;
const BOTH: [(NamedCoding, Encode); 2] = [(NamedCoding::Zstd, dcz), (NamedCoding::Brotli, dcb)];

#[test]
fn a_body_comes_back_whatever_the_cut_and_is_small() {
    for (coding, encode) in BOTH {
        let coded = encode(&dictionary(), &body(), &HASH);
        assert!(coded.len() < 600, "{coding:?}: {}", coded.len());
        for cut in [1, 7, 39, 40, 41, 10_000] {
            assert_eq!(decode(coding, &dictionary(), &coded, cut).unwrap(), body(), "{coding:?} {cut}");
        }
    }
}

#[test]
fn a_body_that_names_another_dictionary_or_breaks_off_is_refused() {
    for (coding, encode) in BOTH {
        let mut other = HASH;
        other[31] ^= 1;
        assert!(decode(coding, &dictionary(), &encode(&dictionary(), &body(), &other), 100).is_err());
        let coded = encode(&dictionary(), &body(), &HASH);
        for end in [1, 20, 36, 40, coded.len() - 1] {
            assert!(decode(coding, &dictionary(), &coded[..end], 100).is_err(), "{coding:?} {end}");
        }
        assert!(decode(coding, &dictionary(), b"not coded at all", 100).is_err());
    }
}

#[test]
fn codings_are_known_by_their_names_and_what_cannot_be_a_dictionary_is_none() {
    assert_eq!(NamedCoding::named(" DCZ"), Some(NamedCoding::Zstd));
    assert_eq!(NamedCoding::named("dcb"), Some(NamedCoding::Brotli));
    assert_eq!(NamedCoding::named("gzip"), None);
    assert!(Decoder::against(NamedCoding::Zstd, b"", &HASH).is_err());
    assert!(Decoder::against(NamedCoding::Zstd, &0xec30_a437_u32.to_le_bytes(), &HASH).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_fail_but_in_words(coded in proptest::collection::vec(any::<u8>(), 0..300), is_zstd in any::<bool>()) {
        let (coding, encode) = BOTH[usize::from(!is_zstd)];
        let head = encode(&dictionary(), b"", &HASH);
        let head = &head[..if is_zstd { 40 } else { 36 }];
        let _ = decode(coding, &dictionary(), &[head, &coded].concat(), 50);
    }
}
