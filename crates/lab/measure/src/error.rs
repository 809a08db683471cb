//! Why something could not be measured. A bound that is missed is a result, not an error.

use std::io;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// `--only` names nothing.
    #[error("no group of rows is called like '{word}', known are {known}")]
    NoGroup {
        /// What was asked for.
        word: String,
        /// What there is.
        known: String,
    },
    /// The testbed did not come up or broke.
    #[error(transparent)]
    Testbed(#[from] farhop_testbed::Error),
    /// Pages could not be compared, or an end did not start.
    #[error(transparent)]
    Compare(#[from] farhop_compare::CompareError),
    /// A download over a carrier could not be timed.
    #[error(transparent)]
    Transport(#[from] farhop_lab_transport::TransportError),
    /// Pages of packages cannot be had.
    #[error(transparent)]
    Packages(#[from] farhop_workload::packages::PackageError),
    /// Of the machine below.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody reads the rows.
    #[error("standard output: {0}")]
    Output(io::Error),
    /// A peer did not do what it had to for the measurement to begin.
    #[error("{0}")]
    Unexpected(String),
}

impl MeasureError {
    /// For `map_err`: an error of the system while doing `what`.
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> MeasureError {
        move |source| MeasureError::System { what, source }
    }

    /// Whether the user wants it to end.
    pub(crate) fn is_interruption(&self) -> bool {
        use farhop_compare::CompareError::Interrupted;
        use farhop_lab_transport::TransportError;
        matches!(
            self,
            MeasureError::Compare(Interrupted)
                | MeasureError::Transport(TransportError::Compare(Interrupted))
        )
    }
}
