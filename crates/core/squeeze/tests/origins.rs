//! What crosses as its origin coded it, undone at the far end of the hop.
#![allow(clippy::unwrap_used)] // helpers of tests

use bytes::Bytes;
use farhop_squeeze::*;
use proptest::prelude::*;
use std::io::Write;

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn brotli(body: &[u8], window_log: u32) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, window_log);
    encoder.write_all(body).unwrap();
    encoder.into_inner()
}

/// A coding, what undoes it, and an origin's encoder.
type Way = (Coding, fn() -> HopDecoder, fn(&[u8]) -> Vec<u8>);

fn both() -> [Way; 2] {
    [
        (Coding::Brotli, HopDecoder::brotli, |body| brotli(body, BROTLI_WINDOW_LOG)),
        (Coding::Gzip, HopDecoder::gzip, gzip),
    ]
}

fn pulled(decoder: &mut HopDecoder) -> Result<Vec<u8>, SqueezeError> {
    let mut all = Vec::new();
    while let Some(piece) = decoder.pull()? {
        assert!(!piece.is_empty() && piece.len() <= PIECE);
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = proptest::collection::vec(0u8..9, 1..300);
    (piece, 0usize..900).prop_map(|(piece, times)| piece.repeat(times))
}

proptest! {
    /// The far end is given the coded bytes that were used up, and no others.
    #[test]
    fn the_far_end_has_each_byte_as_soon_as_the_near_one_has_it(
        body in body(), cut in 1usize..5000, after in 0usize..100, damaged in any::<Option<prop::sample::Index>>(),
    ) {
        for (coding, far, encode) in both() {
            let mut coded = [encode(&body), vec![7; after]].concat();
            if let Some(at) = damaged {
                let at = at.index(coded.len());
                coded[at] ^= 0x55;
            }
            let (mut near, mut far) = (Decoder::new(&[coding]), far());
            let (mut given, mut failed) = (0, false);
            let (mut at_hand, mut arrived) = (Vec::new(), Vec::new());
            for chunk in coded.chunks(cut) {
                near.feed(Bytes::copy_from_slice(chunk));
                loop {
                    let piece = near.pull();
                    failed = piece.is_err() || near.window() > 1 << BROTLI_WINDOW_LOG;
                    let used = near.used() as usize;
                    far.feed(Bytes::copy_from_slice(&coded[given..used]));
                    given = used;
                    let Ok(Some(piece)) = piece else { break };
                    if failed {
                        break;
                    }
                    at_hand.extend_from_slice(&piece);
                    arrived.extend(pulled(&mut far).unwrap());
                    prop_assert!(arrived.starts_with(&at_hand));
                }
                if failed {
                    break;
                }
            }
            if damaged.is_none() {
                arrived.extend(pulled(&mut far).unwrap());
                prop_assert!(!failed && far.is_complete() && arrived == body);
                prop_assert!(given < coded.len() - after + cut, "what follows the end is left out");
            }
        }
    }
}

#[test]
fn a_window_that_is_too_large_is_refused() {
    let body = vec![b'a'; 1 << 20];
    for (window_log, is_taken) in [(BROTLI_WINDOW_LOG, true), (BROTLI_WINDOW_LOG + 1, false)] {
        let coded = brotli(&body, window_log);
        let mut far = HopDecoder::brotli();
        far.feed(Bytes::from(coded.clone()));
        assert_eq!(pulled(&mut far).is_ok(), is_taken);
        let mut near = Decoder::new(&[Coding::Brotli]);
        assert_eq!(near.window(), 0, "nothing is known before it comes");
        near.feed(Bytes::from(coded));
        near.pull().unwrap();
        assert_eq!(near.window(), 1 << window_log);
    }
}
