//! What a seed draws, number by number.

use farhop_orbit::Rng;

/// A generator whose whole future follows from its seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(Rng::new(seed))
    }

    /// From 0 to `end`, which is not among them; 0 where there is nothing else.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// Between two bounds, each order of magnitude as likely as the next.
    pub(crate) fn scaled(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.next_f64())
    }

    /// Between two bounds, uniform.
    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.next_f64()
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    pub(crate) fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }

    /// A seed for something else.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }
}
