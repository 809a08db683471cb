//! `farhop lab soak`: pages, transfers, tunnels, names, films and speech at once, over a link that is cut, blocked and changed, and watches what the
//! ends hold meanwhile and afterwards.
//!
//! `place` is where, `course` goes through it all, `load` is the round of loads that is gone through again and again, `troubles` what
//! happens to the ends meanwhile, `level` what they hold, `trend` whether it grows, `judge` the verdict. First everything is done for a while,
//! restarts of ground included; then the ends rest, and from what they hold then on, nothing may stay of what follows.

mod bad;
mod course;
mod end;
mod judge;
mod level;
mod load;
mod media;
mod origin;
mod pages;
mod place;
mod settings;
mod tally;
mod transfers;
mod trend;
mod troubles;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use farhop_compare::Interrupt;
use serde_json::json;

use crate::{MeasureError, Row, Verdict};
use course::Course;

/// Loads pages, transfers, tunnels, names, films and speech and watches memory, sockets, streams and files of the ends. Needs root.
#[derive(Debug, clap::Args)]
pub struct SoakArguments {
    /// For how long; growth is judged from 10 minutes on
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000), default_value_t = 15)]
    pub minutes: u32,
    /// Decides what is loaded in each round, and which packets get lost
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes rows and samples as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Soaks, and prints the rows on standard output; progress goes to standard error. Where the user stops it, what is there is
/// printed. True if it came to its end and no row misses.
///
/// # Errors
/// No privileges, an end that dies, or nobody reads the output.
pub fn soak(arguments: &SoakArguments) -> Result<bool, MeasureError> {
    farhop_testbed::require_privileges()?;
    let interrupt = Interrupt::install()?;
    let mut course = Course::up(interrupt, arguments.seed)?;
    let complete = match course.run(Duration::from_secs(60) * arguments.minutes) {
        Ok(()) => true,
        Err(error) if error.is_interruption() => false,
        Err(error) => return Err(error),
    };
    let rows = course.rows();
    if let Some(file) = &arguments.json {
        let rows = rows.iter().map(Row::as_json).collect::<Vec<_>>();
        let text =
            json!({ "complete": complete, "rows": rows, "ends": course.watched(), "loads": course.loads() });
        std::fs::write(file, format!("{text:#}\n")).map_err(MeasureError::system("--json"))?;
    }
    let mut out = std::io::stdout().lock();
    for row in &rows {
        writeln!(out, "{row}").map_err(MeasureError::Output)?;
    }
    out.flush().map_err(MeasureError::Output)?;
    Ok(complete && rows.iter().all(|row| row.verdict != Verdict::Miss))
}
