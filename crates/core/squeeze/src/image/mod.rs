//! Images made small: which are worth it ([`image_plan`]), and the recoding itself ([`recode`]). Pure: bytes in, bytes
//! out; what it costs is the caller's to measure. Record 0014 says why and what was measured.
//!
//! Whatever is not understood to the last detail stays as it is: CMYK, 16 bits, animations, pictures to be turned or to be shown brighter,
//! profiles that do not fit, colours told in other ways.

mod huffman;
mod jpeg;
mod jpeg_header;
mod jpeg_tables;
mod likeness;
mod pixels;
mod recipe;
mod webp;

pub use recipe::{ImageOffer, Recipe, image_plan};

use jpeg::Chroma;
use likeness::likeness;
use pixels::{Decoded, Pixels};
use recipe::{STEP, Target};
use std::fmt;

/// Smaller files are left alone: what they could lose is a packet at most.
pub const LEAST_IMAGE: u64 = 2 * 1024;
/// Larger files are left alone: they are held in memory whole.
pub const LARGEST_IMAGE: u64 = 8 << 20;
/// Pictures of more pixels are left alone: each takes up to 9 bytes while it is coded.
pub const MAX_PIXELS: u64 = 12_500_000;

/// A result must be smaller than its source by so many parts in a hundred, or it is not worth its difference.
const LEAST_GAIN: usize = 10;

/// A PNG of more bits for each pixel than this is no graphic.
const PHOTOGRAPHIC_BITS: u64 = 8;

/// A picture coded anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recoded {
    /// The file.
    pub bytes: Vec<u8>,
    /// What was done.
    pub done: Done,
}

/// What was done to a picture; shown as the value of `Farhop-Image`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// What it is now.
    pub to: Format,
    /// Quality on that format's scale, 1 to 100; `None` without loss.
    pub quality: Option<u8>,
    /// What it was.
    pub from: Format,
    /// Bytes that it was.
    pub was: usize,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; ", self.to.name())?;
        match self.quality {
            Some(quality) => write!(f, "q={quality}; ")?,
            None => write!(f, "lossless; ")?,
        }
        write!(f, "from={}; was={}", self.from.name(), self.was)
    }
}

/// A format that pictures are read or written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG (ITU-T T.81).
    Jpeg,
    /// PNG.
    Png,
    /// WebP (RFC 9649).
    Webp,
}

impl Format {
    /// Its name in fields.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jpeg => "jpeg",
            Format::Png => "png",
            Format::Webp => "webp",
        }
    }

    /// What `file` is, by its first bytes, of those that are recoded.
    pub fn of(file: &[u8]) -> Option<Format> {
        match file {
            [0xff, 0xd8, ..] => Some(Format::Jpeg),
            [0x89, b'P', b'N', b'G', ..] => Some(Format::Png),
            _ => None,
        }
    }

    /// Its media type.
    pub fn media(self) -> &'static str {
        match self {
            Format::Jpeg => "image/jpeg",
            Format::Png => "image/png",
            Format::Webp => "image/webp",
        }
    }
}

/// Why a picture stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// Too few bytes to gain, or too many to hold.
    #[error("its {0} bytes are too few or too many")]
    Length(usize),
    /// Too many pixels to decode, or none.
    #[error("{width} by {height} pixels")]
    Size {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// It cannot be decoded without doubt.
    #[error("it cannot be read")]
    Unreadable,
    /// Its kind is not one that is recoded.
    #[error("{0}")]
    Kind(&'static str),
    /// Its colours would change.
    #[error("its colour profile cannot be kept")]
    Profile,
    /// It is compressed as far as the policy goes.
    #[error("its quality is low already")]
    Quality,
    /// The difference could be seen.
    #[error("the difference could be seen")]
    Visible,
    /// It would not become smaller by a tenth.
    #[error("it does not become smaller")]
    Gain,
}

/// Codes the picture in `file` anew as `recipe` says. The same file and recipe give the same bytes.
///
/// Takes 50 to 200 ms for a million pixels and up to 9 bytes for each, whatever the file claims: sizes are judged
/// before anything is decoded.
///
/// # Errors
/// It stays as it is.
pub fn recode(file: &[u8], recipe: Recipe) -> Result<Recoded, Kept> {
    if !(LEAST_IMAGE..=LARGEST_IMAGE).contains(&(file.len() as u64)) {
        return Err(Kept::Length(file.len()));
    }
    let from = Format::of(file).ok_or(Kept::Unreadable)?;
    let Decoded { pixels, profile, origin } =
        if from == Format::Png { pixels::png(file)? } else { pixels::jpeg(file)? };
    let photographic = file.len() as u64 * 8 > pixels.count() * PHOTOGRAPHIC_BITS;
    let target = recipe.target(origin, photographic)?;
    let pixels = if target.to == Format::Webp { pixels.colored() } else { pixels };
    let (quality, bytes) = alike_enough(&pixels, &profile, target)?;
    if bytes.len() * 100 > file.len() * (100 - LEAST_GAIN) {
        return Err(Kept::Gain);
    }
    Ok(Recoded { bytes, done: Done { to: target.to, quality, from, was: file.len() } })
}

/// How many pixels the picture in `file` claims to have, by its header alone; `None` for what is not recoded.
pub fn pixel_count(file: &[u8]) -> Option<u64> {
    let (width, height) = match Format::of(file)? {
        // PNG 3 §11.2.1: IHDR is the first chunk.
        Format::Png => (be32(file, 16)?, be32(file, 20)?),
        Format::Jpeg | Format::Webp => jpeg_header::read(file).map(|header| (header.width, header.height))?,
    };
    Some(u64::from(width) * u64::from(height)).filter(|count| (1..=MAX_PIXELS).contains(count))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Writes `pixels`, once more and better if the first result is not alike enough.
fn alike_enough(pixels: &Pixels, profile: &[u8], target: Target) -> Result<(Option<u8>, Vec<u8>), Kept> {
    let first = write(pixels, profile, target, target.quality)?;
    let (Some(least), Some(quality)) = (target.alike, target.quality) else {
        return Ok((target.quality, first));
    };
    let source = pixels.luma();
    let is_alike = |file: &[u8]| {
        let shown = match target.to {
            Format::Webp => webp::decode(file).ok_or(Kept::Unreadable)?,
            Format::Jpeg | Format::Png => pixels::jpeg(file)?.pixels,
        };
        Ok(likeness(pixels.width as usize, &source, &shown.luma()) >= least)
    };
    if is_alike(&first)? {
        return Ok((Some(quality), first));
    }
    let better = Some(quality + STEP);
    let second = write(pixels, profile, target, better)?;
    if is_alike(&second)? { Ok((better, second)) } else { Err(Kept::Visible) }
}

/// Writes at `quality`. The colours of a source with full chroma may depend on it: a second attempt (better than the
/// target says) spends the time that keeping their edges takes.
fn write(pixels: &Pixels, profile: &[u8], target: Target, quality: Option<u8>) -> Result<Vec<u8>, Kept> {
    let fine_chroma = target.chroma == Chroma::Full && quality > target.quality;
    let webp = match (target.to, quality) {
        (Format::Webp, None) => webp::lossless(pixels),
        (Format::Webp, Some(quality)) => webp::lossy(pixels, quality, target.effort, fine_chroma),
        (Format::Jpeg | Format::Png, quality) => {
            return Ok(jpeg::encode(pixels, quality.unwrap_or(100), target.chroma, profile));
        }
    };
    let webp = webp.ok_or(Kept::Unreadable)?;
    if profile.is_empty() {
        return Ok(webp);
    }
    webp::with_profile(&webp, pixels, profile).ok_or(Kept::Unreadable)
}
