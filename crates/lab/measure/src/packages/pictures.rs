//! Whether a page looks as it looks without Farhop: pictures compared pixel by pixel, where the direct ones agree among
//! themselves. Pure.

use image::RgbImage;

/// Levels of a colour by which a pixel may differ: images decoded in other pieces differ by 1 to 3.
pub(crate) const TOLERANCE: u8 = 8;
/// Where direct loads disagree, a square of so many pixels is left out: what moves there moves around, too.
const REGION: u32 = 16;

/// What the comparison of one picture with the direct ones gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Likeness {
    /// The largest difference of a pixel's colour, in levels of 255.
    pub(crate) worst: u8,
    /// Pixels beyond the tolerance.
    pub(crate) beyond: u64,
    /// Share of the picture left out since direct loads disagree there.
    pub(crate) left_out: f64,
}

impl Likeness {
    /// Whether no pixel that counts is beyond the tolerance. Of a page of which nothing counts, nothing is known.
    pub(crate) fn holds(&self) -> bool {
        self.beyond == 0 && self.left_out < 1.0
    }
}

/// Compares `picture` with the pictures of direct loads; none without any.
pub(crate) fn likeness(direct: &[RgbImage], picture: &RgbImage) -> Option<Likeness> {
    let first = direct.first()?;
    let all = || direct.iter().chain([picture]);
    let width = all().map(RgbImage::width).max()?;
    let height = all().map(RgbImage::height).max()?;
    let mut likeness = Likeness { worst: 0, beyond: 0, left_out: 0.0 };
    let mut left_out = 0u64;
    for top in (0..height).step_by(REGION as usize) {
        for left in (0..width).step_by(REGION as usize) {
            let pixels = || {
                let rows = top..(top + REGION).min(height);
                rows.flat_map(move |y| (left..(left + REGION).min(width)).map(move |x| (x, y)))
            };
            if pixels().any(|(x, y)| direct.iter().any(|other| difference(first, other, x, y) > 0)) {
                left_out += pixels().count() as u64;
                continue;
            }
            for (x, y) in pixels() {
                let difference = difference(first, picture, x, y);
                likeness.worst = likeness.worst.max(difference);
                likeness.beyond += u64::from(difference > TOLERANCE);
            }
        }
    }
    likeness.left_out = left_out as f64 / f64::from(width) / f64::from(height);
    Some(likeness)
}

/// The largest difference of a colour at a place; where only one picture has the place, there is no larger one.
fn difference(one: &RgbImage, other: &RgbImage, x: u32, y: u32) -> u8 {
    match (one.get_pixel_checked(x, y), other.get_pixel_checked(x, y)) {
        (Some(one), Some(other)) => {
            one.0.iter().zip(other.0).map(|(one, other)| one.abs_diff(other)).max().unwrap_or(0)
        }
        (None, None) => 0,
        _ => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    fn grey(width: u32, height: u32) -> RgbImage {
        RgbImage::from_pixel(width, height, Rgb([128; 3]))
    }

    fn with(mut picture: RgbImage, x: u32, y: u32, level: u8) -> RgbImage {
        picture.put_pixel(x, y, Rgb([128, level, 128]));
        picture
    }

    #[test]
    fn a_pixel_may_differ_by_eight_levels_and_not_by_nine() {
        let direct = [grey(40, 40), grey(40, 40), grey(40, 40)];
        let near = likeness(&direct, &with(grey(40, 40), 20, 20, 136)).unwrap();
        assert_eq!((near.worst, near.beyond, near.left_out, near.holds()), (8, 0, 0.0, true));
        let far = likeness(&direct, &with(grey(40, 40), 20, 20, 137)).unwrap();
        assert_eq!((far.worst, far.beyond, far.holds()), (9, 1, false));
    }

    #[test]
    fn where_direct_loads_disagree_nothing_is_judged_and_the_share_is_said() {
        let direct = [grey(32, 32), with(grey(32, 32), 3, 3, 0), grey(32, 32)];
        let moved = likeness(&direct, &with(grey(32, 32), 5, 5, 255)).unwrap();
        assert_eq!((moved.beyond, moved.left_out, moved.holds()), (0, 0.25, true));
        let elsewhere = likeness(&direct, &with(grey(32, 32), 20, 5, 255)).unwrap();
        assert_eq!(elsewhere.beyond, 1);
    }

    #[test]
    fn a_picture_of_another_size_differs_and_one_of_which_nothing_counts_proves_nothing() {
        let longer = likeness(&[grey(16, 16)], &grey(16, 17)).unwrap();
        assert_eq!((longer.beyond, longer.holds()), (16, false));
        let restless = likeness(&[grey(8, 8), with(grey(8, 8), 0, 0, 1)], &grey(8, 8)).unwrap();
        assert!(!restless.holds());
    }
}
