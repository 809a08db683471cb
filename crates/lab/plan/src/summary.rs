//! `farhop lab summary`: pages of documentation made of results that are kept beside the plans, and from a fresh clone again.

use std::path::{Path, PathBuf};

use farhop_report::Study;

use crate::course::Course;
use crate::error::PlanError;
use crate::estimate::estimate;
use crate::journal::{Journal, Run};
use crate::lanes::between;
use crate::plan::Plan;
use crate::shipped::SHIPPED;
use crate::sum::study;

/// The folders within that of the experiments.
pub(crate) const RESULTS: &str = "results";
const FIGURES: &str = "figures";
/// The page that names all others.
const INDEX: &str = "results.md";

/// Makes pages of the results in docs/experiments/results: for each plan its figures, with what the study found and what was
/// measured here, and one that names them all.
#[derive(Debug, clap::Args)]
pub struct SummaryArguments {
    /// Plans whose loads are taken over first, from target/lab/PLAN and target/lab/PLAN-quick [default: none]
    #[arg(long, value_name = "PLAN", value_delimiter = ',')]
    pub take: Vec<String>,
    /// Where plans run into
    #[arg(long, value_name = "DIR", default_value = "target/lab")]
    pub from: PathBuf,
    /// The folder of the experiments
    #[arg(long, value_name = "DIR", default_value = "docs/experiments")]
    pub folder: PathBuf,
}

/// A plan with what is kept of it.
struct Known {
    plan: Plan,
    runs: Vec<Run>,
}

/// Runs `farhop lab summary`.
///
/// # Errors
/// There is no such plan, its results belong to another one, or the disk refuses.
pub fn summary(arguments: &SummaryArguments) -> Result<(), PlanError> {
    for name in &arguments.take {
        let plan = crate::cli::read(name)?;
        let taken = take(&plan, &arguments.from, &arguments.folder)?;
        eprintln!("{name}: {taken} loads are kept");
    }
    for (path, text) in pages(&arguments.folder)? {
        let file = arguments.folder.join(path);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(PlanError::file(folder))?;
        }
        std::fs::write(&file, text).map_err(PlanError::file(&file))?;
    }
    eprintln!("results: {}", arguments.folder.join(INDEX).display());
    Ok(())
}

/// Takes over what was measured of a plan, whole or quick, beside what is kept already; how many loads that makes.
fn take(plan: &Plan, from: &Path, folder: &Path) -> Result<usize, PlanError> {
    let kept = folder.join(RESULTS).join(format!("{}.jsonl", plan.name));
    let sources = [
        from.join(&plan.name).join(crate::folder::RUNS),
        from.join(format!("{}-quick", plan.name)).join(crate::folder::RUNS),
        kept.clone(),
    ];
    let mut all: Vec<Run> = Vec::new();
    for path in sources.iter().filter(|path| path.exists()) {
        for run in Journal::read(path, plan)? {
            match all.iter_mut().find(|known| known.is_same_load(&run)) {
                None => all.push(run.in_brief()),
                // It was made again since the link had been late.
                Some(known) if known.late && !run.late => *known = run.in_brief(),
                Some(_) => {}
            }
        }
    }
    if all.is_empty() {
        let nothing = format!("nothing of {} was measured yet: farhop lab run {}", plan.name, plan.name);
        return Err(PlanError::file(&sources[0])(std::io::Error::other(nothing)));
    }
    std::fs::create_dir_all(folder.join(RESULTS)).map_err(PlanError::file(folder))?;
    // In whole or not at all: hours may be in what stands there.
    let beside = kept.with_extension("new");
    if beside.exists() {
        std::fs::remove_file(&beside).map_err(PlanError::file(&beside))?;
    }
    let mut journal = Journal::begin(&beside, plan)?;
    for run in &all {
        journal.keep(run)?;
    }
    std::fs::rename(&beside, &kept).map_err(PlanError::file(&kept))?;
    Ok(all.len())
}

/// Every page and drawing, by its path in `folder`, of the results that it holds.
///
/// # Errors
/// Results belong to another plan, or cannot be read.
pub fn pages(folder: &Path) -> Result<Vec<(PathBuf, String)>, PlanError> {
    let (mut files, mut rows) = (Vec::new(), Vec::new());
    for (name, _) in SHIPPED {
        let path = folder.join(RESULTS).join(format!("{name}.jsonl"));
        if !path.exists() {
            continue;
        }
        let plan = crate::cli::read(name)?;
        let known = Known { runs: Journal::read(&path, &plan)?, plan };
        let (study, again) = known.study();
        let page = study.markdown(&again, FIGURES);
        rows.push(row(&study));
        files.push((PathBuf::from(format!("{name}.md")), page.text));
        files.extend(page.pictures.into_iter().map(|(name, svg)| (Path::new(FIGURES).join(name), svg)));
    }
    let mut times = Vec::new();
    for (name, _) in SHIPPED {
        let plan = crate::cli::read(name)?;
        let [whole, quick] = [&plan, &plan.quickened()].map(|plan| between(estimate(plan).time));
        times.push(format!("| `{name}` | {whole} | {quick} |\n"));
    }
    files.push((PathBuf::from(INDEX), index(&rows, &times)));
    Ok(files)
}

impl Known {
    /// The whole plan where each of its cells was loaded, finished or not, else what is quick of it; and the command for that.
    fn study(&self) -> (Study, String) {
        let name = &self.plan.name;
        let quick = self.plan.quickened();
        let is_of_whole = |run: &Run| run.round >= quick.runs.most || run.cell(&quick).is_none();
        if Course::new(&self.plan, &self.runs).is_begun_everywhere() && self.runs.iter().any(is_of_whole) {
            return (study(&self.plan, &self.runs, false), format!("farhop lab run {name}"));
        }
        (study(&quick, &self.runs, true), format!("farhop lab run {name} --quick"))
    }
}

fn row(study: &Study) -> String {
    let Study { plan, title, .. } = study;
    format!("| [{plan}]({plan}.md) | {title} | {} | {} |\n", study.stamp(), study.verdicts())
}

fn index(rows: &[String], times: &[String]) -> String {
    format!(
        "# What was measured\n\nMade by `farhop lab summary` of the loads in [results]({RESULTS}); [README.md](README.md) says which plan repeats what. \
         What a study says is confirmed where the change is between half and double of the study's, or where it tells none, has its direction; each page has a sentence on each.\n\n\
         | plan | what | loads | what the study says |\n|---|---|---|---|\n{}\n\
         ## How long each plan takes\n\n\
         As `farhop lab list` estimates it for one testbed: with as few repetitions as the plan has and with as many. Cells that want what a machine lacks take none of it; \
         loads that meet a late link are repeated and take longer.\n\n\
         | plan | whole | `--quick` |\n|---|---|---|\n{}",
        rows.concat(),
        times.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped::shipped;

    fn plan() -> Plan {
        let text = shipped("httpep-7").unwrap();
        Plan::from_toml(text, "httpep-7", &mut |_| Err("nothing".into())).unwrap()
    }

    /// All of a quick run, in which the n-th variant takes n seconds.
    fn live(plan: &Plan, path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut journal = Journal::begin(path, plan).unwrap();
        let quick = plan.quickened();
        let mut course = Course::new(&quick, &[]);
        while let Some(next) = course.next() {
            let run = Run {
                page: quick.pages[next.cell.page].name.clone(),
                link: quick.links[next.cell.link].name.clone(),
                variant: quick.variants[next.cell.variant].name.clone(),
                round: next.round,
                seed: next.seed,
                values: [("load".to_owned(), next.cell.variant as f64 + 1.234_567)].into(),
                ..Run::default()
            };
            course.made(&run);
            journal.keep(&run).unwrap();
        }
    }

    #[test]
    fn a_quick_run_becomes_a_page_that_says_so_and_a_whole_one_goes_on_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to, plan) = (folder.path().join("lab"), folder.path().join("docs"), plan());
        live(&plan, &from.join("httpep-7-quick/runs.jsonl"));
        let count = take(&plan, &from, &to).unwrap();
        assert_eq!(take(&plan, &from, &to).unwrap(), count, "no load twice");

        let files = pages(&to).unwrap();
        let text = |name: &str| &files.iter().find(|(path, _)| path.ends_with(name)).unwrap().1;
        let page = text("httpep-7.md");
        assert!(page.contains("**quick: ") && page.contains("`farhop lab run httpep-7 --quick`"), "{page}");
        assert!(page.contains("](figures/httpep-7-1.svg)") && text("httpep-7-1.svg").starts_with("<svg "));
        assert!(text("results.md").contains("| [httpep-7](httpep-7.md) | "));

        // What is kept is a journal, of the quick plan and of the whole one.
        let kept = to.join("results/httpep-7.jsonl");
        let (_, runs) = Journal::resume(&kept, &plan.quickened()).unwrap();
        assert!(Course::new(&plan.quickened(), &runs).next().is_none());
        let whole = Course::new(&plan, &runs);
        assert_eq!(whole.left()[0], (plan.cells().len() as u32 * plan.runs.least) as u64 - count as u64);
        assert!(runs.iter().all(|run| run.values["load"].to_string().len() <= 6), "in brief");

        // Once each cell of the whole has a load, it is the whole that is shown, as unfinished.
        let path = from.join("httpep-7/runs.jsonl");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut journal = Journal::begin(&path, &plan).unwrap();
        for cell in plan.cells() {
            let run = Run {
                page: plan.pages[cell.page].name.clone(),
                link: plan.links[cell.link].name.clone(),
                variant: plan.variants[cell.variant].name.clone(),
                values: [("load".to_owned(), 7.0)].into(),
                ..Run::default()
            };
            journal.keep(&run).unwrap();
        }
        take(&plan, &from, &to).unwrap();
        let page = pages(&to).unwrap().into_iter().find(|(path, _)| path.ends_with("httpep-7.md")).unwrap().1;
        assert!(
            page.contains("**unfinished: 1 to 2 runs") && page.contains("`farhop lab run httpep-7`"),
            "{page}"
        );
    }

    #[test]
    fn nothing_measured_is_told_with_the_command_that_measures() {
        let folder = tempfile::tempdir().unwrap();
        let error = take(&plan(), folder.path(), folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("nothing of httpep-7 was measured yet: farhop lab run httpep-7"), "{error}");
        assert_eq!(pages(folder.path()).unwrap().len(), 1, "the page that names none");
    }
}
