//! `farhop lab list|show|run|summary|record`: experiments as plans. A plan is a TOML file that names pages, links, variants, measures,
//! repetitions and figures; one command carries it out on the testbed and can be interrupted and resumed.
//!
//! [`Plan::from_toml`] reads one, [`Course`] says which load is next and when there are enough, [`Journal`] keeps each on
//! disk as soon as it is done, [`study`] sums them up. These know no testbed; `bench` is what loads, with the loader of
//! `crates/lab/loader`.

mod attempt;
mod bench;
mod cli;
mod course;
mod digest;
mod dressing;
mod error;
mod estimate;
mod fall;
mod figures;
mod folder;
mod form;
mod journal;
mod lanes;
mod lasting;
mod measure;
mod own;
mod pages;
mod plan;
mod read;
mod record;
mod shipped;
mod sum;
mod summary;
mod variant;
mod words;

pub use cli::{ListArguments, RunArguments, ShowArguments, list, run, show};
pub use course::{Course, Next};
pub use error::PlanError;
pub use estimate::{Estimate, estimate};
pub use journal::{Journal, Run};
pub use measure::Measure;
pub use plan::{
    Axis, Cell, Claim, Client, Dressing, DynamicsFigure, Figure, LinkSpec, PageKind, PageSpec, Plan, Quick,
    Runs, Statistic, Through, VariantSpec,
};
pub use read::FileError;
pub use record::{RecordArguments, record};
pub use shipped::{SHIPPED, shipped};
pub use sum::study;
pub use summary::{SummaryArguments, pages, summary};
