//! The demonstration: pages made here, directly and through Farhop, a table, one HTML file, and on request a testbed that
//! stays up for one's own browser.

use std::path::PathBuf;
use std::time::Duration;

use farhop_orbit::Profile;
use farhop_report::Comparison;
use farhop_workload::npm;
use farhop_workload::pages::{self, Page};

use crate::bench::Bench;
use crate::compare::{Experiment, Plan, Progress, run};
use crate::interrupt::Interrupt;
use crate::keep::keep;
use crate::{CompareError, Variant};

/// What is demonstrated.
pub struct Demo {
    /// The link.
    pub profile: Profile,
    /// Names of pages.
    pub pages: Vec<String>,
    /// The ways to load them.
    pub variants: Vec<Variant>,
    /// Loads of each page through each variant.
    pub runs: u32,
    /// When a load is given up.
    pub timeout: Duration,
    /// Whether they are loaded over HTTPS, Farhop intercepting.
    pub tls: bool,
    /// Whether the testbed stays up afterwards.
    pub keep: bool,
}

/// Builds the pages, compares, hands the result to `show`, and stays up where that is wanted.
///
/// # Errors
/// See [`CompareError`].
pub fn demonstrate(
    demo: &Demo,
    progress: &mut Progress<'_>,
    show: impl FnOnce(&Comparison) -> Result<(), CompareError>,
) -> Result<(), CompareError> {
    farhop_testbed::require_privileges()?;
    let interrupt = Interrupt::install()?;
    let folder = tempfile::Builder::new().prefix("farhop-pages-").tempdir();
    let folder = folder.map_err(CompareError::file(std::env::temp_dir()))?;
    let pages = build(&demo.pages, folder.path().to_path_buf(), &interrupt, progress)?;
    let experiment = Experiment {
        profile: demo.profile.clone(),
        seed: 1,
        plan: Plan {
            pages,
            variants: demo.variants.clone(),
            runs: demo.runs,
            timeout: demo.timeout,
            tls: demo.tls,
        },
    };
    let bench = Bench::up(&experiment, interrupt, progress)?;
    let comparison = run(&bench, &experiment.plan, progress)?;
    show(&comparison)?;
    if demo.keep { keep(&bench, progress) } else { Ok(()) }
}

pub(crate) fn build(
    names: &[String],
    folder: PathBuf,
    interrupt: &Interrupt,
    progress: &mut Progress<'_>,
) -> Result<Vec<Page>, CompareError> {
    let node = npm::cache_folder();
    let mut built = Vec::new();
    for name in names {
        interrupt.check()?;
        progress(&format!("making the page {name}"));
        built.push(pages::build(name, &folder, &node)?);
    }
    Ok(built)
}
