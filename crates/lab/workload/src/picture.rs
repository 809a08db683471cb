//! Pictures of any size in bytes, for pages whose pictures only have to be so large.

use crate::noise;

/// GIF89a §18 to §27: one white pixel, up to the place where extensions may stand, and from there to the end.
const HEAD: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff";
const TAIL: &[u8] = b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
/// A comment (§24): what introduces it, and the end of its blocks.
const COMMENT: &[u8] = b"\x21\xfe";
const END: u8 = 0;
/// A block's length and its bytes, at most.
const BLOCK: usize = 256;

/// A GIF of one pixel that has exactly `count` bytes, the rest of them a comment that nothing shrinks: no browser throws it
/// away as undecodable, and nothing on the way recodes it. What is too small for a GIF is noise.
pub fn picture(seed: u64, count: usize) -> Vec<u8> {
    let Some(spare) = count.checked_sub(HEAD.len() + TAIL.len()) else { return noise(seed, count) };
    let mut file = HEAD.to_vec();
    // The least comment with a byte in it has two more, and its end.
    let Some(mut left) = spare.checked_sub(COMMENT.len() + 1).filter(|left| *left > 1) else {
        file.extend(TAIL);
        file.extend(noise(seed, spare)); // after the end nobody looks
        return file;
    };
    file.extend(COMMENT);
    let mut text = noise(seed, left).into_iter();
    while left > 0 {
        // No block is left with a length and nothing else: that would be the end.
        let block = if left == BLOCK + 1 { BLOCK - 1 } else { left.min(BLOCK) };
        file.push((block - 1) as u8);
        file.extend(text.by_ref().take(block - 1));
        left -= block;
    }
    file.push(END);
    file.extend(TAIL);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::io::Write as _;

    #[test]
    fn a_picture_has_exactly_its_size_and_can_be_decoded() {
        for count in (0..1200).chain([5_000, 10_000, 100_000]) {
            let file = picture(7, count);
            assert_eq!(file.len(), count);
            if count >= 35 {
                assert_eq!(blocks_end(&file), Some(1), "{count} bytes");
            }
        }
    }

    #[test]
    fn no_two_are_alike_and_nothing_shrinks_them() {
        let files: HashSet<Vec<u8>> = (0..50).map(|seed| picture(seed, 1_000)).collect();
        assert_eq!(files.len(), 50);
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        coder.write_all(&picture(3, 10_000)).unwrap();
        assert!(coder.finish().unwrap().len() > 9_900);
    }

    /// Reads a GIF as a decoder does, block by block; how many pictures are in it. None where it is none.
    fn blocks_end(file: &[u8]) -> Option<usize> {
        let mut rest = file.strip_prefix(HEAD)?;
        let mut pictures = 0;
        loop {
            rest = match rest.first()? {
                b'!' => rest.get(2..)?,
                b',' => {
                    pictures += 1;
                    rest.get(11..)? // the descriptor and the least size of a code
                }
                b';' => return Some(pictures),
                _ => return None,
            };
            while *rest.first()? != END {
                rest = rest.get(1 + usize::from(rest[0])..)?;
            }
            rest = rest.get(1..)?;
        }
    }
}
