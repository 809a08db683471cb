//! What both ends compare when it is not known what ground has heard: the entries that it was told of, put into buckets, and
//! of each bucket a sum of hashes.

/// The records by which ground knows an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    /// Its last store.
    pub(super) stored: u64,
    /// Its last validators; 0 where none were told.
    pub(super) validators: u64,
}

/// Entries that share a bucket, about.
const SHARE: usize = 16;
const LEAST: usize = 16;
/// So that a summary is no longer than 4 KiB.
pub(super) const MOST_BUCKETS: usize = 1_024;

/// How many buckets so many entries are put into.
pub(super) fn buckets_for(entries: usize) -> usize {
    (entries / SHARE).next_power_of_two().clamp(LEAST, MOST_BUCKETS)
}

/// The bucket of an entry, of so many.
pub(super) fn bucket(number: u64, of: usize) -> u64 {
    mix(number) % of.max(1) as u64
}

/// The sums of all buckets. That two differ and have the same sum is as likely as one in four thousand million.
pub(super) fn summary(entries: impl Iterator<Item = (u64, Stamp)>, of: usize) -> Vec<u32> {
    let mut sums = vec![0_u64; of];
    for (number, stamp) in entries {
        let hash = mix(number ^ mix(stamp.stored ^ mix(stamp.validators)));
        if let Some(sum) = sums.get_mut(bucket(number, of) as usize) {
            *sum = sum.wrapping_add(hash);
        }
    }
    sums.into_iter().map(|sum| (sum >> 32) as u32).collect()
}

/// SplitMix64's output function (Steele, Lea, Flood 2014): what is close by is far apart then.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_more_or_told_anew_changes_its_bucket_and_no_other() {
        let stamp = |stored| Stamp { stored, validators: 0 };
        let all = |more: &[(u64, Stamp)]| {
            summary((0..500).map(|number| (number, stamp(number))).chain(more.iter().copied()), 32)
        };
        let before = all(&[]);
        let differ = |after: &[u32]| -> Vec<u64> {
            (0..32).filter(|place| before[*place as usize] != after[*place as usize]).collect()
        };
        assert_eq!(differ(&all(&[(900, stamp(7))])), [bucket(900, 32)]);
        let again = (0..500).map(|number| (number, if number == 3 { stamp(501) } else { stamp(number) }));
        assert_eq!(differ(&summary(again, 32)), [bucket(3, 32)]);
        let validated = (0..500).map(|number| (number, Stamp { stored: number, validators: number / 499 }));
        assert_eq!(differ(&summary(validated, 32)), [bucket(499, 32)]);
    }

    #[test]
    fn a_summary_is_bounded() {
        assert_eq!([0, 100, 1_000, 1 << 20].map(buckets_for), [16, 16, 64, MOST_BUCKETS]);
    }
}
