//! What a plan found as a page of documentation: a sentence for each figure, its drawing and its numbers. Pure.

use std::fmt::Write;

use super::dynamics::dynamics_picture;
use super::html::label;
use super::plot::{four_digits, plot_picture};
use super::{Dynamics, Plot, Study, StudyClaim};
use crate::Named;

/// A page, and the drawings that it names: file names and SVGs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyPage {
    /// Markdown.
    pub text: String,
    /// They stand in the folder that the page was told.
    pub pictures: Vec<(String, String)>,
}

impl StudyClaim {
    /// `**confirmed**: a PEP shortens loads (load of a against b): here it is 20 % less`
    fn told(&self) -> String {
        let StudyClaim { says, measure, variant, against, verdict, .. } = self;
        let sentence = self.sentence();
        // The verdict stands in front, with what the study says.
        let sentence = sentence.replacen(&format!(": {verdict}"), "", 1);
        format!("**{verdict}**: \"{says}\" ({measure} of `{variant}` against `{against}`): {sentence}")
    }
}

impl Study {
    /// `3 of 4 confirmed`, by the verdicts of what the study says.
    pub fn verdicts(&self) -> String {
        let count = |verdict: &str| self.claims.iter().filter(|claim| claim.verdict == verdict).count();
        let told = ["confirmed", "direction confirmed", "not confirmed", "not measured"].map(|verdict| {
            let count = count(verdict);
            (count > 0).then(|| format!("{count} {verdict}"))
        });
        told.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// As a page of documentation. `again` is the command that measures it; pictures are named in `folder`.
    pub fn markdown(&self, again: &str, folder: &str) -> StudyPage {
        let mut page = StudyPage { text: String::new(), pictures: Vec::new() };
        let out = &mut page.text;
        let _ = writeln!(out, "# {}\n\n**{}.** Measured by `{again}`.", self.title, self.stamp());
        let mut shown = vec![false; self.claims.len()];
        for (order, plot) in self.plots.iter().enumerate() {
            let _ = writeln!(out, "\n## {}{}\n", label(&plot.figure), plot.title);
            found(out, self, &plot.found, &plot.place);
            let about =
                |it: &Plot, claim: &StudyClaim| it.figure == claim.figure && it.y.starts_with(&claim.measure);
            let first = |claim: &StudyClaim| self.plots.iter().position(|it| about(it, claim));
            sentences(out, self, &mut shown, &|claim| first(claim) == Some(order));
            if let Some(svg) = plot_picture(plot) {
                let name = format!("{}-{}.svg", self.plan, page.pictures.len() + 1);
                let _ = writeln!(out, "![{}]({folder}/{name})\n", plot.title);
                page.pictures.push((name, svg));
                numbers(out, plot);
            } else {
                out.push_str("Nothing was measured.\n");
            }
        }
        for loads in self.dynamics.chunk_by(Dynamics::is_of_the_same_figure) {
            let Dynamics { figure, title, place, .. } = &loads[0];
            let _ = writeln!(out, "\n## {}{title}\n", label(figure));
            found(out, self, &loads[0].found, place);
            sentences(out, self, &mut shown, &|claim| claim.figure == *figure);
            for dynamics in loads {
                let name = format!("{}-{}.svg", self.plan, page.pictures.len() + 1);
                let load = dynamics.load.join(", ");
                let _ = writeln!(out, "### {load}\n\n![{title}: {load}]({folder}/{name})\n");
                page.pictures.push((name, dynamics_picture(dynamics)));
            }
        }
        if shown.contains(&false) {
            out.push_str("\n## Besides\n\n");
            sentences(out, self, &mut shown, &|_| true);
        }
        self.missing(out);
        self.conditions(out);
        page
    }

    /// What has no numbers, and why.
    fn missing(&self, out: &mut String) {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for cell in self.cells.iter().filter(|cell| cell.values.is_empty()) {
            let why = cell.failures.first().map_or("not loaded yet", String::as_str);
            let told = format!("`{}`: {why}", cell.variant);
            let place = format!("{} over {}", cell.page, cell.link);
            match all.iter_mut().find(|(known, _)| *known == told) {
                Some((_, places)) => places.push(place),
                None => all.push((told, vec![place])),
            }
        }
        if all.is_empty() {
            return;
        }
        out.push_str("\n## Not measured\n\n");
        for (told, places) in all {
            let _ = writeln!(out, "- {told} ({})", places.join("; "));
        }
    }

    fn conditions(&self, out: &mut String) {
        out.push_str("\n## How\n");
        let mut listed = |what: &str, names: &[Named]| {
            let _ = writeln!(out, "\n{what}:\n");
            for Named { name, words } in names {
                let _ = writeln!(out, "- `{name}`: {words}");
            }
        };
        listed("Pages", &self.pages);
        listed("Links", &self.links);
        listed("Variants", &self.variants);
        out.push_str("\nTo be known:\n\n");
        for note in self.notes.iter().chain(&self.method) {
            let _ = writeln!(out, "- {note}");
        }
        let late: u32 = self.cells.iter().map(|cell| cell.late).sum();
        if late > 0 {
            let _ =
                writeln!(out, "- {late} loads met a late link in each attempt and are an indication alone");
        }
    }
}

fn found(out: &mut String, study: &Study, text: &str, place: &str) {
    if text.is_empty() {
        return;
    }
    let who = study.study.as_deref().unwrap_or("The study");
    let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
    let _ = writeln!(out, "{who} found{place}: {text}\n");
}

fn sentences(out: &mut String, study: &Study, shown: &mut [bool], is_here: &dyn Fn(&StudyClaim) -> bool) {
    let mut some = false;
    for (claim, shown) in study.claims.iter().zip(shown) {
        if !*shown && is_here(claim) {
            (*shown, some) = (true, true);
            let _ = writeln!(out, "- {}", claim.told());
        }
    }
    if some {
        out.push('\n');
    }
}

/// One row for each line of a figure, one column for each place.
fn numbers(out: &mut String, plot: &Plot) {
    let mut places: Vec<f64> = plot.lines.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let _ = writeln!(
        out,
        "| {}, by {} | {} |\n|---|{}",
        plot.y,
        plot.x,
        places.iter().map(f64::to_string).collect::<Vec<_>>().join(" | "),
        "---|".repeat(places.len())
    );
    for line in &plot.lines {
        let cells = places.iter().map(|place| {
            let point = line.points.iter().find(|point| point.x == *place);
            point.map_or_else(String::new, |point| {
                let half = point.interval.map(|[low, high]| (high - low) / 2.0);
                let half = half.map_or_else(String::new, |half| format!(" ± {}", four_digits(half)));
                format!("{}{half}", four_digits(point.y))
            })
        });
        let _ = writeln!(out, "| `{}` | {} |", line.name, cells.collect::<Vec<_>>().join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, Point, StudyCell};

    fn study() -> Study {
        let claim = |figure: &str, verdict: &str| StudyClaim {
            figure: figure.into(),
            says: "it is quicker".into(),
            measure: "load".into(),
            variant: "a".into(),
            against: "b".into(),
            study: None,
            here: Some(0.8),
            range: None,
            cells: 1,
            verdict: verdict.into(),
            why: "a reason".into(),
        };
        let point = |x, y| Point { x, y, interval: None };
        let plot = |title: &str| Plot {
            figure: "6".into(),
            place: "§4".into(),
            title: title.into(),
            x: "images".into(),
            y: "load (s)".into(),
            found: "Less.".into(),
            lines: vec![
                Line { name: "a".into(), points: vec![point(1.0, 2.0), point(5.0, 4.0)] },
                Line { name: "b".into(), points: vec![point(5.0, 5.0)] },
            ],
        };
        let failed = StudyCell {
            page: "p".into(),
            link: "l".into(),
            variant: "c".into(),
            runs: 0,
            late: 0,
            settled: false,
            values: Default::default(),
            each: Default::default(),
            failures: vec!["not present: lynx".into()],
        };
        Study {
            plan: "mine".into(),
            title: "Mine".into(),
            study: Some("HTTPEP".into()),
            quick: true,
            complete: true,
            runs: [1, 1],
            within: 0.05,
            seed: 1,
            pages: Vec::new(),
            links: Vec::new(),
            variants: Vec::new(),
            measures: Vec::new(),
            cells: vec![failed],
            shifts: Vec::new(),
            plots: vec![plot("First"), plot("Again")],
            claims: vec![claim("6", "confirmed"), claim("7", "not confirmed")],
            dynamics: Vec::new(),
            loads: Vec::new(),
            method: Vec::new(),
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn a_figure_has_what_the_study_found_a_sentence_a_drawing_and_its_numbers() {
        let page = study().markdown("farhop lab run mine", "figures");
        for told in [
            "# Mine\n\n**quick: 0 runs of each cell, fewer than the plan has; 1 could not be loaded.** Measured by `farhop lab run mine`.\n",
            "## Figure 6: First\n\nHTTPEP found (§4): Less.\n\n- **confirmed**: \"it is quicker\" (load of `a` against `b`): here it is 20 % less\n\n\
             ![First](figures/mine-1.svg)\n\n| load (s), by images | 1 | 5 |\n|---|---|---|\n| `a` | 2.000 | 4.000 |\n| `b` |  | 5.000 |\n",
            "## Besides\n\n- **not confirmed**: \"it is quicker\" (load of `a` against `b`): here it is 20 % less: a reason\n",
            "## Not measured\n\n- `c`: not present: lynx (p over l)\n",
            "- a note\n",
        ] {
            assert!(page.text.contains(told), "{told}\n\n{}", page.text);
        }
        assert_eq!(page.text.matches("**confirmed**").count(), 1, "under the first drawing of its figure");
        let names: Vec<&str> = page.pictures.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["mine-1.svg", "mine-2.svg"]);
        assert_eq!(study().verdicts(), "1 confirmed, 1 not confirmed");
    }
}
