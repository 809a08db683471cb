//! ARCHITECTURE.md lists every crate, with the words that its Cargo.toml has for it.

use farhop_tests::source::read;
use farhop_tests::workspace::{crates, root};

/// The map's lines: | `crates/core/htotp` | HTOTP: frames … |
fn map() -> Vec<(String, String)> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.splitn(2, "` | ");
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    };
    text.lines().filter_map(row).filter(|(path, _)| path.starts_with("crates/") || path == "tests").collect()
}

#[test]
fn the_crate_map_is_complete_and_true() {
    let mut expected: Vec<_> =
        crates().into_iter().map(|it| (it.folder.display().to_string(), it.description)).collect();
    let mut found = map();
    expected.sort();
    found.sort();
    let missing: Vec<_> = expected.iter().filter(|row| !found.contains(row)).collect();
    let gone: Vec<_> = found.iter().filter(|row| !expected.contains(row)).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "ARCHITECTURE.md lacks {missing:#?}\nand has no longer true {gone:#?}"
    );
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let names = text.split('`').skip(1).step_by(2).filter(|name| name.contains('/') && name.ends_with(".rs"));
    let gone: Vec<_> = names.filter(|name| !root().join(name).exists()).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md names files that are not there: {gone:#?}");
}
