//! RTP headers of calls, made small between the two ends of a hop: a flow of datagrams, as a carrier has it, has no headers of IP and
//! UDP there, and of RTP's twelve bytes three are left. The ideas are those of RFC 3095's RTP profile in its unidirectional
//! mode; the format is Farhop's own, and small. Pure.
//!
//! A flow has a *context*, which whole headers set up at both ends. Afterwards a datagram says its sequence number; the rest follows
//! from the context. Every datagram stands on the context alone, not on the one before it, so that a loss harms nothing but
//! itself, however long it goes on. An end gives out the headers that came in, bit by bit, or nothing: which context is meant is
//! never guessed (`generation`). That no bit was spoilt is for who carries datagrams to see to.
//!
//! ```text
//! whole       0 0 1 GEN  TS stride (4)  the datagram, as it is
//! compressed  M T 0 GEN  sequence number (2)  [timestamp (4)]  payload
//! ```

mod compressor;
mod decompressor;
mod generation;
mod header;
#[cfg(test)]
mod tests;

pub use compressor::Compressor;
pub use decompressor::{Decompressor, Dropped};

/// In the first byte: RTP's marker, a timestamp that follows, and whole headers.
const MARKER: u8 = 0x80;
const TIMESTAMP: u8 = 0x40;
const WHOLE: u8 = 0x20;
/// Generations of a context are told apart by these bits of it.
const GENERATIONS: u8 = 0x1f;

/// Entry point of the fuzz target: whatever comes in place of a datagram, it ends in a datagram or in nothing. The first byte says
/// how long each is.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let (mut there, mut here) = (Compressor::default(), Decompressor::default());
    let mut stranger = Decompressor::default();
    let Some((size, data)) = data.split_first() else { return };
    for (number, piece) in data.chunks(usize::from(*size).max(1)).enumerate() {
        let now = std::time::Duration::from_millis(number as u64 * 20);
        let _ = stranger.decompress(now, piece);
        if let Some(made) = there.compress(now, piece) {
            assert_eq!(here.decompress(now, &made).as_deref(), Ok(piece), "nothing was lost on its way");
        }
    }
}
