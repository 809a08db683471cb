//! Three users on one site, in random histories, through the program itself: with all that is held in memory, with stores on
//! disk at both ends, and within TLS that is looked into.

use std::path::Path;
use std::time::{Duration, Instant};

use farhop_testkit::histories::{Histories, Sites, live_with};
use tokio::runtime::Runtime;

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row, Verdict};

/// How many, unless `FARHOP_HISTORIES` says otherwise.
const HISTORIES: u64 = 100_000;
/// Lived before somebody is told how far it has come, and may stop it.
const PORTION: u64 = 2_000;
/// At a time.
const CONCURRENT: u8 = 32;
/// One in so many waits for some seconds until what it was given has ended.
const WAITING: u64 = 40;
/// Wrong answers after which there is nothing more to find out.
const ENOUGH: usize = 20;

/// How the program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    InMemory,
    OnDisk,
    Intercepted,
}

/// Each with its share of all histories, in percent.
const RUNS: [(Run, u64); 3] = [(Run::InMemory, 80), (Run::OnDisk, 10), (Run::Intercepted, 10)];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let count = match std::env::var("FARHOP_HISTORIES") {
        Ok(text) => text
            .parse()
            .map_err(|_| MeasureError::Unexpected(format!("FARHOP_HISTORIES={text} is no number")))?,
        Err(_) => HISTORIES,
    };
    let runtime = Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let (mut rows, mut first) = (Vec::new(), 0);
    for (run, share) in RUNS {
        let own = count * share / 100;
        let wanted = Wanted { first, count: own, enough: HISTORIES * share / 100 };
        rows.extend(lived(context, &runtime, run, wanted)?);
        first += own;
    }
    Ok(rows)
}

/// Histories of one run.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    first: u64,
    count: u64,
    /// As many as prove something.
    enough: u64,
}

fn lived(context: &Context, runtime: &Runtime, run: Run, wanted: Wanted) -> Result<Vec<Row>, MeasureError> {
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let sites = match run {
        Run::Intercepted => runtime.block_on(Sites::start_secure(CONCURRENT)),
        _ => runtime.block_on(Sites::start()),
    };
    let mut local = run.start(folder.path(), sites.root())?;
    let authority = match run {
        Run::Intercepted => {
            std::fs::read_to_string(own(folder.path())).map_err(MeasureError::system("a folder"))?
        }
        _ => String::new(),
    };
    let start = Instant::now();
    let (mut lived, mut answers, mut wrong) = (0, 0, Vec::new());
    for first in (0..wanted.count).step_by(PORTION as usize) {
        context.interrupt.check()?;
        let count = PORTION.min(wanted.count - first);
        let portion =
            Histories { first: wanted.first + first, count, concurrent: CONCURRENT, waiting: WAITING };
        let outcome = runtime.block_on(live_with(&sites, local.proxy(), &authority, portion));
        lived += outcome.histories;
        answers += outcome.answers;
        for line in &outcome.wrong {
            eprintln!("{line}");
        }
        wrong.extend(outcome.wrong);
        eprintln!("{}: {lived} histories, {answers} answers, {} wrong", run.name(), wrong.len());
        if wrong.len() >= ENOUGH || !local.runs() {
            break;
        }
    }
    let taken = Duration::from_secs(start.elapsed().as_secs());
    let up = if local.runs() { "process up" } else { "process DOWN" };
    let measured = format!("{lived} histories, {answers} answers, {} wrong, {up}, {taken:?}", wrong.len());
    let pass = wrong.is_empty() && lived == wanted.count && local.runs();
    let memory = local.peak_memory();
    Ok(vec![
        Row::judged(
            format!("three users of one site, random histories, {}", run.name()),
            measured,
            format!("{} histories, not one wrong, stale or foreign byte", wanted.enough),
            pass && wanted.count >= wanted.enough,
        ),
        Row {
            what: "both ends' memory after that".into(),
            measured: format!("{:.1} MB at most", memory as f64 / 1e6),
            bound: "none, printed".into(),
            verdict: Verdict::Told,
        },
    ])
}

/// Where the certificate of the program's own CA is told.
fn own(folder: &Path) -> std::path::PathBuf {
    folder.join("own.pem")
}

impl Run {
    fn name(self) -> &'static str {
        match self {
            Run::InMemory => "in memory",
            Run::OnDisk => "on disk",
            Run::Intercepted => "intercepted",
        }
    }

    /// The program, with what it keeps in `folder`; it trusts origins whose CA's certificate is `root` (PEM).
    fn start(self, folder: &Path, root: &str) -> Result<Local, MeasureError> {
        let set = |name: &str, file: &str| {
            format!("{name}={}", serde_json::Value::from(folder.join(file).to_string_lossy()))
        };
        let mut options = vec!["--allow".to_owned(), "127.0.0.0/8".to_owned()];
        let mut sets = vec!["remote.log.level=error".to_owned()];
        match self {
            Run::InMemory => {}
            Run::OnDisk => sets.extend([
                set("remote.store.directory", "remote"),
                set("remote.store.key", "remote.key"),
                set("ground.store.directory", "ground"),
                set("ground.store.key", "ground.key"),
                // Little in memory, so that many answers are from disk.
                "remote.repository.size=2 MB".to_owned(),
                "remote.repository.entry=1 MB".to_owned(),
            ]),
            Run::Intercepted => {
                std::fs::write(folder.join("root.pem"), root).map_err(MeasureError::system("a folder"))?;
                let out = own(folder).to_string_lossy().into_owned();
                options.extend(["--intercept".to_owned(), "--ca-out".to_owned(), out]);
                sets.extend([
                    // The origins' port is the system's choice.
                    "remote.connect_ports=1-65535".to_owned(),
                    "remote.interception.ports=1-65535".to_owned(),
                    format!("ground.origin.roots={}", folder.join("root.pem").display()),
                ]);
            }
        }
        options.extend(sets.into_iter().flat_map(|set| ["--set".to_owned(), set]));
        Local::start(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_histories_are_lived_in_one_way_or_another() {
        assert_eq!(RUNS.iter().map(|(_, share)| share).sum::<u64>(), 100);
    }
}
