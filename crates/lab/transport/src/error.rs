//! Why carriers could not be measured. A download that fails is a result, not an error.

use std::io;
use std::path::PathBuf;

/// Why carriers could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The testbed did not come up or broke.
    #[error(transparent)]
    Testbed(#[from] farhop_testbed::Error),
    /// An end did not start, or the user stopped it.
    #[error(transparent)]
    Compare(#[from] farhop_compare::CompareError),
    /// Of the machine below.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written, or is not there.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something is not as it has to be for the measurement to begin.
    #[error("{0}")]
    Unexpected(String),
}

impl TransportError {
    /// For `map_err`: an error of the system while doing `what`.
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> TransportError {
        move |source| TransportError::System { what, source }
    }

    /// For `map_err`: an error about `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> TransportError {
        let path = path.into();
        move |source| TransportError::File { path, source }
    }
}
