//! Many seeds at once, each on a thread of its own.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::{Life, live};

/// Failures that are kept; what follows the first few says little.
const KEPT: usize = 20;

/// What became of many seeds.
#[derive(Debug, Clone, Default)]
pub struct Lives {
    /// How many were lived.
    pub lived: u64,
    /// The first of those that found something wrong.
    pub failed: Vec<Life>,
    /// How many of those lived had no longer silence than their cut and three round trips of the empty path.
    pub literal: u64,
    /// How many of them were befallen by cuts alone, …
    pub cut_alone: u64,
    /// … and how many of these are among the former.
    pub literal_cut_alone: u64,
}

impl Lives {
    /// With what became of others.
    pub fn add(&mut self, others: Lives) {
        self.lived += others.lived;
        self.failed.extend(others.failed);
        self.literal += others.literal;
        self.cut_alone += others.cut_alone;
        self.literal_cut_alone += others.literal_cut_alone;
    }
}

/// Lives `seeds`, so many at a time, until twenty have failed.
pub fn live_many(seeds: Range<u64>, at_a_time: usize) -> Lives {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut lives = Lives::default();
        while lives.failed.len() < KEPT {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                break;
            }
            let life = live(seed, false);
            lives.lived += 1;
            lives.literal += u64::from(life.is_literal());
            if life.is_cut_alone() {
                lives.cut_alone += 1;
                lives.literal_cut_alone += u64::from(life.is_literal());
            }
            if !life.faults.is_empty() {
                lives.failed.push(life);
            }
        }
        lives
    };
    let parts: Vec<Lives> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("its panic is this one's")).collect()
    });
    let mut all = Lives::default();
    parts.into_iter().for_each(|part| all.add(part));
    all.failed.sort_by_key(|life| life.scene.seed);
    all
}
