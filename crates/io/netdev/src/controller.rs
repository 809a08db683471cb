//! TCP congestion controllers in BPF (struct_ops), registered with the kernel by bpftool for as long as a testbed lives. The kernel
//! has one list of controllers for all its namespaces: each is there under a name that tells its owner.

use std::path::Path;

use crate::host::run;
use crate::janitor::Undo;
use crate::{Error, Janitor, owner};

/// A new name for a controller of this process, of 15 characters at most and a word of C: `fh_hybla_2s01`.
pub fn controller_name(algorithm: &str) -> String {
    owner::controller(algorithm)
}

/// Registers the controller in an `object` that clang has made, which calls it and its map `name`.
///
/// # Errors
/// bpftool is missing, or the kernel refuses.
pub fn register_controller(janitor: &Janitor, name: &str, object: &Path) -> Result<(), Error> {
    // Asked before it is promised: without the tool there is nothing to undo.
    run("bpftool", &["version"])?;
    janitor.promise(&Undo::Controller(name))?;
    run("bpftool", &["struct_ops", "register", &object.to_string_lossy()]).map(drop)
}
