//! A baseline JPEG encoder (ITU-T T.81, JFIF): the IJG's quality scale, chroma in full or halved, Huffman codes made for
//! each image. Encoders under licences that this project may use either lack the halved chroma or the fitted codes, and
//! each of these is a fifth of the bytes.

use super::huffman::Code;
use super::jpeg_tables::{STANDARD, ZIGZAG, scaled};
use super::pixels::{Layout, Pixels};

/// Whether chroma is stored at half the width and height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chroma {
    Full,
    Halved,
}

/// Largest piece of a profile in one segment (ICC.1:2010 §B.4).
const PROFILE_PIECE: usize = 65_519;

/// Encodes grey or RGB pixels. `profile` is the ICC profile that belongs to them, which may be empty.
pub(super) fn encode(pixels: &Pixels, quality: u8, chroma: Chroma, profile: &[u8]) -> Vec<u8> {
    let grey = pixels.layout == Layout::Grey;
    let factor = if grey || chroma == Chroma::Full { 1 } else { 2 };
    let planes = planes(pixels, factor);
    let tables = STANDARD.map(|table| scaled(&table, quality));
    let mut file = head(pixels, &planes, &tables, profile);

    let mut blocks = Vec::new();
    let unit = 8 * factor;
    let (across, down) = ((pixels.width as usize).div_ceil(unit), (pixels.height as usize).div_ceil(unit));
    let divisors = tables.map(|table| divisors(&table));
    for row in 0..down {
        for column in 0..across {
            for (component, plane) in planes.iter().enumerate() {
                for place in 0..plane.factor * plane.factor {
                    let x = (column * plane.factor + place % plane.factor) * 8;
                    let y = (row * plane.factor + place / plane.factor) * 8;
                    let kind = usize::from(component > 0);
                    blocks.push((component, transformed(plane, x, y, &divisors[kind])));
                }
            }
        }
    }
    scan(&mut file, &blocks, planes.len());
    file
}

/// One component, filled up to whole units by repeating its edge.
struct Plane {
    samples: Vec<u8>,
    stride: usize,
    /// Blocks of it in a unit, across and down.
    factor: usize,
}

fn planes(pixels: &Pixels, factor: usize) -> Vec<Plane> {
    let unit = 8 * factor;
    let (width, height) = (pixels.width as usize, pixels.height as usize);
    let (stride, rows) = (width.div_ceil(unit) * unit, height.div_ceil(unit) * unit);
    let channels = pixels.layout.channels();
    let colors = if channels == 1 { 1 } else { 3 };
    let mut full = vec![Vec::with_capacity(stride * rows); colors];
    for y in 0..rows {
        let row = &pixels.bytes[y.min(height - 1) * width * channels..][..width * channels];
        for x in 0..stride {
            let pixel = &row[x.min(width - 1) * channels..][..channels];
            match pixel {
                [grey] => full[0].push(*grey),
                [red, green, blue, ..] => {
                    for (plane, sample) in full.iter_mut().zip(ycbcr(*red, *green, *blue)) {
                        plane.push(sample);
                    }
                }
                _ => {}
            }
        }
    }
    let planes = full.into_iter().enumerate().map(|(component, samples)| match (component, factor) {
        (0, _) => Plane { samples, stride, factor },
        (_, 1) => Plane { samples, stride, factor: 1 },
        _ => Plane { samples: halved(&samples, stride), stride: stride / 2, factor: 1 },
    });
    planes.collect()
}

/// JFIF §7: full range, in 16 fractional bits.
fn ycbcr(red: u8, green: u8, blue: u8) -> [u8; 3] {
    let (r, g, b) = (i32::from(red), i32::from(green), i32::from(blue));
    let round = 1 << 15;
    let luma = (19_595 * r + 38_470 * g + 7_471 * b + round) >> 16;
    let cb = ((-11_059 * r - 21_709 * g + 32_768 * b + round) >> 16) + 128;
    let cr = ((32_768 * r - 27_439 * g - 5_329 * b + round) >> 16) + 128;
    [luma, cb, cr].map(|sample| sample.clamp(0, 255) as u8)
}

/// The mean of each two by two.
fn halved(samples: &[u8], stride: usize) -> Vec<u8> {
    let pairs = samples.chunks_exact(2 * stride);
    let quarter = pairs.flat_map(|rows| {
        let (upper, lower) = rows.split_at(stride);
        upper.chunks_exact(2).zip(lower.chunks_exact(2)).map(|(upper, lower)| {
            let sum: u16 = upper.iter().chain(lower).map(|sample| u16::from(*sample)).sum();
            ((sum + 2) / 4) as u8
        })
    });
    quarter.collect()
}

/// What each coefficient is multiplied by, row by row: the scale of the transform over the quantiser.
fn divisors(table: &[u8; 64]) -> [f32; 64] {
    std::array::from_fn(|at| {
        // T.81 §A.3.3: ¼·C(u)·C(v), with C(0) = 1/√2.
        let scale = |frequency: usize| if frequency == 0 { std::f32::consts::FRAC_1_SQRT_2 } else { 1.0 };
        0.25 * scale(at / 8) * scale(at % 8) / f32::from(table[at])
    })
}

/// cos((2x+1)uπ/16) for u (outer) and x.
#[rustfmt::skip]
const COSINES: [[f32; 8]; 8] = {
    const A: f32 = 0.980_785_25;
    const B: f32 = 0.923_879_5;
    const C: f32 = 0.831_469_6;
    const D: f32 = 0.707_106_77;
    const E: f32 = 0.555_570_24;
    const F: f32 = 0.382_683_43;
    const G: f32 = 0.195_090_32;
    [
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [A, C, E, G, -G, -E, -C, -A],
        [B, F, -F, -B, -B, -F, F, B],
        [C, -G, -A, -E, E, A, G, -C],
        [D, -D, -D, D, D, -D, -D, D],
        [E, -A, G, C, -C, -G, A, -E],
        [F, -B, B, -F, -F, B, -B, F],
        [G, -E, C, -A, A, -C, E, -G],
    ]
};

/// The quantised coefficients of a block, in zigzag order.
fn transformed(plane: &Plane, x: usize, y: usize, divisors: &[f32; 64]) -> [i16; 64] {
    // Rows first, into columns of the frequencies across.
    let mut across = [[0.0f32; 8]; 8];
    for (row, out) in across.iter_mut().enumerate() {
        let samples = &plane.samples[(y + row) * plane.stride + x..][..8];
        for (cosines, out) in COSINES.iter().zip(out) {
            *out = samples
                .iter()
                .zip(cosines)
                .map(|(sample, cosine)| (f32::from(*sample) - 128.0) * cosine)
                .sum();
        }
    }
    let mut block = [0.0f32; 64];
    for (cosines, out) in COSINES.iter().zip(block.chunks_exact_mut(8)) {
        for (row, cosine) in across.iter().zip(cosines) {
            for (out, value) in out.iter_mut().zip(row) {
                *out += value * cosine;
            }
        }
    }
    ZIGZAG.map(|at| (block[usize::from(at)] * divisors[usize::from(at)]).round() as i16)
}

/// Everything before the Huffman tables.
fn head(pixels: &Pixels, planes: &[Plane], tables: &[[u8; 64]; 2], profile: &[u8]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    // JFIF 1.01, no density, no thumbnail.
    segment(&mut file, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    let pieces = profile.chunks(PROFILE_PIECE);
    let count = pieces.len() as u8;
    for (number, piece) in (1u8..).zip(pieces) {
        segment(&mut file, 0xe2, &[b"ICC_PROFILE\0", &[number, count][..], piece].concat());
    }
    for (kind, table) in (0u8..).zip(tables).take(planes.len().min(2)) {
        let ordered = ZIGZAG.map(|at| table[usize::from(at)]);
        segment(&mut file, 0xdb, &[&[kind][..], &ordered].concat());
    }
    let size = [(pixels.height as u16).to_be_bytes(), (pixels.width as u16).to_be_bytes()].concat();
    let mut frame = [&[8][..], &size, &[planes.len() as u8]].concat();
    for (number, plane) in (1u8..).zip(planes) {
        let factor = plane.factor as u8;
        frame.extend([number, factor << 4 | factor, u8::from(number > 1)]);
    }
    segment(&mut file, 0xc0, &frame);
    file
}

fn segment(file: &mut Vec<u8>, marker: u8, content: &[u8]) {
    file.extend([0xff, marker]);
    file.extend((content.len() as u16 + 2).to_be_bytes());
    file.extend(content);
}

/// The Huffman tables and the scan.
fn scan(file: &mut Vec<u8>, blocks: &[(usize, [i16; 64])], components: usize) {
    let mut frequencies = [[[0u32; 256]; 2]; 2];
    symbols(blocks, |kind, class, symbol, _, _| frequencies[kind][class][usize::from(symbol)] += 1);
    let codes = frequencies.map(|classes| classes.map(|counts| Code::of(&counts)));
    for (kind, classes) in codes.iter().enumerate().take(components.min(2)) {
        for (class, code) in classes.iter().enumerate() {
            let place = (class << 4 | kind) as u8;
            segment(file, 0xc4, &[&[place][..], &code.lengths, &code.symbols].concat());
        }
    }
    let mut parameters = vec![components as u8];
    for number in 1..=components as u8 {
        parameters.extend([number, if number > 1 { 0x11 } else { 0 }]);
    }
    parameters.extend([0, 63, 0]);
    segment(file, 0xda, &parameters);

    let mut bits = Bits { file, pending: 0, count: 0 };
    symbols(blocks, |kind, class, symbol, value, length| {
        let (word, word_length) = codes[kind][class].words[usize::from(symbol)];
        bits.put(word, word_length);
        bits.put(value, length);
    });
    // T.81 §F.1.2.3: filled up with ones.
    bits.put(0x7f, 7);
    file.extend([0xff, 0xd9]);
}

/// T.81 §F.1.2: each symbol with its kind of table (luma, chroma), class (DC, AC), and the bits that follow it.
fn symbols(blocks: &[(usize, [i16; 64])], mut emit: impl FnMut(usize, usize, u8, u16, u8)) {
    let mut previous = [0i16; 3];
    for (component, block) in blocks {
        let kind = usize::from(*component > 0);
        let difference = block[0] - previous[*component];
        previous[*component] = block[0];
        let (length, bits) = magnitude(difference);
        emit(kind, 0, length, bits, length);
        let mut zeros = 0u8;
        for value in &block[1..] {
            if *value == 0 {
                zeros += 1;
                continue;
            }
            while zeros >= 16 {
                emit(kind, 1, 0xf0, 0, 0);
                zeros -= 16;
            }
            let (length, bits) = magnitude(*value);
            emit(kind, 1, zeros << 4 | length, bits, length);
            zeros = 0;
        }
        if zeros > 0 {
            emit(kind, 1, 0, 0, 0);
        }
    }
}

/// T.81 tables F.1 and F.2: how many bits a value takes, and those bits.
fn magnitude(value: i16) -> (u8, u16) {
    let length = (u16::BITS - value.unsigned_abs().leading_zeros()) as u8;
    let bits = if value < 0 { value - 1 } else { value } as u16;
    (length, bits & ((1u32 << length) - 1) as u16)
}

struct Bits<'a> {
    file: &'a mut Vec<u8>,
    pending: u32,
    count: u8,
}

impl Bits<'_> {
    fn put(&mut self, bits: u16, length: u8) {
        self.pending = self.pending << length | u32::from(bits);
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.pending >> self.count) as u8;
            self.file.push(byte);
            // T.81 §F.1.2.3: a byte of ones is no marker.
            if byte == 0xff {
                self.file.push(0);
            }
        }
    }
}
