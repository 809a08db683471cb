//! The article page as a browser sees it: every file it names is there, on both of its origins. Needs the packages in the
//! cache folder or a network that reaches npm; without either it says so and passes over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::path::{Path, PathBuf};

use farhop_workload::pages::{Page, PageError, build};

fn article(folder: &Path) -> Option<Page> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/node");
    let node = std::env::var_os("FARHOP_NODE").map_or(target, PathBuf::from);
    match build("article", folder, &node) {
        Err(PageError::Npm(error)) => {
            eprintln!("skipped: {error}");
            None
        }
        built => Some(built.unwrap()),
    }
}

/// Every `src="…"`, `href="…"` and `url(…)` of a text.
fn references(text: &str) -> Vec<String> {
    let after = |mark: &str, end: &[char]| {
        let parts = text.split(mark).skip(1).filter_map(|rest| rest.split(end).next()).map(str::to_owned);
        parts.collect::<Vec<_>>()
    };
    [after("src=\"", &['"']), after("href=\"", &['"']), after("url(", &[')']), after("@import \"", &['"'])]
        .concat()
}

#[test]
fn every_file_the_article_names_is_on_its_site() {
    let folder = tempfile::tempdir().unwrap();
    let Some(page) = article(folder.path()) else { return };
    let (own, other) = (&page.sites[0], &page.sites[1]);
    let html = std::fs::read_to_string(own.folder.join("index.html")).unwrap();
    let named = references(&html);
    assert_eq!(named.len(), 10, "{named:?}");
    for reference in named {
        let file = match reference.strip_prefix(&format!("//{}/", other.host)) {
            Some(path) => other.folder.join(path),
            None => own.folder.join(reference),
        };
        assert!(file.is_file(), "{}", file.display());
    }
    for sheet in ["base.css", "article.css", "fonts.css"] {
        let text = std::fs::read_to_string(own.folder.join("style").join(sheet)).unwrap();
        for reference in references(&text) {
            let file = own.folder.join("style").join(reference.trim_matches('"'));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
