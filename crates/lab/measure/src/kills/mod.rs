//! The store on disk through the program itself, killed again and again under load, its files damaged, its disk full, its clock
//! set, a second process on it: not one wrong byte, and clear words.

mod befallen;
mod place;

use std::path::PathBuf;
use std::time::Duration;

use farhop_testkit::Versions;
use farhop_testkit::versions::Outcome;
use tokio::runtime::Runtime;

use crate::group::Context;
use crate::{MeasureError, Row};
pub(crate) use place::Place;
use place::{cut_in_half, overwrite};

/// How often, unless `FARHOP_KILLS` says otherwise.
const KILLS: u64 = 200;
/// How often files are damaged, each way in turn.
const HARMS: u64 = 20;
/// Answers before and after that.
const ANSWERS: u64 = 200;
/// Things of the site: every kind in every size, three times.
const THINGS: usize = 90;
/// Clients that ask meanwhile.
const CLIENTS: u8 = 6;
/// A load that comes to nothing for so long has found its proxy dead.
const PATIENCE: Duration = Duration::from_secs(120);
/// Wrong answers after which there is nothing more to find out.
const ENOUGH: usize = 10;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let kills = match std::env::var("FARHOP_KILLS") {
        Ok(text) => {
            text.parse().map_err(|_| MeasureError::Unexpected(format!("FARHOP_KILLS={text} is no number")))?
        }
        Err(_) => KILLS,
    };
    let runtime = Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let mut rows = vec![killed(context, &runtime, kills)?];
    rows.push(damaged(context, &runtime, "the index cut short or overwritten", Place::index)?);
    rows.push(damaged(context, &runtime, "body files cut short or overwritten", Place::bodies)?);
    for befallen in [befallen::full, befallen::set, befallen::shared] {
        context.interrupt.check()?;
        rows.push(befallen(&runtime)?);
    }
    Ok(rows)
}

fn killed(context: &Context, runtime: &Runtime, kills: u64) -> Result<Row, MeasureError> {
    let (place, site) = (Place::new()?, runtime.block_on(Versions::of(THINGS)));
    let (mut all, mut killed) = (Outcome::default(), 0);
    for round in 0..kills {
        context.interrupt.check()?;
        // Another moment in each round, counted in answers.
        all.add(lived(&place, &site, runtime, round, 20 + round * 37 % 180, true)?);
        killed += 1;
        if round % 20 == 19 {
            eprintln!("{killed} times killed, {} answers right, {} wrong", all.right, all.wrong.len());
        }
        if all.wrong.len() >= ENOUGH {
            break;
        }
    }
    // Nobody cut off would mean that nobody was asking; nothing held, that no store was there.
    let meant = all.cut > 0 && all.hits > 0;
    let pass = all.wrong.is_empty() && meant && killed == kills && kills >= KILLS;
    let bound = format!("{KILLS} times: no wrong, torn or foreign byte afterwards");
    Ok(Row::judged("kill -9 under load, store on disk", told(killed, &all), bound, pass))
}

/// Harms these files between two processes, again and again.
fn damaged(
    context: &Context,
    runtime: &Runtime,
    what: &str,
    files: fn(&Place) -> Vec<PathBuf>,
) -> Result<Row, MeasureError> {
    let (mut all, mut harmed) = (Outcome::default(), 0);
    for round in 0..HARMS {
        context.interrupt.check()?;
        let (place, site) = (Place::new()?, runtime.block_on(Versions::of(THINGS)));
        let mut before = lived(&place, &site, runtime, round, ANSWERS, false)?;
        let found = files(&place);
        harmed += usize::from(!found.is_empty());
        let harm = if round % 2 == 0 { cut_in_half } else { overwrite };
        found.iter().try_for_each(|file| harm(file)).map_err(MeasureError::system("harm to a store"))?;
        before.add(lived(&place, &site, runtime, 1000 + round, ANSWERS, false)?);
        all.add(before);
    }
    let unharmed = harmed < HARMS as usize;
    let pass = all.wrong.is_empty() && all.cut == 0 && all.errors == 0 && !unharmed;
    let bound = format!("{HARMS} times: no wrong byte, no answer lost");
    Ok(Row::judged(what, told(harmed as u64, &all), bound, pass))
}

/// One life of the program: so many answers, then SIGKILL under load, or SIGTERM when all clients have gone.
fn lived(
    place: &Place,
    site: &Versions,
    runtime: &Runtime,
    number: u64,
    answers: u64,
    killed: bool,
) -> Result<Outcome, MeasureError> {
    let mut local = place.start()?;
    let (mut outcome, went_on) = runtime.block_on(async {
        let mut load = site.load(local.proxy(), CLIENTS, number);
        let enough = tokio::time::timeout(PATIENCE, load.answers(answers)).await;
        let up = local.runs();
        if killed {
            local.kill();
        }
        (load.end().await, enough.is_ok() && up)
    });
    if !killed {
        local.end(PATIENCE)?;
    }
    if !went_on {
        outcome.wrong.push(format!("load {number}: the program ended, or stood still, by itself"));
    }
    for line in &outcome.wrong {
        eprintln!("{line}");
    }
    Ok(outcome)
}

fn told(times: u64, all: &Outcome) -> String {
    let Outcome { right, hits, cut, errors, wrong, .. } = all;
    format!(
        "{times} times, {right} answers right ({hits} held), {cut} cut off, {errors} errors, {} wrong",
        wrong.len()
    )
}
