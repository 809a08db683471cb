//! The corpus of malformed and ambiguous HTTP, sent byte by byte through the program itself.

use farhop_testkit::conformance::{self, SecureOrigin, Verdict};

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row};

/// Cases of the bound.
const FEWEST: usize = 150;
/// The origins' ports are the system's choice.
const EVERY_PORT: [&str; 4] = ["--allow", "127.0.0.0/8", "--set", "remote.connect_ports=1-65535"];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let mut local = Local::start(&EVERY_PORT)?;
    let plain = runtime.block_on(conformance::run(local.proxy(), ""));
    let plain = row("requests and responses in clear text", &plain, FEWEST, local.runs());
    context.interrupt.check()?;

    let failed = MeasureError::system("a folder");
    let folder = tempfile::tempdir().map_err(&failed)?;
    let (root, authority) = (folder.path().join("root.pem"), folder.path().join("authority.pem"));
    let origin = runtime.block_on(SecureOrigin::start());
    std::fs::write(&root, origin.root()).map_err(&failed)?;
    let trust = format!("ground.origin.roots={}", root.display());
    let certificate = authority.display().to_string();
    let intercept = ["--intercept", "--ca-out", &certificate];
    let ports = ["--set", "remote.interception.ports=1-65535", "--set", &trust];
    let mut local = Local::start(&[&EVERY_PORT[..], &intercept, &ports].concat())?;
    let certificate = std::fs::read_to_string(&authority).map_err(&failed)?;
    let within = runtime.block_on(origin.run(local.proxy(), &certificate, ""));
    let within = row("inside TLS, over HTTP/1.1 and HTTP/2", &within, 1, local.runs());
    Ok(vec![plain, within])
}

fn row(what: &str, verdicts: &[Verdict], fewest: usize, up: bool) -> Row {
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| !verdict.pass).collect();
    for verdict in &wrong {
        eprintln!("{}\n  wanted: {}\n  came: {}", verdict.case, verdict.wanted, verdict.seen);
    }
    let state = if up { "process up" } else { "process DOWN" };
    Row::judged(
        format!("malformed and ambiguous messages: {what}"),
        format!("{} cases, {} not as the table says, {state}", verdicts.len(), wrong.len()),
        format!("at least {fewest}, each as docs/conformance.md says, none forwarded ambiguously"),
        wrong.is_empty() && verdicts.len() >= fewest && up,
    )
}
