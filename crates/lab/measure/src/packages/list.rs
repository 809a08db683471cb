//! `farhop lab pages`: which pages of packages there are, and where they lie, for one's own experiments with them.

use std::io::Write as _;

use farhop_workload::{npm, packages};

use crate::MeasureError;

/// Tells the pages that others made and that `measure 2` loads: name, packages, what each stands for.
#[derive(Debug, clap::Args)]
pub struct PagesArguments {
    /// Fetches them from npm and apt where they are not there yet, and tells the folder and the entry of each, as `farhop lab
    /// compare --site` wants them
    #[arg(long)]
    pub fetch: bool,
}

/// Runs `farhop lab pages`.
///
/// # Errors
/// A registry cannot be reached, or nobody reads the output.
pub fn package_pages(arguments: &PagesArguments) -> Result<(), MeasureError> {
    let cache = npm::cache_folder().join("packages");
    for listed in packages::list()? {
        let mut lines = format!("{}: {}\n    {}\n", listed.name, listed.packages.join(", "), listed.why);
        if arguments.fetch {
            let fetched = listed.fetch(&cache)?;
            for site in &fetched.page.sites {
                let (folder, host, entry) = (site.folder.display(), &site.host, &fetched.page.entry);
                lines.push_str(&format!("    --site {folder}={host} --entry {entry}\n"));
            }
            for what in fetched.replaced {
                lines.push_str(&format!("    {what}\n"));
            }
        }
        std::io::stdout().lock().write_all(lines.as_bytes()).map_err(MeasureError::Output)?;
    }
    Ok(())
}
