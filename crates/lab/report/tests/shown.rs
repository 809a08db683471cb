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
    assert!(text.contains("farhop: 251 hints (251 img), 251 promised, 251 used, 0 cancelled, 0.0 KB wasted"));
    assert!(text.contains("farhop: crossed because: 1 mismatch in accept, 1 undiscovered"), "{text}");
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
}

#[test]
fn each_page_has_bars_and_waterfalls_and_farhops_once_more_where_it_is_much_quicker() {
    let mut sample = sample::comparison();
    let page = html(&sample);
    assert_eq!(page.matches("<svg").count(), 2 * 3);
    assert_eq!(page.matches("<g class=\"early\">").count(), 2 * 2 * 30);
    assert!(page.contains("http://flags.test/7: wanted at 0.70 s, not sent for "));
    for result in &mut sample.results {
        result.variants.iter_mut().for_each(|variant| variant.waterfall = Default::default());
    }
    assert_eq!(html(&sample).matches("<svg").count(), 2, "what was not recorded is not drawn");
}

#[test]
fn a_stand_in_of_late_loads_says_so() {
    let mut sample = sample::comparison();
    let variant = &mut sample.results[0].variants[2];
    (variant.unfit, variant.runs) = (true, 1);
    assert!(table(&sample).contains("farhop (1 run, late: indicative)"));
    assert!(html(&sample).contains("1 run, late: indicative"));
}

#[test]
fn a_variant_whose_program_the_machine_lacks_says_so_and_has_no_numbers() {
    let mut sample = sample::comparison();
    let variant = &mut sample.results[0].variants[1];
    (variant.present, variant.plt_s) = (false, None);
    assert!(table(&sample).contains("direct-h2 (not present)"));
    assert!(html(&sample).contains("not present"));
}

#[test]
fn over_https_the_older_version_of_http_is_the_secure_one() {
    let mut sample = sample::comparison();
    sample.results[0].variants[0].name = "direct-h1s".into();
    let text = table(&sample);
    let farhop = text.lines().find(|line| line.trim_start().starts_with("farhop")).unwrap();
    assert!(farhop.contains("13.4x"), "{farhop}");
}
