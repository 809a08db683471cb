//! `farhop lab measure N`: every row of part N's "Must hold", measured here and now on this machine, beside its bound.
//!
//! One file per group of rows; `part1` to `part7` list them. A group that cannot be measured is a row that misses, with the
//! reason: nothing is passed over in silence. Wall-clock bounds want a quiet machine and a release build.

mod behaviours;
mod cached;
mod calls;
mod carriers;
mod certificates;
mod classes;
mod clients;
mod conformance;
mod error;
mod evidence;
mod fairness;
mod goals;
mod group;
mod handshakes;
mod heads;
mod histories;
mod hop;
mod hostile;
mod hostile_page;
mod httpep;
mod kills;
mod live;
mod local;
mod lossy_pages;
mod outage;
mod packages;
mod pages;
mod part1;
mod part2;
mod part3;
mod part4;
mod part5;
mod part6;
mod part7;
mod refusals;
mod row;
mod satellite;
mod scripted;
mod secure_pages;
mod simulation;
mod soak;
mod speed;
mod split;
mod start;
mod strangers;
mod transfers;
mod visitor;
mod visits;

use std::io::Write as _;
use std::path::PathBuf;

use farhop_compare::Peers;

pub use error::MeasureError;
pub use packages::{PagesArguments, package_pages};
pub use row::{Row, Verdict};
pub use soak::{SoakArguments, soak};

/// Prints every bound of a part of Farhop beside what this machine measures. Needs root.
#[derive(Debug, clap::Args)]
pub struct MeasureArguments {
    /// The part, 1 to 7
    #[arg(value_name = "PART", value_parser = group::PARTS)]
    pub part: String,
    /// Measures only the groups of rows whose names contain WORD. Part 1: pages, transfers, outage, hostile, emulator, heads,
    /// fresh; part 2: pages, httpep, packages, histories, hostile, speed; part 3: pages, packages, handshakes,
    /// live, certificates, conformance, clients; part 4: downloads, fresh, loss, cut, tunnel, pages, carriers,
    /// simulation, split, endurance; part 5: visits, packages, scripts, cached, start, evidence, behaviours, histories, kills;
    /// part 6: satellite, emulator; part 7: calls (on-demand, slow-link and carried ones too),
    /// admission, fairness, refusals, classes
    #[arg(long, value_name = "WORD")]
    pub only: Option<String>,
    /// The program PEPsal, for the rows of part 4 that are measured beside it
    #[arg(long, value_name = "PATH")]
    pub pepsal: Option<PathBuf>,
    /// The program QPEP, likewise
    #[arg(long, value_name = "PATH")]
    pub qpep: Option<PathBuf>,
    /// Loads of each page through each variant; 3 in part 1, else 5 where it is left out
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
}

/// Measures group by group and prints the rows of each as soon as they are there, on standard output; progress goes to
/// standard error. True if no row misses.
///
/// # Errors
/// No privileges, no such group, the user stopped it, or nobody reads the output.
pub fn measure(arguments: &MeasureArguments) -> Result<bool, MeasureError> {
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|word| name.contains(word.as_str()));
    let all = group::groups(&arguments.part).unwrap_or_default();
    let groups: Vec<_> = all.iter().filter(|group| wanted(group.name)).collect();
    if groups.is_empty() {
        let known: Vec<_> = all.iter().map(|group| group.name).collect();
        return Err(MeasureError::NoGroup {
            word: arguments.only.clone().unwrap_or_default(),
            known: known.join(", "),
        });
    }
    let peers = Peers { pepsal: arguments.pepsal.clone(), qpep: arguments.qpep.clone() };
    peers.check()?;
    farhop_testbed::require_privileges()?;
    let interrupt = farhop_compare::Interrupt::install()?;
    let context = group::Context { interrupt, runs: arguments.runs, peers };
    let (mut all, mut missed) = (0, 0);
    for group in groups {
        eprintln!("== {}", group.name);
        let rows = match (group.measure)(&context) {
            Ok(rows) => rows,
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => vec![Row::unmeasured(group.name, &error)],
        };
        context.interrupt.check()?;
        let mut out = std::io::stdout().lock();
        for row in &rows {
            writeln!(out, "{row}").map_err(MeasureError::Output)?;
        }
        out.flush().map_err(MeasureError::Output)?;
        all += rows.len();
        missed += rows.iter().filter(|row| row.verdict == Verdict::Miss).count();
    }
    eprintln!("{all} rows, {missed} missed");
    Ok(missed == 0)
}
