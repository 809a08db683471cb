//! Student's distribution: the one quantile that 95 % intervals need.

/// The 0.975 quantile for 1 to 30 degrees of freedom, as tables have it.
const TABLE: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
    2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922,
    2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831,
    2.048_407, 2.045_230, 2.042_272,
];

/// Of the normal distribution.
const NORMAL: f64 = 1.959_963_985;

/// The 0.975 quantile for so many degrees of freedom; infinite for none.
pub fn student_975(freedom: usize) -> f64 {
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // Abramowitz and Stegun 26.7.5, to the third order: right to 1e-5 from here on.
        _ => {
            let (z, n) = (NORMAL, freedom as f64);
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            z + first / n + second / n.powi(2) + third / n.powi(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in
            [(1, 12.7062), (4, 2.7764), (9, 2.2622), (30, 2.0423), (40, 2.0211), (60, 2.0003), (120, 1.9799)]
        {
            assert!((student_975(freedom) - expected).abs() < 5e-5, "{freedom}: {}", student_975(freedom));
        }
        assert_eq!(student_975(0), f64::INFINITY);
        assert!((1..200).all(|freedom| student_975(freedom) > student_975(freedom + 1)));
    }
}
