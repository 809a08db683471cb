//! The command lines of `farhop lab list`, `show` and `run`, and where results go.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farhop_compare::{CompareError, Interrupt, Peers};
use farhop_report::{study_csv, study_html};

use crate::bench::Bench;
use crate::error::PlanError;
use crate::estimate::estimate;
use crate::folder::Folder;
use crate::lanes::{Ended, Kept, Maker, Pace, between, carry_out};
use crate::pages;
use crate::plan::Plan;
use crate::shipped::{SHIPPED, shipped, shipped_link};
use crate::sum::study;
use crate::words::counted;

/// What a plan's file may hold, so that a wrong path does not fill the memory.
const LARGEST: u64 = 64 << 20;

/// Lists the plans that come with Farhop, and about how long each takes, whole and quick.
#[derive(Debug, clap::Args)]
pub struct ListArguments {}

/// Shows a plan: its cells, its figures, and how long it will take.
#[derive(Debug, clap::Args)]
pub struct ShowArguments {
    /// A plan that comes with Farhop, or a file whose name ends in .toml
    #[arg(value_name = "PLAN")]
    pub plan: String,
    /// What `run --quick` would make of it
    #[arg(long)]
    pub quick: bool,
}

/// Carries a plan out. Needs root, or makes a user namespace. Each load is kept as soon as it is made; results are written at the
/// end and when it is stopped. The exit code is 1 where a load went wrong.
#[derive(Debug, clap::Args)]
pub struct RunArguments {
    /// A plan that comes with Farhop, or a file whose name ends in .toml
    #[arg(value_name = "PLAN")]
    pub plan: String,
    /// Fewer repetitions, and of the pages and links only those that the plan names for it; stamped as such
    #[arg(long)]
    pub quick: bool,
    /// Goes on where it was stopped: from the loads in the folder, or where it has none from those that are committed as
    /// docs/experiments/results/PLAN.jsonl. Those that met a late link in each attempt are made again
    #[arg(long)]
    pub resume: bool,
    /// Begins anew in a folder that has loads; they stand aside as before-runs.jsonl, in place of those of the time before
    #[arg(long, conflicts_with = "resume")]
    pub fresh: bool,
    /// Testbeds at once; fewer as soon as the machine makes links late
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub lanes: u8,
    /// Begins no load once so much time has passed; --resume goes on
    #[arg(long = "for", value_name = "TIME", value_parser = farhop_units::parse_duration)]
    pub time: Option<Duration>,
    /// PEPsal's program, where a variant goes through it [default: pepsal on the path]
    #[arg(long, value_name = "FILE")]
    pub pepsal: Option<PathBuf>,
    /// QPEP's program, where a variant goes through it [default: qpep on the path]
    #[arg(long, value_name = "FILE")]
    pub qpep: Option<PathBuf>,
    /// The folder for what is measured [default: target/lab/PLAN, with --quick target/lab/PLAN-quick]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Runs `farhop lab list`.
///
/// # Errors
/// Standard output is closed.
pub fn list(_: &ListArguments) -> Result<(), PlanError> {
    let mut text = format!("{:13} {:>16} {:>8}  what\n", "plan", "time", "quick");
    for (name, _) in SHIPPED {
        let plan = read(name)?;
        let (whole, quick) = (between(estimate(&plan).time), between(estimate(&plan.quickened()).time));
        text.push_str(&format!("{name:13} {whole:>16} {quick:>8}  {}\n", plan.title));
    }
    print(&text)
}

/// Runs `farhop lab show`.
///
/// # Errors
/// See [`PlanError`].
pub fn show(arguments: &ShowArguments) -> Result<(), PlanError> {
    let plan = wanted(&arguments.plan, arguments.quick)?;
    print(&shown(&plan))
}

/// Runs `farhop lab run`.
///
/// # Errors
/// See [`PlanError`].
pub fn run(arguments: &RunArguments) -> Result<(), PlanError> {
    let plan = wanted(&arguments.plan, arguments.quick)?;
    let peers = Peers { pepsal: arguments.pepsal.clone(), qpep: arguments.qpep.clone() };
    peers.check()?;
    let peers = peers.or_installed();
    farhop_testbed::require_privileges()?;
    let interrupt = Interrupt::install()?;
    let stamp = if arguments.quick { "-quick" } else { "" };
    let out =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("target/lab/{}{stamp}", plan.name)));
    let folder = Folder::take(&out)?;
    let mut kept =
        if arguments.resume { folder.resume(&plan)? } else { folder.begin(&plan, arguments.fresh)? };
    if !kept.runs.is_empty() {
        let are = if kept.runs.len() == 1 { "is" } else { "are" };
        eprintln!("{} {are} there already", counted(kept.runs.len() as u64, "load"));
    }
    let pace = Pace {
        lanes: arguments.lanes.into(),
        until: arguments.time.and_then(|time| Instant::now().checked_add(time)),
    };
    let progress = |line: &str| eprintln!("{line}");
    let maker = || -> Result<Maker<'_>, PlanError> {
        let mut bench = Bench::prepare(&plan, peers.clone(), interrupt.clone(), &progress)?;
        Ok(Box::new(move |next| bench.load(next)))
    };
    let done = carry_out(&plan, &mut kept, pace, &maker, &progress);
    // Whatever ended it: what was measured is told. What ended it is the cause where that fails, too.
    match (&done, write_results(&plan, &kept, arguments.quick, folder.path())) {
        (_, Ok(())) => eprintln!("results: {}", out.join("report.html").display()),
        (Ok(_), Err(error)) => return Err(error),
        (Err(_), Err(_)) => {}
    }
    match done {
        Err(PlanError::Compare(CompareError::Interrupted)) => {
            Err(PlanError::Stopped { done: counted(kept.runs.len() as u64, "load") })
        }
        Ok(ended) => {
            if ended == Ended::TimeUp {
                let loads = counted(kept.runs.len() as u64, "load");
                eprintln!("the time is up after {loads}: what is measured is kept, --resume goes on");
            }
            match kept.failed {
                0 => Ok(()),
                failed => {
                    Err(PlanError::Loads { loads: counted(failed, "load"), report: out.join("report.html") })
                }
            }
        }
        Err(error) => Err(error),
    }
}

fn write_results(plan: &Plan, kept: &Kept, quick: bool, out: &Path) -> Result<(), PlanError> {
    let study = farhop_report::Study { loads: kept.loads.clone(), ..study(plan, &kept.runs, quick) };
    for claim in study.claims.iter().filter(|claim| claim.here.is_some()) {
        eprintln!(
            "{}: {} of {} against {}: {}",
            claim.says,
            claim.measure,
            claim.variant,
            claim.against,
            claim.sentence()
        );
    }
    // Every field is a number, a text or a list of them: there is nothing that JSON could refuse.
    let json = serde_json::to_string_pretty(&study).unwrap_or_default() + "\n";
    for (name, text) in
        [("result.json", json), ("result.csv", study_csv(&study)), ("report.html", study_html(&study))]
    {
        // What stands there from before stays until the new one is whole.
        let (file, part) = (out.join(name), out.join(format!("{name}.part")));
        std::fs::write(&part, text)
            .and_then(|()| std::fs::rename(&part, &file))
            .inspect_err(|_| drop(std::fs::remove_file(&part)))
            .map_err(PlanError::file(&file))?;
    }
    Ok(())
}

fn wanted(name: &str, quick: bool) -> Result<Plan, PlanError> {
    let plan = read(name)?;
    plan.pages.iter().try_for_each(pages::check)?;
    Ok(if quick { plan.quickened() } else { plan })
}

/// The plan of this name, or in this file: a file's name ends in `.toml` or has a folder.
pub(crate) fn read(name: &str) -> Result<Plan, PlanError> {
    if name.ends_with(".toml") || name.contains('/') {
        let text = text_of(Path::new(name))?;
        let mut open = |path: &Path| text_of(path).map_err(|error| error.to_string());
        return Ok(Plan::from_toml(&text, name, &mut open)?);
    }
    // What comes along names satellites that come along.
    let mut along = |path: &Path| shipped_link(path).map(str::to_owned);
    Ok(Plan::from_toml(shipped(name)?, name, &mut along)?)
}

fn text_of(path: &Path) -> Result<String, PlanError> {
    let size = std::fs::metadata(path).map_err(PlanError::file(path))?.len();
    if size > LARGEST {
        let large = format!("it is larger than {} MB", LARGEST >> 20);
        return Err(PlanError::file(path)(std::io::Error::other(large)));
    }
    std::fs::read_to_string(path).map_err(PlanError::file(path))
}

/// A plan for a terminal.
fn shown(plan: &Plan) -> String {
    let mut text = format!("{}\n", plan.title);
    if let Some(of) = &plan.study {
        text.push_str(&format!("repeats: {of}\n"));
    }
    let mut listed = |what: &str, lines: Vec<(String, String)>| {
        text.push_str(&format!("\n{what}\n"));
        let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, words) in lines {
            text.push_str(format!("  {name:width$}  {words}").trim_end());
            text.push('\n');
        }
    };
    let about = study(plan, &[], false);
    let named = |all: &[farhop_report::Named]| {
        all.iter().map(|named| (named.name.clone(), named.words.clone())).collect::<Vec<_>>()
    };
    listed("pages", named(&about.pages));
    listed("links", named(&about.links));
    listed("variants", named(&about.variants));
    listed("measures", named(&about.measures));
    let figures = plan.figures.iter().map(|figure| (&figure.figure, &figure.place, &figure.title));
    let over_time = plan.dynamics.iter().map(|figure| (&figure.figure, &figure.place, &figure.title));
    // A figure without a study has no place in one.
    let lines = figures.chain(over_time).map(|(figure, place, title)| {
        let place = if place.is_empty() { format!("figure {figure}") } else { place.clone() };
        (place, title.clone())
    });
    listed("figures", lines.collect());
    if !plan.notes.is_empty() {
        text.push_str("\nnotes\n");
        plan.notes.iter().for_each(|note| text.push_str(&format!("  {note}\n")));
    }
    let cells = plan.cells().len();
    let estimate = estimate(plan);
    let [least, most] = estimate.loads;
    let time = between(estimate.time);
    let loads = if least == most { least.to_string() } else { format!("{least} to {most}") };
    text.push_str(&format!("\n{cells} cells, {loads} loads, about {time}\n"));
    text
}

fn print(text: &str) -> Result<(), PlanError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(PlanError::file("standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_that_comes_along_is_read_and_shown_with_an_estimate() {
        for (name, _) in SHIPPED {
            for quick in [false, true] {
                let plan = wanted(name, quick).unwrap();
                assert_eq!(plan.name, *name);
                let text = shown(&plan);
                assert!(text.contains(" cells, ") && text.contains(" loads, about "), "{text}");
                let found = plan.figures.iter().map(|figure| (&figure.found, &figure.place));
                let found = found.chain(plan.dynamics.iter().map(|figure| (&figure.found, &figure.place)));
                let found: Vec<_> = found.collect();
                if plan.study.is_none() {
                    continue;
                }
                assert!(!found.is_empty());
                assert!(
                    found.iter().all(|(found, place)| !found.is_empty() && place.starts_with('§')),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_plan_is_told_in_one_line() {
        let error = |name: &str| read(name).unwrap_err().to_string();
        assert!(error("httpep-4").starts_with("no plan is called 'httpep-4': there are httpep-5-6, "));
        assert!(error("/nowhere/x.toml").starts_with("/nowhere/x.toml: "));
    }
}
