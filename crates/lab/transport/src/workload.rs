//! What is downloaded. Pure, but for the site that serves it.

use std::time::Duration;

use farhop_testkit::{File, Site};

use crate::client::Wanted;

/// What every origin serves in one piece: path, length in bytes. A path's seed is its place here.
const BULK: [(&str, u64); 3] = [("/2m", 2_000_000), ("/10m", 10_000_000), ("/20m", 20_000_000)];
/// Small objects, `/small/0` and so on, and their length.
pub const SMALL: (usize, u64) = (200, 5_000);
/// Parts that a body is asked for in: as many as there may be connections, of two megabytes in all.
const PARTS: [usize; 3] = [2, 4, 8];
/// The pause before a burst: longer than a kernel's TCP keeps its window (RFC 5681 §4.1), short of any idle timeout.
const IDLE: Duration = Duration::from_secs(10);

/// Something that is downloaded, and what of it is timed.
pub struct Workload {
    /// As command line and results have it.
    pub name: &'static str,
    /// In words.
    pub words: &'static str,
    wanted: fn() -> Vec<Wanted>,
    /// Of what is wanted, the place of the one thing that is timed; else all of it is.
    pub timed: Option<usize>,
}

/// All of them.
pub const WORKLOADS: [Workload; 8] = [
    Workload { name: "2m", words: "2 MB in one piece", wanted: || vec![bulk("/2m")], timed: None },
    Workload { name: "20m", words: "20 MB in one piece", wanted: || vec![bulk("/20m")], timed: None },
    Workload { name: "200x5k", words: "200 objects of 5 KB at once", wanted: small, timed: None },
    Workload {
        name: "burst",
        words: "2 MB, asked for on a connection that has brought it before and has been idle for 10 s since",
        wanted: || vec![Wanted { once_before: Some(IDLE), ..bulk("/2m") }],
        timed: None,
    },
    Workload {
        name: "urgent",
        words: "5 KB of high priority, asked for 3 s into a download of 10 MB",
        wanted: || beside_bulk().into(),
        timed: Some(1),
    },
    Workload { name: "2m/2", words: "2 MB as 2 downloads at once", wanted: || parts(2), timed: None },
    Workload { name: "2m/4", words: "2 MB as 4 downloads at once", wanted: || parts(4), timed: None },
    Workload { name: "2m/8", words: "2 MB as 8 downloads at once", wanted: || parts(8), timed: None },
];

impl Workload {
    /// What is wanted.
    pub fn wanted(&self) -> Vec<Wanted> {
        (self.wanted)()
    }

    /// Of all that crosses, the share that is timed.
    pub fn timed_share(&self) -> f64 {
        let wanted = self.wanted();
        let all: u64 =
            wanted.iter().map(|one| one.length * if one.once_before.is_some() { 2 } else { 1 }).sum();
        let counts = |place: usize| self.timed.is_none_or(|timed| timed == place);
        let timed: u64 =
            wanted.iter().enumerate().filter(|(place, _)| counts(*place)).map(|(_, one)| one.length).sum();
        timed as f64 / all as f64
    }
}

/// Nothing of it may be held: each load crosses.
pub(crate) fn site() -> Site {
    let parts = PARTS.into_iter().flat_map(parts);
    let all = BULK.iter().map(|(path, _)| bulk(path)).chain(small()).chain(parts);
    all.fold(Site::new(), |site, wanted| {
        let file = File::pattern(wanted.seed, wanted.length).field("cache-control", "no-store");
        site.file(&wanted.path, file)
    })
}

/// One of the large files.
///
/// # Panics
/// There is none of this name.
pub fn bulk(path: &str) -> Wanted {
    let place = BULK.iter().position(|(name, _)| *name == path).expect("a large file of this name");
    Wanted::new(path, place as u64 + 1, BULK[place].1)
}

/// The small objects.
pub fn small() -> Vec<Wanted> {
    (0..SMALL.0).map(|number| Wanted::new(format!("/small/{number}"), 100 + number as u64, SMALL.1)).collect()
}

/// Something large, and in the middle of it something small that is wanted at once.
pub fn beside_bulk() -> [Wanted; 2] {
    let urgent = Wanted::new("/small/0", 100, SMALL.1);
    [bulk("/10m"), Wanted { after: Duration::from_secs(3), priority: Some("u=0"), ..urgent }]
}

/// Two megabytes in so many equal parts.
fn parts(count: usize) -> Vec<Wanted> {
    let length = BULK[0].1 / count as u64;
    (0..count)
        .map(|part| Wanted::new(format!("/part/{count}/{part}"), (1000 * count + part) as u64, length))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_timed_is_told_from_what_only_goes_before_or_beside() {
        let share = |name: &str| WORKLOADS.iter().find(|it| it.name == name).unwrap().timed_share();
        assert_eq!((share("2m"), share("200x5k"), share("2m/8")), (1.0, 1.0, 1.0));
        assert_eq!(share("burst"), 0.5);
        assert_eq!(share("urgent"), 5_000.0 / 10_005_000.0);
    }

    #[test]
    fn each_path_has_bytes_of_its_own_and_parts_are_two_megabytes_together() {
        let all: Vec<Wanted> = PARTS.into_iter().flat_map(parts).chain(small()).collect();
        let mut seeds: Vec<u64> = all.iter().map(|one| one.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), all.len());
        for count in PARTS {
            assert_eq!(parts(count).iter().map(|part| part.length).sum::<u64>(), 2_000_000);
        }
    }
}
