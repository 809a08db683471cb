//! What a JPEG says of itself before its first scan: size, sampling, quality, orientation. Reads markers only, so a
//! header that promises a gigapixel costs nothing.

use super::jpeg_tables::STANDARD;

/// A JPEG's header, as far as recoding depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JpegHeader {
    pub(super) width: u32,
    pub(super) height: u32,
    /// 1 for grey, 3 for colour, 4 for CMYK and its kin.
    pub(super) components: u8,
    /// Bits of a sample.
    pub(super) precision: u8,
    /// Sampling factors of each component, horizontal in the high four bits (T.81 §B.2.2).
    pub(super) sampling: Vec<u8>,
    /// As the IJG scale, 1 to 100, judged by the first quantisation table.
    pub(super) quality: u8,
    /// Exif's tag; 1 is upright.
    pub(super) orientation: u16,
    /// Width and height that Exif tells, as far as it tells them.
    pub(super) said: (Option<u32>, Option<u32>),
    /// The colour transform that Adobe's marker names.
    pub(super) adobe_transform: Option<u8>,
    pub(super) has_profile: bool,
    /// More pictures stand behind it, or one that says how bright it is shown (Ultra HDR).
    pub(super) has_more: bool,
}

const SOF: [u8; 3] = [0xc0, 0xc1, 0xc2];
const OTHER_SOF: [u8; 10] = [0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf];

/// Reads a header. `None`: it is none, or one of a kind that browsers do not show (arithmetic, lossless,
/// hierarchical).
pub(super) fn read(file: &[u8]) -> Option<JpegHeader> {
    let mut rest = file.strip_prefix(&[0xff, 0xd8])?;
    let mut header = JpegHeader {
        width: 0,
        height: 0,
        components: 0,
        precision: 0,
        sampling: Vec::new(),
        quality: 0,
        orientation: 1,
        said: (None, None),
        adobe_transform: None,
        has_profile: false,
        has_more: false,
    };
    loop {
        let (marker, segment, after) = segment(rest)?;
        rest = after;
        match marker {
            0xda => break,
            0xdb if header.quality == 0 => header.quality = quality(segment)?,
            0xe1 => {
                if let Some(tiff) = segment.strip_prefix(b"Exif\0\0") {
                    header.orientation = orientation_in(tiff).unwrap_or(header.orientation);
                    header.said = size_in(tiff);
                }
                header.has_more |= segment.starts_with(XMP) && holds(segment, GAIN_MAP);
            }
            0xe2 => {
                header.has_profile |= segment.starts_with(b"ICC_PROFILE\0");
                header.has_more |= segment.starts_with(ISO_GAIN_MAP) || has_more_pictures(segment);
            }
            0xee if segment.starts_with(b"Adobe") => header.adobe_transform = segment.get(11).copied(),
            _ if SOF.contains(&marker) => frame(&mut header, segment)?,
            _ if OTHER_SOF.contains(&marker) => return None,
            _ => {}
        }
    }
    (header.components > 0 && header.quality > 0).then_some(header)
}

/// XMP, part 3, §1.1.3.
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// The namespace of what Ultra HDR says of its gain map ("Ultra HDR Image Format", "XMP attributes").
const GAIN_MAP: &[u8] = b"http://ns.adobe.com/hdr-gain-map/1.0/";
/// ISO 21496-1, annex C.
const ISO_GAIN_MAP: &[u8] = b"urn:iso:std:iso:ts:21496:-1\0";

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether the index of a multi-picture file (CIPA DC-007 §5.2) tells of more than the first picture, or cannot be read.
fn has_more_pictures(segment: &[u8]) -> bool {
    const NUMBER_OF_IMAGES: u16 = 0xb001;
    let Some(index) = segment.strip_prefix(b"MPF\0") else { return false };
    let index = Tiff(index);
    let count = index.first().and_then(|first| index.number(first, NUMBER_OF_IMAGES));
    count.is_none_or(|count| count > 1)
}

/// The marker at the start, its content, and what follows.
fn segment(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let bytes = bytes.strip_prefix(&[0xff])?;
    // T.81 §B.1.1.2: any number of fill bytes.
    let fill = bytes.iter().take_while(|byte| **byte == 0xff).count();
    let (marker, bytes) = bytes[fill..].split_first()?;
    let length = usize::from(be16(bytes, 0)?);
    Some((*marker, bytes.get(2..length)?, bytes.get(length..)?))
}

/// T.81 §B.2.2.
fn frame(header: &mut JpegHeader, segment: &[u8]) -> Option<()> {
    let count = *segment.get(5)?;
    header.precision = segment[0];
    (header.height, header.width) = (be16(segment, 1)?.into(), be16(segment, 3)?.into());
    header.components = count;
    header.sampling =
        (0..usize::from(count)).map(|at| segment.get(7 + 3 * at).copied()).collect::<Option<_>>()?;
    Some(())
}

/// The IJG quality whose scaled table has the sum of this one (T.81 §B.2.4.1).
fn quality(segment: &[u8]) -> Option<u8> {
    let (kind, table) = segment.split_first()?;
    let sum: u32 = if kind >> 4 == 0 {
        table.get(..64)?.iter().map(|entry| u32::from(*entry)).sum()
    } else {
        table.get(..128)?.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
    };
    let standard: u32 = STANDARD[0].iter().map(|entry| u32::from(*entry)).sum();
    let percent = (sum * 100 / standard).max(1);
    let quality = if percent <= 100 { (200 - percent) / 2 } else { 5000 / percent };
    Some(quality.clamp(1, 100) as u8)
}

/// The orientation tag of the first directory (Exif 2.32 §4.6.4, TIFF 6.0 §2).
pub(super) fn orientation_in(tiff: &[u8]) -> Option<u16> {
    let tiff = Tiff(tiff);
    u16::try_from(tiff.number(tiff.first()?, 0x0112)?).ok()
}

/// Width and height of the image as its camera or editor has noted them (Exif 2.32 §4.6.5, `PixelXDimension` and `PixelYDimension`).
pub(super) fn size_in(tiff: &[u8]) -> (Option<u32>, Option<u32>) {
    const EXIF: u16 = 0x8769;
    let tiff = Tiff(tiff);
    let own = tiff.first().and_then(|first| tiff.number(first, EXIF)).and_then(|at| usize::try_from(at).ok());
    let Some(own) = own else { return (None, None) };
    (tiff.number(own, 0xa002), tiff.number(own, 0xa003))
}

/// Exif's directories (TIFF 6.0 §2), and those of multi-picture files.
struct Tiff<'a>(&'a [u8]);

impl Tiff<'_> {
    fn u16_at(&self, at: usize) -> Option<u16> {
        let pair = [*self.0.get(at)?, *self.0.get(at.checked_add(1)?)?];
        Some(if self.0.starts_with(b"II") { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let (first, second) = (u32::from(self.u16_at(at)?), u32::from(self.u16_at(at.checked_add(2)?)?));
        Some(if self.0.starts_with(b"II") { second << 16 | first } else { first << 16 | second })
    }

    /// Where the first directory stands.
    fn first(&self) -> Option<usize> {
        usize::try_from(self.u32_at(4)?).ok()
    }

    /// The number with this tag in a directory.
    fn number(&self, directory: usize, tag: u16) -> Option<u32> {
        const LONG: u16 = 4;
        let entries = usize::from(self.u16_at(directory)?);
        let mut places = (0..entries).map(|entry| directory + 2 + entry * 12);
        let at = places.find(|at| self.u16_at(*at) == Some(tag))?;
        if self.u16_at(at + 2)? == LONG { self.u32_at(at + 8) } else { self.u16_at(at + 8).map(u32::from) }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
