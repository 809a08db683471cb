//! Documents that derive from code say what the code says.
//! `FARHOP_UPDATE_DOCS=1 cargo test -p farhop-tests --test docs_true` writes them anew.

use farhop_tests::source::read;
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
