//! Carriers side by side as one HTML file that needs nothing else, in the looks of the comparison of pages. Pure.

use std::fmt::Write;

use super::{Cell, Condition, LinkResult, Named, Transports};
use crate::html::{escape, link_words, page};

/// The whole page.
pub fn transport_html(transports: &Transports) -> String {
    let mut body = String::new();
    for link in &transports.links {
        section(&mut body, transports, link);
    }
    let words = transports.links.iter().map(|link| {
        link_words(&link.profile, [link.forward.rate_bit_s, link.return_.rate_bit_s], link.rtt_s)
    });
    let mut conditions: Vec<(&str, String)> =
        transports.links.iter().map(|link| ("Link", link.calibration.text.clone())).collect();
    let listed = |names: &[Named]| {
        names.iter().map(|named| format!("{}: {}", named.name, named.words)).collect::<Vec<_>>().join("; ")
    };
    conditions.push(("Workloads", listed(&transports.workloads)));
    conditions.push(("Routes", listed(&transports.routes)));
    conditions.push(("Method", transports.method.join("; ")));
    page(&words.collect::<Vec<_>>().join("; "), &body, &transports.notes, &conditions)
}

fn section(out: &mut String, transports: &Transports, link: &LinkResult) {
    let _ = writeln!(out, "<section>\n<h2 class=\"profile\">{}</h2>", escape(&link.profile));
    for condition in &link.conditions {
        let _ = writeln!(out, "<h3>{}</h3>", escape(&condition.in_words()));
        matrix(out, transports, condition);
    }
    out.push_str("</section>\n");
}

/// Routes down, workloads across; in each cell the multiple of the limit, the time beneath it.
fn matrix(out: &mut String, transports: &Transports, condition: &Condition) {
    out.push_str("<div class=\"scroll\"><table class=\"matrix\">\n<thead><tr><th></th>");
    for result in &condition.results {
        let limit = result.limit_s.map(|limit| format!("limit {limit:.2} s")).unwrap_or_default();
        let _ = write!(out, "<th>{}<small>{limit}</small></th>", escape(&result.workload));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for route in &transports.routes {
        let ours = if route.name.starts_with("farhop") { " class=\"ours\"" } else { "" };
        let _ = write!(out, "<tr{ours}><th title=\"{}\">{}</th>", escape(&route.words), escape(&route.name));
        for result in &condition.results {
            let best = condition.best(&result.workload);
            cell(out, condition.cell(&result.workload, &route.name), best);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn cell(out: &mut String, cell: Option<&Cell>, best: Option<f64>) {
    let Some(cell) = cell else {
        out.push_str("<td>–</td>");
        return;
    };
    let (class, text) = match (cell.present, cell.time_s) {
        (false, _) => ("absent", "not present".to_owned()),
        (true, None) => ("absent", "failed".to_owned()),
        (true, Some(time)) => {
            let late = if cell.late { ", late" } else { "" };
            let class = if cell.ratio.is_some() && cell.ratio == best { "best" } else { "" };
            let ratio = cell.ratio.map_or("–".into(), |ratio| format!("{ratio:.2} ×"));
            (class, format!("{ratio}<small>{:.2} s{late}</small>", time.median))
        }
    };
    let _ = write!(out, "<td class=\"{class}\" title=\"{}\">{text}</td>", escape(&about(cell)));
}

/// What a cell has no room for.
fn about(cell: &Cell) -> String {
    let mut parts = Vec::new();
    if let Some(time) = cell.time_s {
        parts.push(format!("{} runs, {:.2} to {:.2} s", cell.runs, time.min, time.max));
        parts.push(format!(
            "{:.0} KB down, {:.1} KB and {} packets up",
            cell.forward_bytes / 1e3,
            cell.return_bytes / 1e3,
            cell.return_packets
        ));
        parts.push(format!("{} dropped by the queue", cell.queue_drops));
    }
    parts.extend(cell.failures.iter().cloned());
    parts.join("; ")
}
