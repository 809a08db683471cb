//! Which renditions stay.

use farhop_units::BitRate;

use crate::Left;

/// A rendition as far as the choice goes.
pub(crate) struct Rendition<K> {
    /// What a player may need one of.
    pub(crate) kind: K,
    pub(crate) rate: u64,
    /// Where it stands in the text: its pieces, in order.
    pub(crate) pieces: Vec<(usize, usize)>,
}

/// What is left out of a text.
pub(crate) struct Picked {
    pub(crate) cut: Vec<(usize, usize)>,
    pub(crate) kept: usize,
    pub(crate) left_out: usize,
    pub(crate) best: u64,
}

/// Leaves out what is beyond `most`, but for the least of each kind.
pub(crate) fn pick<K: PartialEq>(renditions: &[Rendition<K>], most: BitRate) -> Picked {
    let mut picked = Picked { cut: Vec::new(), kept: 0, left_out: 0, best: 0 };
    for rendition in renditions {
        let its_kind = renditions.iter().filter(|other| other.kind == rendition.kind);
        let least = its_kind.map(|other| other.rate).min().unwrap_or(0);
        if rendition.rate > most.0.max(least) {
            picked.left_out += 1;
            picked.cut.extend(&rendition.pieces);
        } else {
            picked.kept += 1;
            picked.best = picked.best.max(rendition.rate);
        }
    }
    picked
}

/// Why nothing is left out where these are all there is.
pub(crate) fn nothing_left_out<K>(renditions: &[Rendition<K>], most: BitRate) -> Left {
    if renditions.iter().any(|rendition| rendition.rate > most.0) { Left::Least } else { Left::Fits }
}

/// The text without these pieces.
pub(crate) fn without(text: &str, mut cut: Vec<(usize, usize)>) -> Vec<u8> {
    cut.sort_unstable();
    let (mut rest, mut at) = (Vec::with_capacity(text.len()), 0);
    for (from, to) in cut {
        rest.extend_from_slice(text.as_bytes().get(at..from).unwrap_or_default());
        at = at.max(to);
    }
    rest.extend_from_slice(text.as_bytes().get(at..).unwrap_or_default());
    rest
}

/// The kinds of codecs, without their profiles and levels: what a player knows or does not (RFC 6381).
pub(crate) fn families(codecs: &str) -> Vec<String> {
    let mut families: Vec<String> = codecs
        .split(',')
        .filter_map(|codec| codec.trim().split('.').next())
        .filter(|family| !family.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    families.sort();
    families.dedup();
    families
}
