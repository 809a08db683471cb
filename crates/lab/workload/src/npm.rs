//! Packages from npm in a cache folder: what is there is used, what is missing is fetched with the machine's own npm.
//! Touches nothing outside that folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A package and the versions of it that this program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// Its version range.
    pub version: &'static str,
}

/// The library that drives the browser.
pub const PLAYWRIGHT: Package = Package { name: "playwright-core", version: "^1.50" };

/// Why packages are not there.
#[derive(Debug, thiserror::Error)]
pub enum NpmError {
    /// npm is not installed.
    #[error("npm cannot be started: {0} (install nodejs and npm, './run demo' does)")]
    Missing(std::io::Error),
    /// npm failed, mostly for want of a network.
    #[error("npm cannot fetch {packages} and {folder} does not hold them: {said}")]
    Failed {
        /// What was wanted.
        packages: String,
        /// The cache folder.
        folder: PathBuf,
        /// npm's first words.
        said: String,
    },
    /// The cache folder cannot be made.
    #[error("the cache folder {folder} cannot be made: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// The cache folder: `FARHOP_NODE`, else `target/node` where the program is started.
pub fn cache_folder() -> PathBuf {
    let folder = std::env::var_os("FARHOP_NODE").map_or_else(|| PathBuf::from("target/node"), PathBuf::from);
    std::path::absolute(&folder).unwrap_or(folder)
}

/// The cache folder of the workspace that `folder` lies in, for tests, which start in the folder of their crate:
/// `FARHOP_NODE`, else the nearest `target/node` above.
pub fn cache_folder_above(folder: &Path) -> PathBuf {
    let nearest = || folder.ancestors().map(|above| above.join("target/node")).find(|folder| folder.is_dir());
    std::env::var_os("FARHOP_NODE").map(PathBuf::from).or_else(nearest).unwrap_or_else(cache_folder)
}

/// Makes sure that `folder/node_modules` holds every one of `packages`.
///
/// # Errors
/// Some are missing and npm is too, or cannot fetch them.
pub fn ensure(folder: &Path, packages: &[Package]) -> Result<(), NpmError> {
    let held =
        |package: &Package| folder.join("node_modules").join(package.name).join("package.json").exists();
    let missing: Vec<String> = packages
        .iter()
        .filter(|package| !held(package))
        .map(|p| format!("{}@{}", p.name, p.version))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|source| NpmError::Folder { folder: folder.into(), source })?;
    let done = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--loglevel=error",
            "--fetch-retries=1",
        ])
        .arg("--prefix")
        .arg(folder)
        .args(&missing)
        .stdin(Stdio::null())
        .output()
        .map_err(NpmError::Missing)?;
    if done.status.success() && packages.iter().all(held) {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    let said =
        words.lines().map(|line| line.trim_start_matches("npm error").trim()).find(|line| line.contains(' '));
    Err(NpmError::Failed {
        packages: missing.join(", "),
        folder: folder.into(),
        said: said.unwrap_or("it gave no reason").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cache_holds_needs_no_npm() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("node_modules/playwright-core");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("package.json"), "{}").unwrap();
        ensure(folder.path(), &[PLAYWRIGHT]).unwrap();
    }
}
