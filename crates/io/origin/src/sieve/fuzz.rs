//! What must hold of the sieve whatever comes, for the fuzz target and for tests.

use super::*;

/// Sieves any bytes, at once and in pieces; panics when that makes a difference, or when a field that may be nowhere comes out
/// without the one that resets its stream.
pub fn fuzz_frames(data: &[u8]) {
    let now = Instant::now();
    let sieved = |piece: usize| {
        let (mut sieve, mut came, mut out) = (Sieve::new(4096), BytesMut::new(), BytesMut::new());
        for piece in data.chunks(piece) {
            came.extend_from_slice(piece);
            sieve.handle(&mut came, &mut out, now);
            assert!(sieve.begun.len() <= REMEMBERED, "more streams than are remembered");
        }
        (out, sieve.take_answers())
    };
    let whole = sieved(usize::MAX);
    for piece in [1, 10] {
        assert_eq!(sieved(piece), whole, "in pieces of {piece}");
    }
    let (mut rest, mut decoder) = (&whole.0[..], Decoder::new());
    let mut under_way: Option<(u32, Vec<u8>)> = None;
    while let Some(frame) = Frame::read(rest)
        && let Some(content) = rest.get(FRAME_HEADER..FRAME_HEADER + frame.length)
    {
        rest = &rest[FRAME_HEADER + frame.length..];
        let (stream, block) = match (frame.kind, under_way.take()) {
            // What the crate can't take ends the connection, and nothing is said of what follows: here, and where a block is
            // interrupted or padded beyond its end.
            _ if frame.length > LONGEST_FRAME => return,
            (HEADERS, None) => match frame.fragment(content) {
                Some((bytes, _)) => (frame.stream, bytes.to_vec()),
                None => return,
            },
            (CONTINUATION, Some((stream, block))) if stream == frame.stream => {
                (stream, [&block, content].concat())
            }
            (HEADERS | CONTINUATION, _) | (_, Some(_)) => return,
            (_, None) => continue,
        };
        if frame.flags & END_HEADERS != 0 {
            let (mut is_allowed_all, mut is_reset) = (true, false);
            let decoded = decoder.decode(&block, |field| {
                is_allowed_all &= is_allowed(&field, false);
                is_reset |= field.name == "connection";
            });
            if decoded.is_err() {
                return;
            }
            assert!(is_allowed_all || is_reset, "{block:?}");
        } else {
            under_way = Some((stream, block));
        }
    }
}
