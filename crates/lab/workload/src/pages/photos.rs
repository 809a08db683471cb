//! The page `photos`: thirty photographic JPEGs of about 10 KB. Writes files into the folder it is given, nothing else.

use std::fmt::Write;
use std::path::Path;

use super::landscape::Scene;
use super::{PageError, jpeg, write};

const PHOTOS: u32 = 30;
const SIZE: (u32, u32) = (320, 240);

/// Writes the page into `folder`.
pub(super) fn build(folder: &Path) -> Result<(), PageError> {
    let mut gallery = String::new();
    for number in 1..=PHOTOS {
        let scene = photo(number);
        let name = format!("photos/{number:02}.jpg");
        write(&folder.join(&name), &jpeg(&scene)?)?;
        let _ = writeln!(
            gallery,
            "<figure><img src=\"{name}\" width=\"{}\" height=\"{}\" alt=\"\"><figcaption>Plate {number}</figcaption></figure>",
            scene.width, scene.height
        );
    }
    let page = include_str!("photos.html").replace("<!-- gallery -->", &gallery);
    write(&folder.join("index.html"), page.as_bytes())
}

/// The photograph of this number, about 10 KB as a JPEG. Qualities go round from 75 to 85, as pictures of a real site do not all come from one tool.
pub(super) fn photo(number: u32) -> Scene {
    let quality = 75 + (number % 11) as u8;
    Scene { seed: number * 7919, width: SIZE.0, height: SIZE.1, quality }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn photographs_weigh_about_ten_kilobytes() {
        // Every fifth: all of them take an unoptimised build half a minute.
        let sizes: Vec<usize> =
            (1..=PHOTOS).step_by(5).map(|number| photo(number).jpeg().unwrap().len()).collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((8_500..=11_500).contains(&mean), "{mean}: {sizes:?}");
        assert!(sizes.iter().all(|size| (5_000..=15_000).contains(size)), "{sizes:?}");
    }
}
