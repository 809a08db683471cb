//! Photographs made up: landscapes of layered noise with the grain, haze and texture that make JPEG work as hard as real
//! ones do. Pure and the same on every machine: seeded, and no function of a math library whose last bit may differ.

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageError};

/// A picture to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene {
    /// Chooses everything about the picture.
    pub(super) seed: u32,
    /// Pixels across.
    pub(super) width: u32,
    /// Pixels down.
    pub(super) height: u32,
    /// JPEG quality, 1 to 100.
    pub(super) quality: u8,
}

impl Scene {
    /// The picture as a baseline JPEG.
    pub(super) fn jpeg(&self) -> Result<Vec<u8>, ImageError> {
        let mut out = Vec::new();
        let mut encoder = JpegEncoder::new_with_quality(&mut out, self.quality);
        encoder.encode(&self.pixels(), self.width, self.height, ExtendedColorType::Rgb8)?;
        Ok(out)
    }

    /// RGB bytes, row by row.
    fn pixels(&self) -> Vec<u8> {
        let mood = Mood::of(self.seed);
        let mut out = Vec::with_capacity((self.width * self.height * 3) as usize);
        let scale = 1.0 / self.height as f32;
        for row in 0..self.height {
            for column in 0..self.width {
                let (x, y) = (column as f32 * scale, row as f32 * scale);
                let color = mood.color(self.seed, x, y);
                // Sensor grain: a little of it in every pixel, the same in all three channels.
                let grain = (hash(self.seed ^ 0x9e37, column as i32, row as i32) - 0.5) * 0.022;
                out.extend(color.map(|channel| ((channel + grain).clamp(0.0, 1.0) * 255.0) as u8));
            }
        }
        out
    }
}

type Color = [f32; 3];

/// The choices that make one landscape differ from the next.
struct Mood {
    zenith: Color,
    horizon: Color,
    land: Color,
    sun: (f32, f32),
    ridges: u32,
    waterline: f32,
}

impl Mood {
    fn of(seed: u32) -> Mood {
        let pick = |place: i32| hash(seed.wrapping_mul(2_654_435_761), place, 0);
        let warm = pick(1);
        Mood {
            zenith: mix([0.16, 0.34, 0.66], [0.30, 0.22, 0.42], warm),
            horizon: mix([0.74, 0.84, 0.92], [0.98, 0.72, 0.45], warm),
            land: mix([0.16, 0.27, 0.13], [0.34, 0.24, 0.15], pick(2)),
            sun: (0.2 + pick(3), 0.15 + 0.3 * pick(4)),
            ridges: 3 + (pick(5) * 4.0) as u32,
            waterline: 0.72 + 0.4 * pick(6),
        }
    }

    fn color(&self, seed: u32, x: f32, y: f32) -> Color {
        if y <= self.waterline {
            return self.above_water(seed, x, y);
        }
        // Water mirrors what stands above it, broken by waves that grow towards the eye.
        let depth = y - self.waterline;
        let wave = (fractal(seed ^ 77, x * 14.0, y * 90.0, 3) - 0.5) * (0.02 + depth * 0.2);
        let mirrored = (self.waterline - depth + wave).clamp(0.0, self.waterline);
        mix(self.above_water(seed, x + wave, mirrored), [0.07, 0.14, 0.20], 0.35 + depth)
    }

    fn above_water(&self, seed: u32, x: f32, y: f32) -> Color {
        let mut color = self.sky(seed, x, y);
        for ridge in 0..self.ridges {
            let near = (ridge + 1) as f32 / self.ridges as f32;
            let offset = ridge as f32 * 17.3;
            let height = 0.30 + 0.42 * near;
            let crest =
                height - (fractal(seed ^ ridge, x * (2.0 + 2.0 * near) + offset, offset, 6) - 0.5) * 0.42;
            if y > crest {
                let below = (y - crest) * 6.0;
                let texture = fractal(seed ^ (ridge + 40), x * 34.0 * near, y * 46.0 * near, 5);
                let lit = 0.45 + 0.9 * texture - 0.25 * below.min(1.0);
                let ground = self.land.map(|channel| channel * lit * (0.7 + 0.6 * near));
                color = mix(self.horizon, ground, 0.25 + 0.75 * near); // far ridges drown in haze
            }
        }
        color
    }

    fn sky(&self, seed: u32, x: f32, y: f32) -> Color {
        let clear = mix(self.zenith, self.horizon, (y * 1.6).min(1.0));
        let (dx, dy) = (x - self.sun.0, y - self.sun.1);
        let glow = 0.012 / (0.012 + dx * dx + dy * dy);
        let cloud = ((fractal(seed ^ 5, x * 3.0, y * 8.0, 6) - 0.52) * 3.2).clamp(0.0, 1.0);
        let shaded = fractal(seed ^ 6, x * 5.0, y * 11.0, 4);
        let veil = mix([0.62, 0.64, 0.70], [1.0, 0.98, 0.95], shaded);
        mix(mix(clear, veil, cloud * 0.85), [1.0, 0.95, 0.82], glow * 0.8)
    }
}

fn mix(a: Color, b: Color, share: f32) -> Color {
    let share = share.clamp(0.0, 1.0);
    [0, 1, 2].map(|channel| a[channel] + (b[channel] - a[channel]) * share)
}

/// Value noise summed over octaves; between 0 and 1.
fn fractal(seed: u32, x: f32, y: f32, octaves: u32) -> f32 {
    let (mut sum, mut weight, mut scale, mut total) = (0.0, 1.0, 1.0, 0.0);
    for octave in 0..octaves {
        sum += weight * value_noise(seed.wrapping_add(octave * 101), x * scale, y * scale);
        total += weight;
        weight *= 0.5;
        scale *= 2.03; // not 2, so that the octaves' lattices do not line up
    }
    sum / total
}

fn value_noise(seed: u32, x: f32, y: f32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (column, row) = (left as i32, top as i32);
    let smooth = |t: f32| t * t * (3.0 - 2.0 * t);
    let (across, down) = (smooth(x - left), smooth(y - top));
    let corner = |dx, dy| hash(seed, column + dx, row + dy);
    let upper = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * across;
    let lower = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * across;
    upper + (lower - upper) * down
}

/// A value in [0, 1) for a lattice point (the finaliser of MurmurHash3, public domain).
fn hash(seed: u32, column: i32, row: i32) -> f32 {
    let mut word = seed ^ (column as u32).wrapping_mul(0x9e37_79b1) ^ (row as u32).wrapping_mul(0x85eb_ca77);
    word ^= word >> 16;
    word = word.wrapping_mul(0x85eb_ca6b);
    word ^= word >> 13;
    word = word.wrapping_mul(0xc2b2_ae35);
    word ^= word >> 16;
    (word >> 8) as f32 / (1u32 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_is_the_same_each_time_and_differs_from_the_next() {
        let scene = Scene { seed: 1, width: 64, height: 48, quality: 80 };
        assert_eq!(scene.jpeg().unwrap(), scene.jpeg().unwrap());
        assert_ne!(scene.jpeg().unwrap(), Scene { seed: 2, ..scene }.jpeg().unwrap());
    }

    #[test]
    fn a_jpeg_decodes_to_the_size_asked_for() {
        let jpeg = Scene { seed: 3, width: 120, height: 90, quality: 80 }.jpeg().unwrap();
        let decoded = image::load_from_memory_with_format(&jpeg, image::ImageFormat::Jpeg).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (120, 90));
    }
}
