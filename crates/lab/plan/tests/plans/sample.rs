//! A plan that says all that can be said.

use std::path::Path;

use farhop_plan::{Cell, Course, Plan, Run};

pub(crate) const WHOLE: &str = r#"
title = "All that can be said"
study = "HTTPEP"
seed = 7
timeout = "90 s"
measures = ["load", "bytes"]
base = "direct"
runs = { least = 2, most = 4, within = "10 %" }
quick = { runs = 1, pages = ["ten"], links = ["slow"] }

[[page]]
name = "ten"
objects = 10
object = "8 KB"
at = 10
[[page]]
name = "photos"
at = 30

[[link]]
name = "slow"
like = "geo-256k"
rate = "128 kbit/s"
loss = "1 %"
terrestrial_loss = "2 %"
at = 128
[[link]]
name = "own"
file = "mine.toml"
at = 1

[[variant]]
name = "direct"
protocol = "http/1.1"
pipeline = 4
connections = 2
retry = "250 ms"
receive_buffer = "128 KB"
idle = "5 s"
[[variant]]
name = "two"
protocol = "http/2"
handshake = "resumed"
streams = 50
[[variant]]
name = "old"
protocol = "http/1.0"
through = "farhop-identity"
carrier = "tcp"
tcp_connections = 8
congestion = "bbr"

[[plot]]
figure = "9"
title = "Load time"
measure = "load"
x = "page"
label = "objects"
found = "something"
"#;

pub(crate) fn read(text: &str) -> Result<Plan, String> {
    let mut open = |path: &Path| match path.to_str() {
        Some("plans/mine.toml") => Ok("like = 'geo-2m'\nreturn.trace = 'up.trace'\n".to_owned()),
        Some("plans/up.trace") => Ok("10\n".to_owned()),
        other => Err(format!("{other:?} is not there")),
    };
    Plan::from_toml(text, "plans/sample.toml", &mut open).map_err(|error| error.to_string())
}

/// The plan with a line of it replaced.
pub(crate) fn with(line: &str, other: &str) -> Result<Plan, String> {
    assert!(WHOLE.contains(line), "{line}");
    read(&WHOLE.replacen(line, other, 1))
}

/// Lives a course in which the n-th load of a cell takes what `time` says.
pub(crate) fn live(plan: &Plan, time: impl Fn(Cell, u32) -> Option<f64>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut course = Course::new(plan, &[]);
    while let Some(next) = course.next() {
        let Cell { link, page, variant } = next.cell;
        let value = time(next.cell, next.round);
        let run = Run {
            page: plan.pages[page].name.clone(),
            link: plan.links[link].name.clone(),
            variant: plan.variants[variant].name.clone(),
            round: next.round,
            seed: next.seed,
            values: value.map(|value| ("load".to_owned(), value)).into_iter().collect(),
            faults: if value.is_none() { vec!["it fell over".into()] } else { Vec::new() },
            ..Run::default()
        };
        course.made(&run);
        runs.push(run);
        assert!(runs.len() < 1000, "it does not end");
    }
    runs
}
