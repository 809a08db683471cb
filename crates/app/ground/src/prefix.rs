//! Resuming a body: what the client already has is fetched again, compared by its hash, and left out. Pure.

use bytes::Bytes;
use farhop_htotp::frame::Resume;

/// The part of a body that was delivered before the carrier was lost.
pub(crate) struct Prefix {
    resume: Resume,
    left: u64,
    hasher: blake3::Hasher,
}

/// What is fetched now does not begin with what was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body has changed since its first part was delivered")]
pub(crate) struct Mismatch;

/// How far the comparison is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All of the piece belongs to the part that was delivered.
    More,
    /// That part is over and equal; the rest of the piece is new.
    Equal(Bytes),
}

impl Prefix {
    /// Nothing compared yet.
    pub(crate) fn new(resume: Resume) -> Self {
        Prefix { resume, left: resume.offset, hasher: blake3::Hasher::new() }
    }

    /// Bytes that were delivered.
    pub(crate) fn offset(&self) -> u64 {
        self.resume.offset
    }

    /// Takes the next piece of the body as it would be delivered; not called again after [`Step::Equal`].
    ///
    /// # Errors
    /// The part that was delivered differs.
    pub(crate) fn take(&mut self, mut piece: Bytes) -> Result<Step, Mismatch> {
        let known = piece.split_to(self.left.min(piece.len() as u64) as usize);
        self.hasher.update(&known);
        self.left -= known.len() as u64;
        if self.left > 0 {
            return Ok(Step::More);
        }
        let equal = self.hasher.finalize().as_bytes() == &self.resume.prefix;
        if equal { Ok(Step::Equal(piece)) } else { Err(Mismatch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_rest_follows_whatever_the_pieces(body in proptest::collection::vec(any::<u8>(), 1..300), offset in 0usize..300, cut in 1usize..50) {
            let offset = offset.min(body.len());
            let prefix = *blake3::hash(&body[..offset]).as_bytes();
            let mut check = Some(Prefix::new(Resume { offset: offset as u64, prefix }));
            let mut rest = Vec::new();
            for piece in body.chunks(cut) {
                let piece = Bytes::copy_from_slice(piece);
                match check.as_mut() {
                    None => rest.extend_from_slice(&piece),
                    Some(prefix) => if let Step::Equal(more) = prefix.take(piece).unwrap() {
                        rest.extend_from_slice(&more);
                        check = None;
                    },
                }
            }
            prop_assert_eq!(&rest[..], &body[offset..]);
        }
    }

    #[test]
    fn another_beginning_is_noticed() {
        let prefix = *blake3::hash(b"first").as_bytes();
        let mut check = Prefix::new(Resume { offset: 5, prefix });
        assert_eq!(check.take("fir".into()), Ok(Step::More));
        assert_eq!(check.take("xx and more".into()), Err(Mismatch));
    }
}
