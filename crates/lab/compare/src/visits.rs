//! Visits: a page loaded again and again, by browsers that hold nothing, through ends of Farhop that go on from one load to the
//! next. What changes in between is the caller's affair.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use farhop_orbit::Profile;
use farhop_testbed::{Fitness, Place};
use farhop_workload::browser::PageLoad;
use farhop_workload::pages::Page;

use crate::bench::Bench;
use crate::compare::{Experiment, Progress};
use crate::interrupt::Interrupt;
use crate::limit::Smallest;
use crate::load::{Loader, Measured, Way};
use crate::{CompareError, Variant};

/// Loads of a page that are unfit in a row before the last is taken as it is: only visits that change nothing are repeated.
const ATTEMPTS: u32 = 4;

/// Who visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user beside the remote.
    User,
    /// Another, at another address.
    Neighbour,
}

/// What one visit gave.
#[derive(Debug)]
pub struct Visit {
    /// Load time in seconds; none when the load event did not come.
    pub plt_s: Option<f64>,
    /// When the last resource was there that did not fail, in seconds: some of what scripts ask for comes after the load event.
    pub last_s: Option<f64>,
    /// IP bytes that crossed towards the user, and from the user.
    pub bytes: [u64; 2],
    /// Requests that crossed, with the reason of each.
    pub crossed: Vec<(String, String)>,
    /// Body bytes that came for nothing.
    pub wasted_bytes: u64,
    /// For each URL, request by request, whether its answer was there or on its way before it was asked for.
    pub unasked: HashMap<String, Vec<bool>>,
    /// What the browser saw.
    pub load: Option<PageLoad>,
    /// The files that it used, each once.
    pub files: Vec<PathBuf>,
    /// Resources as the folders have them.
    pub right: u64,
    /// One line for each resource that was not.
    pub wrong: Vec<String>,
    /// Bytes of the page's resources in the smallest known encoding of each.
    pub smallest_bytes: u64,
    /// Why the link was not what its profile says, if it was not.
    pub unfit: Option<String>,
}

/// A testbed with both ends up, for as many visits as one likes.
pub struct Visits {
    /// Goes before what it runs on.
    way: Option<Way>,
    bench: Bench,
    timeout: Duration,
    smallest: Smallest,
}

impl Visits {
    /// Brings a testbed up with the pages of a plan; its variants say what is prepared, its runs nothing. Needs root.
    ///
    /// # Errors
    /// See [`CompareError`].
    pub fn up(
        experiment: &Experiment,
        interrupt: Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<Visits, CompareError> {
        let bench = Bench::up(experiment, interrupt, progress)?;
        Ok(Visits { way: None, bench, timeout: experiment.plan.timeout, smallest: Smallest::default() })
    }

    /// Starts both ends anew, with nothing held and nothing learned.
    ///
    /// # Errors
    /// One of them ended, or the carrier did not come up.
    pub fn begin(&mut self) -> Result<(), CompareError> {
        self.way = None; // the ports are the old ends' until they are gone
        self.way = Some(Way::open(&self.bench, Variant::Farhop)?);
        Ok(())
    }

    /// Visits a page through the ends that are up, or through new ones.
    ///
    /// # Errors
    /// The browser or an end could not be run, or the user wants to stop. A page that does not load is a result.
    pub fn visit(&mut self, page: &Page, who: Who) -> Result<Visit, CompareError> {
        let mut way = match self.way.take() {
            Some(way) => way,
            None => Way::open(&self.bench, Variant::Farhop)?,
        };
        let place = match who {
            Who::User => Place::Client,
            Who::Neighbour => Place::Neighbour,
        };
        let mut loader = Loader::new(&self.bench, self.timeout);
        let measured = loader.load_by(page, Variant::Farhop, &mut way, place)?;
        self.way = Some(way);
        let (load, unasked) = loader.last.take().map(|last| (last.load, last.unasked)).unzip();
        Ok(self.told(measured, load, unasked.unwrap_or_default()))
    }

    /// Loads a page over the link without Farhop.
    ///
    /// # Errors
    /// As [`visit`](Self::visit).
    pub fn direct(&mut self, page: &Page, variant: Variant) -> Result<Visit, CompareError> {
        let measured = self.fit(|loader| loader.load(page, variant))?;
        Ok(self.told(measured, None, HashMap::new()))
    }

    /// Loads a page without the link: its `plt_s` is the limit's `browser_s`, its `smallest_bytes` the limit's bytes.
    ///
    /// # Errors
    /// As [`visit`](Self::visit).
    pub fn without_link(&mut self, page: &Page) -> Result<Visit, CompareError> {
        let measured = self.fit(|loader| loader.load_over_none(page))?;
        Ok(self.told(measured, None, HashMap::new()))
    }

    /// The link.
    pub fn profile(&self) -> Profile {
        self.bench.testbed.link().profile()
    }

    fn fit(
        &self,
        mut load: impl FnMut(&mut Loader<'_>) -> Result<Measured, CompareError>,
    ) -> Result<Measured, CompareError> {
        let mut loader = Loader::new(&self.bench, self.timeout);
        let mut measured = load(&mut loader)?;
        for _ in 1..ATTEMPTS {
            if measured.fitness.is_fit() {
                break;
            }
            measured = load(&mut loader)?;
        }
        Ok(measured)
    }

    fn told(
        &mut self,
        measured: Measured,
        load: Option<PageLoad>,
        unasked: HashMap<String, Vec<bool>>,
    ) -> Visit {
        let crossed = measured.accounts.map(|accounts| accounts.crossed).unwrap_or_default();
        let smallest_bytes = measured.checked.used.iter().map(|asset| self.smallest.size(asset)).sum();
        let files = measured.checked.used.iter().map(|asset| asset.path.clone()).collect();
        let mut wrong = measured.checked.bad;
        wrong.extend(measured.errors);
        Visit {
            plt_s: measured.plt_s,
            last_s: measured.last_s,
            bytes: measured.bytes,
            crossed: crossed.into_iter().map(|crossed| (crossed.url, crossed.why)).collect(),
            wasted_bytes: measured.counters.wasted_bytes,
            unasked,
            load,
            files,
            right: measured.checked.ok,
            wrong,
            smallest_bytes,
            unfit: match measured.fitness {
                Fitness::Fit => None,
                Fitness::Unfit(reason) => Some(reason),
            },
        }
    }
}

/// The bytes of `new` as zstd 19 says it against `old` (DESIGN.md, "The limit").
///
/// # Errors
/// zstd has no memory.
pub fn delta(old: &[u8], new: &[u8]) -> std::io::Result<u64> {
    let mut coder = zstd::bulk::Compressor::with_dictionary(19, old)?;
    Ok(coder.compress(new)?.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_a_few_words_is_a_few_bytes_against_what_it_was() {
        let old: String = (0..2000).map(|number| format!("line {number} of {}\n", number * 7919)).collect();
        let new = old.replace("line 700 of", "row 700 in");
        let alone = zstd::bulk::compress(new.as_bytes(), 19).unwrap().len() as u64;
        let against = delta(old.as_bytes(), new.as_bytes()).unwrap();
        assert!(against < 100 && alone > 2000, "{against} {alone}");
    }
}
