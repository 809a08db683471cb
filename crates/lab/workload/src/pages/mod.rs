//! The pages of the demonstration: `flags` (many small files), `photos` (bytes that no coding shrinks), `article` (style,
//! fonts, scripts, two origins of its own and two of others), the test pages of HTTPEP's study, and pages composed as the Web
//! Almanac has them. Each is built anew into a folder; what others made comes from npm at that moment and stays in the cache
//! folder, none of it in this repository.

mod almanac;
mod article;
mod flags;
mod httpep;
mod landscape;
mod photos;
mod scripted;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::npm::NpmError;

pub use almanac::ALMANAC;

/// The names of the pages, in the order of the demonstration.
pub const NAMES: [&str; 3] = ["flags", "photos", "article"];

/// The pages of HTTPEP's study by name: one text with 1, 5, 10, 20 and 30 images.
pub const HTTPEP: [&str; 5] = ["httpep-1", "httpep-5", "httpep-10", "httpep-20", "httpep-30"];

/// Pages whose scripts ask for what no reading of them finds: a chain of modules, an AMD loader, a page made of a list.
pub const SCRIPTED: [&str; 3] = ["modules", "amd", "rendered"];

/// What scripts ask for on the pages of [`SCRIPTED`] lies below this path of their site.
pub const BY_SCRIPT: &str = "/late/";

/// A page ready to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its name, as reports show it.
    pub name: String,
    /// The path of its document on the first site.
    pub entry: String,
    /// Its sites; the first has the document.
    pub sites: Vec<Site>,
}

/// A folder under a host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The host name.
    pub host: String,
    /// The folder.
    pub folder: PathBuf,
    /// What this origin adds before each answer: others' hosts are not next door to the page's own.
    pub delay: Duration,
    /// `Cache-Control` of what begins with a path, the longest path that fits; nothing is said of the rest.
    pub caching: BTreeMap<String, String>,
    /// Text goes in Brotli to who takes it, beside gzip.
    pub brotli: bool,
}

impl Site {
    /// A site that answers at once.
    pub fn new(host: impl Into<String>, folder: impl Into<PathBuf>) -> Site {
        let (host, folder) = (host.into(), folder.into());
        Site { host, folder, delay: Duration::ZERO, caching: BTreeMap::new(), brotli: false }
    }
}

/// Why a page cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// No page has this name.
    #[error("no page is called '{0}': the pages are {names}, {httpep}, {scripted}, {almanac}", names = NAMES.join(", "), httpep = HTTPEP.join(", "), scripted = SCRIPTED.join(", "), almanac = ALMANAC.join(", "))]
    Unknown(String),
    /// A package is missing.
    #[error(transparent)]
    Npm(#[from] NpmError),
    /// A package is not as expected.
    #[error("package {package} has changed: {reason}")]
    Package {
        /// The package.
        package: &'static str,
        /// What is missing in it.
        reason: String,
    },
    /// A picture cannot be encoded.
    #[error("a picture cannot be made: {0}")]
    Picture(String),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Builds a page by name into `folder`; packages are taken from `node`, and fetched into it when missing.
///
/// # Errors
/// The name is unknown, npm cannot be reached and the cache lacks a package, or the disk refuses.
pub fn build(name: &str, folder: &Path, node: &Path) -> Result<Page, PageError> {
    let own = folder.join(name);
    let mut sites = vec![Site::new(format!("{name}.test"), &own)];
    match name {
        "flags" => flags::build(&own, node)?,
        "photos" => photos::build(&own)?,
        "article" => sites.extend(article::build(&own, node)?),
        _ if SCRIPTED.contains(&name) => scripted::build(name, &own)?,
        _ => match (httpep::images(name), almanac::requests(name)) {
            (Some(images), _) => httpep::build(&own, images)?,
            (None, Some(requests)) => sites.extend(almanac::build(name, &own, requests)?),
            (None, None) => return Err(PageError::Unknown(name.into())),
        },
    }
    Ok(Page { name: name.into(), entry: "/".into(), sites })
}

fn jpeg(scene: &landscape::Scene) -> Result<Vec<u8>, PageError> {
    scene.jpeg().map_err(|error| PageError::Picture(error.to_string()))
}

/// Writes a file and the folders above it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), PageError> {
    let failed = |source| PageError::File { path: path.into(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)
}

/// Copies a file out of a package.
fn copy(node: &Path, package: &'static str, file: &str, to: &Path) -> Result<(), PageError> {
    let from = node.join("node_modules").join(package).join(file);
    let bytes = std::fs::read(&from)
        .map_err(|error| PageError::Package { package, reason: format!("{}: {error}", from.display()) })?;
    write(to, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_page_is_refused_with_those_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let error = build("flag", folder.path(), folder.path()).unwrap_err().to_string();
        assert_eq!(
            error,
            "no page is called 'flag': the pages are flags, photos, article, httpep-1, httpep-5, httpep-10, httpep-20, \
             httpep-30, modules, amd, rendered, almanac-20, almanac-40, almanac-60, almanac-80, almanac-110, almanac-145, \
             almanac-185"
        );
    }

    #[test]
    fn a_package_that_lacks_its_files_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("out.js");
        let error = copy(folder.path(), "dayjs", "dayjs.min.js", &to).unwrap_err().to_string();
        assert!(error.starts_with("package dayjs has changed: "), "{error}");
    }
}
