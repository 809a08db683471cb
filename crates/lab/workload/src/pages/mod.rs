//! The pages of the demonstration: `flags` (many small files), `photos` (bytes that no coding shrinks), `article` (style,
//! fonts, scripts, two origins). Each is built anew into a folder; what others made comes from npm at that moment and
//! stays in the cache folder, none of it in this repository.

mod article;
mod flags;
mod landscape;
mod photos;

use std::path::{Path, PathBuf};

use crate::npm::NpmError;

/// The names of the pages, in the order of the demonstration.
pub const NAMES: [&str; 3] = ["flags", "photos", "article"];

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
}

/// Why a page cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// No page has this name.
    #[error("no page is called '{0}': the pages are flags, photos and article")]
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
    let mut sites = vec![Site { host: format!("{name}.test"), folder: folder.join(name) }];
    match name {
        "flags" => flags::build(&sites[0].folder, node)?,
        "photos" => photos::build(&sites[0].folder)?,
        "article" => {
            sites.push(Site { host: article::STATIC_HOST.into(), folder: folder.join("article-static") });
            article::build(&sites[0].folder, &sites[1].folder, node)?;
        }
        _ => return Err(PageError::Unknown(name.into())),
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
        assert_eq!(error, "no page is called 'flag': the pages are flags, photos and article");
    }

    #[test]
    fn a_package_that_lacks_its_files_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("out.js");
        let error = copy(folder.path(), "dayjs", "dayjs.min.js", &to).unwrap_err().to_string();
        assert!(error.starts_with("package dayjs has changed: "), "{error}");
    }
}
