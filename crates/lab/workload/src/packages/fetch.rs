//! Runs npm and apt, unpacks what they bring into one folder per page, and notes beside it what lies there, so that the
//! next measurement asks nobody. Touches nothing outside that folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{PackagePage, Registry};

/// The folder of a page that holds its packages, unpacked.
pub(super) const TREE: &str = "tree";
/// The file that says what lies there: what was wanted, then what came instead.
const NOTE: &str = "fetched";

/// Why a page of packages is not there.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The list is broken.
    #[error("the list of package pages: {0}")]
    List(String),
    /// A client of a registry, or what unpacks, is not installed.
    #[error("{program} cannot be started: {source}")]
    Missing {
        /// The program.
        program: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// It failed, mostly for want of a network.
    #[error("{program} failed for {package}: {said}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The package.
        package: String,
        /// Its first words.
        said: String,
    },
    /// The packages do not hold the document.
    #[error("page {page}: its packages do not hold {document}")]
    Changed {
        /// The page.
        page: String,
        /// The document.
        document: PathBuf,
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

fn file(path: &Path) -> impl Fn(std::io::Error) -> PackageError {
    move |source| PackageError::File { path: path.into(), source }
}

/// Makes sure that `root` holds the page's packages; gives those that had to be replaced by other versions.
pub(super) fn ensure(page: &PackagePage, root: &Path) -> Result<Vec<String>, PackageError> {
    if let Ok(note) = std::fs::read_to_string(root.join(NOTE)) {
        let mut lines = note.lines().map(str::to_owned);
        if lines.next().as_deref() == Some(&wanted(page)) {
            return Ok(lines.collect());
        }
    }
    // Built aside and renamed, so that a page is there whole or not at all.
    let half = root.with_extension("half");
    for old in [&half, root] {
        match std::fs::remove_dir_all(old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(file(old)(error)),
            _ => {}
        }
    }
    let tree = half.join(TREE);
    std::fs::create_dir_all(&tree).map_err(file(&tree))?;
    let mut replaced = Vec::new();
    for package in &page.packages {
        match page.registry {
            Registry::Npm => from_npm(package, &half, &tree)?,
            Registry::Apt => replaced.extend(from_apt(package, &half, &tree)?),
        }
    }
    let real = tree.canonicalize().map_err(file(&tree))?;
    resolve_links(&real.join(&page.folder), &real)?;
    let note = half.join(NOTE);
    let lines = [&[wanted(page)], &replaced[..]].concat();
    std::fs::write(&note, lines.join("\n")).map_err(file(&note))?;
    std::fs::rename(&half, root).map_err(file(root))?;
    Ok(replaced)
}

/// What identifies the unpacked packages.
fn wanted(page: &PackagePage) -> String {
    format!("{} {}", page.packages.join(" "), page.folder.display())
}

fn from_npm(package: &str, half: &Path, tree: &Path) -> Result<(), PackageError> {
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--fetch-retries=1", package]).current_dir(half);
    run("npm", package, &mut pack)?;
    let archive = the_only(half, "tgz", package)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&archive).arg("-C").arg(tree).args(["--strip-components=1", "--no-same-owner"]);
    run("tar", package, &mut unpack)?;
    std::fs::remove_file(&archive).map_err(file(&archive))
}

/// Gives a line when the archive no longer has the version and another took its place: Debian keeps only the newest.
fn from_apt(package: &str, half: &Path, tree: &Path) -> Result<Option<String>, PackageError> {
    let download = |what: &str| {
        let mut download = Command::new("apt-get");
        // As root, apt would fetch as a user who may not write here.
        download.args(["download", "-q", "-o", "APT::Sandbox::User=root", what]).current_dir(half);
        run("apt-get", what, &mut download)
    };
    let name = package.split('=').next().unwrap_or(package);
    let mut gone = false;
    if let Err(error) = download(package) {
        download(name).map_err(|_| error)?;
        gone = true;
    }
    let archive = the_only(half, "deb", package)?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(&archive).arg(tree);
    run("dpkg-deb", package, &mut unpack)?;
    std::fs::remove_file(&archive).map_err(file(&archive))?;
    let came = archive.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(gone.then(|| format!("{came} in place of {package}")))
}

fn run(program: &'static str, package: &str, command: &mut Command) -> Result<(), PackageError> {
    let done =
        command.stdin(Stdio::null()).output().map_err(|source| PackageError::Missing { program, source })?;
    if done.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    let said = words.lines().map(str::trim).find(|line| line.contains(' ') && !line.starts_with("W:"));
    let said = said.unwrap_or("it gave no reason").to_owned();
    Err(PackageError::Failed { program, package: package.into(), said })
}

/// The file with this extension that a client has just put into the folder.
fn the_only(folder: &Path, extension: &str, package: &str) -> Result<PathBuf, PackageError> {
    let entries = std::fs::read_dir(folder).map_err(file(folder))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|found| found == extension)).ok_or_else(|| {
        PackageError::Failed {
            program: "the registry's client",
            package: package.into(),
            said: format!("it said that all is well and left no .{extension} file"),
        }
    })
}

/// Puts the file where a link to it stands: a site serves nothing that lies outside its folder. Links that leave the
/// packages stay as they are, and are not served.
fn resolve_links(folder: &Path, tree: &Path) -> Result<(), PackageError> {
    for entry in std::fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        let about = path.symlink_metadata().map_err(file(&path))?;
        if about.is_dir() {
            resolve_links(&path, tree)?;
        } else if about.is_symlink()
            && let Ok(real) = path.canonicalize()
            && real.starts_with(tree)
            && real.is_file()
        {
            std::fs::remove_file(&path).map_err(file(&path))?;
            std::fs::copy(&real, &path).map_err(file(&path))?;
        }
    }
    Ok(())
}

/// A page as if it had been fetched.
#[cfg(test)]
pub(super) fn pretend(page: &PackagePage, root: &Path, files: &[&str]) {
    let folder = root.join(TREE).join(&page.folder);
    std::fs::create_dir_all(&folder).unwrap();
    for name in files {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    std::fs::write(root.join(NOTE), wanted(page)).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_the_packages_become_files_and_others_stay() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("share/html")).unwrap();
        std::fs::write(root.join("share/real.js"), "let a;").unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, root.join("share/html").join(name)).unwrap();
        };
        link("../real.js", "a.js");
        link("/etc/hostname", "away");
        link("nowhere", "dangling");
        resolve_links(&root.join("share/html"), &root).unwrap();
        let about = |name: &str| root.join("share/html").join(name).symlink_metadata().unwrap();
        assert!(about("a.js").is_file());
        assert!(about("away").is_symlink() && about("dangling").is_symlink());
    }

    #[test]
    fn a_client_that_fails_is_quoted_in_one_line() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'W: never mind' >&2; echo 'E: no such package' >&2; exit 100"]);
        let error = run("apt-get", "x=1", &mut command).unwrap_err().to_string();
        assert_eq!(error, "apt-get failed for x=1: E: no such package");
    }
}
