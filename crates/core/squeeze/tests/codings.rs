//! Codings undone and done, in any cut, within bounds.
#![allow(clippy::unwrap_used)] // helpers of tests

use bytes::Bytes;
use farhop_squeeze::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::Write;

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(5));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn gzip_with_every_header_part(body: &[u8]) -> Vec<u8> {
    let header = flate2::GzBuilder::new().filename("name").comment("comment").extra(vec![1, 2, 3]).mtime(7);
    let mut encoder = header.write(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn brotli(body: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    encoder.write_all(body).unwrap();
    encoder.into_inner()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(body, 3).unwrap()
}

/// Decodes in chunks of `cut` bytes.
fn decode(codings: &[Coding], coded: &[u8], cut: usize) -> Result<Vec<u8>, SqueezeError> {
    let mut decoder = Decoder::new(codings);
    let mut decoded = Vec::new();
    for chunk in coded.chunks(cut) {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(piece) = decoder.pull()? {
            assert!(!piece.is_empty() && piece.len() <= PIECE);
            decoded.extend_from_slice(&piece);
        }
    }
    decoder.end();
    while let Some(piece) = decoder.pull()? {
        decoded.extend_from_slice(&piece);
    }
    Ok(decoded)
}

/// RFC 1952 §2.3.1: checksum and length.
const GZIP_TRAILER: usize = 8;

type Encode = fn(&[u8]) -> Vec<u8>;
const ALL: [(Coding, Encode); 6] = [
    (Coding::Gzip, gzip),
    (Coding::Gzip, gzip_with_every_header_part),
    (Coding::Deflate, zlib),
    (Coding::Deflate, raw_deflate),
    (Coding::Brotli, brotli),
    (Coding::Zstd, zstd),
];

fn text(bytes: usize) -> Vec<u8> {
    let words: Vec<String> = (0..)
        .map(|n: u32| format!("line {} of the text\n", n.wrapping_mul(2_654_435_761) % 1000))
        .take(bytes / 10)
        .collect();
    let mut body = words.concat().into_bytes();
    body.truncate(bytes);
    body
}

#[test]
fn a_small_piece_keeps_no_more_memory_than_it_needs() {
    for (size, most) in [(100, 200), (PIECE / 2, PIECE), (PIECE, PIECE)] {
        let body = text(size);
        let mut decoder = Decoder::new(&[Coding::Gzip]);
        decoder.feed(gzip(&body).into());
        let mut hop = HopDecoder::default();
        hop.feed(compress(&body, 3).unwrap());
        for piece in [decoder.pull(), hop.pull()] {
            let piece = piece.unwrap().unwrap().try_into_mut().unwrap();
            assert_eq!(piece.len(), size);
            assert!(piece.capacity() <= most, "{size} bytes keep {}", piece.capacity());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_coding_is_undone_whatever_the_cut(body in proptest::collection::vec(any::<u8>(), 0..3000), repeat in 1usize..40, cut in 1usize..5000) {
        let body = body.repeat(repeat);
        for (coding, encode) in ALL {
            prop_assert_eq!(&decode(&[coding], &encode(&body), cut).unwrap(), &body, "{:?}", coding);
        }
    }

    #[test]
    fn chains_of_codings_are_undone_from_the_last(body in proptest::collection::vec(any::<u8>(), 0..2000), cut in 1usize..500) {
        let coded = zstd(&gzip(&brotli(&body)));
        prop_assert_eq!(decode(&[Coding::Brotli, Coding::Gzip, Coding::Zstd], &coded, cut).unwrap(), body);
    }

    #[test]
    fn a_body_that_breaks_off_is_what_came_of_it_except_in_zstd(body in proptest::collection::vec(any::<u8>(), 1..500), at in 0.0f64..1.0) {
        for (coding, encode) in ALL {
            let coded = encode(&body);
            let end = 1 + (at * (coded.len() - 2) as f64) as usize;
            let decoded = decode(&[coding], &coded[..end], 64);
            match coding {
                Coding::Zstd => prop_assert_eq!(decoded, Err(SqueezeError::Truncated("zstd"))),
                _ => prop_assert!(body.starts_with(&decoded.unwrap()), "{:?} cut at {} of {}", coding, end, coded.len()),
            }
        }
    }

    #[test]
    fn of_a_body_that_breaks_off_all_that_came_is_there(body in proptest::collection::vec(any::<u8>(), 5000..9000)) {
        // What does not compress is stored, so that half of it is told by half of the bytes.
        for (coding, encode) in ALL.into_iter().filter(|(coding, _)| *coding != Coding::Zstd) {
            let coded = encode(&body);
            let decoded = decode(&[coding], &coded[..coded.len() / 2], 64).unwrap();
            prop_assert!(decoded.len() > body.len() / 3 && body.starts_with(&decoded), "{:?}: {}", coding, decoded.len());
        }
    }

    #[test]
    fn a_gzip_body_without_its_trailer_is_whole(body in proptest::collection::vec(any::<u8>(), 0..3000), left in 0..GZIP_TRAILER) {
        let coded = gzip(&body);
        let cut = coded.len() - GZIP_TRAILER + left;
        prop_assert_eq!(decode(&[Coding::Gzip], &coded[..cut], 64).unwrap(), body);
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
        for choice in 0..4 {
            fuzz_decode(&[&[choice], &data[..]].concat());
        }
    }

    #[test]
    fn damaged_bodies_never_panic(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        for (choice, encode) in [gzip as Encode, zlib, brotli, zstd].into_iter().enumerate() {
            let mut coded = encode(&text(5000));
            let at = at.index(coded.len());
            coded[at] ^= 1 << bit;
            fuzz_decode(&[&[choice as u8], &coded[..]].concat());
        }
    }

    #[test]
    fn each_chunk_on_the_hop_decodes_as_soon_as_it_is_there(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9000), 0..8), level in 1i32..12) {
        let mut encoder = Encoder::new(level, None).unwrap();
        let mut decoder = HopDecoder::default();
        let drain = |decoder: &mut HopDecoder, coded: Bytes| {
            decoder.feed(coded);
            let mut out = Vec::new();
            while let Some(piece) = decoder.pull().unwrap() {
                out.extend_from_slice(&piece);
            }
            out
        };
        for chunk in &chunks {
            let coded = encoder.chunk(chunk).unwrap();
            prop_assert_eq!(&drain(&mut decoder, coded), chunk);
            prop_assert!(!decoder.is_complete());
        }
        let last = encoder.finish(b"end").unwrap();
        prop_assert_eq!(drain(&mut decoder, last), b"end");
        prop_assert!(decoder.is_complete());
    }
}

#[test]
fn a_bomb_comes_in_bounded_pieces_and_only_when_pulled() {
    let bomb = vec![0u8; 200 << 20];
    for (coding, encode) in [(Coding::Gzip, gzip as Encode), (Coding::Zstd, zstd)] {
        let coded = encode(&bomb);
        assert!(coded.len() < 1 << 20, "{coding:?}");
        let mut decoder = Decoder::new(&[coding]);
        decoder.feed(coded.into());
        for _ in 0..100 {
            assert!(decoder.pull().unwrap().unwrap().len() <= PIECE, "{coding:?}");
        }
    }
}

#[test]
fn of_a_gzip_body_the_first_member_counts_as_in_browsers() {
    let follow: [&[u8]; 3] = [&gzip(b"two"), &[0; 20], b"rubbish"];
    for rest in follow {
        for cut in [1, 3, 1000] {
            assert_eq!(decode(&[Coding::Gzip], &[&gzip(b"one"), rest].concat(), cut).unwrap(), b"one");
        }
    }
    let mut wrong = gzip(b"some text");
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    assert_eq!(decode(&[Coding::Gzip], &wrong, 100).unwrap(), b"some text", "whatever its checksum says");
    assert!(matches!(
        decode(&[Coding::Gzip], b"i{color:red}", 100),
        Err(SqueezeError::Invalid { coding: "gzip", .. })
    ));
}

#[test]
fn a_body_of_no_bytes_is_empty_whatever_its_coding() {
    for (coding, _) in ALL {
        assert_eq!(decode(&[coding], b"", 1).unwrap(), b"");
    }
    assert_eq!(decode(&[], b"plain", 2).unwrap(), b"plain");
}

#[test]
fn content_encoding_values_are_read() {
    assert_eq!(parse_codings("gzip").unwrap(), [Coding::Gzip]);
    assert_eq!(parse_codings(" X-GZip , identity,br ").unwrap(), [Coding::Gzip, Coding::Brotli]);
    assert_eq!(parse_codings("").unwrap(), []);
    assert_eq!(parse_codings("deflate, zstd").unwrap(), [Coding::Deflate, Coding::Zstd]);
    assert_eq!(
        parse_codings("compress").unwrap_err().to_string(),
        "content coding 'compress' is not known here"
    );
    assert!(parse_codings("gzip, gzip, gzip, gzip").is_err());
}

#[test]
fn windows_beyond_what_a_stream_may_hold_are_refused() {
    let body = text(16 << 20);
    let mut wide = zstd::bulk::Compressor::new(3).unwrap();
    wide.set_parameter(zstd::zstd_safe::CParameter::WindowLog(24)).unwrap();
    let coded = wide.compress(&body).unwrap();
    assert!(decode(&[Coding::Zstd], &coded, 1 << 20).is_err());
    wide.set_parameter(zstd::zstd_safe::CParameter::WindowLog(21)).unwrap();
    let coded = wide.compress(&body).unwrap();
    assert_eq!(decode(&[Coding::Zstd], &coded, 1 << 20).unwrap(), body);
    assert!(decompress(coded.into(), 64 << 20).is_err(), "on the hop 2^20 is the bound");
}

#[test]
fn an_encoders_memory_is_what_the_table_says() {
    let held = |level: i32, length: Option<u64>| {
        let mut encoder = Encoder::new(level, length).unwrap();
        encoder.chunk(&text(length.map_or(3 << 20, |length| length as usize))).unwrap();
        encoder.memory()
    };
    for (level, length, most) in
        [(3, None, 1_600_000), (9, None, 3_700_000), (3, Some(5000), 200_000), (9, Some(5000), 220_000)]
    {
        let held = held(level, length);
        assert!(held <= most, "level {level}, {length:?}: {held}");
    }
}

#[test]
fn a_small_body_crosses_in_one_piece() {
    let body = text(4000);
    let coded = compress(&body, 9).unwrap();
    assert!(coded.len() < body.len() / 2);
    assert_eq!(decompress(coded.clone(), 4000).unwrap(), body);
    assert_eq!(decompress(coded.clone(), 3999), Err(SqueezeError::TooLarge(3999)));
    assert_eq!(decompress(coded.slice(..coded.len() - 1), 4000), Err(SqueezeError::Truncated("zstd")));
}
