//! `farhop lab list`, `show` and `run` in the real kernel. What needs root says so and passes without; nothing here asserts how
//! long a load took, but for what no machine can beat.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PLAN: &str = r#"
title = "A few objects, in every way"
runs = { least = 1, most = 1, within = "5 %" }

[[page]]
name = "few"
objects = 4
object = "2 KB"

[[link]]
name = "leo-100m"

[[variant]]
name = "old"
protocol = "http/1.0"
[[variant]]
name = "pipelined"
protocol = "http/1.1"
pipeline = 4
connections = 1
[[variant]]
name = "two"
protocol = "http/2"
[[variant]]
name = "resumed"
protocol = "http/2"
handshake = "resumed"
[[variant]]
name = "pushed"
protocol = "http/2"
push = "100 %"
[[variant]]
name = "early"
handshake = "0-rtt"
connections = 1
[[variant]]
name = "farhop"
through = "farhop-identity"
"#;

fn lab(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
    command.arg("lab").args(arguments).current_dir(folder).output().expect("the program starts")
}

fn error(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.lines().count() == 1, "{said}");
    said
}

#[test]
fn the_plans_that_come_along_are_listed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let listed = lab(&["list"], folder.path());
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().count() >= 5 && listed.contains("http2-4a"), "{listed}");
    let shown = lab(&["show", "http2-4a", "--quick"], folder.path());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("\n12 cells, 12 loads, about "), "{shown}");
    let unknown = error(&lab(&["show", "http2-4c"], folder.path()));
    assert!(unknown.contains("no plan is called 'http2-4c': there are httpep-5-6, "), "{unknown}");
    std::fs::write(folder.path().join("bad.toml"), PLAN.replace("pipeline = 4", "pipeline = 0")).unwrap();
    let bad = error(&lab(&["run", "bad.toml"], folder.path()));
    assert!(bad.contains("bad.toml:") && bad.contains("'pipeline' is how many"), "{bad}");
}

#[test]
fn a_plan_is_carried_out_in_every_way_and_resumed_without_loading_anything_again() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), PLAN).unwrap();
    let run = lab(&["run", "mine.toml"], folder.path());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = folder.path().join("target/lab/mine");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!(found["complete"], true);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 7);
    for cell in cells {
        assert_eq!((&cell["runs"], &cell["failures"]), (&1.into(), &Value::Array(Vec::new())), "{cell}");
        let median = |measure: &str| cell["values"][measure]["median"].as_f64().unwrap();
        assert!(median("load") > 0.028, "a round trip at least: {cell}");
        assert!(median("bytes") > 8.0 || cell["variant"] == "farhop", "four objects of 2 KB: {cell}");
        let requests = if cell["variant"] == "pushed" { 1.0 } else { 5.0 };
        assert_eq!(median("requests"), requests, "{cell}");
        let connections = match cell["variant"].as_str().unwrap() {
            "pipelined" | "two" | "resumed" | "pushed" | "early" => 1.0,
            _ => median("connections"),
        };
        assert_eq!(median("connections"), connections, "{cell}");
    }
    assert!(
        read("report.html").contains("A few objects, in every way")
            && read("result.csv").lines().count() > 50
    );
    let journal = read("runs.jsonl");
    let again = lab(&["run", "mine.toml", "--resume"], folder.path());
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && said.contains("7 loads are there already"), "{said}");
    assert_eq!(read("runs.jsonl"), journal);
    std::fs::write(folder.path().join("mine.toml"), PLAN.replace("2 KB", "3 KB")).unwrap();
    let changed = error(&lab(&["run", "mine.toml", "--resume"], folder.path()));
    assert!(changed.contains("holds runs of another plan"), "{changed}");
    assert_eq!(read("runs.jsonl"), journal, "and stays as it is");
}
