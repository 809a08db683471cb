//! Pages loaded by one variant over one link that goes to and fro between two conditions, load by load: whatever else the machine does
//! meanwhile, both bear it alike.

use std::path::Path;
use std::time::Duration;

use farhop_orbit::Profile;
use farhop_report::{Limit, VariantResult};
use farhop_workload::pages::Page;

use crate::bench::Bench;
use crate::compare::{Experiment, Plan, Progress, fit_load};
use crate::interrupt::Interrupt;
use crate::load::Loader;
use crate::summary::{Gathered, summarise};
use crate::{CompareError, Variant};

/// Where each end keeps what it has learned of the path, which is of one condition alone.
const MEMORIES: [&str; 2] = ["remote.paths", "ground.paths"];

/// What is loaded, and over what.
#[derive(Debug, Clone)]
pub struct Alternation {
    /// The pages.
    pub pages: Vec<Page>,
    /// The way.
    pub variant: Variant,
    /// The link, the one way and the other.
    pub conditions: [Profile; 2],
    /// Loads of each page under each condition.
    pub runs: u32,
    /// When a load is given up.
    pub timeout: Duration,
    /// Whether the sites are loaded over HTTPS.
    pub tls: bool,
}

/// What became of one page.
#[derive(Debug, Clone)]
pub struct Alternated {
    /// Its name.
    pub page: String,
    /// Under each condition, in their order.
    pub results: [VariantResult; 2],
}

impl Alternation {
    /// Brings a testbed up, loads everything on it and takes it down. Needs root.
    ///
    /// # Errors
    /// See [`CompareError`]; a page that does not load is a result.
    pub fn carry_out(
        &self,
        interrupt: Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Alternated>, CompareError> {
        let plan = Plan {
            pages: self.pages.clone(),
            variants: vec![self.variant],
            runs: self.runs,
            timeout: self.timeout,
            tls: self.tls,
        };
        let experiment = Experiment { profile: self.conditions[0].clone(), seed: 1, plan };
        let bench = Bench::up(&experiment, interrupt, progress)?;
        let mut loader = Loader::new(&bench, self.timeout);
        self.pages.iter().map(|page| self.load(&mut loader, page, progress)).collect()
    }

    fn load(
        &self,
        loader: &mut Loader<'_>,
        page: &Page,
        progress: &mut Progress<'_>,
    ) -> Result<Alternated, CompareError> {
        let mut gathered = [Gathered::default(), Gathered::default()];
        for round in 0..self.runs {
            for condition in order(round) {
                loader.bench.testbed.link().switch(&self.conditions[condition]);
                let own = Memory::of(loader.bench.folder.path(), condition);
                let said = format!("{} {}/{} condition {}", page.name, round + 1, self.runs, condition + 1);
                let told = &mut |line: &str| progress(&format!("{said}: {line}"));
                let (mut notes, gathered) = (Vec::new(), &mut gathered[condition]);
                fit_load(loader, page, self.variant, gathered, &mut notes, told, &mut |_| {})?;
                own.keep();
            }
        }
        let rate = self.conditions[0].forward.rate.map(|rate| rate.0);
        let results = gathered.each_ref().map(|one| summarise(self.variant, one, &Limit::default(), rate));
        Ok(Alternated { page: page.name.clone(), results })
    }
}

/// Which condition comes first in a round: each as often as the other, and as often after itself.
fn order(round: u32) -> [usize; 2] {
    if round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// What the ends know of the path under one condition, while that holds. A file that is not there is no memory.
struct Memory<'a> {
    folder: &'a Path,
    condition: usize,
}

impl Memory<'_> {
    fn of(folder: &Path, condition: usize) -> Memory<'_> {
        for name in MEMORIES {
            let _ = std::fs::remove_file(folder.join(name));
            let _ = std::fs::rename(folder.join(format!("{name}.{condition}")), folder.join(name));
        }
        Memory { folder, condition }
    }

    fn keep(self) {
        for name in MEMORIES {
            let kept = self.folder.join(format!("{name}.{}", self.condition));
            let _ = std::fs::rename(self.folder.join(name), kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_condition_always_comes_first() {
        let all: Vec<usize> = (0..4).flat_map(order).collect();
        assert_eq!(all, [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn what_was_learned_under_one_condition_is_not_known_under_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(MEMORIES[0]);
        let mut seen = Vec::new();
        for condition in [0, 1, 1, 0] {
            let memory = Memory::of(folder.path(), condition);
            let known = std::fs::read_to_string(&file).unwrap_or_default();
            std::fs::write(&file, format!("{known}{condition}")).unwrap();
            seen.push(known);
            memory.keep();
        }
        assert_eq!(seen, ["", "", "1", "0"]);
    }
}
