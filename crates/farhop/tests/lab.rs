//! `farhop lab transport` in the real kernel. What needs root says so and passes without; nothing here asserts how long a
//! download took, but for what no machine can beat.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::process::{Command, Output};

use serde_json::Value;

fn transport(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhop"));
    command.args(["lab", "transport"]).args(arguments).output().expect("the program starts")
}

#[test]
fn downloads_on_each_route_come_whole_and_no_sooner_than_the_limit() {
    if let Err(reason) = farhop_testbed::require_privileges() {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("transport.html");
    let options = ["--quick", "--losses", "0%", "--workloads", "2m", "--json", "-", "--html"];
    let routes = ["--routes", "farhop,farhop-tcp-2,direct-cubic,pepsal"];
    let run = transport(&[&options[..], &[html.to_str().unwrap()], &routes].concat());
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let found: Value = serde_json::from_slice(&run.stdout).unwrap();
    let results = found["links"][0]["conditions"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    for result in results {
        let limit = result["limit_s"].as_f64().unwrap();
        assert!(limit > 0.65 + 2.0, "a round trip and two megabytes at 8 Mbit/s: {limit}");
        let cells = result["cells"].as_array().unwrap();
        let names: Vec<_> = cells.iter().map(|cell| cell["route"].as_str().unwrap()).collect();
        assert_eq!(names, ["farhop", "farhop-tcp-2", "direct-cubic", "pepsal"]);
        for cell in cells {
            let present = cell["route"] != "pepsal";
            assert_eq!(cell["present"], present, "{cell}");
            assert_eq!(cell["runs"], u64::from(present), "{cell}");
            // A thousandth for clocks: the link's and the client's are not read at one moment.
            assert!(!present || cell["ratio"].as_f64().unwrap() > 0.999, "{cell}");
        }
    }
    assert!(std::fs::read_to_string(&html).unwrap().contains("farhop-tcp-2"));
    assert!(
        found["notes"].to_string().contains("pepsal: not present: say where the program is with --pepsal")
    );
}

#[test]
fn what_is_not_there_or_not_known_is_told_in_one_line() {
    let told = |arguments: &[&str]| {
        let output = transport(arguments);
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let missing = told(&["--quick", "--pepsal", "/nowhere/pepsal"]);
    assert!(missing.contains("/nowhere/pepsal: No such file"), "{missing}");
    assert!(told(&["--losses", "all"]).contains("'all' is not a share, write it like '1 %'"));
    assert!(told(&["--routes", "farhop-pigeon"]).contains("farhop-bbr"), "the known ones are listed");
    assert!(told(&["--queues", "0"]).contains("'0' is no number from 0.01 to 100"));
}
