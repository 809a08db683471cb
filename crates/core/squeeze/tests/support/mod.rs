//! Pictures made up, and files that say odd things of themselves.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

/// A number that looks random, for a place.
fn hash(x: u32, y: u32) -> u32 {
    let mixed = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca6b);
    (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d) >> 8
}

/// Smooth noise with features of `size` pixels, 0 to 1.
fn noise(x: u32, y: u32, size: u32) -> f32 {
    let at = |dx, dy| (hash(x / size + dx, y / size + dy + size * 1000) % 1024) as f32 / 1024.0;
    let (u, v) = ((x % size) as f32 / size as f32, (y % size) as f32 / size as f32);
    let mix = |a: f32, b: f32, t: f32| a + (b - a) * t * t * (3.0 - 2.0 * t);
    mix(mix(at(0, 0), at(1, 0), u), mix(at(0, 1), at(1, 1), u), v)
}

/// RGB bytes of a photograph: large shapes, texture and a little grain.
pub fn photo(width: u32, height: u32) -> Vec<u8> {
    let pixel = |x: u32, y: u32| {
        let shape = noise(x, y, 64) * 0.6 + noise(x, y, 16) * 0.25 + noise(x, y, 4) * 0.1;
        let grain = (hash(x + 7, y) % 1024) as f32 / 1024.0 * 0.02;
        let tint = noise(x + 999, y, 96);
        [0.9 - 0.5 * tint, 0.8, 0.5 + 0.5 * tint]
            .map(|channel| ((shape + grain) * channel * 255.0).min(255.0) as u8)
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

/// RGBA bytes of a drawing: flat areas, a slanting edge, half of it see-through.
pub fn drawing(width: u32, height: u32) -> Vec<u8> {
    let pixel = |x: u32, y: u32| match ((x / 9 + y / 7) % 3, x > y) {
        (0, true) => [200, 30, 40, 255],
        (1, true) => [20, 90, 200, 128],
        (_, true) => [(hash(x / 5, y / 5) % 32) as u8 * 8, 120, 60, 255],
        _ => [9, 8, 7, 0],
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

/// A JPEG as cameras and sites make them, by an encoder that is not the one under test.
pub fn jpeg(width: u32, height: u32, quality: u8) -> Vec<u8> {
    let mut file = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, quality)
        .encode(&photo(width, height), width, height, image::ExtendedColorType::Rgb8)
        .unwrap();
    file
}

pub fn grey_jpeg(width: u32, height: u32, quality: u8) -> Vec<u8> {
    let grey: Vec<u8> = photo(width, height).chunks_exact(3).map(|pixel| pixel[1]).collect();
    let mut file = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, quality)
        .encode(&grey, width, height, image::ExtendedColorType::L8)
        .unwrap();
    file
}

/// Puts a segment behind the start of a JPEG.
pub fn with_segment(jpeg: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &length, content, &jpeg[2..]].concat()
}

/// A segment with an ICC profile for colours of this space.
pub fn with_profile(jpeg: &[u8], space: &[u8; 4]) -> Vec<u8> {
    with_segment(jpeg, 0xe2, &[b"ICC_PROFILE\0\x01\x01", &profile(space)[..]].concat())
}

/// Enough of an ICC profile: its colour space stands at byte 16.
pub fn profile(space: &[u8; 4]) -> Vec<u8> {
    let mut profile = vec![7; 131];
    profile[16..20].copy_from_slice(space);
    profile
}

/// Exif that says how a picture is to be turned.
pub fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let tiff = [&b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..], &[orientation], &[0; 6]]
        .concat();
    with_segment(jpeg, 0xe1, &tiff)
}

/// The same JPEG with a size of its own in Exif: one directory that points to the other, which has `PixelXDimension`.
pub fn with_width_in_exif(jpeg: &[u8], width: u16) -> Vec<u8> {
    let first = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x87\x69\0\x04\0\0\0\x01\0\0\0\x1a\0\0\0\0";
    let second = [&b"\0\x01\xa0\x02\0\x03\0\0\0\x01"[..], &width.to_be_bytes(), &[0; 6]].concat();
    with_segment(jpeg, 0xe1, &[&first[..], &second].concat())
}

/// The same JPEG, the first of so many in its file (CIPA DC-007).
pub fn with_more_pictures(jpeg: &[u8], count: u8) -> Vec<u8> {
    let index =
        [&b"MPF\0MM\0\x2a\0\0\0\x08\0\x01\xb0\x01\0\x04\0\0\0\x01\0\0\0"[..], &[count], &[0; 4]].concat();
    with_segment(jpeg, 0xe2, &index)
}

/// The same PNG, to be turned; told before the pixels, or after them.
pub fn png_with_orientation(png: &[u8], orientation: u8, late: bool) -> Vec<u8> {
    let content =
        [&b"eXIfMM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..], &[orientation], &[0; 6]].concat();
    let length = (content.len() as u32 - 4).to_be_bytes();
    // Behind the signature and IHDR, or before IEND.
    let (before, after) = png.split_at(if late { png.len() - 12 } else { 33 });
    [before, &length, &content, &checksum(&content).to_be_bytes(), after].concat()
}

/// Other dimensions for the frame of a baseline JPEG.
pub fn with_size(jpeg: &[u8], width: u16, height: u16) -> Vec<u8> {
    let mut file = jpeg.to_vec();
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    file[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    file
}

/// A PNG of RGBA bytes, with whatever `more` sets.
pub fn png(
    width: u32,
    height: u32,
    rgba: &[u8],
    more: impl FnOnce(&mut png::Encoder<'_, Cursor<&mut Vec<u8>>>),
) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(Cursor::new(&mut file), width, height);
    encoder.set_color(png::ColorType::Rgba);
    more(&mut encoder);
    encoder.write_header().unwrap().write_image_data(rgba).unwrap();
    file
}

/// The same PNG with an ICC profile.
pub fn png_with_profile(png: &[u8], profile: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(profile).unwrap();
    let content = [b"iCCPname\0\0", &zlib.finish().unwrap()[..]].concat();
    let length = (content.len() as u32 - 4).to_be_bytes();
    // Behind the signature and IHDR.
    [&png[..33], &length, &content, &checksum(&content).to_be_bytes(), &png[33..]].concat()
}

/// The checksum of a PNG chunk, from its type on.
pub fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// What a JPEG shows: width, height and bytes.
pub fn shown_jpeg(file: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut decoder = JpegDecoder::new(ZCursor::new(file));
    let bytes = decoder.decode().unwrap();
    let (width, height) = decoder.dimensions().unwrap();
    (width, height, bytes)
}

/// Mean absolute difference of two pictures, in levels of 0 to 255.
pub fn difference(one: &[u8], other: &[u8]) -> f64 {
    assert_eq!(one.len(), other.len());
    let sum: u64 = one.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / one.len() as f64
}
