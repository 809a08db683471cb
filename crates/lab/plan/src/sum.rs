//! From loads to what they say: every cell, every variant against the base, the figures. Pure.

use std::collections::BTreeMap;

use farhop_report::{
    Dynamics, Line, Named, Plot, Point, Study, StudyCell, StudyClaim, StudyShift, StudySummary,
};
use farhop_statistics::{Shift, Summary};

use crate::course::Course;
use crate::journal::Run;
use crate::measure::Measure;
use crate::plan::{Axis, Cell, Claim, Figure, Plan, Statistic};
use crate::words;

/// Sums up what was measured so far; `quick` stamps it so.
pub fn study(plan: &Plan, runs: &[Run], quick: bool) -> Study {
    let mut notes = plan.notes.clone();
    // The loads of a whole plan may be there where it is summed up quickly.
    for note in runs.iter().filter(|run| run.cell(plan).is_some()).flat_map(|run| &run.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let course = Course::new(plan, runs);
    let named = |name: &str, words: String| Named { name: name.into(), words };
    let cells: Vec<StudyCell> =
        plan.cells().into_iter().map(|cell| summed(plan, runs, &course, cell)).collect();
    let has_several = cells.iter().any(|cell| cell.runs > 1);
    // The least, the most and the mean of a single run are that run: they are drawn once.
    let is_told = |(place, figure): &(usize, &Figure)| {
        let mut earlier = plan.figures[..*place].iter();
        has_several || !earlier.any(|other| figure.differs_by_statistic_alone(other))
    };
    let figures: Vec<&Figure> =
        plan.figures.iter().enumerate().filter(is_told).map(|(_, figure)| figure).collect();
    if figures.len() < plan.figures.len() && cells.iter().any(|cell| cell.runs > 0) {
        notes.push(
            "each cell has one run so far: of figures that differ by the statistic alone one is drawn".into(),
        );
    }
    let (plots, told): (Vec<Plot>, Vec<Option<String>>) =
        figures.into_iter().map(|figure| plot(plan, &cells, figure)).unzip();
    notes.extend(told.into_iter().flatten());
    Study {
        plan: plan.name.clone(),
        title: plan.title.clone(),
        study: plan.study.clone(),
        quick,
        complete: course.next().is_none(),
        runs: [plan.runs.least, plan.runs.most],
        within: plan.runs.within,
        seed: plan.seed,
        pages: plan.pages.iter().map(|page| named(&page.name, page.in_words())).collect(),
        links: plan.links.iter().map(|link| named(&link.name, words::link(link))).collect(),
        variants: plan.variants.iter().map(|it| named(&it.name, words::variant(it))).collect(),
        measures: plan.measures.iter().map(|measure| named(measure.name(), measure.unit().into())).collect(),
        plots,
        shifts: shifts(plan, runs),
        claims: plan.claims.iter().map(|claim| claimed(plan, &cells, claim)).collect(),
        dynamics: dynamics(plan, runs),
        loads: Vec::new(),
        cells,
        method: METHOD.map(str::to_owned).to_vec(),
        notes,
    }
}

const METHOD: [&str; 6] = [
    "the lab's own page loader, which runs no scripts and paints nothing, in a namespace behind the emulated link; every byte compared",
    "variants in Chromium or Firefox: a fresh browser with an empty profile for each load, every byte compared as well; its load time is the load event's end",
    "everything cold: no name, connection or answer is known from before; Farhop's ends are started anew for each load, their carrier up",
    "variants in turn, beginning with another one in each repetition; where the link has chance in it, each load begins with the repetition's seed",
    "a load during which the link was late (99th percentile above 1 ms) or this machine stood still (0.1 s) is repeated, three times at most",
    "points are medians, intervals Student's of the mean; shifts are Hodges and Lehmann's of pairs, their intervals by signed ranks from six pairs on, else Student's",
];

fn of_cell<'a>(plan: &'a Plan, runs: &'a [Run], cell: Cell) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| run.cell(plan) == Some(cell))
}

fn summed(plan: &Plan, runs: &[Run], course: &Course<'_>, cell: Cell) -> StudyCell {
    let counting: Vec<&Run> = of_cell(plan, runs, cell).filter(|run| run.counts()).collect();
    let mut failures: Vec<String> = Vec::new();
    for fault in of_cell(plan, runs, cell).flat_map(|run| &run.faults) {
        if !failures.contains(fault) && failures.len() < 5 {
            failures.push(fault.clone());
        }
    }
    let of = |measure: Measure| {
        let name = measure.name();
        counting.iter().filter_map(move |run| run.values.get(name).copied())
    };
    let values = plan
        .measures
        .iter()
        .filter_map(|measure| Some((measure.name().to_owned(), Summary::of(of(*measure))?.into())));
    let each = plan.measures.iter().map(|measure| (measure.name().to_owned(), of(*measure).collect()));
    StudyCell {
        page: plan.pages[cell.page].name.clone(),
        link: plan.links[cell.link].name.clone(),
        variant: plan.variants[cell.variant].name.clone(),
        runs: counting.len() as u32,
        late: counting.iter().filter(|run| run.late).count() as u32,
        settled: course.is_settled(cell),
        values: values.collect(),
        each: each.filter(|(_, each): &(_, Vec<f64>)| !each.is_empty()).collect(),
        failures,
    }
}

/// Every variant against the base, repetition by repetition, for every measure that a figure or the goal names.
fn shifts(plan: &Plan, runs: &[Run]) -> Vec<StudyShift> {
    let mut measures = vec![plan.goal];
    for figure in &plan.figures {
        if !measures.contains(&figure.measure) {
            measures.push(figure.measure);
        }
    }
    let mut shifts = Vec::new();
    for cell in plan.cells().into_iter().filter(|cell| cell.variant != plan.base) {
        for measure in &measures {
            shifts.extend(shift(plan, runs, cell, *measure));
        }
    }
    shifts
}

fn shift(plan: &Plan, runs: &[Run], cell: Cell, measure: Measure) -> Option<StudyShift> {
    let by_round = |cell: Cell| -> BTreeMap<u32, f64> {
        let counting = of_cell(plan, runs, cell).filter(|run| run.counts());
        counting.filter_map(|run| Some((run.round, *run.values.get(measure.name())?))).collect()
    };
    let (base, own) = (by_round(Cell { variant: plan.base, ..cell }), by_round(cell));
    let pairs: Vec<(f64, f64)> =
        base.iter().filter_map(|(round, base)| Some((*base, *own.get(round)?))).collect();
    let shift = Shift::of(&pairs)?;
    let (method, verdict) = StudyShift::words(&shift);
    Some(StudyShift {
        page: plan.pages[cell.page].name.clone(),
        link: plan.links[cell.link].name.clone(),
        measure: measure.name().into(),
        base: plan.variants[plan.base].name.clone(),
        variant: plan.variants[cell.variant].name.clone(),
        pairs: shift.pairs,
        shift: shift.shift,
        interval: shift.interval.map(|interval| [interval.low, interval.high]),
        method: method.into(),
        effect: shift.effect,
        verdict: verdict.into(),
    })
}

/// Lines are variants (or what their `line` says), and groups of pages; cells that share a line and a place are averaged, and
/// then have no interval. With what a reader must be told of it.
fn plot(plan: &Plan, cells: &[StudyCell], figure: &Figure) -> (Plot, Option<String>) {
    let mut lines = places(plan, cells, figure);
    lines.retain(|(_, places)| places.iter().any(Place::is_begun));
    let begun = || lines.iter().flat_map(|(_, places)| places).filter(|place| place.is_begun());
    // Averages over other pages or links show these, not what stands across.
    let mut left_out: Vec<Part> = begun().flat_map(Place::missing).collect();
    left_out.sort_unstable();
    left_out.dedup();
    let drawn = lines.iter().map(|(name, places)| {
        let point = |place: &Place<'_>| {
            let cells = place.measured(&left_out);
            (!cells.is_empty()).then(|| point(place.x, &cells, figure))
        };
        let mut points: Vec<Point> = places.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Line { name: name.clone(), points }
    });
    let told = (!left_out.is_empty()).then(|| {
        let named: Vec<String> = left_out.iter().map(|part| part.in_words(plan)).collect();
        format!(
            "\"{}\" leaves out what is not measured at each of its points: {}",
            figure.title,
            named.join(", ")
        )
    });
    let plot = Plot {
        figure: figure.figure.clone(),
        place: figure.place.clone(),
        title: figure.title.clone(),
        x: figure.label.clone(),
        y: format!("{} ({})", figure.measure.name(), figure.measure.unit()),
        found: figure.found.clone(),
        lines: drawn.collect(),
    };
    (plot, told)
}

/// What a place averages over besides what stands across: a page, a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    page: Option<usize>,
    link: Option<usize>,
}

impl Part {
    fn in_words(&self, plan: &Plan) -> String {
        let names = [self.page.map(|it| &plan.pages[it].name), self.link.map(|it| &plan.links[it].name)];
        names.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" over ")
    }
}

/// A place on the axis of one line, and the cells that stand there; none of a cell that has no number.
struct Place<'a> {
    x: f64,
    cells: Vec<(Part, Option<&'a StudyCell>)>,
}

impl<'a> Place<'a> {
    fn has(&self, part: Part) -> bool {
        self.cells.iter().filter(|(own, _)| *own == part).all(|(_, cell)| cell.is_some())
    }

    /// Whether a part of it has all its numbers.
    fn is_begun(&self) -> bool {
        self.cells.iter().any(|(part, _)| self.has(*part))
    }

    /// The parts of which it lacks a number.
    fn missing(&self) -> impl Iterator<Item = Part> {
        self.cells.iter().filter(|(_, cell)| cell.is_none()).map(|(part, _)| *part)
    }

    /// What is averaged where these parts are left out; nothing is a gap.
    fn measured(&self, left_out: &[Part]) -> Vec<&'a StudyCell> {
        let kept = self.cells.iter().filter(|(part, _)| !left_out.contains(part) && self.has(*part));
        kept.filter_map(|(_, cell)| *cell).collect()
    }
}

/// Every line that a figure has, by its name, and all that is to stand on it.
fn places<'a>(plan: &Plan, cells: &'a [StudyCell], figure: &Figure) -> Vec<(String, Vec<Place<'a>>)> {
    let mut lines: Vec<(String, Vec<Place<'_>>)> = Vec::new();
    // What has no place of its own on the axis is as far everywhere: a level line.
    let everywhere: Vec<f64> = plan.variants.iter().filter_map(|variant| variant.at).collect();
    let among = |chosen: &[usize], place: usize| chosen.is_empty() || chosen.contains(&place);
    let is_drawn = |cell: &Cell| among(&figure.links, cell.link) && among(&figure.variants, cell.variant);
    for (cell, found) in plan.cells().into_iter().zip(cells).filter(|(cell, _)| is_drawn(cell)) {
        let (page, link, variant) =
            (&plan.pages[cell.page], &plan.links[cell.link], &plan.variants[cell.variant]);
        let name = variant.line.as_ref().unwrap_or(&variant.name);
        let name = page.group.as_ref().map_or_else(|| name.clone(), |group| format!("{name}, {group}"));
        let at = match figure.x {
            Axis::Page => page.at,
            Axis::Link => link.at,
            Axis::Variant => variant.at,
        };
        let part = Part {
            page: (figure.x != Axis::Page).then_some(cell.page),
            link: (figure.x != Axis::Link).then_some(cell.link),
        };
        let found = Some(found).filter(|found| found.values.contains_key(figure.measure.name()));
        let line = match lines.iter().position(|(known, _)| *known == name) {
            Some(line) => line,
            None => {
                lines.push((name, Vec::new()));
                lines.len() - 1
            }
        };
        for x in at.map_or_else(|| everywhere.clone(), |at| vec![at]) {
            let places = &mut lines[line].1;
            match places.iter_mut().find(|known| known.x == x) {
                Some(here) => here.cells.push((part, found)),
                None => places.push(Place { x, cells: vec![(part, found)] }),
            }
        }
    }
    lines
}

fn point(x: f64, cells: &[&StudyCell], figure: &Figure) -> Point {
    let values: Vec<_> = cells.iter().filter_map(|cell| cell.values.get(figure.measure.name())).collect();
    let of = |value: &StudySummary| match figure.statistic {
        Statistic::Median => value.median,
        Statistic::Mean => value.mean,
        Statistic::P95 => value.p95,
        Statistic::Min => value.min,
        Statistic::Max => value.max,
    };
    let y = values.iter().map(|value| of(value)).sum::<f64>() / values.len().max(1) as f64;
    // An interval is that of the mean: it says nothing of an extreme.
    let is_middle = matches!(figure.statistic, Statistic::Median | Statistic::Mean);
    let interval = if let ([one], true) = (values.as_slice(), is_middle) { one.interval } else { None };
    Point { x, y, interval }
}

/// A number of the study beside the same number here.
fn claimed(plan: &Plan, cells: &[StudyCell], claim: &Claim) -> StudyClaim {
    let within = |wanted: &[usize], place: usize| wanted.is_empty() || wanted.contains(&place);
    let median = |cell: Cell| {
        let place = plan.cells().into_iter().position(|known| known == cell)?;
        Some(cells[place].values.get(claim.measure.name())?.median)
    };
    let mut multiples = Vec::new();
    for link in (0..plan.links.len()).filter(|link| within(&claim.links, *link)) {
        for page in (0..plan.pages.len()).filter(|page| within(&claim.pages, *page)) {
            let one = median(Cell { link, page, variant: claim.variant });
            let against_link = claim.against_link.unwrap_or(link);
            let other = median(Cell { link: against_link, page, variant: claim.against });
            let multiple = one.zip(other).map(|(one, other)| one / other);
            multiples.extend(multiple.filter(|multiple| multiple.is_finite() && *multiple > 0.0));
        }
    }
    let (here, verdict) = StudyClaim::judge(claim.times, claim.direction, &multiples);
    // Between links both are told.
    let named = |variant: usize, link: Option<&usize>| {
        let over = link.map_or_else(String::new, |link| format!(" over {}", plan.links[*link].name));
        format!("{}{over}", plan.variants[variant].name)
    };
    let least = multiples.iter().copied().reduce(f64::min);
    let most = multiples.iter().copied().reduce(f64::max);
    StudyClaim {
        figure: claim.figure.clone(),
        says: claim.says.clone(),
        measure: claim.measure.name().into(),
        variant: named(claim.variant, claim.against_link.and(claim.links.first())),
        against: named(claim.against, claim.against_link.as_ref()),
        study: claim.times,
        here,
        range: least.zip(most).map(|(least, most)| [least, most]),
        cells: multiples.len(),
        verdict: verdict.into(),
        why: claim.why.clone(),
    }
}

/// The first load of each cell that counts and was watched, figure by figure.
fn dynamics(plan: &Plan, runs: &[Run]) -> Vec<Dynamics> {
    let mut all = Vec::new();
    for figure in &plan.dynamics {
        for cell in plan.cells() {
            let mut counting = of_cell(plan, runs, cell).filter(|run| run.counts());
            let watched = counting.find_map(|run| Some((run, run.series.as_ref()?)));
            let Some((run, series)) = watched else { continue };
            all.push(Dynamics {
                figure: figure.figure.clone(),
                place: figure.place.clone(),
                title: figure.title.clone(),
                found: figure.found.clone(),
                load: [run.page.clone(), run.link.clone(), run.variant.clone()],
                series: series.clone(),
            });
        }
    }
    all
}
