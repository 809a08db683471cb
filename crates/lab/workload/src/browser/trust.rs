//! A CA that a browser is to trust, in the store that Chromium reads on Linux: NSS's, in the home folder. `certutil` (Debian
//! package libnss3-tools) writes it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes Chromium's store in the home folder `home`, with the CA of `authority` (PEM) in it.
pub(super) fn trust(home: &Path, authority: &Path) -> Result<(), String> {
    trust_in(&home.join(".pki/nssdb"), authority)
}

/// Makes a store in `store` that trusts the CA of `authority` (PEM) for servers; a Firefox profile is such a store.
///
/// # Errors
/// `certutil` is missing or refuses; in one line.
pub fn trust_in(store: &Path, authority: &Path) -> Result<(), String> {
    std::fs::create_dir_all(store).map_err(|error| format!("{}: {error}", store.display()))?;
    certutil(store, &["-N", "--empty-password"], None)?;
    certutil(store, &["-A", "-n", "farhop", "-t", "C,,"], Some(authority))
}

fn certutil(store: &Path, arguments: &[&str], certificate: Option<&Path>) -> Result<(), String> {
    let mut command = Command::new("certutil");
    command.arg("-d").arg(format!("sql:{}", store.display())).args(arguments);
    if let Some(certificate) = certificate {
        command.arg("-i").arg(certificate);
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "certutil is missing: install the Debian package libnss3-tools".to_owned(),
        _ => format!("certutil: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("certutil: {}", said.lines().next().unwrap_or("it said nothing")))
}

/// The user's own cache folder, so that a home folder made for one load has its font cache and the like.
pub(super) fn cache_folder() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
}
