//! The comparison as one HTML file that needs nothing else: no script, no font, no picture from anywhere. Pure.

pub(crate) mod falls;

use std::fmt::Write;

use crate::table::{about, runs};
use crate::{Comparison, PageResult, Spread, ratio};

/// The whole page.
pub fn html(comparison: &Comparison) -> String {
    let link = &comparison.link;
    let mut body = String::new();
    for page in &comparison.results {
        section(&mut body, page);
    }
    let words = link_words(&link.profile, [link.forward.rate_bit_s, link.return_.rate_bit_s], link.rtt_s);
    let conditions = [
        ("Link", link.calibration.text.clone()),
        ("Servers", link.servers.settings.clone()),
        ("Origins", link.servers.origins.join("; ")),
        ("Browser", link.browser.clone()),
        ("Method", link.method.join("; ")),
    ];
    page(&words, &body, &link.notes, &conditions)
}

/// A page of ours: what link it is about, its sections, what a reader must be told, how it was measured.
pub(crate) fn page(link: &str, body: &str, notes: &[String], conditions: &[(&str, String)]) -> String {
    let conditions: String = conditions
        .iter()
        .map(|(name, text)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(text)))
        .collect();
    let notes = match notes {
        [] => String::new(),
        notes => {
            let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
            format!("<section class=\"notes\"><h2>Notes</h2><ul>\n{items}</ul></section>\n")
        }
    };
    include_str!("page.html")
        .replace("{{link}}", &escape(link))
        .replace("{{results}}", body)
        .replace("{{notes}}", &notes)
        .replace("{{conditions}}", &conditions)
}

/// `geo-hylas2: 8 Mbit/s down, 0.512 Mbit/s up, 650 ms round trip`
pub(crate) fn link_words(profile: &str, rates: [Option<u64>; 2], rtt_s: f64) -> String {
    let [down, up] =
        rates.map(|rate| rate.map_or("no limit".into(), |rate| format!("{} Mbit/s", rate as f64 / 1e6)));
    format!("{profile}: {down} down, {up} up, {:.0} ms round trip", rtt_s * 1e3)
}

fn section(out: &mut String, page: &PageResult) {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(&page.page));
    if let Some(claim) = claim(page) {
        let _ = writeln!(out, "<p class=\"claim\">{claim}</p>");
    }
    bars(out, page);
    rows(out, page);
    falls::falls(out, page);
    if let (Some(seconds), Some(browser)) = (page.limit_s, page.limit.browser_s) {
        let _ = writeln!(
            out,
            "<p class=\"limit\">Limit {seconds:.2} s = browser {browser:.2} s + round trip {:.2} s + origin {:.2} s + {:.0} KB at the link’s rate.</p>",
            page.limit.rtt_s,
            page.limit.origin_s,
            page.limit.bytes as f64 / 1e3
        );
    }
    for line in page.variants.iter().flat_map(|variant| about(variant, page.limit.bytes)) {
        let _ = writeln!(out, "<p class=\"books\">{}</p>", escape(&line));
    }
    out.push_str("</section>\n");
}

/// One sentence about Farhop against each direct variant.
fn claim(page: &PageResult) -> Option<String> {
    let farhop = page.variants.iter().find(|variant| variant.is_farhop())?;
    let against = |name: &str, words: &str| {
        let times = ratio(page.variant(name)?, farhop)?;
        Some(format!("<b>{times:.1}×</b> the speed of direct {words}"))
    };
    let parts: Vec<String> = [
        against("direct-h1", "HTTP/1.1"),
        against("direct-h1s", "HTTPS/1.1"),
        against("direct-h2", "HTTP/2"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

const BAR: u32 = 26;
const ROW: u32 = 38;
const LABELS: u32 = 130;
const WIDTH: u32 = 720;
/// Room to the right of the longest bar for its number.
const NUMBERS: u32 = 80;

fn bars(out: &mut String, page: &PageResult) {
    let longest =
        page.variants.iter().filter_map(|variant| variant.plt_s).map(|plt| plt.max).fold(0.0, f64::max);
    let longest = longest.max(page.limit_s.unwrap_or(0.0)).max(1e-9);
    let x = |seconds: f64| f64::from(LABELS) + seconds / longest * f64::from(WIDTH - LABELS - NUMBERS);
    let height = ROW * page.variants.len() as u32 + 24;
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Load times of {}\">",
        escape(&page.page)
    );
    // Over the mark of the limit, so that it crosses no figure.
    let mut numbers = String::new();
    for (place, variant) in page.variants.iter().enumerate() {
        let top = ROW * place as u32 + 4;
        let middle = top + BAR / 2;
        let text = top + BAR / 2 + 5;
        let kind = if variant.is_farhop() { "ours" } else { "direct" };
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{}\" y=\"{text}\">{}</text>",
            LABELS - 12,
            escape(&variant.name)
        );
        let Some(plt) = variant.plt_s else {
            let _ = writeln!(out, "<text class=\"none\" x=\"{LABELS}\" y=\"{text}\">no load counted</text>");
            continue;
        };
        let width = x(plt.median) - f64::from(LABELS);
        let _ = writeln!(
            out,
            "<rect class=\"{kind}\" x=\"{LABELS}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"3\"/>"
        );
        if plt.max > plt.min {
            let (from, to) = (x(plt.min), x(plt.max));
            let _ = writeln!(out, "<path class=\"range\" d=\"M{from:.1} {middle}H{to:.1}\"/>");
        }
        let beside = x(plt.max.max(plt.median)) + 8.0;
        let _ = writeln!(
            numbers,
            "<text class=\"number\" x=\"{beside:.1}\" y=\"{text}\">{:.2} s</text>",
            plt.median
        );
    }
    if let Some(limit) = page.limit_s {
        let (at, bottom) = (x(limit), height - 20);
        let _ = writeln!(out, "<path class=\"mark\" d=\"M{at:.1} 0V{bottom}\"/>");
        let _ = writeln!(
            out,
            "<text class=\"mark\" x=\"{at:.1}\" y=\"{}\">limit {limit:.2} s</text>",
            height - 5
        );
    }
    out.push_str(&numbers);
    out.push_str("</svg>\n");
}

fn rows(out: &mut String, page: &PageResult) {
    out.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th></th><th>Load</th><th>First paint</th><th>First byte</th><th>Last file</th>\
         <th>Conn.</th><th>KB down</th><th>KB up</th><th>Crossed</th><th>Promised</th><th>Used</th><th>KB wasted</th>\
         <th>Files right</th><th>Wrong</th></tr></thead>\n<tbody>\n",
    );
    for variant in &page.variants {
        let ours = if variant.is_farhop() { " class=\"ours\"" } else { "" };
        let _ = write!(out, "<tr{ours}><th>{} <small>{}</small></th>", escape(&variant.name), runs(variant));
        for cell in [
            seconds(variant.plt_s),
            seconds(variant.fcp_s),
            seconds(variant.ttfb_s),
            seconds(variant.last_s),
            variant.connections.to_string(),
            format!("{:.0}", variant.link_bytes.forward / 1e3),
            format!("{:.0}", variant.link_bytes.return_ / 1e3),
            variant.requests_crossed.to_string(),
            variant.promised.to_string(),
            variant.used.to_string(),
            format!("{:.0}", variant.wasted_bytes / 1e3),
            variant.resources_ok.to_string(),
            variant.resources_bad.to_string(),
        ] {
            let _ = write!(out, "<td>{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn seconds(spread: Option<Spread>) -> String {
    spread.map_or("–".into(), |spread| format!("{:.2} s", spread.median))
}

/// Text as it may stand in an element or a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
