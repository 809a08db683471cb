//! A page that means harm to whoever reads ahead, through the program itself: what it costs, and whether it loads.

use farhop_testkit::HostilePage;
use farhop_testkit::hostile_page::{HINTS, ORDINARY};

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row};

/// Unasked requests that one page may cause (`ground.bundle.hints`).
const BUDGET: usize = 2_000;
/// What both ends together may grow by, in bytes.
const MEMORY: u64 = 50_000_000;
/// What both ends together may compute, in seconds.
const CPU_S: f64 = 10.0;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let _inside = runtime.enter();
    let page = runtime.block_on(HostilePage::serve());
    let mut local = Local::start(&["--allow", "127.0.0.1/32", "--set", "remote.log.level=error"])?;
    context.interrupt.check()?;
    let (memory, cpu) = (local.peak_memory(), local.cpu_seconds());
    let document = local.get_page(&page.url("/"))?;
    let mut whole = document.status == 200 && document.whole && document.body == page.document();
    for path in ORDINARY {
        let answer = local.get(&page.url(path))?;
        whole &= answer.status == 200 && answer.body == HostilePage::ordinary(path);
    }
    let (memory, cpu) = (local.peak_memory().saturating_sub(memory), local.cpu_seconds() - cpu);
    let asked = page.asked("/");
    let up = if local.runs() { "process up" } else { "process DOWN" };
    let (loads, private) = (whole && local.runs(), page.reached_private());
    let row = |what: &str, measured: String, bound: String, pass: bool| {
        Row::judged(format!("hostile page, {what}"), measured, bound, pass)
    };
    Ok(vec![
        row(
            "document and ordinary resources",
            format!("{}, {up}", if whole { "every byte right" } else { "NOT WHOLE" }),
            "load as ever".into(),
            loads,
        ),
        row(
            "memory of both ends",
            format!("+{:.1} MB", memory as f64 / 1e6),
            format!("< +{} MB", MEMORY / 1_000_000),
            memory < MEMORY,
        ),
        row("CPU of both ends", format!("{cpu:.2} s"), format!("< {CPU_S} s"), cpu < CPU_S),
        row(
            &format!("requests at its origin for {HINTS} hints and endless imports"),
            format!("{asked}, {} of them style sheets", page.asked("/imports/")),
            format!("1 document, {} asked for, ≤ {BUDGET} unasked", ORDINARY.len()),
            asked > ORDINARY.len() + 1 && asked <= BUDGET + 1 + ORDINARY.len(),
        ),
        row(
            "private addresses",
            if private { "REACHED" } else { "none reached" }.into(),
            "none".into(),
            !private,
        ),
    ])
}
