//! Bodies of any size that need no memory: each byte follows from its offset.

use bytes::Bytes;

/// The byte at `offset` of the body that `seed` names. Neither constant nor easily compressed.
pub fn byte_at(seed: u64, offset: u64) -> u8 {
    word_at(seed, offset / 8).to_le_bytes()[(offset % 8) as usize]
}

/// `length` bytes from `offset` on.
pub fn bytes_at(seed: u64, offset: u64, length: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(length + 16);
    let first = offset / 8;
    let mut word = first;
    while bytes.len() < length + 8 {
        bytes.extend_from_slice(&word_at(seed, word).to_le_bytes());
        word += 1;
    }
    let skipped = (offset % 8) as usize;
    Bytes::from(bytes).slice(skipped..skipped + length)
}

/// Checks a body piece by piece without holding it.
#[derive(Debug, Clone)]
pub struct Checker {
    seed: u64,
    offset: u64,
}

impl Checker {
    /// A checker for the body that `seed` names, from its first byte.
    pub fn new(seed: u64) -> Self {
        Checker::starting_at(seed, 0)
    }

    /// The same from the byte at `offset` on.
    pub fn starting_at(seed: u64, offset: u64) -> Self {
        Checker { seed, offset }
    }

    /// Takes the next piece; on the first wrong byte, says where.
    ///
    /// # Errors
    /// The offset of the first byte that differs.
    pub fn check(&mut self, piece: &[u8]) -> Result<(), u64> {
        let expected = bytes_at(self.seed, self.offset, piece.len());
        match piece.iter().zip(&expected).position(|(got, wanted)| got != wanted) {
            Some(at) => Err(self.offset + at as u64),
            None => {
                self.offset += piece.len() as u64;
                Ok(())
            }
        }
    }

    /// The offset up to which all was right: how many bytes, for who began with the first.
    pub fn checked(&self) -> u64 {
        self.offset
    }
}

/// SplitMix64, whose numbers can be had in any order.
fn word_at(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_a_body_is_the_same_part_of_the_whole() {
        let whole: Vec<u8> = (0..100).map(|offset| byte_at(7, offset)).collect();
        for start in 0..40 {
            assert_eq!(bytes_at(7, start, 50), whole[start as usize..start as usize + 50]);
        }
        assert_ne!(bytes_at(7, 0, 50), bytes_at(8, 0, 50));
    }

    #[test]
    fn a_checker_names_the_first_wrong_byte() {
        let mut checker = Checker::new(1);
        assert_eq!(checker.check(&bytes_at(1, 0, 30)), Ok(()));
        let mut wrong = bytes_at(1, 30, 30).to_vec();
        wrong[4] ^= 1;
        assert_eq!(checker.check(&wrong), Err(34));
        assert_eq!(checker.checked(), 30);
    }
}
