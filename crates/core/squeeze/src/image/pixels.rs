//! Files into pixels, within bounds: every header is judged before anything is decoded, and what a browser may show
//! differently from how it is read here is refused.

use super::jpeg_header;
use super::{Kept, MAX_PIXELS};
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// How a pixel is laid out, 8 bits a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Grey,
    Rgb,
    Rgba,
}

impl Layout {
    pub(super) fn channels(self) -> usize {
        match self {
            Layout::Grey => 1,
            Layout::Rgb => 3,
            Layout::Rgba => 4,
        }
    }
}

/// A decoded image, row by row without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pixels {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) layout: Layout,
    pub(super) bytes: Vec<u8>,
}

impl Pixels {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The brightness of each (BT.601, full range).
    pub(super) fn luma(&self) -> Vec<u8> {
        let weigh = |pixel: &[u8]| {
            let sum = 77 * u32::from(pixel[0]) + 150 * u32::from(pixel[1]) + 29 * u32::from(pixel[2]);
            (sum >> 8) as u8
        };
        match self.layout {
            Layout::Grey => self.bytes.clone(),
            Layout::Rgb | Layout::Rgba => {
                self.bytes.chunks_exact(self.layout.channels()).map(weigh).collect()
            }
        }
    }

    /// The same with three channels where there was one: WebP has no grey.
    pub(super) fn colored(self) -> Pixels {
        match self.layout {
            Layout::Grey => {
                let bytes = self.bytes.iter().flat_map(|grey| [*grey; 3]).collect();
                Pixels { layout: Layout::Rgb, bytes, ..self }
            }
            Layout::Rgb | Layout::Rgba => self,
        }
    }
}

/// A file that may be recoded, decoded.
pub(super) struct Decoded {
    pub(super) pixels: Pixels,
    /// ICC profile; empty where there is none, which means sRGB.
    pub(super) profile: Vec<u8>,
    pub(super) origin: Origin,
}

/// What kind of file it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Jpeg {
        /// On the IJG scale.
        quality: u8,
        /// Chroma is stored at less than full size.
        halved: bool,
    },
    Png,
}

fn bounded(width: u32, height: u32) -> Result<(), Kept> {
    let count = u64::from(width) * u64::from(height);
    // WebP and the decoders' own limits: 16,383 (VP8 has 14 bits).
    if count == 0 || count > MAX_PIXELS || width.max(height) > 16_383 {
        return Err(Kept::Size { width, height });
    }
    Ok(())
}

/// The profile, if the pixels are what it is for. ICC.1:2010 §7.2.6: the colour space stands at byte 16.
fn fitting(profile: Vec<u8>, layout: Layout) -> Result<Vec<u8>, Kept> {
    let space: &[u8] = if layout == Layout::Grey { b"GRAY" } else { b"RGB " };
    // Grey goes out as RGB in WebP, where its profile would not fit.
    let fits = profile.is_empty() || (layout != Layout::Grey && profile.get(16..20) == Some(space));
    if fits { Ok(profile) } else { Err(Kept::Profile) }
}

/// Whether Exif tells another size than the picture has: then browsers may show it in that, if its resolution agrees (HTML, "images",
/// density-corrected natural size), which what goes out could not tell them.
fn is_of_another_size(said: (Option<u32>, Option<u32>), is: (u32, u32)) -> bool {
    said.0.is_some_and(|width| width != is.0) || said.1.is_some_and(|height| height != is.1)
}

/// Decodes a JPEG.
pub(super) fn jpeg(file: &[u8]) -> Result<Decoded, Kept> {
    let header = jpeg_header::read(file).ok_or(Kept::Unreadable)?;
    bounded(header.width, header.height)?;
    let layout = match (header.components, header.adobe_transform) {
        (1, _) => Layout::Grey,
        (3, None | Some(1)) => Layout::Rgb,
        _ => return Err(Kept::Kind("a JPEG that is neither grey nor YCbCr")),
    };
    let halved = match header.sampling[..] {
        [_] => false,
        [first, 0x11, 0x11] if [0x11, 0x12, 0x21, 0x22].contains(&first) => first != 0x11,
        _ => return Err(Kept::Kind("a JPEG with unusual sampling")),
    };
    if header.precision != 8 {
        return Err(Kept::Kind("a JPEG of more than 8 bits"));
    }
    if header.orientation > 1 {
        return Err(Kept::Kind("a JPEG to be turned"));
    }
    if is_of_another_size(header.said, (header.width, header.height)) {
        return Err(Kept::Kind("a JPEG that Exif gives another size"));
    }
    if header.has_more {
        return Err(Kept::Kind("a JPEG with a gain map or more pictures"));
    }
    let space = if layout == Layout::Grey { ColorSpace::Luma } else { ColorSpace::RGB };
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(header.width as usize)
        .set_max_height(header.height as usize)
        .jpeg_set_max_scans(MAX_SCANS)
        .jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    let bytes = decoder.decode().map_err(|_| Kept::Unreadable)?;
    let profile = match (header.has_profile, decoder.icc_profile()) {
        (false, _) => Vec::new(),
        (true, Some(profile)) => profile,
        (true, None) => return Err(Kept::Profile),
    };
    let pixels = Pixels { width: header.width, height: header.height, layout, bytes };
    if pixels.bytes.len() as u64 != pixels.count() * layout.channels() as u64 {
        return Err(Kept::Unreadable);
    }
    let origin = Origin::Jpeg { quality: header.quality, halved };
    Ok(Decoded { pixels, profile: fitting(profile, layout)?, origin })
}

/// Progressive files have about ten; each costs a pass over the whole image.
const MAX_SCANS: usize = 24;

/// Decodes a PNG.
pub(super) fn png(file: &[u8]) -> Result<Decoded, Kept> {
    let unreadable = |_| Kept::Unreadable;
    // Room for the profile, rows and text; pixels are written to a buffer of ours.
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), png::Limits { bytes: 4 << 20 });
    let (width, height) = decoder.read_header_info().map_err(unreadable)?.size();
    bounded(width, height)?;
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(unreadable)?;
    let info = reader.info();
    if info.animation_control().is_some() {
        return Err(Kept::Kind("an animation"));
    }
    if info.bit_depth == png::BitDepth::Sixteen {
        return Err(Kept::Kind("a PNG of 16 bits a channel"));
    }
    if !is_plain(info) {
        return Err(Kept::Profile);
    }
    let profile = info.icc_profile.as_ref().map(|profile| profile.to_vec()).unwrap_or_default();
    let mut bytes = vec![0; reader.output_buffer_size().ok_or(Kept::Unreadable)?];
    let frame = reader.next_frame(&mut bytes).map_err(unreadable)?;
    // Whatever follows the pixels must be right too: a file that is cut is the browser's to judge.
    reader.finish().map_err(unreadable)?;
    // PNG 3, §11.3.5.3: before the pixels or after them.
    if let Some(exif) = reader.info().exif_metadata.as_deref() {
        if jpeg_header::orientation_in(exif).is_some_and(|orientation| orientation > 1) {
            return Err(Kept::Kind("a PNG to be turned"));
        }
        let (width, height) = (reader.info().width, reader.info().height);
        if is_of_another_size(jpeg_header::size_in(exif), (width, height)) {
            return Err(Kept::Kind("a PNG that Exif gives another size"));
        }
    }
    bytes.truncate(frame.buffer_size());
    let (layout, bytes) = match frame.color_type {
        png::ColorType::Grayscale => (Layout::Grey, bytes),
        png::ColorType::Rgb => (Layout::Rgb, bytes),
        png::ColorType::Rgba => (Layout::Rgba, bytes),
        png::ColorType::GrayscaleAlpha if profile.is_empty() => (
            Layout::Rgba,
            bytes.chunks_exact(2).flat_map(|pair| [pair[0], pair[0], pair[0], pair[1]]).collect(),
        ),
        png::ColorType::GrayscaleAlpha => return Err(Kept::Profile),
        png::ColorType::Indexed => return Err(Kept::Unreadable),
    };
    let pixels = Pixels { width, height, layout, bytes };
    Ok(Decoded { profile: fitting(profile, layout)?, pixels, origin: Origin::Png })
}

/// Whether the colours are sRGB's or those of a profile, and nothing besides them says otherwise.
fn is_plain(info: &png::Info<'_>) -> bool {
    // PNG 3 §4.3: a profile or an sRGB chunk stands over gAMA and cHRM, cICP over all.
    let told = info.icc_profile.is_some() || info.srgb.is_some();
    info.coding_independent_code_points.is_none()
        && (told || (info.gama_chunk.is_none() && info.chrm_chunk.is_none()))
}
