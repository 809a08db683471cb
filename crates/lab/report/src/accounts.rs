//! What became of hints, promises and requests in one load through Farhop, as its two ends tell it. Plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The books of one load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Accounts {
    /// Hints that ground found, by what names them: `img`, `stylesheet`, `css_url`, …
    pub hints: BTreeMap<String, u64>,
    /// Hints that ground did not follow, by its reason.
    pub skipped: BTreeMap<String, u64>,
    /// Responses promised unasked.
    pub promised: u64,
    /// Promises that answered a request.
    pub used: u64,
    /// Promises whose push the remote stopped.
    pub cancelled: u64,
    /// Every promise, by how it ended.
    pub ends: BTreeMap<String, u64>,
    /// Body bytes that crossed and that nobody used.
    pub wasted_bytes: u64,
    /// The requests that crossed all the same.
    pub crossed: Vec<Crossed>,
}

/// A request that crossed the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossed {
    /// What was asked for.
    pub url: String,
    /// Why nothing at the remote could answer it: `undiscovered`, `mismatch`, `refused`, …
    pub why: String,
    /// The request field that differed from the promise's, where that was the reason.
    pub field: Option<String>,
}

impl Accounts {
    /// The books in a few lines: sums first, reasons after.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let hints: u64 = self.hints.values().sum();
        let found =
            if hints > 0 { format!("{hints} hints ({}), ", listed(&self.hints)) } else { String::new() };
        lines.push(format!(
            "{found}{} promised, {} used, {} cancelled, {:.1} KB wasted",
            self.promised,
            self.used,
            self.cancelled,
            self.wasted_bytes as f64 / 1e3
        ));
        if !self.skipped.is_empty() {
            lines.push(format!("hints not followed: {}", listed(&self.skipped)));
        }
        if !self.crossed.is_empty() {
            lines.push(format!("crossed because: {}", listed(&self.reasons())));
        }
        lines
    }

    /// How many requests crossed for each reason, the differing field being a part of it.
    pub fn reasons(&self) -> BTreeMap<String, u64> {
        let mut reasons = BTreeMap::new();
        for crossed in &self.crossed {
            let reason = match &crossed.field {
                Some(field) => format!("{} in {field}", crossed.why),
                None => crossed.why.clone(),
            };
            *reasons.entry(reason).or_default() += 1;
        }
        reasons
    }
}

/// `251 img, 2 stylesheet`: the most frequent first.
fn listed(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let parts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_are_told_in_lines_with_the_differing_field() {
        let crossed = |why: &str, field: Option<&str>| Crossed {
            url: "http://a.test/".into(),
            why: why.into(),
            field: field.map(str::to_owned),
        };
        let accounts = Accounts {
            hints: [("css_url".to_owned(), 2), ("img".to_owned(), 30)].into(),
            skipped: [("budget".to_owned(), 1)].into(),
            promised: 31,
            used: 30,
            cancelled: 1,
            wasted_bytes: 2_340,
            crossed: vec![
                crossed("undiscovered", None),
                crossed("mismatch", Some("accept")),
                crossed("undiscovered", None),
            ],
            ..Accounts::default()
        };
        assert_eq!(
            accounts.lines(),
            [
                "32 hints (30 img, 2 css_url), 31 promised, 30 used, 1 cancelled, 2.3 KB wasted",
                "hints not followed: 1 budget",
                "crossed because: 2 undiscovered, 1 mismatch in accept",
            ]
        );
    }
}
