//! Why a plan cannot be carried out. A load that goes wrong is a result, not an error.

use std::path::PathBuf;

use crate::read::FileError;

/// Why a plan cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan itself.
    #[error(transparent)]
    Plan(#[from] FileError),
    /// No plan has this name.
    #[error(
        "no plan is called '{name}': there are {known}; a plan of your own is a file whose name ends in .toml"
    )]
    Unknown {
        /// As it was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// What was measured before belongs to another plan.
    #[error(
        "{path} holds runs of another plan, or of this one before it was changed; name another folder with --out, or begin anew with --fresh"
    )]
    OtherPlan {
        /// The journal.
        path: PathBuf,
    },
    /// Another run writes there.
    #[error("{path}: another run has this folder; wait for its end, or name another one with --out")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// What was measured before is there, and nobody said what becomes of it.
    #[error(
        "{path} holds {loads}: --resume goes on from there, --fresh begins anew, --out names another folder"
    )]
    HasLoads {
        /// The folder.
        path: PathBuf,
        /// How many loads it holds, in words.
        loads: String,
    },
    /// A line of the journal that is none.
    #[error("{path}:{line}: {reason}")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The user stopped it; what is measured is kept.
    #[error("stopped after {done}: what is measured is kept, --resume goes on")]
    Stopped {
        /// How many loads are kept, in words.
        done: String,
    },
    /// Loads went wrong; what is measured is kept and told.
    #[error("{loads} went wrong: {report} says why")]
    Loads {
        /// How many of this run, in words.
        loads: String,
        /// Where it stands.
        report: PathBuf,
    },
    /// The lab's scene, its ends or pages.
    #[error(transparent)]
    Compare(#[from] farhop_compare::CompareError),
    /// The testbed.
    #[error(transparent)]
    Testbed(#[from] farhop_testbed::Error),
    /// A page cannot be built.
    #[error(transparent)]
    Page(#[from] farhop_workload::pages::PageError),
    /// A page that was to be recorded does not load.
    #[error("{url} does not load: {reason}")]
    Record {
        /// The page.
        url: String,
        /// What happened.
        reason: String,
    },
    /// A recording is none.
    #[error(transparent)]
    Recording(#[from] farhop_workload::recorded::RecordingError),
    /// A page cannot be read.
    #[error(transparent)]
    Graph(#[from] farhop_loader::GraphError),
    /// The loader cannot be set up.
    #[error(transparent)]
    Loader(#[from] farhop_loader::LoaderError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl PlanError {
    /// For `map_err`: an error about `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> PlanError {
        let path = path.into();
        move |source| PlanError::File { path, source }
    }
}
