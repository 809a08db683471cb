//! The comparison as lines for a terminal. Pure.

use crate::{Comparison, PageResult, Spread, VariantResult, ratio};

/// The whole comparison: conditions, one table per page, notes. Ends in a line break.
pub fn table(comparison: &Comparison) -> String {
    let link = &comparison.link;
    let mut out = format!("{}\nservers: {}\n", link.calibration.text, link.servers.settings);
    for page in &comparison.results {
        out.push('\n');
        out.push_str(&page_table(page));
    }
    for note in &link.notes {
        out.push_str(&format!("\nnote: {note}"));
    }
    if !link.notes.is_empty() {
        out.push('\n');
    }
    out
}

const COLUMNS: [&str; 12] = [
    "",
    "load time",
    "min-max",
    "first paint",
    "first byte",
    "last file",
    "vs h1",
    "vs h2",
    "connections",
    "link KB down/up",
    "crossed",
    "ok/bad",
];

fn page_table(page: &PageResult) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    rows.extend(page.variants.iter().map(|variant| row(page, variant)));
    let mut out = format!("{} {}\n", page.page, page.entry);
    out.push_str(&aligned(&rows));
    let limit = &page.limit;
    out.push_str(&match (page.limit_s, limit.browser_s) {
        (Some(seconds), Some(browser)) => format!(
            "  limit {seconds:.2} s = browser {browser:.2} + round trip {:.2} + origin {:.2} + {:.0} KB at the link's rate\n",
            limit.rtt_s,
            limit.origin_s,
            limit.bytes as f64 / 1e3,
        ),
        _ => "  limit unknown: the page did not load over link none\n".into(),
    });
    for variant in &page.variants {
        about(variant, page.limit.bytes).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    out
}

/// Rows in columns, names to the left and numbers to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blanks = " ".repeat(width - cell.chars().count());
            let (before, after) = if column == 0 { ("", blanks.as_str()) } else { (blanks.as_str(), "") };
            out.push_str(&format!("  {before}{cell}{after}"));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// What a variant's row has no room for: a limit of its own, and its books.
pub(crate) fn about(variant: &VariantResult, page_bytes: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(limit) = variant.limit_s.filter(|_| variant.limit_bytes != page_bytes) {
        let kilobytes = variant.limit_bytes as f64 / 1e3;
        lines.push(format!(
            "{}: limit {limit:.2} s, with images as it sends them ({kilobytes:.0} KB)",
            variant.name
        ));
    }
    let worst = variant.accounts.iter().max_by_key(|books| (books.crossed.len(), books.wasted_bytes));
    let which = if variant.accounts.iter().all(|books| Some(books) == worst) { "" } else { ", worst load" };
    let books = worst.map(|books| books.lines()).unwrap_or_default();
    lines.extend(books.into_iter().map(|line| format!("{}{which}: {line}", variant.name)));
    lines
}

/// `3 runs`, and whether they are worth as much.
pub(crate) fn runs(variant: &VariantResult) -> String {
    if !variant.present {
        return "not present".into();
    }
    let runs = if variant.runs == 1 { "1 run".into() } else { format!("{} runs", variant.runs) };
    if variant.unfit { format!("{runs}, late: indicative") } else { runs }
}

fn row(page: &PageResult, variant: &VariantResult) -> Vec<String> {
    let seconds =
        |spread: Option<Spread>| spread.map_or("-".into(), |spread| format!("{:.2} s", spread.median));
    // Over HTTPS the older version of HTTP goes by another name.
    let against = |bases: &[&str]| {
        let base = bases.iter().find_map(|base| page.variant(base)).filter(|base| base.name != variant.name);
        base.and_then(|base| ratio(base, variant)).map_or("-".into(), |times| format!("{times:.1}x"))
    };
    let crossed = if variant.promised > 0.0 {
        format!("{} (+{} promised, {} used)", variant.requests_crossed, variant.promised, variant.used)
    } else {
        variant.requests_crossed.to_string()
    };
    vec![
        format!("{} ({})", variant.name, runs(variant)),
        seconds(variant.plt_s),
        variant.plt_s.map_or("-".into(), |plt| format!("{:.2}-{:.2}", plt.min, plt.max)),
        seconds(variant.fcp_s),
        seconds(variant.ttfb_s),
        seconds(variant.last_s),
        against(&["direct-h1", "direct-h1s"]),
        against(&["direct-h2"]),
        variant.connections.to_string(),
        format!("{:.0}/{:.0}", variant.link_bytes.forward / 1e3, variant.link_bytes.return_ / 1e3),
        crossed,
        format!("{}/{}", variant.resources_ok, variant.resources_bad),
    ]
}
