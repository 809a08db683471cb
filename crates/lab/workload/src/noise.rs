//! Bytes that nothing shrinks.

/// Bytes that look random and are the same on every machine (Marsaglia's xorshift64).
pub fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| step()).collect()
}
