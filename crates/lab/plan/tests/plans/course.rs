//! The course of a plan: pairs, turns, when there are enough, and what is drawn of them.

use std::collections::HashMap;

use farhop_plan::{Course, Run, study};

use crate::sample::{WHOLE, live, read, with};

#[test]
fn repetitions_end_as_soon_as_every_variant_of_a_page_is_known_well_enough() {
    let plan = read(WHOLE).unwrap();
    // One page varies so much in one variant that all of its variants go on to the most.
    let runs = live(&plan, |cell, round| {
        let wild = (cell.link, cell.page, cell.variant) == (0, 1, 2);
        Some(10.0 + if wild { f64::from(round) * 5.0 } else { f64::from(round) * 0.01 })
    });
    let mut counts: HashMap<(String, String), u32> = HashMap::new();
    runs.iter().for_each(|run| *counts.entry((run.link.clone(), run.page.clone())).or_default() += 1);
    let count = |link: &str, page: &str| counts[&(link.to_owned(), page.to_owned())];
    assert_eq!(
        [count("slow", "ten"), count("slow", "photos"), count("own", "ten"), count("own", "photos")],
        [6, 12, 6, 6]
    );
    let found = study(&plan, &runs, false);
    assert!(found.complete);
    let settled = |variant: &str| found.cell("photos", "slow", variant).unwrap().settled;
    assert_eq!([settled("direct"), settled("old")], [true, false]);
}

#[test]
fn variants_take_turns_and_a_repetition_has_one_seed_for_all() {
    let plan = read(WHOLE).unwrap();
    let runs = live(&plan, |_, round| Some(f64::from(round)));
    let first: Vec<(u32, u64, &str)> = runs
        .iter()
        .filter(|run| run.link == "slow" && run.page == "ten")
        .map(|run| (run.round, run.seed, run.variant.as_str()))
        .collect();
    assert_eq!(
        first[..6],
        [(0, 7, "direct"), (0, 7, "two"), (0, 7, "old"), (1, 8, "two"), (1, 8, "old"), (1, 8, "direct")]
    );
    // Repetition by repetition: no page has its second before all have their first.
    assert!(runs[..12].iter().all(|run| run.round == 0) && runs[12..24].iter().all(|run| run.round == 1));
}

#[test]
fn a_load_that_does_not_stand_is_made_again_with_its_own_seed() {
    let plan = read(WHOLE).unwrap();
    let mut runs = live(&plan, |_, _| Some(3.0));
    let gone = runs.remove(1);
    let mut course = Course::new(&plan, &runs);
    let next = course.next().unwrap();
    assert_eq!((next.round, next.seed, plan.variants[next.cell.variant].name.as_str()), (0, 7, "two"));
    assert_eq!((gone.round, gone.seed), (next.round, next.seed));
    course.made(&gone);
    assert_eq!(course.next(), None);
}

#[test]
fn a_variant_that_never_loads_keeps_nobody_waiting_and_is_told() {
    let plan = read(WHOLE).unwrap();
    let mut runs = live(&plan, |cell, _| (cell.variant != 2).then_some(3.0));
    runs[3].notes = vec!["a note".into()];
    runs[4].notes = vec!["a note".into()];
    assert_eq!(runs.len(), 24, "two repetitions of each");
    let found = study(&plan, &runs, false);
    let cell = found.cell("ten", "own", "old").unwrap();
    assert_eq!(
        (cell.runs, cell.values.len(), cell.failures.as_slice()),
        (0, 0, &["it fell over".to_owned()][..])
    );
    assert_eq!(found.notes, ["a note"]);
    assert!(found.shifts.iter().all(|shift| shift.variant == "two" && shift.verdict == "no difference"));
}

#[test]
fn shifts_pair_repetitions_and_figures_have_a_line_for_each_variant() {
    let plan = read(WHOLE).unwrap();
    // The machine is slow in odd repetitions: only pairs show that the second variant takes a second less.
    let runs = live(&plan, |cell, round| {
        Some(
            10.0 + f64::from(round % 2) * 8.0 - cell.variant as f64
                + cell.page as f64
                + f64::from(round) * 0.001 * cell.variant as f64,
        )
    });
    let found = study(&plan, &runs, true);
    let shift =
        found.shifts.iter().find(|it| it.page == "ten" && it.link == "own" && it.variant == "two").unwrap();
    assert_eq!(
        (shift.pairs, shift.verdict.as_str(), shift.effect, shift.method.as_str()),
        (4, "less", -1.0, "student")
    );
    assert!((shift.shift + 1.0).abs() < 0.01, "{}", shift.shift);
    let plot = &found.plots[0];
    assert_eq!((plot.figure.as_str(), plot.x.as_str(), plot.y.as_str()), ("9", "objects", "load (s)"));
    let names: Vec<&str> = plot.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["direct", "two", "old"]);
    let places: Vec<f64> = plot.lines[0].points.iter().map(|point| point.x).collect();
    assert_eq!(places, [10.0, 30.0]);
    assert!((plot.lines[0].points[1].y - plot.lines[0].points[0].y - 1.0).abs() < 1e-9, "links are averaged");
    assert!(found.stamp().starts_with("quick: 4 runs"));
}

#[test]
fn averages_are_over_what_every_point_has_and_what_is_left_out_is_told() {
    let plan = read(WHOLE).unwrap();
    // The second link is slower by a hundred: where its load counts for one page alone, that page stands out.
    let runs = live(&plan, |cell, _| Some(10.0 + 100.0 * cell.link as f64));
    let first_of = |page: &str, link: &str| {
        runs.iter().filter(|run| run.page == page && run.link == link).cloned().collect::<Vec<_>>()
    };
    let unfinished = [first_of("ten", "slow"), first_of("photos", "slow"), first_of("ten", "own")].concat();
    let found = study(&plan, &unfinished, false);
    for line in &found.plots[0].lines {
        let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(10.0, 10.0), (30.0, 10.0)], "{}", line.name);
    }
    assert_eq!(found.notes, ["\"Load time\" leaves out what is not measured at each of its points: own"]);
    // What nothing is known of is a gap, and says nothing of the others.
    let only = study(&plan, &first_of("ten", "own"), false);
    let points: Vec<f64> = only.plots[0].lines[0].points.iter().map(|point| point.x).collect();
    assert_eq!((points, only.notes.len()), (vec![10.0], 1));
    let whole = study(&plan, &runs, false);
    assert_eq!((whole.plots[0].lines[0].points[0].y, whole.notes.len()), (60.0, 0));
}

#[test]
fn of_single_runs_the_least_the_most_and_the_mean_are_drawn_once() {
    let second = "[[plot]]\nfigure = \"9\"\ntitle = \"Most\"\nmeasure = \"load\"\nstatistic = \"max\"\n\
                  x = \"page\"\nlabel = \"objects\"\nfound = \"something\"\n";
    let plan = read(&format!("{WHOLE}{second}")).unwrap();
    let runs = live(&plan, |cell, _| Some(10.0 + cell.page as f64));
    assert_eq!(study(&plan, &runs, false).plots.len(), 2);
    let single: Vec<Run> = runs.into_iter().filter(|run| run.round == 0).collect();
    let found = study(&plan, &single, false);
    let titles: Vec<&str> = found.plots.iter().map(|plot| plot.title.as_str()).collect();
    assert_eq!(titles, ["Load time"]);
    assert!(found.notes.iter().any(|note| note.contains("one run")), "{:?}", found.notes);
    // One that draws something else stays.
    let other = read(&format!("{WHOLE}{}", second.replace("\"page\"", "\"link\""))).unwrap();
    assert_eq!(study(&other, &single, false).plots.len(), 2);
}

#[test]
fn a_figure_may_draw_some_links_alone_and_goes_where_a_quick_run_has_none_of_them() {
    let of = |link: &str| format!("x = \"page\"\nlinks = [\"{link}\"]");
    let plan = with("x = \"page\"", &of("own")).unwrap();
    let runs = live(&plan, |cell, _| Some(10.0 + 100.0 * cell.link as f64));
    let found = study(&plan, &runs, false);
    assert!(found.plots[0].lines.iter().flat_map(|line| &line.points).all(|point| point.y == 110.0));
    assert_eq!(plan.quickened().figures.len(), 0);
    assert_eq!(with("x = \"page\"", &of("slow")).unwrap().quickened().figures[0].links, [0]);
    assert!(with("x = \"page\"", &of("fast")).unwrap_err().contains("no link of this plan is called 'fast'"));
}
