//! How alike two pictures look: structural similarity (Wang, Bovik, Sheikh, Simoncelli, IEEE TIP 2004) of their
//! brightness, over blocks of 8 by 8.

const BLOCK: usize = 8;

/// The similarity of two pictures of the same size, from 0 to 1 (equal): the mean over all blocks. Pictures smaller
/// than a block are judged as one.
pub(super) fn likeness(width: usize, one: &[u8], other: &[u8]) -> f64 {
    let height = one.len() / width.max(1);
    let (mut sum, mut blocks) = (0.0, 0u32);
    for y in (0..height).step_by(BLOCK) {
        for x in (0..width).step_by(BLOCK) {
            // The last row and column of blocks overlap those before.
            let (x, y) = (x.min(width.saturating_sub(BLOCK)), y.min(height.saturating_sub(BLOCK)));
            let rows =
                (y..height.min(y + BLOCK)).map(|row| row * width + x..row * width + width.min(x + BLOCK));
            sum += block(rows.flat_map(|row| one[row.clone()].iter().zip(&other[row])));
            blocks += 1;
        }
    }
    if blocks == 0 { 1.0 } else { sum / f64::from(blocks) }
}

fn block<'a>(samples: impl Iterator<Item = (&'a u8, &'a u8)>) -> f64 {
    // (0.01·255)² and (0.03·255)², as the paper has them.
    const C1: f64 = 6.502_5;
    const C2: f64 = 58.522_5;
    let [mut count, mut a, mut b, mut aa, mut bb, mut ab] = [0u32; 6];
    for (one, other) in samples {
        let (one, other) = (u32::from(*one), u32::from(*other));
        count += 1;
        a += one;
        b += other;
        aa += one * one;
        bb += other * other;
        ab += one * other;
    }
    let [n, a, b, aa, bb, ab] = [count, a, b, aa, bb, ab].map(f64::from);
    let (mean_a, mean_b) = (a / n, b / n);
    let (variance_a, variance_b) = (aa / n - mean_a * mean_a, bb / n - mean_b * mean_b);
    let covariance = ab / n - mean_a * mean_b;
    (2.0 * mean_a * mean_b + C1) * (2.0 * covariance + C2)
        / ((mean_a * mean_a + mean_b * mean_b + C1) * (variance_a + variance_b + C2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pictures_are_1_and_the_rest_falls_with_the_difference() {
        let picture: Vec<u8> = (0..40 * 30).map(|at: u32| (at * 7 % 251) as u8).collect();
        let shifted = |by: u8| -> Vec<u8> {
            picture
                .iter()
                .enumerate()
                .map(|(at, it)| if at % 3 == 0 { it.wrapping_add(by) } else { *it })
                .collect()
        };
        assert!((likeness(40, &picture, &picture) - 1.0).abs() < 1e-9);
        let (little, much) = (likeness(40, &picture, &shifted(4)), likeness(40, &picture, &shifted(60)));
        assert!(1.0 > little && little > much && much > 0.0, "{little} {much}");
    }

    #[test]
    fn sizes_that_are_no_multiples_of_a_block_are_covered_to_the_last_pixel() {
        for (width, height) in [(1, 1), (3, 20), (9, 9), (8, 17)] {
            let flat = vec![100; width * height];
            let mut last = flat.clone();
            *last.last_mut().unwrap() = 200;
            assert!(likeness(width, &flat, &last) < 0.999, "{width}x{height}");
        }
    }
}
