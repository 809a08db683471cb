//! The model's own random numbers: small, seeded, the same on every machine and in every version, so that
//! a seed printed by a run replays it. Not for keys or anything that someone must not guess.

use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose whole future follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 uniformly distributed bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next number, uniform in `0.0..1.0`.
    pub fn next_f64(&mut self) -> f64 {
        // 53 bits are what a double's mantissa holds.
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`; draws nothing when `p` is zero, so that a lossless link stays replayable
    /// whatever crosses it.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.next_f64() < p
    }

    /// A time from zero to `most`, all equally likely; draws nothing when that is zero.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        if most.is_zero() { most } else { most.mul_f64(self.next_f64()) }
    }

    /// An independent generator for a part of the model.
    pub fn fork(&mut self) -> Rng {
        Rng(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // Reference output of splitmix64.c (Vigna) for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn fractions_stay_below_one_and_average_a_half() {
        let mut rng = Rng::new(1);
        let drawn: Vec<f64> = (0..100_000).map(|_| rng.next_f64()).collect();
        assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = drawn.iter().sum::<f64>() / 100_000.0;
        assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
    }
}
