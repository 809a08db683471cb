//! The lab's own TCP congestion controllers, for kernels that have none of that name: BPF programs from the papers' equations,
//! built with clang and registered with bpftool where a testbed wants one, and gone with it. Their sources (`bpf` in the workspace)
//! are licensed apart.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use farhop_netdev::{Janitor, controller_name, is_rootless, register_controller};

use crate::{Error, require_congestion_control};

macro_rules! sources {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../bpf/", $name, ".c")))),*]
    };
}

/// Algorithms, and what they are made of.
const SOURCES: &[(&str, &str)] = sources!("hybla" "vegas" "westwood" "bic");
const HEADER: &str = include_str!("../../../../bpf/congestion.h");

/// Those that a testbed has brought along, by algorithm.
#[derive(Debug)]
pub(crate) struct Controllers {
    janitor: Arc<Janitor>,
    own: Mutex<BTreeMap<String, String>>,
}

impl Controllers {
    pub(crate) fn new(janitor: Arc<Janitor>) -> Controllers {
        Controllers { janitor, own: Mutex::default() }
    }

    /// The kernel's name for an algorithm: its own where it has that, else that of the lab's, which is registered with the first call.
    pub(crate) fn name(&self, algorithm: &str) -> Result<String, Error> {
        let Err(lacking) = require_congestion_control(algorithm) else { return Ok(algorithm.to_owned()) };
        let Some((_, source)) = SOURCES.iter().find(|(known, _)| *known == algorithm) else {
            return Err(lacking);
        };
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = own.get(algorithm) {
            return Ok(name.clone());
        }
        let name = controller_name(algorithm);
        let missing = |reason: String| Error::OwnController { algorithm: algorithm.to_owned(), reason };
        if is_rootless() {
            return Err(missing("registering one needs root outside of a user namespace".into()));
        }
        let folder = tempfile::tempdir().map_err(|error| missing(error.to_string()))?;
        let object = folder.path().join("controller.o");
        build(&name, source, folder.path(), &object).map_err(missing)?;
        register_controller(&self.janitor, &name, &object).map_err(|error| missing(error.to_string()))?;
        own.insert(algorithm.to_owned(), name.clone());
        Ok(name)
    }
}

/// Has clang make an object file of a source; why it does not.
fn build(name: &str, source: &str, folder: &Path, object: &Path) -> Result<(), String> {
    let file = folder.join("controller.c");
    let written =
        std::fs::write(&file, source).and_then(|()| std::fs::write(folder.join("congestion.h"), HEADER));
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut clang = Command::new("clang");
    clang.args(["-target", "bpf", "-O2", "-g", &format!("-DCONTROLLER={name}"), "-c"]).arg(&file);
    clang.arg("-o").arg(object).stdin(Stdio::null());
    let output = clang.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "the program 'clang' is not installed, install the package clang".into()
        }
        _ => format!("cannot start clang: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("clang: {}", said.lines().next().unwrap_or("it said nothing")))
}
