//! The sum over headers: CRC-8 of RFC 3095 §5.9.1.

/// x⁸ + x² + x + 1, bits reversed, from all ones.
pub(crate) fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0xff, |sum, byte| {
        (0..8).fold(sum ^ byte, |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xe0 } else { sum >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flip_of_a_bit_or_two_is_seen() {
        let header: Vec<u8> = (0u8..14).collect(); // up to 119 bits it sees all pairs
        let sum = crc8(&header);
        let flipped = |bits: &[usize]| {
            let mut header = header.clone();
            bits.iter().for_each(|bit| header[bit / 8] ^= 1 << (bit % 8));
            crc8(&header)
        };
        for first in 0..112 {
            assert_ne!(flipped(&[first]), sum);
            for second in first + 1..112 {
                assert_ne!(flipped(&[first, second]), sum, "{first} {second}");
            }
        }
    }
}
