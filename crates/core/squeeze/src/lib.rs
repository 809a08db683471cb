//! What makes bodies small: streaming, bounded decoders for what origins send (`gzip`, `deflate`, `br`, `zstd`, chained),
//! zstd both ways for the long hop, images coded anew by [`Policy`], the processor time that it may take, and the [`Manager`] that
//! moves users to other policies under load.
//!
//! Pure: bytes in, bytes out, nothing read or written elsewhere. Output comes in pieces of at most [`PIECE`] bytes, so
//! a decompression bomb costs its receiver no memory. What a stream holds:
//!
//! | stream | memory |
//! |---|---|
//! | [`Decoder`] gzip, deflate | 50 KB |
//! | [`Decoder`] br | as its window: usually 4 MB, at most 16 MB (RFC 7932 §9.1) |
//! | [`Decoder`] zstd | as its window: at most 8 MB (RFC 9659 §3) |
//! | [`Decoder::against`] | the dictionary, and as br or zstd |
//! | [`Encoder`] | unknown length: 1.6 MB at level 3, 3.7 MB at 9; known: as the body, 0.2 MB for 5 KB |
//! | [`recode`] | up to 9 bytes for each of at most [`MAX_PIXELS`] pixels, beside the file |
//! | [`DeltaEncoder`] | as an [`Encoder`] of unknown length, another over the base, and 0.5 MB |
//! | [`HopDecoder`] | 1.3 MB: windows beyond 2^[`HOP_WINDOW_LOG`] are refused |
//! | [`HopDecoder::brotli`] | as what it decoded, at most as its window: beyond 2^[`BROTLI_WINDOW_LOG`] it is refused |
//! | [`HopDecoder::gzip`] | 50 KB |
//! | [`HopDecoder::against`] | [`delta_memory`]: 1 MB over a base of 50 KB, 4.5 MB over one of [`LARGEST_BASE`] |
//! | [`HopDecoder::with_dictionary`] | [`DICTIONARY_MEMORY`]: 0.2 MB |

mod brotli_stage;
mod budget;
mod chain;
mod decoder;
mod deflate_stage;
mod dictionary;
mod gzip_stage;
mod hop;
mod image;
mod kinds;
mod level;
mod manager;
mod named_stage;
mod policy;
mod stage;
mod worth;
mod zstd_stage;

pub use budget::{CpuBudget, Load};
pub use chain::DeltaEncoder;
pub use decoder::{Coding, Decoder, UnknownCoding, parse_codings};
pub use dictionary::{
    DICTIONARY_MEMORY, LARGEST_DICTIONARY, LARGEST_TAUGHT, compress_with, is_dictionary, train,
};
pub use hop::{
    BROTLI_WINDOW_LOG, DELTA_WINDOW_LOG, Encoder, HOP_WINDOW_LOG, HopDecoder, LARGEST_BASE, can_be_base,
    compress, compress_against, decompress, delta_memory,
};
pub use image::{
    Done, Format, ImageOffer, Kept, LARGEST_IMAGE, LEAST_IMAGE, MAX_PIXELS, Recipe, Recoded, image_plan,
    pixel_count, recode,
};
pub use kinds::is_text;
pub use level::text_level;
pub use manager::{Change, Manager, Moved, Rule, Service, Signal, UnknownWord, Users};
pub use named_stage::NamedCoding;
pub use policy::{Policy, UnknownPolicy};
pub use stage::SqueezeError;
pub use worth::{PixelPace, is_worth_waiting};

/// Largest piece of output, in bytes.
pub const PIECE: usize = 32 * 1024;

/// Entry point of the fuzz target: `data` as an image to be coded anew by every recipe, whatever its header claims.
pub fn fuzz_image(data: &[u8]) {
    const MOST_PIXELS: u64 = 1 << 16;
    let count = pixel_count(data);
    // What is too large is judged by its header; what is large takes a fuzzer too long.
    if count.is_some_and(|count| count > MOST_PIXELS) {
        return;
    }
    let mut file = data.to_vec();
    // Decoders ignore what follows the end, so that a picture of a few bytes comes as far as a photograph.
    file.resize(file.len().max(LEAST_IMAGE as usize), 0);
    for policy in [Policy::Gentle, Policy::Httpep, Policy::Strong] {
        for (media, webp) in [("image/jpeg", false), ("image/jpeg", true), ("image/png", true)] {
            let offer = ImageOffer { media, length: None, webp };
            let Some(recipe) = image_plan(&offer, policy, Load::Light) else { continue };
            let Ok(recoded) = recode(&file, recipe) else { continue };
            assert!(recoded.bytes.len() < file.len(), "it became larger");
            assert!(count.is_some(), "its header says that it cannot be read");
            assert!(
                recoded.done.to == Format::Webp || pixel_count(&recoded.bytes) == count,
                "it has another size"
            );
        }
    }
}

/// Entry point of the fuzz target: the first byte chooses how a body crossed the hop, by itself, against a base, or as its origin coded
/// it; the rest is decoded in chunks as long as the second byte says, up to 16 MB.
pub fn fuzz_hop(data: &[u8]) {
    const BASE: &[u8] =
        b"<!doctype html><title>A base</title><p>What both ends hold, and what the next one begins with.";
    let [choice, length, body @ ..] = data else { return };
    let mut decoder = match choice % 4 {
        0 => HopDecoder::default(),
        1 => HopDecoder::against(BASE).expect("it can be a base"),
        2 => HopDecoder::brotli(),
        _ => HopDecoder::gzip(),
    };
    let mut total = 0;
    for chunk in body.chunks(usize::from(*length).max(1)) {
        decoder.feed(bytes::Bytes::copy_from_slice(chunk));
        loop {
            let piece = match decoder.pull() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(_) => return,
            };
            assert!(!piece.is_empty() && piece.len() <= PIECE, "a piece is neither empty nor too large");
            total += piece.len();
            if total > 16 << 20 {
                return;
            }
        }
    }
    let _ = decoder.is_complete();
}

/// Entry point of the fuzz target: the first byte chooses the coding, the rest is decoded up to 16 MB.
pub fn fuzz_decode(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let codings = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];
    let chosen = codings[usize::from(*choice) % codings.len()];
    let mut decoder = Decoder::new(&[chosen]);
    decoder.feed(bytes::Bytes::copy_from_slice(body));
    decoder.end();
    let mut total = 0;
    while let Ok(Some(piece)) = decoder.pull() {
        assert!(!piece.is_empty() && piece.len() <= PIECE, "a piece is neither empty nor too large");
        total += piece.len();
        if total > 16 << 20 {
            break;
        }
    }
}
