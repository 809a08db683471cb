//! Where an end's settings come from: a file, with `--set` over it.

use std::path::PathBuf;

use farhop_settings::{Checked, SettingsError, load};

#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The settings file; `farhop check --sample remote` (or ground, local, link) prints one to start from.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Sets one value over the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl Source {
    /// The settings as they are now: a file may have been changed since.
    ///
    /// # Errors
    /// The first thing wrong with them.
    pub(crate) fn load<S: Checked>(&self) -> Result<S, SettingsError> {
        self.load_with(None)
    }

    /// The same with values that options of their own have set; `--set` stands over them.
    ///
    /// # Errors
    /// The first thing wrong with them.
    pub(crate) fn load_with<S: Checked>(
        &self,
        more: impl IntoIterator<Item = String>,
    ) -> Result<S, SettingsError> {
        let sets: Vec<String> = more.into_iter().chain(self.sets.iter().cloned()).collect();
        load(Some(&self.config), &sets)
    }
}
