//! What a plan of experiments found, as data. Its JSON is an interface: `schema/study.json` describes it and a test holds
//! both together.

mod claim;
mod csv;
mod dynamics;
mod html;
mod loads;
mod markdown;
mod plot;

use std::collections::BTreeMap;

use farhop_statistics::{Method, Shift, Summary};
use serde::{Deserialize, Serialize};

pub use claim::StudyClaim;
pub use csv::study_csv;
pub use dynamics::{Dynamics, Series};
pub use html::study_html;
pub use loads::{Still, StudyLoad};
pub use markdown::StudyPage;

use crate::Named;

/// The JSON schema of [`Study`].
pub const STUDY_SCHEMA: &str = include_str!("../../schema/study.json");

/// Everything that one plan found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// The plan's name.
    pub plan: String,
    /// What it is about.
    pub title: String,
    /// The study that it repeats; none where it repeats none.
    pub study: Option<String>,
    /// Whether it was run with fewer repetitions or cells than the plan has.
    pub quick: bool,
    /// Whether every cell has the repetitions that were wanted.
    pub complete: bool,
    /// Repetitions of each cell: at least, and at most.
    pub runs: [u32; 2],
    /// Half of the 95 % interval that ends the repetitions, as a share of the median.
    pub within: f64,
    /// The first repetition's seed; each further one's is one more.
    pub seed: u64,
    /// What was loaded.
    pub pages: Vec<Named>,
    /// Over what.
    pub links: Vec<Named>,
    /// In which ways.
    pub variants: Vec<Named>,
    /// What was measured: name and unit.
    pub measures: Vec<Named>,
    /// One cell for each page, link and variant.
    pub cells: Vec<StudyCell>,
    /// What pairs of variants say, each against the plan's base.
    pub shifts: Vec<StudyShift>,
    /// The figures.
    pub plots: Vec<Plot>,
    /// What the study says in figures, and what was found here.
    pub claims: Vec<StudyClaim>,
    /// Figures of single loads over time.
    pub dynamics: Vec<Dynamics>,
    /// Single loads resource by resource, for the report alone.
    #[serde(skip)]
    pub loads: Vec<StudyLoad>,
    /// How it was measured.
    pub method: Vec<String>,
    /// What a reader must be told.
    pub notes: Vec<String>,
}

/// One page over one link in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyCell {
    /// The page's name.
    pub page: String,
    /// The link's name.
    pub link: String,
    /// The variant's name.
    pub variant: String,
    /// Loads that count: every byte right.
    pub runs: u32,
    /// Those of them during which the link was late, though repeated: an indication, not a measurement.
    pub late: u32,
    /// Whether the 95 % interval of the measure that the plan goes by is narrow enough.
    pub settled: bool,
    /// By measure.
    pub values: BTreeMap<String, StudySummary>,
    /// By measure, load by load that counts.
    pub each: BTreeMap<String, Vec<f64>>,
    /// What went wrong in loads that do not count, one line each.
    pub failures: Vec<String>,
}

/// Repeated measurements, summed up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StudySummary {
    /// How many there were.
    pub count: usize,
    /// The middle one.
    pub median: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Student's 95 % interval of the mean; none of a single one.
    pub interval: Option<[f64; 2]>,
}

/// What a variant differs from the base by, run for run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyShift {
    /// The page's name.
    pub page: String,
    /// The link's name.
    pub link: String,
    /// What was measured.
    pub measure: String,
    /// The variant that it is compared with.
    pub base: String,
    /// The variant.
    pub variant: String,
    /// Runs in which both count.
    pub pairs: usize,
    /// By how much it is more than the base (Hodges and Lehmann).
    pub shift: f64,
    /// Where that lies with 95 % confidence; none of a single pair.
    pub interval: Option<[f64; 2]>,
    /// `signed ranks` or `student`.
    pub method: String,
    /// Matched-pairs rank-biserial correlation, -1 to 1.
    pub effect: f64,
    /// `more`, `less`, `no difference`, or `too few pairs` where there is no interval to say it by.
    pub verdict: String,
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// The study's number for it; empty where it has none.
    pub figure: String,
    /// Where in the study it stands.
    pub place: String,
    /// What it shows.
    pub title: String,
    /// The axis across.
    pub x: String,
    /// The axis upwards, with its unit.
    pub y: String,
    /// What the study found.
    pub found: String,
    /// One line for each variant.
    pub lines: Vec<Line>,
}

/// One line of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// The median, or what else the figure is of.
    pub y: f64,
    /// Student's 95 % interval of the mean; none of a single one, and where the figure is of an extreme.
    pub interval: Option<[f64; 2]>,
}

impl From<Summary> for StudySummary {
    fn from(summary: Summary) -> StudySummary {
        let Summary { count, median, mean, p95, min, max, interval } = summary;
        let interval = interval.map(|interval| [interval.low, interval.high]);
        StudySummary { count, median, mean, p95, min, max, interval }
    }
}

impl StudyShift {
    /// The words for a shift.
    pub fn words(shift: &Shift) -> (&'static str, &'static str) {
        let method = match shift.method {
            Method::SignedRanks => "signed ranks",
            Method::Student => "student",
        };
        let verdict = match (shift.interval, shift.is_shown(), shift.shift > 0.0) {
            (None, ..) => "too few pairs",
            (_, false, _) => "no difference",
            (_, true, true) => "more",
            (_, true, false) => "less",
        };
        (method, verdict)
    }
}

impl Study {
    /// The cell of a page, a link and a variant.
    pub fn cell(&self, page: &str, link: &str, variant: &str) -> Option<&StudyCell> {
        self.cells.iter().find(|cell| cell.page == page && cell.link == link && cell.variant == variant)
    }

    /// `quick: 2 runs where the plan has 3 to 10`, or what is stamped on a report that is none.
    pub fn stamp(&self) -> String {
        // What could not be loaded here is counted apart: it will have no more runs.
        let (none, cells): (Vec<&StudyCell>, Vec<&StudyCell>) =
            self.cells.iter().partition(|cell| cell.runs == 0 && !cell.failures.is_empty());
        let least = cells.iter().map(|cell| cell.runs).min().unwrap_or(0);
        let most = cells.iter().map(|cell| cell.runs).max().unwrap_or(0);
        let none = match none.len() {
            0 => String::new(),
            1 => "; 1 could not be loaded".to_owned(),
            none => format!("; {none} could not be loaded"),
        };
        let runs = match (least, most) {
            (1, 1) => "1 run".to_owned(),
            (least, most) if least == most => format!("{least} runs"),
            (least, most) => format!("{least} to {most} runs"),
        };
        match (self.quick, self.complete) {
            (true, true) => format!("quick: {runs} of each cell, fewer than the plan has{none}"),
            (true, false) => format!("quick and unfinished: {runs} of each cell so far{none}"),
            (false, false) => format!("unfinished: {runs} of each cell so far{none}"),
            (false, true) => format!("{runs} of each cell{none}"),
        }
    }

    /// The unit of a measure.
    pub(crate) fn unit(&self, measure: &str) -> &str {
        self.measures.iter().find(|known| known.name == measure).map_or("", |known| known.words.as_str())
    }
}
