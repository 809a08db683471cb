//! What a stream writes in small pieces. QUIC keeps each until it is acknowledged and looks for each from the first one on: an
//! origin that sends byte after byte, as fast as it can, would take a core. So small pieces that are written together become
//! one, and a stream that goes on with them rests for moments in which more of it gathers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// Longer ones stay as they are.
const SMALL: usize = 512;
/// A stream rests after this many small pieces within this time, for what is left of it. On half a second's path hundreds are under way
/// then, and nobody who waits for them can tell.
const MOST: u32 = 16;
const WITHIN: Duration = Duration::from_millis(4);

/// How one stream is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trickle {
    since: Duration,
    pieces: u32,
}

impl Trickle {
    /// So many bytes were written at once; gives until when the stream rests, if it does.
    pub(super) fn wrote(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        if bytes >= SMALL {
            return None;
        }
        if now >= self.since + WITHIN {
            *self = Trickle { since: now, pieces: 0 };
        }
        self.pieces += 1;
        (self.pieces >= MOST).then_some(self.since + WITHIN)
    }
}

/// The same bytes, small segments joined to their neighbours that are small, too.
pub(super) fn joined(segments: Vec<Bytes>) -> Vec<Bytes> {
    let is_small = |segment: &Bytes| segment.len() < SMALL;
    let mut joined = Vec::with_capacity(segments.len());
    for run in segments.chunk_by(|one, next| is_small(one) && is_small(next)) {
        match run {
            [alone] => joined.push(alone.clone()),
            several => {
                let mut together = BytesMut::with_capacity(several.iter().map(Bytes::len).sum());
                several.iter().for_each(|segment| together.extend_from_slice(segment));
                joined.push(together.freeze());
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_stream_of_small_pieces_is_written_a_few_times_in_some_milliseconds() {
        let (mut trickle, mut now, mut written) = (Trickle::default(), Duration::ZERO, 0);
        while now < 1_000 * MS {
            written += 1;
            now = trickle.wrote(now, 3).unwrap_or(now + MS / 100);
        }
        assert_eq!(written, 1_000 / 4 * MOST);
    }

    #[test]
    fn large_pieces_and_small_ones_now_and_then_never_rest() {
        let mut trickle = Trickle::default();
        assert!((0..1_000).all(|_| trickle.wrote(Duration::ZERO, SMALL).is_none()));
        assert!((0..1_000).all(|at| trickle.wrote(at * MS, 3).is_none()));
    }

    #[test]
    fn small_segments_are_joined_and_no_byte_is_lost_or_moved() {
        let lengths = [3, 1, 3, 1, 4_096, 3, 4_096, 4_096, 3];
        let segments: Vec<Bytes> =
            lengths.iter().zip(1..).map(|(length, byte)| vec![byte; *length].into()).collect();
        let together = joined(segments.clone());
        assert_eq!(together.iter().map(Bytes::len).collect::<Vec<_>>(), [8, 4_096, 3, 4_096, 4_096, 3]);
        assert_eq!(together.concat(), segments.concat());
        assert_eq!(together[1].as_ptr(), segments[4].as_ptr(), "what is large is not copied");
    }
}
