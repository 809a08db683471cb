//! The command lines of `farhop lab list`, `show` and `run`, and where results go.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_compare::{CompareError, Interrupt};
use farhop_report::{study_csv, study_html};

use crate::bench::Bench;
use crate::course::{Course, Next};
use crate::error::PlanError;
use crate::estimate::estimate;
use crate::journal::{Journal, Run};
use crate::plan::Plan;
use crate::shipped::{SHIPPED, shipped};
use crate::sum::study;

/// What a plan's file may hold, so that a wrong path does not fill the memory.
const LARGEST: u64 = 64 << 20;

/// Lists the plans that come with Farhop.
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

/// Carries a plan out. Needs root. Each load is kept as soon as it is made; results are written at the end and when it is stopped.
#[derive(Debug, clap::Args)]
pub struct RunArguments {
    /// A plan that comes with Farhop, or a file whose name ends in .toml
    #[arg(value_name = "PLAN")]
    pub plan: String,
    /// Fewer repetitions, and of the pages and links only those that the plan names for it; stamped as such
    #[arg(long)]
    pub quick: bool,
    /// Goes on where it was stopped
    #[arg(long)]
    pub resume: bool,
    /// The folder for what is measured [default: target/lab/PLAN, with --quick target/lab/PLAN-quick]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Runs `farhop lab list`.
///
/// # Errors
/// Standard output is closed.
pub fn list(_: &ListArguments) -> Result<(), PlanError> {
    let mut text = String::new();
    for (name, _) in SHIPPED {
        text.push_str(&format!("{name:12} {}\n", read(name)?.title));
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
    farhop_testbed::require_privileges()?;
    let interrupt = Interrupt::install()?;
    let stamp = if arguments.quick { "-quick" } else { "" };
    let out =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("target/lab/{}{stamp}", plan.name)));
    std::fs::create_dir_all(&out).map_err(PlanError::file(&out))?;
    let path = out.join("runs.jsonl");
    let (mut journal, mut runs) = match arguments.resume {
        true => Journal::resume(&path, &plan)?,
        false => (Journal::begin(&path, &plan)?, Vec::new()),
    };
    if !runs.is_empty() {
        eprintln!("{} loads are there already", runs.len());
    }
    let mut bench = Bench::prepare(&plan, interrupt)?;
    let done = carry_out(&plan, &mut runs, &mut journal, &mut |next| bench.load(next), &mut |line| {
        eprintln!("{line}")
    });
    // Whatever ended it: what was measured is told.
    drop(bench);
    write_results(&plan, &runs, arguments.quick, &out)?;
    eprintln!("results: {}", out.join("report.html").display());
    match done {
        Err(PlanError::Compare(CompareError::Interrupted)) => Err(PlanError::Stopped { done: runs.len() }),
        done => done,
    }
}

/// Makes every load that the course wants, and keeps each.
fn carry_out(
    plan: &Plan,
    runs: &mut Vec<Run>,
    journal: &mut Journal,
    load: &mut dyn FnMut(Next) -> Result<Run, PlanError>,
    progress: &mut dyn FnMut(&str),
) -> Result<(), PlanError> {
    let mut course = Course::new(plan, runs);
    while let Some(next) = course.next() {
        let run = load(next)?;
        journal.keep(&run)?;
        course.made(&run);
        let value = run.values.get(plan.goal.name()).filter(|_| run.counts());
        let told = match (value, run.faults.first()) {
            (Some(value), _) => format!("{} {value:.2} {}", plan.goal.name(), plan.goal.unit()),
            (None, Some(fault)) => fault.clone(),
            (None, None) => "nothing measured".into(),
        };
        let late = if run.late { ", the link was late" } else { "" };
        runs.push(run);
        let took: f64 = runs.iter().map(|run| run.took_s).sum::<f64>() / runs.len() as f64;
        let left = course.left().map(|loads| in_words(Duration::from_secs_f64(took * loads as f64)));
        let left = if left[0] == left[1] { left[0].clone() } else { format!("{} to {}", left[0], left[1]) };
        progress(&format!("{} #{}: {told}{late}; left {left}", plan.in_words(next.cell), next.round + 1));
    }
    Ok(())
}

fn write_results(plan: &Plan, runs: &[Run], quick: bool, out: &Path) -> Result<(), PlanError> {
    let study = study(plan, runs, quick);
    // Every field is a number, a text or a list of them: there is nothing that JSON could refuse.
    let json = serde_json::to_string_pretty(&study).unwrap_or_default() + "\n";
    for (name, text) in
        [("result.json", json), ("result.csv", study_csv(&study)), ("report.html", study_html(&study))]
    {
        let file = out.join(name);
        std::fs::write(&file, text).map_err(PlanError::file(&file))?;
    }
    Ok(())
}

fn wanted(name: &str, quick: bool) -> Result<Plan, PlanError> {
    let plan = read(name)?;
    Ok(if quick { plan.quickened() } else { plan })
}

/// The plan of this name, or in this file: a file's name ends in `.toml` or has a folder.
fn read(name: &str) -> Result<Plan, PlanError> {
    let mut open = |path: &Path| text_of(path).map_err(|error| error.to_string());
    if name.ends_with(".toml") || name.contains('/') {
        let text = text_of(Path::new(name))?;
        return Ok(Plan::from_toml(&text, name, &mut open)?);
    }
    Ok(Plan::from_toml(shipped(name)?, name, &mut open)?)
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
    let figures =
        plan.figures.iter().map(|figure| (format!("figure {}", figure.figure), figure.title.clone()));
    listed("figures", figures.collect());
    if !plan.notes.is_empty() {
        listed("notes", plan.notes.iter().map(|note| (String::new(), note.clone())).collect());
    }
    let cells = plan.cells().len();
    let estimate = estimate(plan);
    let [least, most] = estimate.loads;
    let [soon, late] = estimate.time.map(in_words);
    let (loads, time) = if least == most {
        (least.to_string(), soon)
    } else {
        (format!("{least} to {most}"), format!("{soon} to {late}"))
    };
    text.push_str(&format!("\n{cells} cells, {loads} loads, about {time}\n"));
    text
}

/// `40 s`, `12 min`, `3.5 h`: as precise as an estimate is.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 5400.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
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
                assert_eq!(plan.name, name);
                let text = shown(&plan);
                assert!(text.contains(" cells, ") && text.contains(" loads, about "), "{text}");
                assert!(plan.study.is_some() && !plan.figures.is_empty());
                assert!(plan.figures.iter().all(|figure| !figure.found.is_empty()), "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_plan_is_told_in_one_line() {
        let error = |name: &str| read(name).unwrap_err().to_string();
        assert!(error("httpep-9").starts_with("no plan is called 'httpep-9': there are httpep-5-6, "));
        assert!(error("/nowhere/x.toml").starts_with("/nowhere/x.toml: "));
    }

    #[test]
    fn a_run_that_was_stopped_goes_on_where_it_stopped_and_comes_to_the_same() {
        let plan = wanted("httpep-7", true).unwrap();
        let value =
            |next: Next| (next.cell.page * 100 + next.cell.link * 10 + next.cell.variant) as f64 + 1.0;
        let load = |next: Next| {
            let cell = next.cell;
            Ok(Run {
                page: plan.pages[cell.page].name.clone(),
                link: plan.links[cell.link].name.clone(),
                variant: plan.variants[cell.variant].name.clone(),
                round: next.round,
                seed: next.seed,
                values: [("load".to_owned(), value(next))].into(),
                ..Run::default()
            })
        };
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole.jsonl");
        let mut all = Vec::new();
        let mut journal = Journal::begin(&whole, &plan).unwrap();
        carry_out(&plan, &mut all, &mut journal, &mut { load }, &mut |_| {}).unwrap();
        assert_eq!(all.len(), plan.cells().len() * plan.runs.least as usize);

        // Stopped after three, in the middle of writing the fourth.
        let path = folder.path().join("runs.jsonl");
        let (mut journal, mut runs) = Journal::resume(&path, &plan).unwrap();
        let mut made = 0;
        let mut three = |next| {
            made += 1;
            if made > 3 { Err(CompareError::Interrupted.into()) } else { load(next) }
        };
        let stopped = carry_out(&plan, &mut runs, &mut journal, &mut three, &mut |_| {});
        assert!(matches!(stopped, Err(PlanError::Compare(CompareError::Interrupted))));
        let mut torn = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"page\":\"httpep").unwrap();
        let (mut journal, mut runs) = Journal::resume(&path, &plan).unwrap();
        assert_eq!(runs.len(), 3);
        carry_out(&plan, &mut runs, &mut journal, &mut { load }, &mut |_| {}).unwrap();
        assert_eq!(runs, all);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::fs::read_to_string(&whole).unwrap());

        // Of another plan nothing is taken over, and nothing of it is lost.
        let other = wanted("httpep-8", true).unwrap();
        assert!(matches!(Journal::resume(&path, &other), Err(PlanError::OtherPlan { .. })));
        assert_eq!(Journal::resume(&path, &plan).unwrap().1.len(), all.len());
    }
}
