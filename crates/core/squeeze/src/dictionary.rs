//! Dictionaries that are trained: what short bodies of one kind have in common, as zstd makes it of samples. They cost
//! less than a body of that kind and make each that follows smaller, the first of its kind included.

use bytes::Bytes;
use zstd::zstd_safe::CParameter;

use crate::hop::{DICTIONARY, LEAST_DELTA_LEVEL, compress, context};
use crate::stage::SqueezeError;

/// Bytes of a dictionary at most: a page's worth of what a site repeats.
pub const LARGEST_DICTIONARY: usize = 32 * 1024;

/// Longest body in bytes that is coded with one: what is longer repeats enough of itself.
pub const LARGEST_TAUGHT: usize = 64 * 1024;

/// Windows over a dictionary and what is coded with it.
const WINDOW_LOG: u32 = 17;

/// One sample in so many is not trained on: what the dictionary is worth shows in these.
const HELD_OUT: usize = 4;

/// Samples are so many times the dictionary at least, so that it holds what they have in common and not what they are.
const SAMPLES_TO_DICTIONARY: usize = 4;

/// With less it is no dictionary.
const LEAST_DICTIONARY: usize = 1024;

/// Of what bodies take without it a dictionary has to spare so many parts of a hundred, and so many of what they take with
/// the one that there is already.
const LEAST_SPARED: usize = 10;
const LEAST_BETTER: usize = 5;

/// The level at which dictionaries are compared: that of most links.
const LEVEL: i32 = 9;

const NAME: &str = "zstd";

/// Whether these bytes have the form of a trained dictionary (RFC 8878 §5). What is in it shows when it is used.
pub fn is_dictionary(bytes: &[u8]) -> bool {
    bytes.starts_with(&DICTIONARY) && bytes.len() <= LARGEST_DICTIONARY
}

/// Bytes that a decoder with a dictionary takes, with the dictionary itself.
pub const DICTIONARY_MEMORY: usize = (1 << WINDOW_LOG) + 2 * LARGEST_DICTIONARY;

pub(crate) const fn window_log() -> u32 {
    WINDOW_LOG
}

/// A dictionary made of what these bodies have in common. `None` where they have too little: where it would not make others
/// like them clearly smaller than they are without it, or with the `current` one.
pub fn train(samples: &[Bytes], current: Option<&[u8]>) -> Option<Bytes> {
    let is_held_out = |at: usize| at % HELD_OUT == HELD_OUT - 1;
    let (mut trained_on, mut held_out) = (Vec::new(), Vec::new());
    for (at, sample) in samples.iter().enumerate() {
        if is_held_out(at) { held_out.push(sample) } else { trained_on.push(sample) }
    }
    let all: usize = trained_on.iter().map(|sample| sample.len()).sum();
    let most = LARGEST_DICTIONARY.min(all / SAMPLES_TO_DICTIONARY);
    if most < LEAST_DICTIONARY || held_out.is_empty() {
        return None;
    }
    let made = Bytes::from(zstd::dict::from_samples(&trained_on, most).ok()?);
    if !is_dictionary(&made) {
        return None;
    }
    let with = |dictionary: &[u8]| -> Option<usize> {
        held_out.iter().map(|sample| Some(compress_with(dictionary, sample, LEVEL).ok()?.len())).sum()
    };
    let without: usize =
        held_out.iter().map(|sample| Some(compress(sample, LEVEL).ok()?.len())).sum::<Option<_>>()?;
    let taken = with(&made)?;
    let spares = |parts: usize, of: usize| taken * 100 <= of * (100 - parts);
    let is_better = match current {
        Some(current) => spares(LEAST_BETTER, with(current)?),
        None => true,
    };
    (spares(LEAST_SPARED, without) && is_better).then_some(made)
}

/// Compresses a whole body with a trained dictionary that its reader has, as a frame with a checksum of what it decodes to.
///
/// # Errors
/// [`SqueezeError::TooLarge`] for the body, [`SqueezeError::Codec`].
pub fn compress_with(dictionary: &[u8], body: &[u8], level: i32) -> Result<Bytes, SqueezeError> {
    if body.len() > LARGEST_TAUGHT {
        return Err(SqueezeError::TooLarge(LARGEST_TAUGHT));
    }
    if !is_dictionary(dictionary) {
        return Err(SqueezeError::Codec(NAME));
    }
    let further = [
        CParameter::ChecksumFlag(true),
        // The frame's head names it already.
        CParameter::DictIdFlag(false),
    ];
    let mut context = context(level.clamp(LEAST_DELTA_LEVEL, 19), WINDOW_LOG, &further)?;
    context.load_dictionary(dictionary).map_err(|_| SqueezeError::Codec(NAME))?;
    let mut output = Vec::with_capacity(zstd::zstd_safe::compress_bound(body.len()));
    context.compress2(&mut output, body).map_err(|_| SqueezeError::Codec(NAME))?;
    output.shrink_to_fit();
    Ok(output.into())
}
