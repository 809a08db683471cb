//! A figure as inline SVG: lines over a common axis, each point with its interval. Pure.

use std::fmt::Write;

use super::{Line, Plot};
use crate::html::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Room for the axes and the names.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
/// One colour for each line, told apart also by those who see few (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"];
/// And by their dashes.
const DASHES: [&str; 4] = ["none", "6 3", "2 3", "8 3 2 3"];

/// The figure with its legend; nothing where there is no point.
pub(super) fn plot(out: &mut String, plot: &Plot) {
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let xs = points().map(|point| point.x);
    let (Some(first), Some(last)) = (xs.clone().reduce(f64::min), xs.reduce(f64::max)) else { return };
    let step = nice(highest(plot) / 5.0);
    let top = (highest(plot) / step).ceil().max(1.0) * step;
    // A single place stands in the middle.
    let span = if last > first { last - first } else { 2.0 };
    let first = if last > first { first } else { first - 1.0 };
    let x = |value: f64| LEFT + (value - first) / span * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value / top).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM);

    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(&plot.title)
    );
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
    out.push_str("</svg>\n<p class=\"legend\">");
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

/// Of all points and intervals.
fn highest(plot: &Plot) -> f64 {
    let points = plot.lines.iter().flat_map(|line| &line.points);
    points.map(|point| point.interval.map_or(point.y, |ends| ends[1].max(point.y))).fold(0.0, f64::max)
}

fn look(order: usize) -> (&'static str, &'static str) {
    (COLOURS[order % COLOURS.len()], DASHES[order / 2 % DASHES.len()])
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

/// The next 1, 2 or 5 times a power of ten.
fn nice(step: f64) -> f64 {
    if step.is_nan() || step <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|times| times * power).find(|nice| *nice >= step).unwrap_or(10.0 * power)
}

/// Without the dust of binary fractions.
fn number(value: f64) -> String {
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
    fn nothing_is_drawn_of_nothing_and_steps_are_round() {
        assert_eq!(drawn(Vec::new()), "");
        assert_eq!([0.0, 0.03, 0.7, 1.0, 3.2, 60.0].map(nice), [1.0, 0.05, 1.0, 1.0, 5.0, 100.0]);
    }
}
