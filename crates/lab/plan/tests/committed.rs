//! What stands in docs/experiments about results is what the results beside it say; and these are good for the plans as they are.
//! `farhop lab summary` writes it anew, and so does this test where FARHOP_UPDATE_DOCS is set.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn pages_and_drawings_of_results_are_what_the_results_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/experiments");
    // A journal of another plan, or of one that has changed, is refused here.
    let made = farhop_plan::pages(&folder).unwrap();
    let mut expected = BTreeSet::new();
    for (path, text) in made {
        if std::env::var_os("FARHOP_UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(folder.join("figures")).unwrap();
            std::fs::write(folder.join(&path), &text).unwrap();
        }
        let stands = std::fs::read_to_string(folder.join(&path)).unwrap_or_default();
        assert!(stands == text, "{} is not what the results say: farhop lab summary", path.display());
        expected.insert(path);
    }
    let drawings = std::fs::read_dir(folder.join("figures")).into_iter().flatten().flatten();
    let drawings: BTreeSet<PathBuf> =
        drawings.map(|entry| Path::new("figures").join(entry.file_name())).collect();
    let strays: Vec<_> = drawings.difference(&expected).collect();
    assert!(strays.is_empty(), "no result has {strays:?} any more");
    let results = std::fs::read_dir(folder.join("results")).into_iter().flatten().flatten();
    for file in results {
        let name = file.path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(farhop_plan::shipped(&name).is_ok(), "no plan is called {name}");
    }
}
