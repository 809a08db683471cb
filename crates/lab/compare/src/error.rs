//! Why a comparison could not be made. What goes wrong within a load is a result, not an error.

use std::path::PathBuf;

use farhop_workload::browser::BrowserError;
use farhop_workload::npm::NpmError;
use farhop_workload::origins::OriginsError;
use farhop_workload::pages::PageError;

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The user stopped it.
    #[error("stopped")]
    Interrupted,
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Arguments(String),
    /// The testbed did not come up or broke.
    #[error(transparent)]
    Testbed(#[from] farhop_testbed::Error),
    /// The origins did not come up.
    #[error("{reason}: {said}")]
    Origins {
        /// What is wrong.
        reason: OriginsError,
        /// The last words of their process.
        said: String,
    },
    /// The origins cannot be served by this process.
    #[error(transparent)]
    Serve(#[from] OriginsError),
    /// A page of the demonstration cannot be built.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A package is missing.
    #[error(transparent)]
    Npm(#[from] NpmError),
    /// The browser cannot be run.
    #[error(transparent)]
    Browser(#[from] BrowserError),
    /// One of Farhop's ends failed.
    #[error("farhop {end}: {reason}")]
    End {
        /// `remote`, `ground` or `keygen`.
        end: &'static str,
        /// What happened, with its last words.
        reason: String,
    },
    /// A program of others failed.
    #[error("{name}: {reason}")]
    Peer {
        /// The program.
        name: &'static str,
        /// What happened, with its last words.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl CompareError {
    /// For `map_err`: an error about `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> CompareError {
        let path = path.into();
        move |source| CompareError::File { path, source }
    }
}
