//! The article page as a browser sees it: every file it names is there, on both of its origins. Needs the packages in the
//! cache folder or a network that reaches npm; without either it says so and passes over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::path::{Path, PathBuf};

use farhop_workload::npm;
use farhop_workload::pages::{Page, PageError, build};

fn article(folder: &Path) -> Option<Page> {
    let node = npm::cache_folder_above(Path::new(env!("CARGO_MANIFEST_DIR")));
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
    let own = &page.sites[0];
    let file = |base: &Path, reference: &str| {
        let elsewhere = reference.strip_prefix("//").and_then(|rest| rest.split_once('/'));
        let file = match elsewhere {
            Some((host, path)) => page.sites.iter().find(|site| site.host == host).unwrap().folder.join(path),
            None => base.join(reference),
        };
        assert!(file.is_file(), "{}", file.display());
        file
    };
    let html = std::fs::read_to_string(own.folder.join("index.html")).unwrap();
    let named = references(&html);
    assert_eq!(named.len(), 12, "{named:?}");
    let mut sheets: Vec<PathBuf> = named.iter().map(|reference| file(&own.folder, reference)).collect();
    sheets.retain(|file| file.extension().is_some_and(|extension| extension == "css"));
    // Those that are imported, too.
    while let Some(sheet) = sheets.pop() {
        let text = std::fs::read_to_string(&sheet).unwrap();
        for reference in references(&text) {
            let found = file(sheet.parent().unwrap(), reference.trim_matches('"'));
            sheets.extend(found.extension().is_some_and(|extension| extension == "css").then_some(found));
        }
    }
}

#[test]
fn the_article_has_two_third_parties_with_a_delay_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let Some(page) = article(folder.path()) else { return };
    let own = |host: &str| host == "article.test" || host.ends_with(".article.test");
    let others: Vec<_> = page.sites.iter().filter(|site| !own(&site.host)).collect();
    assert_eq!(others.len(), 2);
    assert!(others.iter().all(|site| !site.delay.is_zero()));
    let html = std::fs::read_to_string(page.sites[0].folder.join("index.html")).unwrap();
    for (host, kinds) in [("letters.test", &[".css"][..]), ("pictures.test", &[".jpg", ".js"])] {
        for kind in kinds {
            let of_kind = |name: &String| name.starts_with(&format!("//{host}/")) && name.ends_with(kind);
            assert!(references(&html).iter().any(of_kind), "{host} {kind}");
        }
    }
}
