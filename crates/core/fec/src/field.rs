//! Arithmetic in GF(2⁸) over whole packets. No `unsafe`, no tables at run time: sums of many products are
//! evaluated bit plane by bit plane, which compilers turn into vector instructions by themselves.

/// Bytes that are worked on at once.
pub(crate) const BLOCK: usize = 64;
/// A piece of a symbol.
pub(crate) type Block = [u8; BLOCK];

/// x⁸ + x⁴ + x³ + x² + 1, the polynomial of RFC 5510 §8.1 and RFC 8681 §3.7.1, without its highest term.
const POLYNOMIAL: u8 = 0x1d;

const INVERSES: [u8; 256] = inverses();

const fn double(x: u8) -> u8 {
    (x << 1) ^ (POLYNOMIAL & (x >> 7).wrapping_neg())
}

const fn multiply(x: u8, mut y: u8) -> u8 {
    let (mut product, mut power) = (0, x);
    while y != 0 {
        product ^= power & (y & 1).wrapping_neg();
        power = double(power);
        y >>= 1;
    }
    product
}

const fn inverses() -> [u8; 256] {
    let mut table = [0; 256];
    let mut x = 1;
    while x < 256 {
        // The group has 255 elements, so x²⁵⁴ is the inverse: 254 = 2 + 4 + … + 128.
        let (mut power, mut inverse, mut bit) = (x as u8, 1, 1);
        while bit < 8 {
            power = multiply(power, power);
            inverse = multiply(inverse, power);
            bit += 1;
        }
        table[x] = inverse;
        x += 1;
    }
    table
}

/// The product of two elements.
pub(crate) const fn product(x: u8, y: u8) -> u8 {
    multiply(x, y)
}

/// The inverse of an element other than zero; zero for zero, which has none.
pub(crate) const fn inverse(x: u8) -> u8 {
    INVERSES[x as usize]
}

fn xor(sum: &mut Block, block: &Block) {
    for (sum, byte) in sum.iter_mut().zip(block) {
        *sum ^= byte;
    }
}

/// Adds the sum of `factor × symbol` over `terms` to `sum`, whose blocks beyond the end of a symbol that symbol
/// leaves alone. Symbols are not read beyond the end of `sum`.
///
/// Horner's rule over the bits of the factors: eight doublings for the whole sum, and half a term's bits are
/// additions, so that a term costs four exclusive ors a block instead of a multiplication a byte.
pub(crate) fn add_products(sum: &mut [Block], terms: &[(u8, &[Block])]) {
    let planes: [Vec<&[Block]>; 8] = std::array::from_fn(|bit| {
        terms.iter().filter(|(factor, _)| factor >> bit & 1 == 1).map(|(_, symbol)| *symbol).collect()
    });
    for (index, sum) in sum.iter_mut().enumerate() {
        let mut part = [0; BLOCK];
        for plane in planes.iter().rev() {
            part.iter_mut().for_each(|byte| *byte = double(*byte));
            for block in plane.iter().filter_map(|symbol| symbol.get(index)) {
                xor(&mut part, block);
            }
        }
        xor(sum, &part);
    }
}

/// Multiplies each byte by `factor`.
pub(crate) fn scale(symbol: &mut [Block], factor: u8) {
    for block in symbol {
        let mut scaled = [[0; BLOCK]];
        add_products(&mut scaled, &[(factor, &[*block])]);
        *block = scaled[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplication_is_that_of_the_polynomial() {
        assert_eq!(product(0x80, 2), 0x1d);
        assert_eq!(product(0, 77), 0);
        for x in 1..=255 {
            assert_eq!(product(x, inverse(x)), 1, "{x}");
            assert_eq!(product(x, 1), x);
        }
        for (x, y, z) in [(3, 200, 91), (255, 254, 17), (2, 128, 1)] {
            assert_eq!(product(x, y), product(y, x));
            assert_eq!(product(x, product(y, z)), product(product(x, y), z));
            assert_eq!(product(x, y ^ z), product(x, y) ^ product(x, z));
        }
    }

    #[test]
    fn sums_over_blocks_are_those_over_bytes_whatever_the_lengths() {
        let symbol = |seed: usize, blocks: usize| -> Vec<Block> {
            (0..blocks).map(|b| std::array::from_fn(|i| (seed * 37 + b * 101 + i * 7) as u8)).collect()
        };
        let (one, two) = (symbol(1, 3), symbol(2, 1));
        let mut sum = symbol(3, 2);
        let before = sum.clone();
        add_products(&mut sum, &[(0x53, &one), (0xca, &two), (0, &two)]);
        for (at, byte) in sum.as_flattened().iter().enumerate() {
            let at_of = |symbol: &[Block]| symbol.as_flattened().get(at).copied().unwrap_or(0);
            assert_eq!(
                *byte,
                at_of(&before) ^ product(0x53, at_of(&one)) ^ product(0xca, at_of(&two)),
                "{at}"
            );
        }
    }

    #[test]
    fn scaling_by_the_inverse_undoes_scaling() {
        let mut symbol: Vec<Block> = vec![std::array::from_fn(|i| i as u8); 2];
        let before = symbol.clone();
        scale(&mut symbol, 0x8e);
        assert_ne!(symbol, before);
        scale(&mut symbol, inverse(0x8e));
        assert_eq!(symbol, before);
    }
}
