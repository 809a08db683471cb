//! What a plan found as one HTML file that needs nothing else: figures with what the study found beside them, then every
//! number. Pure.

use std::fmt::Write;

use super::plot::{four_digits as number, plot};
use super::{Dynamics, Plot, Study, StudyCell, StudyClaim, StudyShift};
use super::{dynamics, loads};
use crate::Named;
use crate::html::{escape, page};

/// The whole page.
pub fn study_html(study: &Study) -> String {
    let mut body = String::new();
    let _ = writeln!(
        body,
        "<section>\n<h2 class=\"profile\">{}</h2>\n<p class=\"claim\"><b>{}</b></p>",
        escape(&study.title),
        escape(&study.stamp())
    );
    body.push_str("</section>\n");
    for (order, figure) in study.plots.iter().enumerate() {
        let _ =
            writeln!(body, "<section>\n<h3>{}{}</h3>", escape(&label(&figure.figure)), escape(&figure.title));
        plot(&mut body, figure);
        found(&mut body, study, &figure.found, &figure.place);
        // Where a figure is drawn more than once, the sentence stands under the first drawing of what it is about.
        let is_first = |claim: &StudyClaim| {
            let about = |plot: &Plot| plot.figure == claim.figure && plot.y.starts_with(&claim.measure);
            study.plots.iter().position(about) == Some(order)
        };
        said(&mut body, study, &is_first);
        body.push_str("</section>\n");
    }
    // One figure is drawn of many loads: what is said of it is said once.
    for loads in study.dynamics.chunk_by(Dynamics::is_of_the_same_figure) {
        let Dynamics { figure: which, title, found: text, place, .. } = &loads[0];
        let _ = writeln!(body, "<section>\n<h3>{}{}</h3>", escape(&label(which)), escape(title));
        found(&mut body, study, text, place);
        said(&mut body, study, &|claim| claim.figure == *which);
        loads.iter().for_each(|load| dynamics::draw(&mut body, load));
        body.push_str("</section>\n");
    }
    claims(&mut body, study);
    loads::draw(&mut body, study);
    shifts(&mut body, study);
    cells(&mut body, study);
    let listed = |names: &[Named]| {
        names.iter().map(|named| format!("{}: {}", named.name, named.words)).collect::<Vec<_>>().join("; ")
    };
    let conditions = vec![
        ("Repetitions", repetitions(study)),
        ("Pages", listed(&study.pages)),
        ("Links", listed(&study.links)),
        ("Variants", listed(&study.variants)),
        ("Measures", listed(&study.measures)),
        ("Method", study.method.join("; ")),
    ];
    let study_words = study.study.as_ref().map(|study| format!(", after {study}")).unwrap_or_default();
    page(&format!("plan {}{study_words}", study.plan), &body, &study.notes, &conditions)
}

/// What a heading begins with: studies have figures, tables, and sentences in a section.
pub(super) fn label(of: &str) -> String {
    match of {
        "" => String::new(),
        place if place.starts_with('§') => format!("{place}: "),
        table if table.starts_with("table ") => format!("T{}: ", &table[1..]),
        several if several.contains(", ") => format!("Figures {several}: "),
        one => format!("Figure {one}: "),
    }
}

fn found(out: &mut String, study: &Study, text: &str, place: &str) {
    if text.is_empty() {
        return;
    }
    let who = study.study.as_deref().unwrap_or("The study");
    let place = if place.is_empty() { String::new() } else { format!(" ({})", escape(place)) };
    let _ = writeln!(out, "<p><b>{} found:</b> {}{place}</p>", escape(who), escape(text));
}

/// One sentence on each difference.
fn said(out: &mut String, study: &Study, is_here: &dyn Fn(&StudyClaim) -> bool) {
    for claim in study.claims.iter().filter(|claim| is_here(claim)) {
        let StudyClaim { variant, against, measure, .. } = claim;
        let what = format!("{measure} of {variant} against {against}");
        let _ = writeln!(out, "<p><b>{}:</b> {}</p>", escape(&what), escape(&claim.sentence()));
    }
}

fn claims(out: &mut String, study: &Study) {
    if study.claims.is_empty() {
        return;
    }
    out.push_str("<section>\n<h3>What the study says in numbers, and what was measured here</h3>\n<div class=\"scroll\"><table class=\"said\">\n<thead><tr><th>figure</th><th>the study</th><th>measure</th><th>variant</th><th>against</th><th>verdict</th><th>difference</th></tr></thead>\n<tbody>\n");
    for claim in &study.claims {
        let StudyClaim { figure, says, measure, variant, against, verdict, .. } = claim;
        let cells = [figure, says, measure, variant, against, verdict, &claim.sentence()];
        let cells: Vec<String> = cells.map(|text| format!("<td class=\"text\">{}</td>", escape(text))).into();
        let _ = writeln!(out, "<tr>{}</tr>", cells.concat());
    }
    out.push_str("</tbody></table></div>\n</section>\n");
}

fn repetitions(study: &Study) -> String {
    let [least, most] = study.runs;
    format!(
        "{least} to {most} of each cell, until half of the 95 % interval of every variant of a page on a link is within {} % of its median; seeds from {} on, the same for all variants",
        (study.within * 1e4).round() / 1e2,
        study.seed
    )
}

fn shifts(out: &mut String, study: &Study) {
    if study.shifts.is_empty() {
        return;
    }
    out.push_str("<section>\n<h3>Run for run against the base</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>page</th><th>link</th><th>measure</th><th>variant</th><th>against</th><th>pairs</th><th>shift</th><th>95 % interval</th><th>effect</th><th>verdict</th></tr></thead>\n<tbody>\n");
    for shift in &study.shifts {
        let StudyShift { page, link, measure, variant, base, pairs, effect, verdict, .. } = shift;
        let interval = ends(shift.interval);
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{pairs}</td><td>{}</td><td>{interval}</td><td>{effect:.2}</td><td>{}</td></tr>",
            escape(page),
            escape(link),
            escape(measure),
            escape(variant),
            escape(base),
            number(shift.shift),
            escape(verdict)
        );
    }
    out.push_str("</tbody></table></div>\n</section>\n");
}

fn cells(out: &mut String, study: &Study) {
    out.push_str("<section>\n<h3>Every cell</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>page</th><th>link</th><th>variant</th><th>measure</th><th>runs</th><th>median</th><th>mean</th><th>p95</th><th>min–max</th><th>95 % interval</th></tr></thead>\n<tbody>\n");
    for cell in &study.cells {
        for (measure, values) in &cell.values {
            let unit = study.unit(measure);
            let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
            let _ = writeln!(
                out,
                "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}–{}</td><td>{}</td></tr>",
                escape(&cell.page),
                escape(&cell.link),
                escape(&cell.variant),
                escape(measure),
                escape(&unit),
                runs(cell),
                number(values.median),
                number(values.mean),
                number(values.p95),
                number(values.min),
                number(values.max),
                ends(values.interval)
            );
        }
        if cell.values.is_empty() {
            let why = cell.failures.first().map_or("not loaded", String::as_str);
            let _ = writeln!(
                out,
                "<tr><th>{}</th><td>{}</td><td>{}</td><td class=\"absent\" colspan=\"7\">{}</td></tr>",
                escape(&cell.page),
                escape(&cell.link),
                escape(&cell.variant),
                escape(why)
            );
        }
    }
    out.push_str("</tbody></table></div>\n</section>\n");
}

fn runs(cell: &StudyCell) -> String {
    let late = if cell.late > 0 { format!(", {} late", cell.late) } else { String::new() };
    let open = if cell.settled { "" } else { ", wide" };
    format!("{}{late}{open}", cell.runs)
}

fn ends(interval: Option<[f64; 2]>) -> String {
    interval.map_or("–".into(), |[low, high]| format!("{} to {}", number(low), number(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_figures_tables_and_sections() {
        for (of, told) in [
            ("", ""),
            ("4a", "Figure 4a: "),
            ("2, 3", "Figures 2, 3: "),
            ("table 1", "Table 1: "),
            ("§4.4", "§4.4: "),
        ] {
            assert_eq!(label(of), told);
        }
    }
}
