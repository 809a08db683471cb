//! What must hold of the sieve whatever comes, for the fuzz target and for property tests.

use super::*;

/// Sieves any bytes, at once and in pieces; panics when that makes a difference, or when a field comes out for which the h2
/// crate ends the connection.
pub fn fuzz_frames(data: &[u8]) {
    const MOST: usize = 4096;
    let now = Instant::now();
    let sieved = |piece: usize| {
        let (mut sieve, mut came, mut out) = (Sieve::new(MOST, 4), BytesMut::new(), BytesMut::new());
        let mut reordered = Vec::new();
        for piece in data.chunks(piece) {
            came.extend_from_slice(piece);
            sieve.handle(&mut came, &mut out, now);
            assert!(sieve.priorities.len() <= 4, "more priorities than streams");
            reordered.extend(sieve.take_reordered());
        }
        (out, sieve.doomed(), reordered)
    };
    let whole = sieved(usize::MAX);
    for piece in [1, 10] {
        assert_eq!(sieved(piece), whole, "in pieces of {piece}");
    }
    let (out, ..) = whole;
    let mut rest = out.get(PREFACE..).unwrap_or_default();
    let mut block = Vec::new();
    while let Some(frame) = Frame::read(rest)
        && let Some(content) = rest.get(FRAME_HEADER..FRAME_HEADER + frame.length)
    {
        rest = &rest[FRAME_HEADER + frame.length..];
        if matches!(frame.kind, HEADERS | CONTINUATION) {
            block.extend_from_slice(content);
            if frame.flags & END_HEADERS != 0 {
                // Nothing of it hangs on what was sent before.
                let decoded = Decoder::new().decode(&block, |field| assert!(is_allowed(&field), "{field:?}"));
                assert_eq!(decoded, Ok(()));
                assert!(block.len() <= 2 * MOST, "{} bytes of fields", block.len());
                block.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::flag::{PADDED, PRIORITY};
    use proptest::prelude::*;

    /// Frames that mean something, with anything in them.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let kind = prop::sample::select(vec![
            0,
            HEADERS,
            HEADERS,
            STREAM_PRIORITY,
            RST_STREAM,
            SETTINGS,
            WINDOW_UPDATE,
            CONTINUATION,
            PRIORITY_UPDATE,
            200,
        ]);
        let flags = prop::sample::select(vec![
            0,
            END_HEADERS,
            END_HEADERS | END_STREAM,
            END_HEADERS | PADDED,
            PRIORITY,
        ]);
        let field = ("[a-z:]{0,9}|[ -~]{0,3}", "[ -~\r]{0,2000}");
        let fields = prop::collection::vec(field, 0..4).prop_map(|fields| {
            let mut block = BytesMut::new();
            fields
                .iter()
                .for_each(|(name, value)| hpack::write(name.as_bytes(), value.as_bytes(), &mut block));
            block.to_vec()
        });
        let content = prop_oneof![fields, any::<Vec<u8>>(), Just(vec![0; 4])];
        let frame = (kind, flags, 0..8u32, content).prop_map(|(kind, flags, stream, content)| {
            let mut bytes = BytesMut::new();
            write_frame(kind, flags, stream, &content[..content.len().min(LONGEST_FRAME)], &mut bytes);
            bytes.to_vec()
        });
        prop::collection::vec(frame, 0..12).prop_map(|frames| [vec![b' '; PREFACE], frames.concat()].concat())
    }

    proptest! {
        #[test]
        fn what_comes_out_hangs_on_no_split_and_holds_nothing_that_ends_a_connection(data in frames()) {
            fuzz_frames(&data);
        }

        #[test]
        fn any_bytes_are_sieved(data: Vec<u8>) {
            fuzz_frames(&data);
        }
    }

    #[test]
    fn a_block_of_references_costs_no_more_than_a_field_section() {
        // One field of 3 kB that is kept, and ten thousand times its number.
        let value = [&[0x7f, 0xb9, 0x16][..], &[b'v'; 3000]].concat();
        let block = [&[0x40, 1, b'x'][..], &value, &[0xbe; 10_000]].concat();
        let mut came = BytesMut::from(&[b' '; PREFACE][..]);
        write_frame(HEADERS, END_HEADERS | END_STREAM, 1, &block, &mut came);
        let (mut sieve, mut out) = (Sieve::new(16_000, 4), BytesMut::new());
        sieve.handle(&mut came, &mut out, Instant::now());
        assert!((16_000..17_000).contains(&out.len()), "{}", out.len());
    }
}
