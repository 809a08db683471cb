//! What a page looked like while it loaded: small pictures as the driver writes them, how complete each is, and the Speed
//! Index. Pure, but for the reading of the folder.

use std::path::{Path, PathBuf};

use image::RgbImage;

/// Pictures of one load, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Film {
    /// At least one, the first of them the page before anything was painted.
    pub frames: Vec<Frame>,
}

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Milliseconds since the navigation began; 0 for what stood there before.
    pub at_ms: f64,
    /// JPEG.
    pub jpeg: Vec<u8>,
    /// The share of the way from the first picture to the last one, 0 to 1.
    pub complete: f64,
}

/// Why there is no film.
#[derive(Debug, thiserror::Error)]
pub enum FilmError {
    /// A folder or a picture cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A picture is none.
    #[error("{path}: {reason}")]
    Picture {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Film {
    /// Reads what the driver wrote into `folder`; times count from `began_ms` since 1970. What stood there before the
    /// navigation is one picture, at 0.
    ///
    /// # Errors
    /// See [`FilmError`].
    pub fn read(folder: &Path, began_ms: f64) -> Result<Film, FilmError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| FilmError::File { path, source }
        };
        let mut files: Vec<(f64, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            let at = path.file_stem().and_then(|stem| stem.to_str()?.parse::<f64>().ok());
            files.extend(at.map(|at| (at, path)));
        }
        files.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut pictures = Vec::new();
        for (at, path) in files {
            let jpeg = std::fs::read(&path).map_err(failed(&path))?;
            let picture = image::load_from_memory(&jpeg)
                .map_err(|error| FilmError::Picture { path, reason: error.to_string() })?;
            pictures.push(((at - began_ms).max(0.0), jpeg, Histogram::of(&picture.to_rgb8())));
        }
        let before = pictures.iter().take_while(|(at, ..)| *at == 0.0).count();
        pictures.drain(..before.saturating_sub(1));
        Ok(Film::of(pictures))
    }

    fn of(pictures: Vec<(f64, Vec<u8>, Histogram)>) -> Film {
        let Some((first, last)) = pictures.first().zip(pictures.last()) else { return Film::default() };
        let (first, last) = (first.2.clone(), last.2.clone());
        let frames = pictures.into_iter().map(|(at_ms, jpeg, histogram)| Frame {
            at_ms,
            jpeg,
            complete: histogram.between(&first, &last),
        });
        Film { frames: frames.collect() }
    }

    /// The Speed Index in milliseconds: the area above the curve of completeness (WebPageTest's definition; completeness by
    /// the histograms of colours). None where nothing was ever painted.
    pub fn speed_index_ms(&self) -> Option<f64> {
        let last = self.frames.last().filter(|_| self.frames.len() > 1)?;
        let (mut index, mut at, mut complete) = (0.0, 0.0, 0.0);
        for frame in &self.frames {
            index += (frame.at_ms - at) * (1.0 - complete);
            (at, complete) = (frame.at_ms, frame.complete);
        }
        (last.at_ms > 0.0).then_some(index)
    }

    /// The pictures that stood at `count` moments, evenly from 0 to `until_ms`.
    pub fn strip(&self, count: usize, until_ms: f64) -> Vec<(f64, &Frame)> {
        let step = until_ms / count.max(2).saturating_sub(1) as f64;
        let at =
            |moment: f64| self.frames.iter().rfind(|frame| frame.at_ms <= moment).or(self.frames.first());
        (0..count).filter_map(|place| Some((place as f64 * step, at(place as f64 * step)?))).collect()
    }
}

/// How often each brightness occurs in each of the three colours.
#[derive(Debug, Clone, PartialEq)]
struct Histogram(Vec<f64>);

impl Histogram {
    fn of(picture: &RgbImage) -> Histogram {
        let mut counts = vec![0.0; 3 * 256];
        for pixel in picture.pixels() {
            for (colour, value) in pixel.0.into_iter().enumerate() {
                counts[colour * 256 + usize::from(value)] += 1.0;
            }
        }
        Histogram(counts)
    }

    /// How far on the way from `first` to `last`: 1 less the share of the distance that is left.
    fn between(&self, first: &Histogram, last: &Histogram) -> f64 {
        let distance = |one: &Histogram, other: &Histogram| -> f64 {
            one.0.iter().zip(&other.0).map(|(one, other)| (one - other).abs()).sum()
        };
        let whole = distance(first, last);
        // What never changes was complete from the beginning.
        if whole == 0.0 { 1.0 } else { (1.0 - distance(self, last) / whole).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;
    use std::io::Cursor;

    /// White, with so many of ten rows black.
    fn picture(black: u32) -> Vec<u8> {
        let picture =
            RgbImage::from_fn(
                16,
                160,
                |_, y| {
                    if y < black * 16 { Rgb([0, 0, 0]) } else { Rgb([255, 255, 255]) }
                },
            );
        let mut jpeg = Vec::new();
        picture.write_to(&mut Cursor::new(&mut jpeg), image::ImageFormat::Jpeg).unwrap();
        jpeg
    }

    fn film(frames: &[(u64, u32)]) -> Film {
        let folder = tempfile::tempdir().unwrap();
        for (at, black) in frames {
            std::fs::write(folder.path().join(format!("{at}.jpg")), picture(*black)).unwrap();
        }
        std::fs::write(folder.path().join("other.txt"), "no picture").unwrap();
        Film::read(folder.path(), 10_000.0).unwrap()
    }

    #[test]
    fn the_index_is_the_area_above_the_curve() {
        // Nothing for a second, half of it for another, all of it from then on.
        let film = film(&[(9_000, 0), (9_900, 0), (11_000, 5), (12_000, 10)]);
        let complete: Vec<f64> =
            film.frames.iter().map(|frame| (frame.complete * 100.0).round() / 100.0).collect();
        assert_eq!(complete, [0.0, 0.5, 1.0]);
        assert!((film.speed_index_ms().unwrap() - 1_500.0).abs() < 20.0, "{:?}", film.speed_index_ms());
        let strip: Vec<f64> = film.strip(5, 2_000.0).iter().map(|(_, frame)| frame.at_ms).collect();
        assert_eq!(strip, [0.0, 0.0, 1_000.0, 1_000.0, 2_000.0]);
    }

    #[test]
    fn a_page_that_shows_nothing_has_no_index() {
        assert_eq!(film(&[]).speed_index_ms(), None);
        assert_eq!(film(&[(9_000, 0)]).speed_index_ms(), None);
        assert!(film(&[]).strip(3, 100.0).is_empty());
    }

    #[test]
    fn a_picture_that_is_none_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("1.jpg"), "no picture").unwrap();
        let error = Film::read(folder.path(), 0.0).unwrap_err().to_string();
        assert!(error.contains("1.jpg: "), "{error}");
    }
}
