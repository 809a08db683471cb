//! The store on disk through the program itself, killed again and again under load: not one wrong byte when it is back. What else
//! can happen to a store, `tests/system/store.rs` does to it.

use std::time::Duration;

use farhop_testkit::Versions;
use farhop_testkit::versions::Outcome;

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row, Verdict};

/// How often, unless `FARHOP_KILLS` says otherwise.
const KILLS: u64 = 200;
/// Things of the site: every kind in every size, three times.
const THINGS: usize = 90;
/// Clients that ask while it is killed.
const CLIENTS: u8 = 6;
/// A load that comes to nothing for so long has found its proxy dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// What `tests/system/store.rs` holds.
const HELD: [(&str, &str); 5] = [
    ("disk full", "told, and no answer lost"),
    ("corrupt index", "set aside in one line, no wrong byte"),
    ("truncated, overwritten and missing body files", "asked for anew, no wrong byte"),
    ("clock jumps both ways", "nothing fresh for ever, no wrong byte"),
    ("two processes on one store", "the second refused in one line"),
];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let kills = match std::env::var("FARHOP_KILLS") {
        Ok(text) => {
            text.parse().map_err(|_| MeasureError::Unexpected(format!("FARHOP_KILLS={text} is no number")))?
        }
        Err(_) => KILLS,
    };
    let failed = MeasureError::system("a folder");
    let folder = tempfile::tempdir().map_err(&failed)?;
    let set = |name: &str, file: &str| {
        format!("remote.store.{name}={:?}", folder.path().join(file).display().to_string())
    };
    let sets = [
        set("directory", "store"),
        set("key", "store.key"),
        // Little in memory, so that most answers are from disk.
        "remote.repository.size=2 MB".to_owned(),
        "remote.repository.entry=1 MB".to_owned(),
        "remote.log.level=error".to_owned(),
    ];
    let options: Vec<&str> = ["--allow", "127.0.0.0/8"]
        .into_iter()
        .chain(sets.iter().flat_map(|set| ["--set", set.as_str()]))
        .collect();
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let site = runtime.block_on(Versions::of(THINGS));
    let mut all = Outcome::default();
    let mut killed = 0;
    for round in 0..kills {
        context.interrupt.check()?;
        let mut local = Local::start(&options)?;
        let outcome = runtime.block_on(async {
            let mut load = site.load(local.proxy(), CLIENTS, round);
            // Another moment in each round, counted in answers.
            let enough = tokio::time::timeout(PATIENCE, load.answers(20 + round * 37 % 180)).await;
            let up = local.runs();
            local.kill();
            (load.end().await, enough.is_ok() && up)
        });
        let (outcome, went_on) = outcome;
        all.add(outcome);
        if !went_on {
            all.wrong.push(format!("round {round}: it ended, or stood still, by itself"));
        }
        killed += 1;
        if round % 20 == 19 {
            eprintln!("{killed} times killed, {} answers right, {} wrong", all.right, all.wrong.len());
        }
        if all.wrong.len() >= 10 {
            break;
        }
    }
    for line in &all.wrong {
        eprintln!("{line}");
    }
    let measured = format!(
        "{killed} times, {} answers right ({} held), {} cut off, {} errors, {} wrong",
        all.right,
        all.hits,
        all.cut,
        all.errors,
        all.wrong.len()
    );
    // Nobody cut off would mean that nobody was asking; nothing held, that no store was there.
    let meant = all.cut > 0 && all.hits > 0;
    let pass = all.wrong.is_empty() && meant && killed == kills && kills >= KILLS;
    let bound = format!("{KILLS} times: no wrong, torn or foreign byte afterwards");
    let mut rows =
        vec![Row::judged("kill -9 at any moment under load, store on disk", measured, bound, pass)];
    rows.extend(HELD.map(|(what, bound)| Row {
        what: what.into(),
        measured: "not measured here".into(),
        bound: format!("{bound} (held by tests/system/store.rs)"),
        verdict: Verdict::Elsewhere,
    }));
    Ok(rows)
}
