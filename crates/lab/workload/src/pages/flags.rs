//! The page `flags`: 250 small SVG files, the case of many objects (npm `flag-icons`, MIT). Writes files into the folder
//! it is given, nothing else.

use std::fmt::Write;
use std::path::Path;

use super::{PageError, copy, write};
use crate::npm::{self, Package};

const FLAGS: usize = 250;
const ICONS: Package = Package { name: "flag-icons", version: "^7.5" };

/// Writes the page into `folder`.
pub(super) fn build(folder: &Path, node: &Path) -> Result<(), PageError> {
    npm::ensure(node, &[ICONS])?;
    let mut table = String::new();
    for file in smallest(&node.join("node_modules/flag-icons/flags/4x3"))? {
        copy(node, ICONS.name, &format!("flags/4x3/{file}"), &folder.join("flags").join(&file))?;
        let code = file.trim_end_matches(".svg");
        let _ = writeln!(
            table,
            "<figure><img src=\"flags/{file}\" width=\"80\" height=\"60\" alt=\"\"><figcaption>{code}</figcaption></figure>"
        );
    }
    copy(node, ICONS.name, "LICENSE", &folder.join("flags/LICENSE"))?;
    write(&folder.join("index.html"), include_str!("flags.html").replace("<!-- flags -->", &table).as_bytes())
}

/// The names of the 250 smallest files, in alphabetical order: a few crests are huge and are not what the page is about.
fn smallest(folder: &Path) -> Result<Vec<String>, PageError> {
    let broken = |reason: String| PageError::Package { package: ICONS.name, reason };
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(folder).map_err(|error| broken(format!("{}: {error}", folder.display())))?
    {
        let entry = entry.map_err(|error| broken(error.to_string()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".svg") {
            files.push((entry.metadata().map_err(|error| broken(error.to_string()))?.len(), name));
        }
    }
    files.sort();
    files.truncate(FLAGS);
    if files.len() < FLAGS {
        return Err(broken(format!("{} flags where {FLAGS} are needed", files.len())));
    }
    let mut names: Vec<String> = files.into_iter().map(|(_, name)| name).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(count: usize) -> tempfile::TempDir {
        let node = tempfile::tempdir().unwrap();
        let icons = node.path().join("node_modules/flag-icons");
        std::fs::create_dir_all(icons.join("flags/4x3")).unwrap();
        std::fs::write(icons.join("package.json"), "{}").unwrap();
        std::fs::write(icons.join("LICENSE"), "MIT").unwrap();
        for number in 0..count {
            std::fs::write(icons.join(format!("flags/4x3/{number:03}.svg")), "x".repeat(1000 - number))
                .unwrap();
        }
        node
    }

    #[test]
    fn the_page_shows_the_250_smallest_flags() {
        let (node, folder) = (package(260), tempfile::tempdir().unwrap());
        build(folder.path(), node.path()).unwrap();
        let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
        assert_eq!(page.matches("<img ").count(), 250);
        assert!(!page.contains("flags/009.svg") && page.contains("flags/010.svg"));
        assert!(folder.path().join("flags/259.svg").exists());
    }

    #[test]
    fn a_package_with_too_few_flags_is_an_error_that_counts_them() {
        let (node, folder) = (package(3), tempfile::tempdir().unwrap());
        let error = build(folder.path(), node.path()).unwrap_err().to_string();
        assert_eq!(error, "package flag-icons has changed: 3 flags where 250 are needed");
    }
}
