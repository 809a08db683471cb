//! The comparison as people see it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod sample;

use farhop_report::{html, table};

#[test]
fn the_table_shows_ratios_against_both_versions_of_http() {
    let text = table(&sample::comparison());
    let farhop = text.lines().find(|line| line.trim_start().starts_with("farhop")).unwrap();
    for cell in ["farhop (3 runs)", "2.10 s", "13.4x", "4.5x", "1 (+251 promised, 251 used)", "251/0"] {
        assert!(farhop.contains(cell), "{cell}: {farhop}");
    }
    assert!(
        text.contains(
            "limit 1.58 s = browser 0.42 + round trip 0.65 + origin 0.00 + 512 KB at the link's rate"
        )
    );
    assert!(text.contains("note: photos, direct-h1: one load was left out"));
}

#[test]
fn the_html_stands_alone_and_escapes_what_it_quotes() {
    let page = html(&sample::comparison());
    assert!(page.starts_with("<!doctype html>") && page.contains("prefers-color-scheme: dark"));
    for foreign in ["src=", "href=\"http", "url(", "<script", "@import", "2.5 ms late <b>"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("2.5 ms late &lt;b&gt;"));
    assert_eq!(page.matches("<svg").count(), 2);
}
