//! URLs as browsers really write them (`recorded/points.*`): promises are compared with the very characters.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, Cookies, Decision, Load, NeverUnasked, Plan};
use farhop_page::{Options, Scanner};
use std::collections::BTreeSet;
use support::{at, heads, read_fields};
use url::Url;

/// Targets that were foreseen but not asked for, and those that were asked for otherwise.
fn replay(recorded: &'static str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (url, rest) = include_str!("recorded/points.page").split_once('\n').unwrap();
    let (response, body) = rest.split_once("\n\n").unwrap();
    let (url, response) = (Url::parse(url).unwrap(), read_fields(response.lines()));
    let document = heads(recorded).into_iter().find(|head| head.url == url).unwrap();
    let mut cookies = Cookies::default();
    let noted = cookies.note_request(&url, &document.fields, at(0));
    let mut plan = Plan::new(Load::new(url.clone(), document.fields, &response, &noted), Budget::default());
    let mut scanner = Scanner::new(&url, Some("utf-8"), Options::default());
    let mut hints = scanner.write(body.as_bytes());
    hints.extend(scanner.finish());
    let foreseen: BTreeSet<String> = hints
        .iter()
        .filter_map(|hint| match plan.decide(hint, &NeverUnasked::new(10), &cookies, at(0)) {
            Decision::Fetch(request, _) => Some(request.url.to_string()),
            Decision::Skip(_) => None,
        })
        .collect();
    let lines = recorded.lines().filter_map(|line| line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1"));
    let asked: BTreeSet<String> = lines.filter(|asked| *asked != url.as_str()).map(str::to_owned).collect();
    assert!(asked.len() > 100, "the recording is whole");
    (foreseen.difference(&asked).cloned().collect(), asked.difference(&foreseen).cloned().collect())
}

#[test]
fn urls_are_written_as_chromium_writes_them() {
    assert_eq!(replay(include_str!("recorded/points.heads")), Default::default());
}

#[test]
fn urls_are_written_as_firefox_writes_them() {
    assert_eq!(replay(include_str!("recorded/firefox-points.heads")), Default::default());
}
