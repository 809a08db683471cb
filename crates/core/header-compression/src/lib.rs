//! RTP/UDP/IP headers of calls, compressed between the two ends of a hop: 40 bytes (60 over IPv6) become four. The ideas are
//! those of RFC 3095's RTP profile in its unidirectional mode; the format is Farhop's own, and small. Pure.
//!
//! A stream of packets has a *context*, which whole headers set up at both ends. Afterwards a packet says which context and its
//! sequence number; the rest follows from the context. Every packet stands on the context alone, not on the packet before it, so
//! that a loss harms nothing but itself, however long it goes on. An end gives out the headers that came in, bit by bit, or
//! nothing: which context is meant is never guessed (`generation`). That no bit was spoilt is for who carries packets to see to.
//!
//! ```text
//! whole       0 CID      whole headers, as they are, with what follows from the sequence number and how
//!             GEN  TS stride (4)  ID stride (1)  headers …  payload
//! compressed  1 CID
//!             M T I GEN  sequence number (2)  [timestamp (4)]  [IP identification (2)]  payload
//! verbatim    0 1111111  the packet, as it is
//! ```

mod compressor;
mod decompressor;
mod flow;
mod generation;
mod packet;

pub use compressor::Compressor;
pub use decompressor::{Decompressor, Dropped};
pub use flow::{FlowCompressor, FlowDecompressor};

/// Contexts at a time.
pub const CONTEXTS: usize = 127;
/// Begins a packet that is passed on as it is: no context has this number.
const VERBATIM: u8 = 127;
/// Marks a compressed packet in the first byte.
const COMPRESSED: u8 = 0x80;
/// In the second byte of a compressed packet: RTP's marker, a timestamp and an identification that follow.
const MARKER: u8 = 0x80;
const TIMESTAMP: u8 = 0x40;
const IDENTIFICATION: u8 = 0x20;
/// Generations of a context are told apart by these bits.
const GENERATIONS: u8 = 0x1f;

/// Entry point of the fuzz target: whatever comes in place of a packet, it ends in a packet or in nothing.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
    let mut stranger = Decompressor::default();
    let (mut there, mut here) = (FlowCompressor::default(), FlowDecompressor::default());
    let mut strange_flow = FlowDecompressor::default();
    let size = usize::from(data.first().copied().unwrap_or(1)).max(1);
    for (number, piece) in data.chunks(size).enumerate() {
        let now = std::time::Duration::from_millis(number as u64 * 20);
        let _ = stranger.decompress(now, piece);
        let made = compressor.compress(now, piece);
        assert_eq!(decompressor.decompress(now, &made).as_deref(), Ok(piece), "nothing was lost on its way");
        let _ = strange_flow.decompress(now, piece);
        if let Some(made) = there.compress(now, piece) {
            assert_eq!(here.decompress(now, &made).as_deref(), Ok(piece), "nor of a flow");
        }
    }
}
