//! Documents that derive from code say what the code says.
//! `FARHOP_UPDATE_DOCS=1 cargo test -p farhop-tests --test docs_true` writes them anew.

use std::collections::BTreeSet;

use farhop_freshness::Forward;
use farhop_tests::source::{read, rust_files, tests_in};
use farhop_tests::workspace::root;

fn assert_true(name: &str, expected: &str) {
    let path = root().join(name);
    if std::env::var_os("FARHOP_UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).expect("docs/ is writable");
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = stands.lines().zip(expected.lines()).position(|(a, b)| a != b).map_or(0, |line| line + 1);
    assert!(
        stands == expected,
        "{name} is not what the code says (line {differs}); write it with FARHOP_UPDATE_DOCS=1 cargo test -p farhop-tests --test docs_true"
    );
}

#[test]
fn the_settings_reference_is_what_the_definitions_generate() {
    assert_true("docs/config.md", &farhop_settings::reference());
}

#[test]
fn the_events_reference_is_what_the_declarations_generate() {
    assert_true("docs/events.md", &farhop_events::reference());
}

#[test]
fn the_table_of_verdicts_is_what_the_corpus_says() {
    assert_true("docs/conformance.md", &farhop_testkit::conformance::table());
}

/// What stands between such marks.
fn marked(text: &str, mark: char) -> impl Iterator<Item = &str> {
    text.split(mark).skip(1).step_by(2)
}

#[test]
fn each_requirement_of_rfc_9111_names_tests_that_there_are() {
    let files = ["crates", "tests"].map(|folder| rust_files(&root().join(folder)));
    let tests: BTreeSet<String> = files.iter().flatten().flat_map(|file| tests_in(&read(file))).collect();
    let table = rust_files(&root().join("crates/lab/testkit/src/behaviours/table"));
    let behaviours: String = table.iter().map(|file| read(file)).collect();
    let text = read(&root().join("docs/rfc9111.md"));
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| §")).collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    for row in rows {
        let held_by = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let unknown: Vec<&str> = marked(held_by, '`')
            .filter(|name| !tests.contains(*name))
            .chain(marked(held_by, '"').filter(|name| !behaviours.contains(&format!("\"{name}\""))))
            .collect();
        assert!(unknown.is_empty(), "no such tests: {unknown:?}");
        assert!(held_by.contains(['`', '"']), "held by nothing: {row}");
    }
}

#[test]
fn each_reason_that_cache_status_tells_is_explained() {
    let text = read(&root().join("docs/caching.md"));
    let explained: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `fwd="))
        .map(|rest| rest.split(['`', ';']).next().unwrap_or_default())
        .collect();
    assert_eq!(explained, BTreeSet::from(Forward::ALL.map(Forward::as_str)));
}

/// README's commands and links lead somewhere.
#[test]
fn every_file_that_the_readme_links_to_exists() {
    let text = read(&root().join("README.md"));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let gone: Vec<_> = links.filter(|link| !link.contains("://") && !root().join(link).exists()).collect();
    assert!(gone.is_empty(), "README.md links to {gone:?}");
}

#[test]
fn each_record_has_a_number_of_its_own_and_says_it() {
    let mut numbers = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(root().join("docs/decisions")).expect("the records are there") {
        let path = entry.expect("a record").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "0000-template.md" {
            continue;
        }
        let number = name.split('-').next().unwrap_or_default().to_owned();
        assert!(read(&path).starts_with(&format!("# {number}")), "{name} has another number in its title");
        assert!(numbers.insert(number), "{name} has another record's number");
    }
}
