//! Waterfalls side by side as one drawing: a panel per variant, a row per resource, the same rows and the same time axis in
//! all of them. Rows become thin where there are many. Pure.

use std::fmt::Write;

use super::escape;
use crate::waterfall::{Group, address, side_by_side};
use crate::{Bar, PageResult, Waterfall};

/// Pixels of the drawing: the column of names, the space between panels, the room above for titles and the axis, and below.
const NAMES: f64 = 132.0;
const GAP: f64 = 16.0;
const ABOVE: f64 = 44.0;
const BELOW: f64 = 26.0;
/// Between groups of rows.
const APART: f64 = 7.0;
/// The page's width, which up to four panels share; more of them make the drawing wider, and it scrolls.
const WIDTH: f64 = 920.0;
const NARROWEST: f64 = 180.0;
/// Rows of at least this height have their names beside them.
const NAMED: f64 = 13.0;
/// Where Farhop is quicker than the slowest by more than this, its waterfall is drawn once more by itself.
const CLOSER: f64 = 2.5;

/// One of the loads that stand side by side.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_farhop: bool,
    pub(crate) waterfall: &'a Waterfall,
}

/// Loads side by side, with what the colours mean.
pub(crate) fn panels(out: &mut String, label: &str, drawn: &[Panel<'_>]) {
    out.push_str(LEGEND);
    drawing(out, label, drawn);
}

/// Draws the waterfalls of a page's variants.
pub(super) fn falls(out: &mut String, page: &PageResult) {
    let shown = page.variants.iter().filter(|variant| !variant.waterfall.bars.is_empty());
    let drawn: Vec<Panel<'_>> = shown
        .map(|variant| Panel {
            name: &variant.name,
            is_farhop: variant.is_farhop(),
            waterfall: &variant.waterfall,
        })
        .collect();
    if drawn.is_empty() {
        return;
    }
    out.push_str("<h3>Every file, from the moment the page wanted it</h3>\n");
    out.push_str(LEGEND);
    drawing(out, &format!("Waterfalls of {}", page.page), &drawn);
    let ours: Vec<Panel<'_>> = drawn.iter().copied().filter(|panel| panel.is_farhop).collect();
    if !ours.is_empty() && longest(&drawn) > CLOSER * longest(&ours) {
        out.push_str("<details><summary>Farhop alone, on a time axis of its own</summary>\n");
        drawing(out, &format!("Waterfalls of {} through Farhop", page.page), &ours);
        out.push_str("</details>\n");
    }
}

const LEGEND: &str = "<p class=\"legend\"><span><i class=\"held\"></i>before it could be sent: name, connection, a free slot</span>\
<span><i class=\"asked wait\"></i><i class=\"asked\"></i>asked for across the link: waiting, arriving</span>\
<span><i class=\"early wait\"></i><i class=\"early\"></i>sent before it was asked for: waiting, arriving</span>\
<span><i class=\"at paint\"></i>first paint</span><span><i class=\"at load\"></i>loaded</span></p>\n";

/// The last moment that any of the loads shows, in seconds.
fn longest(variants: &[Panel<'_>]) -> f64 {
    variants.iter().map(|variant| variant.waterfall.last_s()).fold(0.001, f64::max)
}

fn drawing(out: &mut String, label: &str, variants: &[Panel<'_>]) {
    let waterfalls: Vec<&Waterfall> = variants.iter().map(|variant| variant.waterfall).collect();
    let groups = side_by_side(&waterfalls);
    let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
    let row = row_height(rows);
    let panels = variants.len() as f64;
    let panel = ((WIDTH - NAMES - GAP * (panels - 1.0)) / panels).max(NARROWEST);
    let width = NAMES + panel * panels + GAP * (panels - 1.0);
    let bottom = ABOVE + rows as f64 * row + (groups.len() - 1) as f64 * APART;
    let scale = panel / (longest(variants) * 1.03);
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><svg class=\"falls\" viewBox=\"0 0 {width:.0} {:.0}\" style=\"min-width:{:.0}px\" role=\"img\" aria-label=\"{}\">",
        bottom + BELOW,
        width * 0.8,
        escape(label)
    );
    for (number, variant) in variants.iter().enumerate() {
        let left = NAMES + (panel + GAP) * number as f64;
        frame(out, variant, left, panel, bottom, scale);
    }
    let mut top = ABOVE;
    for group in &groups {
        names(out, group, top, row);
        for (place, resource) in group.rows.iter().enumerate() {
            let middle = top + (place as f64 + 0.5) * row;
            for (number, bar) in resource.bars.iter().enumerate() {
                let left = NAMES + (panel + GAP) * number as f64;
                bar.iter().for_each(|bar| draw(out, bar, left, middle, row, scale));
            }
        }
        top += group.rows.len() as f64 * row + APART;
    }
    for (number, variant) in variants.iter().enumerate() {
        let left = NAMES + (panel + GAP) * number as f64;
        marks(out, variant, left, panel, bottom, scale);
    }
    out.push_str("</svg></div>\n");
}

/// Pixels for each of so many rows: all of them fit a screen.
fn row_height(rows: usize) -> f64 {
    match rows {
        0..=34 => 16.0,
        35..=90 => 480.0 / rows as f64,
        _ => (560.0 / rows as f64).max(1.6),
    }
}

/// A panel's title, axis and grid.
fn frame(out: &mut String, variant: &Panel<'_>, left: f64, panel: f64, bottom: f64, scale: f64) {
    let kind = if variant.is_farhop { "title ours" } else { "title" };
    let _ = writeln!(out, "<text class=\"{kind}\" x=\"{left:.1}\" y=\"14\">{}</text>", escape(variant.name));
    if let Some(words) = variant.waterfall.of_how_many() {
        let right = left + panel;
        let _ = writeln!(
            out,
            "<text class=\"tick\" style=\"text-anchor:end\" x=\"{right:.1}\" y=\"25\">{words}</text>"
        );
    }
    let step = step(panel / scale);
    let _ = writeln!(
        out,
        "<path class=\"ground\" d=\"M{left:.1} {ABOVE}h{panel:.1}V{bottom:.1}h-{panel:.1}z\"/>"
    );
    let mut tick = 0;
    loop {
        let seconds = f64::from(tick) * step;
        let x = left + seconds * scale;
        if x > left + panel - 4.0 {
            break;
        }
        let words = if tick == 0 { "0".into() } else { format!("{} s", rounded(seconds)) };
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>", ABOVE - 4.0);
        let _ = writeln!(out, "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{words}</text>", ABOVE - 9.0);
        tick += 1;
    }
}

/// Seconds between ticks: 1, 2 or 5 times a power of ten, at most five of them to a panel.
fn step(seconds: f64) -> f64 {
    let rough = seconds / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A number without digits that say nothing.
fn rounded(seconds: f64) -> String {
    let text = format!("{seconds:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What stands to the left of a group: the name of each file, or the group's where rows are thin.
fn names(out: &mut String, group: &Group<'_>, top: f64, row: f64) {
    let count = group.rows.len();
    let height = count as f64 * row;
    if row >= NAMED {
        for (place, resource) in group.rows.iter().enumerate() {
            let y = top + (place as f64 + 0.5) * row + 3.5;
            let _ = writeln!(
                out,
                "<text class=\"file\" x=\"{:.0}\" y=\"{y:.1}\">{}<title>{}</title></text>",
                NAMES - 8.0,
                escape(&short(resource.url)),
                escape(resource.url)
            );
        }
        return;
    }
    let words = if count == 1 { group.heading.to_owned() } else { format!("{} ({count})", group.heading) };
    let edge = NAMES - 8.0;
    let _ = writeln!(out, "<path class=\"brace\" d=\"M{edge:.1} {top:.1}v{height:.1}\"/>");
    let y = top + height / 2.0 + 3.5;
    let _ = writeln!(out, "<text class=\"file\" x=\"{:.0}\" y=\"{y:.1}\">{words}</text>", edge - 6.0);
}

/// The last part of a URL's path, or its host, short enough for the column of names.
fn short(url: &str) -> String {
    const MOST: usize = 20;
    let address = address(url).split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let name = match address.rsplit_once('/') {
        Some((_, name)) => name,
        None => address,
    };
    match name.chars().count() {
        0..=MOST => name.to_owned(),
        count => {
            let end: String = name.chars().skip(count - MOST + 1).collect();
            format!("…{end}")
        }
    }
}

/// One resource of one load: not sent yet, waiting, arriving.
fn draw(out: &mut String, bar: &Bar, left: f64, middle: f64, row: f64, scale: f64) {
    let x = |seconds: f64| left + seconds.max(0.0) * scale;
    let thick = if row >= NAMED { row * 0.62 } else { row * 0.82 };
    let kind = if bar.unasked { "early" } else { "asked" };
    let _ = write!(out, "<g class=\"{kind}\"><title>{}</title>", escape(&in_words(bar)));
    let mut part = |class: &str, from: f64, to: f64, thick: f64, least: f64| {
        let width = (x(to) - x(from)).max(least);
        if width >= 0.15 {
            let _ = write!(
                out,
                "<path class=\"{class}\" stroke-width=\"{thick:.1}\" d=\"M{:.1} {middle:.1}h{width:.1}\"/>",
                x(from)
            );
        }
    };
    part("held", bar.start_s, bar.sent_s, thick * 0.5, 0.0);
    part("wait", bar.sent_s, bar.first_byte_s, thick, 0.0);
    // However short, that it arrived is to be seen.
    part("come", bar.first_byte_s, bar.end_s, thick, 1.2);
    out.push_str("</g>\n");
}

fn in_words(bar: &Bar) -> String {
    let way = if bar.unasked { "sent before it was asked for" } else { "asked for across the link" };
    format!(
        "{}: wanted at {:.2} s, not sent for {:.2} s, waited {:.2} s, arrived in {:.2} s, there at {:.2} s; {way}",
        bar.url,
        bar.start_s,
        bar.sent_s - bar.start_s,
        bar.first_byte_s - bar.sent_s,
        bar.end_s - bar.first_byte_s,
        bar.end_s
    )
}

/// When something was to be seen first, and when the page had loaded, over the bars of its panel.
fn marks(out: &mut String, variant: &Panel<'_>, left: f64, panel: f64, bottom: f64, scale: f64) {
    let fall = variant.waterfall;
    let right = left + panel;
    if let Some(x) = fall.paint_s.map(|paint| left + paint * scale).filter(|x| *x <= right) {
        let _ = writeln!(out, "<path class=\"paint\" d=\"M{x:.1} {ABOVE}V{bottom:.1}\"/>");
    }
    if let Some(load) = fall.load_s {
        let x = (left + load * scale).min(right);
        // The figure stands beside its line, on the side where there is room; beyond the axis there is no line.
        let (anchor, at) = if x > right - 60.0 { ("end", x - 4.0) } else { ("start", x + 4.0) };
        if left + load * scale <= right {
            let _ = writeln!(out, "<path class=\"load\" d=\"M{x:.1} {ABOVE}V{:.1}\"/>", bottom + 14.0);
        }
        let _ = writeln!(
            out,
            "<text class=\"loaded\" text-anchor=\"{anchor}\" x=\"{at:.1}\" y=\"{:.1}\">{load:.2} s</text>",
            bottom + 16.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (seconds, expected) in
            [(0.9, 0.2), (2.2, 0.5), (5.0, 1.0), (9.0, 2.0), (28.2, 10.0), (240.0, 50.0)]
        {
            assert!((step(seconds) - expected).abs() < 1e-9, "{seconds}: {}", step(seconds));
        }
        assert_eq!([rounded(0.2), rounded(10.0), rounded(2.5)], ["0.2", "10", "2.5"]);
    }

    #[test]
    fn files_are_called_by_the_end_of_their_path() {
        let table = [
            ("http://a.test/", "a.test"),
            ("http://a.test/style/base.css?v=3", "base.css"),
            ("https://a.test/docs/", "docs"),
            ("http://a.test/serif-4-latin-400-italic.woff2", "…in-400-italic.woff2"),
        ];
        for (url, name) in table {
            assert_eq!(short(url), name, "{url}");
        }
    }

    #[test]
    fn however_many_rows_there_are_they_fit_a_screen() {
        for rows in [1, 34, 35, 90, 91, 250, 350] {
            assert!(row_height(rows) * rows as f64 <= 600.0, "{rows}");
        }
    }
}
