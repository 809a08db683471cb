//! A load over time: rates in both directions, span by span, and when each connection was active. As the HTTP/2 study's
//! figures 2 and 3. Pure.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::plot::{number, picture, ticks};
use crate::html::escape;

/// A figure of single loads over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dynamics {
    /// The study's number for it.
    pub figure: String,
    /// Where in the study it stands.
    pub place: String,
    /// What it shows.
    pub title: String,
    /// What the study found.
    pub found: String,
    /// The load: page, link, variant.
    pub load: [String; 3],
    /// What it shows.
    pub series: Series,
}

impl Dynamics {
    /// Whether both are drawings of one figure, of two loads.
    pub(super) fn is_of_the_same_figure(&self, other: &Dynamics) -> bool {
        (&self.figure, &self.place, &self.title) == (&other.figure, &other.place, &other.title)
    }
}

/// One load over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// A span in seconds.
    pub step_s: f64,
    /// Gateway to terminal, kbit/s in each span.
    pub down: Vec<f64>,
    /// Terminal to gateway.
    pub up: Vec<f64>,
    /// For each connection on the link the stretches of spans in which a packet arrived on it: first, and behind the last.
    pub connections: Vec<Vec<[u32; 2]>>,
}

const DOWN: &str = "#0072b2";
const UP: &str = "#d55e00";
const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
/// The half of a label at the end of the axis.
const RIGHT: f64 = 32.0;
const TOP: f64 = 10.0;
const RATES: f64 = 220.0;
/// Of one connection, at most; many share what there is.
const ROW: f64 = 7.0;
const ROWS: f64 = 160.0;

impl Series {
    /// Stretches of the spans in which something was, which are ascending.
    pub fn stretches(spans: &[u32]) -> Vec<[u32; 2]> {
        let mut stretches: Vec<[u32; 2]> = Vec::new();
        for span in spans {
            match stretches.last_mut() {
                Some(last) if last[1] == *span => last[1] += 1,
                _ => stretches.push([*span, span + 1]),
            }
        }
        stretches
    }

    fn connections_in_words(&self) -> String {
        match self.connections.len() {
            1 => "1 connection".into(),
            count => format!("{count} connections"),
        }
    }

    fn spans(&self) -> usize {
        self.down.len().max(self.up.len()).max(1)
    }
}

/// Rates above, connections below, on one time axis.
pub(super) fn draw(out: &mut String, dynamics: &Dynamics) {
    let (body, height) = chart(dynamics);
    let Dynamics { load, title, series, .. } = dynamics;
    let _ = writeln!(
        out,
        "<p>{}</p>\n<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n<p class=\"legend\">kbit/s in each {:.0} ms: <span style=\"color:{DOWN}\">to the client</span> <span style=\"color:{UP}\">from the client</span>; below, {} on the link</p>",
        escape(&load.join(", ")),
        escape(title),
        series.step_s * 1e3,
        series.connections_in_words()
    );
}

/// The same as a file of its own, with what it shows below.
pub(super) fn dynamics_picture(dynamics: &Dynamics) -> String {
    let (mut body, height) = chart(dynamics);
    let Dynamics { load, title, series, .. } = dynamics;
    let _ = writeln!(
        body,
        "<text x=\"{LEFT}\" y=\"{:.1}\">kbit/s in each {:.0} ms: <tspan style=\"fill:{DOWN}\">to the client</tspan>, <tspan style=\"fill:{UP}\">from the client</tspan>; below, {} on the link</text>",
        height + 14.0,
        series.step_s * 1e3,
        series.connections_in_words()
    );
    picture(&format!("{title}: {}", load.join(", ")), WIDTH, (height + 24.0).round(), &body)
}

fn chart(dynamics: &Dynamics) -> (String, f64) {
    let series = &dynamics.series;
    let width = WIDTH - LEFT - RIGHT;
    let x = |span: f64| LEFT + span / series.spans() as f64 * width;
    let most = series.down.iter().chain(&series.up).copied().fold(1.0, f64::max);
    let y = |rate: f64| TOP + RATES * (1.0 - rate / most);
    let row = (ROWS / series.connections.len().max(1) as f64).min(ROW);
    let below = TOP + RATES + 26.0;
    let height = below + row * series.connections.len() as f64 + 8.0;
    let mut body = String::new();
    let out = &mut body;
    for rate in ticks(most) {
        let at = y(rate);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}h{width:.1}\" stroke=\"currentColor\" opacity=\".15\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"name\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            number(rate)
        );
    }
    for seconds in ticks(series.spans() as f64 * series.step_s) {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} s</text>",
            x(seconds / series.step_s),
            TOP + RATES + 18.0,
            number(seconds)
        );
    }
    for (rates, colour) in [(&series.down, DOWN), (&series.up, UP)] {
        let points: Vec<String> = rates
            .iter()
            .enumerate()
            .map(|(span, rate)| format!("{:.1} {:.1}", x(span as f64 + 0.5), y(*rate)))
            .collect();
        if !points.is_empty() {
            let _ = writeln!(
                out,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                points.join("L")
            );
        }
    }
    for (place, stretches) in series.connections.iter().enumerate() {
        let at = below + row * (place as f64 + 0.5);
        for [from, to] in stretches {
            let (from, to) = (x(f64::from(*from)), x(f64::from(*to)));
            let _ = writeln!(
                out,
                "<path d=\"M{from:.1} {at:.1}H{to:.1}\" stroke=\"currentColor\" stroke-width=\"{:.1}\"/>",
                row * 0.6
            );
        }
    }
    (body, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_follow_each_other_are_one_stretch() {
        assert_eq!(Series::stretches(&[0, 1, 2, 5, 7, 8]), [[0, 3], [5, 6], [7, 9]]);
        assert!(Series::stretches(&[]).is_empty());
    }

    #[test]
    fn every_connection_has_a_row_and_every_rate_a_point() {
        let series = Series {
            step_s: 0.1,
            down: vec![0.0, 100.0, 50.0],
            up: vec![10.0],
            connections: vec![vec![[0, 2]], vec![[0, 1], [2, 3]]],
        };
        let mut out = String::new();
        let dynamics = Dynamics {
            figure: "2".into(),
            place: String::new(),
            title: "a <b>".into(),
            found: String::new(),
            load: ["p".into(), "l".into(), "v".into()],
            series,
        };
        draw(&mut out, &dynamics);
        assert_eq!(out.matches("stroke-width=\"4.2\"").count(), 3, "{out}");
        assert!(out.contains("a &lt;b&gt;") && out.contains("2 connections") && out.contains(">0.3 s<"));
        assert!(out.contains(">80<") && !out.contains(">75<"), "rates are round: {out}");
        let alone = dynamics_picture(&dynamics);
        assert_eq!(alone.matches("stroke-width=\"4.2\"").count(), 3, "{alone}");
        assert!(alone.contains("<title>a &lt;b&gt;: p, l, v</title>"), "{alone}");
    }
}
