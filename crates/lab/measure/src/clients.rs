//! Clients and servers that people really use. Most of them are held by `tests/system/clients`, where they ask for the same
//! through an interception as directly; here is what takes longer: h2load for a minute.

use std::process::{Command, Stdio};

use farhop_testkit::entrance;
use farhop_workload::origins::{OriginSpec, OriginsSpec, serve};
use farhop_workload::programs::found;

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row, Verdict};

/// Programs of `tests/system/clients`, and where they are told apart from ours.
const HELD: [&str; 6] = ["curl", "wget", "nghttp", "firefox-esr", "nginx", "apache2"];
const HOST: &str = "localhost";
const SECONDS: u32 = 60;
const STREAMS: u32 = 100;

pub(crate) fn rows(_: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = vec![h2load()?];
    rows.extend(HELD.map(held));
    Ok(rows)
}

fn held(program: &str) -> Row {
    let what = format!("{program} through an interception");
    let bound = "as directly (held by tests/system/clients)";
    match found(program) {
        Some(_) => Row {
            what,
            measured: "installed; not measured here".into(),
            bound: bound.into(),
            verdict: Verdict::Elsewhere,
        },
        None => Row::judged(what, "not installed: nothing on this machine holds it", bound, false),
    }
}

/// A hundred streams on one connection, for a minute.
fn h2load() -> Result<Row, MeasureError> {
    let failed = MeasureError::system("h2load");
    let Some(program) = found("h2load") else {
        return Err(MeasureError::Unexpected(
            "h2load is missing: install the Debian package nghttp2-client".into(),
        ));
    };
    let folder = tempfile::tempdir().map_err(&failed)?;
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("site")).map_err(&failed)?;
    std::fs::write(at("site/index.html"), "<p>hello</p>".repeat(100)).map_err(&failed)?;
    let origin = OriginSpec::new(HOST, std::net::Ipv4Addr::LOCALHOST, at("site"));
    let spec = OriginsSpec::on_free_ports(vec![origin], folder.path());
    let runtime = tokio::runtime::Runtime::new().map_err(&failed)?;
    let ready =
        runtime.block_on(serve(&spec)).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let port = ready.origins.first().map_or(0, |origin| origin.https.port());
    let set = |text: String| ["--set".to_owned(), text];
    let options = [
        ["--allow".to_owned(), "127.0.0.0/8".to_owned()].to_vec(),
        ["--intercept".to_owned(), "--ca-out".to_owned(), at("farhop.pem").display().to_string()].to_vec(),
        set(format!("remote.interception.ports={port}")).to_vec(),
        set(format!("remote.interception.state={}", at("consent.json").display())).to_vec(),
        set(format!("remote.connect_ports={port}")).to_vec(),
        set(format!("ground.origin.roots={}", spec.ca.display())).to_vec(),
    ]
    .concat();
    let mut local = Local::start(&options.iter().map(String::as_str).collect::<Vec<_>>())?;
    let entrance = runtime.block_on(entrance(local.proxy(), format!("{HOST}:{port}")));
    let mut command = Command::new(program);
    command.args([format!("--duration={SECONDS}"), format!("--max-concurrent-streams={STREAMS}")]);
    command.args(["--clients=1", "--threads=1", &format!("--connect-to={entrance}")]);
    command.arg(format!("https://{HOST}:{port}/")).stdin(Stdio::null());
    let output = command.output().map_err(&failed)?;
    let told = Told::of(&String::from_utf8_lossy(&output.stdout));
    let (measured, pass) = match &told {
        Some(told) => (told.to_string(), told.good() && output.status.success()),
        None => (String::from_utf8_lossy(&output.stderr).trim().to_owned(), false),
    };
    let up = if local.runs() { "" } else { ", process DOWN" };
    let what = format!("h2load, {STREAMS} streams for {SECONDS} s through an interception");
    Ok(Row::judged(what, format!("{measured}{up}"), "no error", pass && up.is_empty()))
}

/// h2load's own counts.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    succeeded: u64,
    /// Failed, errored, timed out, or answered by another status than 2xx.
    wrong: u64,
}

impl Told {
    /// Reads `requests: 10 total, … 10 succeeded, 0 failed, …` and `status codes: 10 2xx, 0 3xx, …`.
    fn of(text: &str) -> Option<Told> {
        let counts = |begins: &str| -> Option<Vec<(String, u64)>> {
            let line = text.lines().find_map(|line| line.strip_prefix(begins))?;
            let pairs = line.split(',').filter_map(|pair| pair.trim().split_once(' '));
            Some(pairs.filter_map(|(count, name)| Some((name.to_owned(), count.parse().ok()?))).collect())
        };
        let sum = |counts: &[(String, u64)], names: &[&str]| {
            counts
                .iter()
                .filter(|(name, _)| names.contains(&name.as_str()))
                .map(|(_, count)| count)
                .sum::<u64>()
        };
        let (requests, statuses) = (counts("requests: ")?, counts("status codes: ")?);
        Some(Told {
            succeeded: sum(&requests, &["succeeded"]),
            wrong: sum(&requests, &["failed", "errored", "timeout"]) + sum(&statuses, &["3xx", "4xx", "5xx"]),
        })
    }

    fn good(&self) -> bool {
        self.succeeded > 0 && self.wrong == 0
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.succeeded / u64::from(SECONDS);
        write!(f, "{} requests ({rate} a second), {} wrong", self.succeeded, self.wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_held_by_nothing() {
        let verdict = |program| held(program).verdict;
        assert_eq!((verdict("sh"), verdict("no-program-has-this-name")), (Verdict::Elsewhere, Verdict::Miss));
    }

    #[test]
    fn what_h2load_counts_is_read_and_every_kind_of_failure_is_one() {
        let text = |failed: u32, gone: u32| {
            format!(
                "finished in 1.0s\nrequests: 50 total, 50 started, 50 done, 49 succeeded, {failed} failed, 0 errored, 0 timeout\n\
                 status codes: 49 2xx, 0 3xx, {gone} 4xx, 0 5xx\n"
            )
        };
        let told = |failed, gone| Told::of(&text(failed, gone)).unwrap();
        assert_eq!(told(0, 0), Told { succeeded: 49, wrong: 0 });
        assert!(told(0, 0).good() && !told(1, 0).good() && !told(0, 1).good());
        assert_eq!(Told::of("usage"), None);
    }
}
