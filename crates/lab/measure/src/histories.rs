//! Three users on one site, in random histories, through the program itself.

use std::time::{Duration, Instant};

use farhop_testkit::histories::{Histories, live};

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row, Verdict};

/// How many, unless `FARHOP_HISTORIES` says otherwise.
const HISTORIES: u64 = 100_000;
/// Lived before somebody is told how far it has come, and may stop it.
const PORTION: u64 = 2_000;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let count = match std::env::var("FARHOP_HISTORIES") {
        Ok(text) => text
            .parse()
            .map_err(|_| MeasureError::Unexpected(format!("FARHOP_HISTORIES={text} is no number")))?,
        Err(_) => HISTORIES,
    };
    let mut local = Local::start(&["--allow", "127.0.0.0/8", "--set", "remote.log.level=error"])?;
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let start = Instant::now();
    let (mut lived, mut answers, mut wrong) = (0, 0, Vec::new());
    for first in (0..count).step_by(PORTION as usize) {
        context.interrupt.check()?;
        let portion = Histories { first, count: PORTION.min(count - first), concurrent: 32 };
        let outcome = runtime.block_on(live(local.proxy(), portion));
        lived += outcome.histories;
        answers += outcome.answers;
        wrong.extend(outcome.wrong);
        eprintln!("{lived} histories, {answers} answers, {} wrong", wrong.len());
        if wrong.len() >= 20 || !local.runs() {
            break;
        }
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    let taken = Duration::from_secs(start.elapsed().as_secs());
    let up = if local.runs() { "process up" } else { "process DOWN" };
    let measured = format!("{lived} histories, {answers} answers, {} wrong, {up}, {taken:?}", wrong.len());
    let pass = wrong.is_empty() && lived == count && local.runs();
    let memory = local.peak_memory();
    Ok(vec![
        Row::judged(
            "three users of one site, random histories",
            measured,
            format!("{HISTORIES} histories, not one wrong or foreign byte"),
            pass && count >= HISTORIES,
        ),
        Row {
            what: "both ends' memory after that".into(),
            measured: format!("{:.1} MB at most", memory as f64 / 1e6),
            bound: "none, printed".into(),
            verdict: Verdict::Told,
        },
    ])
}
