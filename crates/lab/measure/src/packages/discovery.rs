//! How much of what HTML and CSS name was known before the browser asked. What they name is learnt from the browser itself
//! in direct loads, by who made it ask, and from nothing of ours. A browser says `parser` too of what scripts put into the
//! page as text, so that the name has to stand in the file that it points to. Pure.

use std::collections::{BTreeSet, HashMap};

use farhop_workload::browser::PageLoad;
use url::Url;

use crate::Row;

/// Names that are told when they were not discovered.
const SHOWN: usize = 3;

/// Host, path and query of what HTML or CSS made the browser ask for. Direct loads over HTTPS name the same things.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// Adds what a direct load shows; `text` gives the document or style sheet at a URL.
    pub(crate) fn add(&mut self, load: &PageLoad, text: impl Fn(&Url) -> Option<String>) {
        let Ok(page) = Url::parse(&load.url) else { return };
        for resource in load.resources.iter().filter(|resource| resource.status.is_some()) {
            let Some(initiator) = resource.initiator.as_ref().filter(|who| who.is_markup()) else { continue };
            let where_named = initiator.url.as_ref().and_then(|url| Url::parse(url).ok());
            let where_named = where_named.unwrap_or_else(|| page.clone());
            let Ok(url) = Url::parse(&resource.url) else { continue };
            let named = || text(&where_named).is_some_and(|text| stands_in(&url, &text));
            if url.host_str() == page.host_str() && named() {
                self.0.extend(key(&resource.url));
            }
        }
    }
}

/// Whether the last part of a path, which relative names keep, stands in a text.
fn stands_in(url: &Url, text: &str) -> bool {
    let last = url.path().rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    text.contains(last) || text.contains(&last.replace("%20", " "))
}

fn key(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("{}{}{query}", url.host_str()?, url.path()))
}

/// What became of these names in loads through Farhop.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    before: usize,
    all: usize,
    late: BTreeSet<String>,
}

impl Discovery {
    /// Adds a load: of every name that this browser asked for, whether its answer was there or on its way.
    pub(crate) fn add(&mut self, names: &Names, load: &PageLoad, unasked: &HashMap<String, Vec<bool>>) {
        let asked: BTreeSet<&str> = load.resources.iter().map(|resource| resource.url.as_str()).collect();
        for url in asked {
            let Some(key) = key(url).filter(|key| names.0.contains(key)) else { continue };
            // The fragment never leaves the browser.
            let sent = url.split('#').next().unwrap_or(url);
            // What the browser had itself was never asked for.
            let Some(first) = unasked.get(sent).and_then(|asked| asked.first()) else { continue };
            self.all += 1;
            if *first {
                self.before += 1;
            } else {
                self.late.insert(key);
            }
        }
    }

    /// The share, and the first names that came late.
    pub(crate) fn row(&self, page: &str, bound: f64) -> Row {
        let share = self.before as f64 / self.all.max(1) as f64;
        let mut measured = format!("{:.1} % of {} requests", share * 100.0, self.all);
        let late: Vec<&str> = self.late.iter().take(SHOWN).map(String::as_str).collect();
        if !late.is_empty() {
            let more = self.late.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            measured.push_str(&format!(", not {}{more}", late.join(", ")));
        }
        let what = format!("{page}, known before the browser asks");
        let bound_text = format!("≥ {:.0} % of what HTML and CSS name", bound * 100.0);
        Row::judged(what, measured, bound_text, self.all > 0 && share >= bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn load(scheme: &str, resources: &[(&str, &str)]) -> PageLoad {
        let resource = |(path, kind): &(&str, &str)| {
            serde_json::json!({
                "url": format!("{scheme}://a.test{path}"), "destination": "image", "status": 200,
                "initiator": { "kind": kind, "url": null },
            })
        };
        let resources: Vec<_> = resources.iter().map(resource).collect();
        serde_json::from_value(serde_json::json!({
            "url": format!("{scheme}://a.test/"), "errors": [], "resources": resources,
        }))
        .unwrap()
    }

    #[test]
    fn only_what_markup_names_counts_and_only_what_the_browser_asked_for() {
        let mut names = Names::default();
        let all = [
            ("/a.css", "parser"),
            ("/b.png?x#y", "parser"),
            ("/by-script", "script"),
            ("/by-inner-html", "parser"),
            ("/c", "parser"),
        ];
        names.add(&load("https", &all), |_| Some("<link href=a.css><img src=b.png?x><img src=c>".into()));
        let mut discovery = Discovery::default();
        let unasked = HashMap::from([
            ("http://a.test/a.css".to_owned(), vec![true]),
            ("http://a.test/b.png?x".to_owned(), vec![false, true]),
            ("http://a.test/by-script".to_owned(), vec![false]),
            ("http://a.test/by-inner-html".to_owned(), vec![false]),
        ]);
        discovery.add(&names, &load("http", &all), &unasked);
        assert_eq!((discovery.before, discovery.all), (1, 2));
        let row = discovery.row("p", 0.95);
        assert_eq!(row.measured, "50.0 % of 2 requests, not a.test/b.png?x");
        assert_eq!(row.verdict, Verdict::Miss);
    }

    #[test]
    fn a_page_that_names_nothing_proves_nothing() {
        assert_eq!(Discovery::default().row("p", 0.95).verdict, Verdict::Miss);
    }
}
