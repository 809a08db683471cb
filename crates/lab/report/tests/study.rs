//! The JSON of a study is an interface, and its CSV and HTML say what it says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::BTreeMap;

use farhop_report::{
    Bar, Dynamics, Line, Named, Plot, Point, STUDY_SCHEMA, Series, Still, Study, StudyCell, StudyClaim,
    StudyLoad, StudyShift, Waterfall, study_csv, study_html,
};
use farhop_statistics::{Shift, Summary};
use serde_json::Value;

fn named(name: &str, words: &str) -> Named {
    Named { name: name.into(), words: words.into() }
}

fn cell(variant: &str, times: &[f64]) -> StudyCell {
    let values: BTreeMap<_, _> =
        Summary::of(times.iter().copied()).map(|it| ("load".to_owned(), it.into())).into_iter().collect();
    StudyCell {
        page: "five".into(),
        link: "geo".into(),
        variant: variant.into(),
        runs: times.len() as u32,
        late: 0,
        settled: true,
        failures: if times.is_empty() { vec!["<no> connection".into()] } else { Vec::new() },
        values,
        each: [("load".to_owned(), times.to_vec())].into(),
    }
}

fn study() -> Study {
    let shift = Shift::of(&[(4.0, 3.0), (4.2, 3.1), (4.1, 3.3)]).unwrap();
    let (method, verdict) = StudyShift::words(&shift);
    let point = Point { x: 5.0, y: 4.1, interval: Some([3.9, 4.3]) };
    Study {
        plan: "sample".into(),
        title: "Load time, \"by\" images".into(),
        study: Some("HTTPEP".into()),
        quick: true,
        complete: true,
        runs: [3, 10],
        within: 0.05,
        seed: 1,
        pages: vec![named("five", "5 images")],
        links: vec![named("geo", "256 kbit/s")],
        variants: vec![named("a", "direct"), named("b", "through"), named("c", "nothing")],
        measures: vec![named("load", "s")],
        cells: vec![cell("a", &[4.0, 4.2, 4.1]), cell("b", &[3.0, 3.1, 3.3]), cell("c", &[])],
        shifts: vec![StudyShift {
            page: "five".into(),
            link: "geo".into(),
            measure: "load".into(),
            base: "a".into(),
            variant: "b".into(),
            pairs: shift.pairs,
            shift: shift.shift,
            interval: shift.interval.map(|interval| [interval.low, interval.high]),
            method: method.into(),
            effect: shift.effect,
            verdict: verdict.into(),
        }],
        plots: vec![Plot {
            figure: "6".into(),
            place: "§4.1".into(),
            title: "load time".into(),
            x: "images".into(),
            y: "load (s)".into(),
            found: "27 % less".into(),
            lines: vec![Line { name: "a".into(), points: vec![point] }],
        }],
        claims: vec![StudyClaim {
            figure: "6".into(),
            says: "27 % less".into(),
            measure: "load".into(),
            variant: "b".into(),
            against: "a".into(),
            study: Some(0.73),
            here: Some(0.76),
            range: Some([0.76, 0.76]),
            cells: 1,
            verdict: "confirmed".into(),
            why: String::new(),
        }],
        dynamics: vec![Dynamics {
            figure: "2".into(),
            place: "§4.1".into(),
            title: "rates".into(),
            found: "six connections".into(),
            load: ["five".into(), "geo".into(), "a".into()],
            series: Series { step_s: 0.1, down: vec![1.0], up: vec![], connections: vec![vec![[0, 1]]] },
        }],
        loads: Vec::new(),
        method: vec!["in turn".into()],
        notes: vec!["a note".into()],
    }
}

#[test]
fn what_is_written_satisfies_the_schema_and_the_schema_refuses_what_it_should() {
    let validator = jsonschema::validator_for(&serde_json::from_str(STUDY_SCHEMA).unwrap()).unwrap();
    let good = serde_json::to_value(study()).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&good).map(|error| error.to_string()).collect();
    assert_eq!(complaints, [""; 0]);
    assert_eq!(serde_json::from_value::<Study>(good.clone()).unwrap(), study());
    let changed = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        bad
    };
    let mut missing = good.clone();
    missing["cells"][0].as_object_mut().unwrap().remove("late");
    for bad in [
        missing,
        changed("/shifts/0/verdict", "perhaps".into()),
        changed("/runs", 3.into()),
        changed("/claims/0/verdict", "perhaps".into()),
        changed("/dynamics/0/series/step_s", 0.into()),
        changed("/cells/0/values/load", 3.into()),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

#[test]
fn one_pair_shows_neither_a_difference_nor_that_there_is_none() {
    let of = |pairs: &[(f64, f64)]| StudyShift::words(&Shift::of(pairs).unwrap()).1;
    assert_eq!(of(&[(4.0, 3.0)]), "too few pairs");
    assert_eq!(of(&[(4.0, 3.0), (4.0, 5.0), (4.0, 4.0)]), "no difference");
    let mut study = study();
    study.shifts[0] =
        StudyShift { verdict: "too few pairs".into(), interval: None, ..study.shifts[0].clone() };
    let validator = jsonschema::validator_for(&serde_json::from_str(STUDY_SCHEMA).unwrap()).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(&study).unwrap()));
    assert!(study_html(&study).contains("<td>too few pairs</td>"));
}

#[test]
fn csv_and_html_show_every_cell_and_what_the_study_found() {
    let study = study();
    let csv = study_csv(&study);
    assert_eq!(csv.lines().count(), 3, "a header, and two cells with a load: {csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("sample,five,geo,a,load,s,3,0,4.1,"), "{csv}");
    let html = study_html(&study);
    for text in [
        "Figure 6: ",
        "<b>HTTPEP found:</b> 27 % less (§4.1)",
        "<b>load of b against a:</b> the study has 27 % less; here it is 24 % less: confirmed",
        "Figure 2: rates",
        "quick: 3 runs of each cell, fewer than the plan has; 1 could not be loaded",
        "<title>plan sample, after HTTPEP – Farhop",
        "&lt;no&gt; connection",
        "<td>less</td>",
        "a note",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"), "it needs nothing else");
}

#[test]
fn what_is_said_of_a_figure_of_many_loads_is_said_once() {
    let mut study = study();
    let other = Dynamics { load: ["five".into(), "geo".into(), "b".into()], ..study.dynamics[0].clone() };
    study.dynamics.push(other);
    let html = study_html(&study);
    assert_eq!((html.matches("six connections").count(), html.matches("Figure 2: rates").count()), (1, 1));
    assert!(html.contains("five, geo, a") && html.contains("five, geo, b"));
    let page = study.markdown("farhop lab run sample", "figures");
    assert_eq!(page.text.matches("six connections").count(), 1, "{}", page.text);
    assert_eq!(page.pictures.len(), 3);
    for of in ["### five, geo, a\n", "### five, geo, b\n"] {
        assert!(page.text.contains(of), "{}", page.text);
    }
}

#[test]
fn a_study_says_whether_it_is_whole() {
    let stamp = |quick, complete| Study { quick, complete, ..study() }.stamp();
    assert_eq!(stamp(false, false), "unfinished: 3 runs of each cell so far; 1 could not be loaded");
    assert_eq!(stamp(false, true), "3 runs of each cell; 1 could not be loaded");
    assert_eq!(stamp(true, false), "quick and unfinished: 3 runs of each cell so far; 1 could not be loaded");
}

#[test]
fn loads_are_drawn_side_by_side_and_films_on_one_time_axis() {
    let bar = Bar {
        url: "http://a.test/".into(),
        destination: "document".into(),
        start_s: 0.0,
        sent_s: 0.1,
        first_byte_s: 0.7,
        end_s: 0.8,
        unasked: false,
    };
    let load = |variant: &str, last_s| StudyLoad {
        page: "five".into(),
        link: "geo".into(),
        variant: variant.into(),
        waterfall: Waterfall { load_s: Some(0.8), paint_s: None, bars: vec![bar.clone()], left_out: 640 },
        film: [(0.0, "AAAA"), (last_s, "BBBB")]
            .map(|(at_s, jpeg)| Still { at_s, complete: 1.0, jpeg: jpeg.into() })
            .into(),
    };
    let html = study_html(&Study { loads: vec![load("a", 1.0), load("b", 2.2)], ..study() });
    assert!(html.contains("Waterfalls of five over geo") && html.contains("first 1 of 641"));
    // Twelve pictures each, one every 0.2 s: the first's last look stands from 1.0 s on, the other's at 2.2 s.
    let count = |picture: &str| html.matches(&format!("base64,{picture}")).count();
    assert_eq!((count("AAAA"), count("BBBB")), (5 + 11, 7 + 1));
    assert!(!html.contains("src=\"http"));
}
