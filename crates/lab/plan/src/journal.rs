//! Loads as they are made, one JSON line each, on disk before the next one begins: an interruption loses nothing.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use farhop_report::{Series, StudyLoad};
use serde::{Deserialize, Serialize};

use crate::digest::Before;
use crate::error::PlanError;
use crate::plan::{Cell, Plan};

/// The form of the file; another one is not read.
const VERSION: u32 = 1;

/// One load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The page's name.
    pub page: String,
    /// The link's name.
    pub link: String,
    /// The variant's name.
    pub variant: String,
    /// The repetition, from 0.
    pub round: u32,
    /// The seed of the link.
    pub seed: u64,
    /// By measure; nothing where the load did not come right.
    pub values: BTreeMap<String, f64>,
    /// Whether the link was late in each attempt: an indication, not a measurement.
    pub late: bool,
    /// What went wrong, one line each.
    pub faults: Vec<String>,
    /// How long it took with all that belongs to it, in seconds.
    pub took_s: f64,
    /// Rates and connections over time, where the plan draws them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// What a reader must be told of the link that was brought up for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a journal begins with.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    farhop_plan: u32,
    plan: String,
    digest: String,
}

/// A journal that is open for more.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Run {
    /// As it is kept.
    #[must_use]
    pub(crate) fn in_brief(mut self) -> Run {
        self.values.values_mut().for_each(|value| *value = brief(*value));
        self
    }

    /// Whether it is the same load of the same repetition.
    pub(crate) fn is_same_load(&self, other: &Run) -> bool {
        let of = |run: &Run| (run.page.clone(), run.link.clone(), run.variant.clone(), run.round);
        of(self) == of(other)
    }

    /// Whether every byte was right.
    pub fn counts(&self) -> bool {
        self.faults.is_empty()
    }

    /// Its cell; none where the plan has it no more.
    pub(crate) fn cell(&self, plan: &Plan) -> Option<Cell> {
        Some(Cell {
            link: plan.links.iter().position(|link| link.name == self.link)?,
            page: plan.pages.iter().position(|page| page.name == self.page)?,
            variant: plan.variants.iter().position(|variant| variant.name == self.variant)?,
        })
    }
}

/// Five digits that count: more says nothing of a measurement, and results are committed.
pub(crate) fn brief(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

impl Journal {
    /// Begins a journal where there is none.
    ///
    /// # Errors
    /// Something stands at `path`, or the disk refuses.
    pub fn begin(path: &Path, plan: &Plan) -> Result<Journal, PlanError> {
        let file = File::create_new(path).map_err(PlanError::file(path))?;
        let mut journal = Journal { path: path.into(), file };
        journal.line(&head(plan))?;
        Ok(journal)
    }

    /// Goes on with the journal at `path`, or begins one where there is none: the loads that it has. A last line that was
    /// not finished is cut off.
    ///
    /// # Errors
    /// It is of another plan, damaged, or cannot be read.
    pub fn resume(path: &Path, plan: &Plan) -> Result<(Journal, Vec<Run>), PlanError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((Journal::begin(path, plan)?, Vec::new()));
            }
            Err(error) => return Err(PlanError::file(path)(error)),
        };
        let whole = whole_lines(&text);
        if whole == 0 {
            std::fs::remove_file(path).map_err(PlanError::file(path))?;
            return Ok((Journal::begin(path, plan)?, Vec::new()));
        }
        let runs = loads(path, &text[..whole], plan)?;
        let (first, rest) = text[..whole].split_once('\n').unwrap_or_default();
        if serde_json::from_str::<Head>(first).ok() != Some(head(plan)) {
            // Something has been added: from now on it is a journal of the plan with it.
            let part = path.with_extension("part");
            let text = serde_json::to_string(&head(plan)).unwrap_or_default() + "\n" + rest;
            std::fs::write(&part, text)
                .and_then(|()| std::fs::rename(&part, path))
                .map_err(PlanError::file(path))?;
            return Journal::resume(path, plan);
        }
        let mut file = OpenOptions::new().write(true).open(path).map_err(PlanError::file(path))?;
        file.set_len(whole as u64).map_err(PlanError::file(path))?;
        file.seek(SeekFrom::End(0)).map_err(PlanError::file(path))?;
        Ok((Journal { path: path.into(), file }, runs))
    }

    /// The loads of the journal at `path`, which is left as it is. A last line that was not finished is passed over.
    ///
    /// # Errors
    /// It is of another plan, damaged, or cannot be read.
    pub fn read(path: &Path, plan: &Plan) -> Result<Vec<Run>, PlanError> {
        let text = std::fs::read_to_string(path).map_err(PlanError::file(path))?;
        loads(path, &text[..whole_lines(&text)], plan)
    }

    /// How many lines the file at `path` has besides a journal's first, of whatever plan: what cannot be read may be worth
    /// something, too.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn count(path: &Path) -> Result<u64, PlanError> {
        match std::fs::read(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let is_head = |line: &&str| serde_json::from_str::<Head>(line).is_ok();
                Ok(text.lines().filter(|line| !is_head(line)).count() as u64)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(PlanError::file(path)(error)),
        }
    }

    /// Keeps a load.
    ///
    /// # Errors
    /// The disk refuses; what was kept before stays.
    pub fn keep(&mut self, run: &Run) -> Result<(), PlanError> {
        self.line(run)
    }

    fn line(&mut self, content: &impl Serialize) -> Result<(), PlanError> {
        // Every field is a number, a text or a list of them: there is nothing that JSON could refuse.
        let text = serde_json::to_string(content).unwrap_or_default() + "\n";
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(PlanError::file(&self.path))
    }
}

/// Loads for people to look at, one JSON line each. What of it is lost is not measured anew: the numbers are in the journal.
#[derive(Debug)]
pub(crate) struct Gallery {
    path: PathBuf,
    file: File,
}

impl Gallery {
    /// Begins anew; what stands at `path` goes.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn begin(path: &Path) -> Result<Gallery, PlanError> {
        Ok(Gallery { path: path.into(), file: File::create(path).map_err(PlanError::file(path))? })
    }

    /// Goes on, with those that it has; a line that is none is passed over.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn resume(path: &Path) -> Result<(Gallery, Vec<StudyLoad>), PlanError> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let loads: Vec<StudyLoad> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut gallery = Gallery::begin(path)?;
        loads.iter().try_for_each(|load| gallery.keep(load))?;
        Ok((gallery, loads))
    }

    /// Keeps one.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn keep(&mut self, load: &StudyLoad) -> Result<(), PlanError> {
        let text = serde_json::to_string(load).unwrap_or_default() + "\n";
        self.file.write_all(text.as_bytes()).map_err(PlanError::file(&self.path))
    }
}

/// How much of a journal is lines that were finished.
fn whole_lines(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

/// The loads of a journal of this plan, or of what it was before variants, pages or links were added to it.
fn loads(path: &Path, text: &str, plan: &Plan) -> Result<Vec<Run>, PlanError> {
    let mut lines = text.lines();
    let first = lines.next().and_then(|first| serde_json::from_str::<Head>(first).ok());
    let runs = lines.enumerate().map(|(place, line)| {
        serde_json::from_str(line).map_err(|error| PlanError::Journal {
            path: path.into(),
            line: place + 2,
            reason: format!("this is no load: {error}"),
        })
    });
    let own = head(plan);
    if first.as_ref() == Some(&own) {
        return runs.collect();
    }
    // Of another plan nothing needs to be legible.
    let runs: Option<Vec<Run>> = runs.map(Result::ok).collect();
    let was_of = |runs: &Vec<Run>| {
        let has_runs = |variant: &str| runs.iter().any(|run| run.variant == variant);
        let has_all = |_: &str| true;
        let links = plan.links.len();
        let mut counts =
            (1..=plan.pages.len()).flat_map(|pages| (1..=links).map(move |links| (pages, links)));
        counts.any(|(pages, links)| {
            [&has_runs as &dyn Fn(&str) -> bool, &has_all].into_iter().any(|has_variant| {
                let before = Before { pages, links, has_variant };
                first == Some(Head { digest: plan.source.digest_with(&before), ..head(plan) })
            })
        })
    };
    runs.filter(was_of).ok_or_else(|| PlanError::OtherPlan { path: path.into() })
}

fn head(plan: &Plan) -> Head {
    Head { farhop_plan: VERSION, plan: plan.name.clone(), digest: plan.digest.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of one page over one link in these ways.
    fn plan(variants: &[&str]) -> Plan {
        let page =
            "title = 'x'\n[[page]]\nname = 'p'\nobjects = 1\nobject = '1 KB'\n[[link]]\nname = 'geo-2m'\n";
        let variants = variants.iter().enumerate();
        let variants = variants
            .map(|(place, name)| format!("[[variant]]\nname = '{name}'\nconnections = {}\n", place + 1));
        let text = page.to_owned() + &variants.collect::<String>();
        Plan::from_toml(&text, "mine.toml", &mut |_| Err("there is none".into())).unwrap()
    }

    #[test]
    fn loads_stay_good_when_variants_are_added_and_not_when_one_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let mut journal = Journal::begin(&path, &plan(&["one", "two"])).unwrap();
        for variant in ["one", "two"] {
            let run =
                Run { page: "p".into(), link: "geo-2m".into(), variant: variant.into(), ..Run::default() };
            journal.keep(&run).unwrap();
        }
        let before = std::fs::read_to_string(&path).unwrap();
        let more = plan(&["one", "two", "new"]);
        assert_eq!(Journal::read(&path, &more).unwrap().len(), 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "what is read is left as it is");
        let (mut journal, runs) = Journal::resume(&path, &more).unwrap();
        assert_eq!(runs.len(), 2);
        journal.keep(&Run { variant: "new".into(), ..runs[0].clone() }).unwrap();
        assert_eq!(Journal::read(&path, &more).unwrap().len(), 3);
        // So do they when pages and links are added.
        let (link, added) = (
            "[[link]]\nname = 'geo-2m'\n",
            "[[page]]\nname = 'q'\nobjects = 2\nobject = '1 KB'\n[[link]]\nname = 'geo-2m'\n[[link]]\nname = 'geo-256k'\n",
        );
        let grown = more.source.text.replacen(link, added, 1);
        let grown = Plan::from_toml(&grown, "mine.toml", &mut |_| Err("there is none".into())).unwrap();
        assert_eq!((grown.pages.len(), grown.links.len()), (2, 2));
        assert_eq!(Journal::read(&path, &grown).unwrap().len(), 3);
        for other in [plan(&["one", "two"]), plan(&["two", "one", "new"]), plan(&["one", "new"])] {
            assert!(matches!(Journal::read(&path, &other), Err(PlanError::OtherPlan { .. })));
        }
    }

    #[test]
    fn what_is_kept_has_five_digits_that_count() {
        assert_eq!(
            [0.0, 12.345_678, 0.000_123_456_7, 9_876_543.0].map(brief),
            [0.0, 12.346, 0.000_123_46, 9_876_500.0]
        );
        let values = [("load".to_owned(), 4.716_393_82)].into();
        assert_eq!(Run { values, ..Run::default() }.in_brief().values["load"], 4.7164);
    }
}
