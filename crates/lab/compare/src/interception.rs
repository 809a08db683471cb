//! What an experiment over HTTPS needs besides: a CA that the remote intercepts with and the browser trusts, and the lab's own
//! by which ground judges origins.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::CompareError;
use crate::scene::this_program;

/// A remote's CA, made by `farhop ca init` as its operator would, and the roots that ground accepts.
#[derive(Debug, Clone)]
pub struct Interception {
    /// The folder of the CA.
    pub ca: PathBuf,
    /// Where the remote remembers whom not to intercept.
    pub(crate) state: PathBuf,
    /// Its certificate (PEM), which browsers have to trust.
    pub certificate: PathBuf,
    /// The CAs of origins that ground accepts (PEM).
    pub(crate) roots: Vec<PathBuf>,
    /// Lists of revoked certificates that it heeds (PEM).
    pub(crate) crls: Vec<PathBuf>,
}

impl Interception {
    /// Makes a CA in `folder`, for origins that are judged by `roots` and `crls`.
    ///
    /// # Errors
    /// `farhop ca` failed.
    pub(crate) fn make(
        folder: &Path,
        roots: Vec<PathBuf>,
        crls: Vec<PathBuf>,
    ) -> Result<Interception, CompareError> {
        let (ca, certificate) = (folder.join("interception"), folder.join("interception.pem"));
        run(this_program()?.args(["ca", "init"]).arg(&ca))?;
        run(this_program()?.args(["ca", "export"]).arg(&ca).arg("--out").arg(&certificate))?;
        let state = folder.join("consent.json");
        Ok(Interception { ca, state, certificate, roots, crls })
    }
}

fn run(command: &mut Command) -> Result<(), CompareError> {
    let failed = |reason: String| CompareError::End { end: "ca", reason };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or("it said nothing").to_owned()))
}
