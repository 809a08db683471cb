//! The JSON of a study is an interface, and its CSV and HTML say what it says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::BTreeMap;

use farhop_report::{
    Line, Named, Plot, Point, STUDY_SCHEMA, Study, StudyCell, StudyShift, study_csv, study_html,
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
            title: "load time".into(),
            x: "images".into(),
            y: "s".into(),
            found: "27 % less".into(),
            lines: vec![Line { name: "a".into(), points: vec![point] }],
        }],
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
        changed("/cells/0/values/load", 3.into()),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
    }
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
        "<b>HTTPEP found:</b> 27 % less",
        "quick: 0 to 3 runs of each cell, fewer than the plan has",
        "&lt;no&gt; connection",
        "<td>less</td>",
        "a note",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"), "it needs nothing else");
}

#[test]
fn a_study_says_whether_it_is_whole() {
    let stamp = |quick, complete| Study { quick, complete, ..study() }.stamp();
    assert_eq!(stamp(false, false), "unfinished: 0 to 3 runs of each cell so far");
    assert_eq!(stamp(false, true), "0 to 3 runs of each cell");
}
