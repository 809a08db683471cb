//! A figure as inline SVG: lines over a common axis, each point with its interval. Pure.

use std::fmt::Write;

use super::{Line, Plot};
use crate::html::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Room for the axes and the names.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
/// One colour for each line, told apart also by those who see few (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"];
/// And by their dashes.
const DASHES: [&str; 4] = ["none", "6 3", "2 3", "8 3 2 3"];

/// Bars where all stands at one place.
const BAR: f64 = 16.0;
const ROW: f64 = 24.0;
const NAMES: f64 = 190.0;
const NUMBERS: f64 = 70.0;
/// A row of the legend of a picture, and its columns.
const ENTRY: f64 = 20.0;
const COLUMNS: usize = 3;
/// With names longer than this there is a column less.
const LONG: usize = 23;

/// A figure without what is around it: the elements of an SVG, how high they are, and whether lines need a legend.
struct Chart {
    body: String,
    height: f64,
    has_lines: bool,
}

/// The figure with its legend; nothing where there is no point.
pub(super) fn plot(out: &mut String, plot: &Plot) {
    let Some(Chart { body, height, has_lines }) = chart(plot) else { return };
    let title = escape(&plot.title);
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n{body}</svg>"
    );
    if !has_lines {
        return;
    }
    out.push_str("<p class=\"legend\">");
    for (order, line) in plot.lines.iter().enumerate() {
        let (colour, dash) = look(order);
        let _ = write!(
            out,
            "<span><svg viewBox=\"0 0 28 10\" style=\"display:inline-block;width:28px;height:10px;margin:0 .4rem 0 0\"><path d=\"M0 5H28\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-dasharray=\"{dash}\"/></svg>{}</span>",
            escape(&line.name)
        );
    }
    out.push_str("</p>\n");
}

/// The figure as a file of its own, its legend within; nothing where there is no point.
pub(super) fn plot_picture(plot: &Plot) -> Option<String> {
    let Chart { mut body, mut height, has_lines } = chart(plot)?;
    if has_lines {
        let longest = plot.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let columns = if longest > LONG { COLUMNS - 1 } else { COLUMNS };
        let width = (WIDTH - LEFT - RIGHT) / columns as f64;
        for (order, line) in plot.lines.iter().enumerate() {
            let (colour, dash) = look(order);
            let at = LEFT + width * (order % columns) as f64;
            let middle = height + ENTRY * ((order / columns) as f64 + 0.5);
            let _ = writeln!(
                body,
                "<path d=\"M{at:.1} {middle:.1}h28\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-dasharray=\"{dash}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                at + 34.0,
                middle + 4.0,
                escape(&line.name)
            );
        }
        height += ENTRY * plot.lines.len().div_ceil(columns) as f64 + 6.0;
    }
    Some(picture(&plot.title, WIDTH, height, &body))
}

/// An SVG that needs no style of a page around it.
pub(super) fn picture(title: &str, width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" color=\"#222\">\n<title>{}</title>\n<style>text {{ fill: #222 }} .name {{ text-anchor: end }}</style>\n<path d=\"M0 0H{width}V{height}H0Z\" fill=\"#fff\"/>\n{body}</svg>\n",
        escape(title)
    )
}

fn chart(plot: &Plot) -> Option<Chart> {
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let xs = points().map(|point| point.x);
    let (first, last) = (xs.clone().reduce(f64::min)?, xs.reduce(f64::max)?);
    if last > first { Some(lines(plot, first, last)) } else { Some(bars(plot)) }
}

/// One below the other, where everything stands at the same place.
fn bars(plot: &Plot) -> Chart {
    let most = highest(plot);
    let x = |value: f64| NAMES + (value / most.max(1e-9)).clamp(0.0, 1.0) * (WIDTH - NAMES - NUMBERS);
    let mut body = String::new();
    for (order, line) in plot.lines.iter().enumerate() {
        let (top, middle) = (TOP + ROW * order as f64, TOP + ROW * order as f64 + BAR / 2.0);
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"name\">{}</text>",
            NAMES - 8.0,
            middle + 4.5,
            escape(&line.name)
        );
        for point in &line.points {
            let (colour, _) = look(if line.name.starts_with("farhop") { 1 } else { 0 });
            let end = x(point.y);
            let _ = writeln!(
                body,
                "<path d=\"M{NAMES} {top:.1}H{end:.1}v{BAR}H{NAMES}Z\" fill=\"{colour}\" opacity=\".85\"/>"
            );
            let mut right = end;
            if let Some([low, high]) = point.interval {
                let (low, high) = (x(low.max(0.0)), x(high));
                right = right.max(high);
                let _ = writeln!(
                    body,
                    "<path d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\" stroke=\"currentColor\" stroke-width=\"1.2\" fill=\"none\"/>",
                    middle - 4.0,
                    middle - 4.0
                );
            }
            let _ = writeln!(
                body,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                right + 6.0,
                middle + 4.5,
                four_digits(point.y)
            );
        }
    }
    let height = TOP + ROW * plot.lines.len() as f64 + 24.0;
    let at = points_at(plot).map_or_else(String::new, |at| format!(", {}: {}", plot.x, number(at)));
    let _ = writeln!(
        body,
        "<text x=\"{NAMES}\" y=\"{:.1}\">{}</text>",
        height - 8.0,
        escape(&format!("{}{at}", plot.y))
    );
    Chart { body, height, has_lines: false }
}

/// The one place of everything.
fn points_at(plot: &Plot) -> Option<f64> {
    plot.lines.iter().flat_map(|line| &line.points).map(|point| point.x).next()
}

/// Four digits that count.
pub(super) fn four_digits(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{value:.*}", digits as usize)
}

fn lines(plot: &Plot, first: f64, last: f64) -> Chart {
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let step = nice(highest(plot) / 5.0);
    let top = (highest(plot) / step).ceil().max(1.0) * step;
    let x = |value: f64| LEFT + (value - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value / top).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM);

    let mut body = String::new();
    let out = &mut body;
    let mut tick = 0.0;
    while tick <= top + step / 2.0 {
        let at = y(tick);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"currentColor\" opacity=\".15\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"name\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            number(tick)
        );
        tick += step;
    }
    let mut places: Vec<f64> = points().map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut free_from = f64::MIN;
    for place in places {
        let text = number(place);
        let half = text.len() as f64 * 4.5;
        if x(place) - half < free_from {
            continue; // two names would stand on each other
        }
        free_from = x(place) + half;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            x(place),
            HEIGHT - BOTTOM + 18.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0,
        escape(&plot.x),
        (TOP + HEIGHT - BOTTOM) / 2.0,
        escape(&plot.y)
    );
    for (order, line) in plot.lines.iter().enumerate() {
        draw(out, order, line, &x, &y);
    }
    Chart { body, height: HEIGHT, has_lines: true }
}

/// Of all points and intervals; not more than half above the points, since two loads have an interval of many times their
/// difference.
fn highest(plot: &Plot) -> f64 {
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let point = points().map(|point| point.y).fold(0.0, f64::max);
    let ends = points().filter_map(|point| point.interval).map(|ends| ends[1]);
    ends.fold(point, f64::max).min(point * 1.5)
}

fn look(order: usize) -> (&'static str, &'static str) {
    // Each colour has another dash when it comes again.
    let dash = order / 2 + order / COLOURS.len();
    (COLOURS[order % COLOURS.len()], DASHES[dash % DASHES.len()])
}

fn draw(out: &mut String, order: usize, line: &Line, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
    let (colour, dash) = look(order);
    let path: Vec<String> =
        line.points.iter().map(|point| format!("{:.1} {:.1}", x(point.x), y(point.y))).collect();
    let _ = writeln!(
        out,
        "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
        path.join("L")
    );
    for point in &line.points {
        let (at, middle) = (x(point.x), y(point.y));
        if let Some([low, high]) = point.interval {
            let (low, high) = (y(low), y(high));
            let _ = write!(
                out,
                "<path d=\"M{at:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\" stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"none\"/>",
                at - 4.0,
                at - 4.0
            );
        }
        let _ = writeln!(out, "<circle cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"3.2\" fill=\"{colour}\"/>");
    }
}

/// Round numbers from nothing to `most`, four to nine of them.
pub(super) fn ticks(most: f64) -> Vec<f64> {
    let step = nice(most / 8.0);
    let count = (most / step + 1e-6).floor().clamp(0.0, 20.0) as u32;
    (0..=count).map(|tick| f64::from(tick) * step).collect()
}

/// The next 1, 2 or 5 times a power of ten.
fn nice(step: f64) -> f64 {
    if step.is_nan() || step <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|times| times * power).find(|nice| *nice >= step).unwrap_or(10.0 * power)
}

/// Without the dust of binary fractions.
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        let points = points.iter().map(|(x, y)| Point { x: *x, y: *y, interval: Some([y - 1.0, y + 1.0]) });
        Line { name: name.into(), points: points.collect() }
    }

    fn drawn(lines: Vec<Line>) -> String {
        let mut out = String::new();
        let about = Plot {
            figure: "1".into(),
            place: String::new(),
            title: "a <b>".into(),
            x: "images".into(),
            y: "s".into(),
            found: String::new(),
            lines,
        };
        plot(&mut out, &about);
        out
    }

    #[test]
    fn every_line_and_point_is_drawn_within_the_frame() {
        let svg = drawn(vec![line("one", &[(1.0, 4.0), (30.0, 19.0)]), line("two", &[(1.0, 2.0)])]);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a &lt;b&gt;") && svg.contains(">one<") && svg.contains(">two<"));
        let heights =
            svg.split("cy=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap());
        assert!(heights.into_iter().all(|at| (TOP..=HEIGHT - BOTTOM).contains(&at)));
        assert!(svg.contains(&format!("cx=\"{:.1}\"", WIDTH - RIGHT)), "the last place is at the right end");
    }

    #[test]
    fn what_stands_at_one_place_is_a_bar_with_its_name_and_number() {
        let svg = drawn(vec![line("farhop", &[(30.0, 4.0)]), line("browser", &[(30.0, 19.0)])]);
        assert_eq!((svg.matches("<circle").count(), svg.matches(" fill=\"#").count()), (0, 2), "{svg}");
        for told in [">farhop<", ">browser<", ">4.000<", ">19.00<", ">s, images: 30<"] {
            assert!(svg.contains(told), "{told}: {svg}");
        }
    }

    #[test]
    fn a_picture_of_its_own_has_its_legend_within_and_ends_below_it() {
        let about = Plot {
            figure: "1".into(),
            place: String::new(),
            title: "a <b>".into(),
            x: "images".into(),
            y: "s".into(),
            found: String::new(),
            lines: (0..4).map(|order| line(&format!("line {order}"), &[(1.0, 4.0), (2.0, 5.0)])).collect(),
        };
        let svg = plot_picture(&about).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.contains("<title>a &lt;b&gt;</title>"), "{svg}");
        assert!(svg.contains(">line 3<") && svg.contains("viewBox=\"0 0 720 406\""), "two rows: {svg}");
        let mut long = about.clone();
        long.lines[0].name = "farhop-application, 500 KB".into();
        let svg = plot_picture(&long).unwrap();
        assert!(svg.contains("<path d=\"M378.0 370.0h28\""), "two columns of long names: {svg}");
        assert_eq!(plot_picture(&Plot { lines: Vec::new(), ..about }), None);
    }

    #[test]
    fn no_two_lines_look_alike() {
        let looks: std::collections::BTreeSet<_> = (0..COLOURS.len() * DASHES.len()).map(look).collect();
        assert_eq!(looks.len(), COLOURS.len() * DASHES.len());
    }

    #[test]
    fn numbers_have_four_digits_that_count() {
        assert_eq!(
            [0.0, 12.3456, 0.012_344, 4_567_890.0].map(four_digits),
            ["0", "12.35", "0.01234", "4567890"]
        );
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_steps_are_round() {
        assert_eq!(drawn(Vec::new()), "");
        assert_eq!([0.0, 0.03, 0.7, 1.0, 3.2, 60.0].map(nice), [1.0, 0.05, 1.0, 1.0, 5.0, 100.0]);
        assert_eq!(ticks(2755.0), [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0]);
        assert_eq!(ticks(29.7), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!(ticks(4.0), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]);
        assert_eq!(ticks(0.0), [0.0]);
    }
}
