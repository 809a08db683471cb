//! The crates of the workspace as `cargo metadata` tells them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Where a crate stands. Dependencies point from later to earlier, and within a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Pure: bytes, events and the time come in, outputs go out.
    Core,
    /// Shells around syscalls.
    Io,
    /// Assembly.
    App,
    /// What measures and tests the others.
    Lab,
    /// The binary, and the tests of the whole.
    Top,
}

/// A crate of this workspace.
#[derive(Debug, Clone)]
pub struct Crate {
    /// Its package name.
    pub name: String,
    /// Its one-line description.
    pub description: String,
    /// Its folder, relative to the root.
    pub folder: PathBuf,
    /// Its layer, told from the folder.
    pub layer: Layer,
    /// The packages it is built from, those of its tests left out.
    pub dependencies: Vec<String>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root").into()
}

/// Every crate of the workspace.
pub fn crates() -> Vec<Crate> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output).expect("cargo metadata writes JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    packages.iter().map(read_crate).collect()
}

fn read_crate(package: &Value) -> Crate {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root()).ok());
    let folder = folder.expect("crates of the workspace lie below its root").to_owned();
    let layer = match folder.iter().nth(1).and_then(|part| part.to_str()) {
        Some("core") => Layer::Core,
        Some("io") => Layer::Io,
        Some("app") => Layer::App,
        Some("lab") => Layer::Lab,
        _ => Layer::Top,
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    Crate {
        name: text(&package["name"]),
        description: text(&package["description"]),
        folder,
        layer,
        // "kind" is null for ordinary dependencies, "dev" or "build" for the others.
        dependencies: dependencies.filter(|it| it["kind"] != "dev").map(|it| text(&it["name"])).collect(),
    }
}

/// Every package that ends up in a build of `name`, those that only run inside the compiler left out.
pub fn closure(name: &str) -> Vec<String> {
    let tree =
        cargo(&["tree", "-p", name, "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    let mut packages: Vec<String> =
        tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    packages.sort();
    packages.dedup();
    packages
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root()).args(arguments).output().expect("cargo starts");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
