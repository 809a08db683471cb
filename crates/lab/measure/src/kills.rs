//! The store on disk through the program itself, killed again and again under load, its files damaged: not one wrong byte when it is
//! back. What else can happen to a store, `tests/system/store.rs` does to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_testkit::Versions;
use farhop_testkit::versions::Outcome;
use tokio::runtime::Runtime;

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row, Verdict};

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

/// What `tests/system/store.rs` holds.
const HELD: [(&str, &str); 3] = [
    ("disk full", "told, and no answer lost"),
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
    let runtime = Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let mut rows = vec![killed(context, &runtime, kills)?];
    rows.push(damaged(context, &runtime, "the index cut short or overwritten", Place::index)?);
    rows.push(damaged(context, &runtime, "body files cut short or overwritten", Place::bodies)?);
    rows.extend(HELD.map(|(what, bound)| Row {
        what: what.into(),
        measured: "not measured here".into(),
        bound: format!("{bound} (held by tests/system/store.rs)"),
        verdict: Verdict::Elsewhere,
    }));
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

/// A folder in which a store outlives its processes.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Result<Place, MeasureError> {
        tempfile::tempdir().map(Place).map_err(MeasureError::system("a folder"))
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn start(&self) -> Result<Local, MeasureError> {
        let set = |name: &str, file: PathBuf| {
            format!("remote.store.{name}={}", serde_json::Value::from(file.to_string_lossy()))
        };
        let sets = [
            set("directory", self.store()),
            set("key", self.0.path().join("store.key")),
            // Little in memory, so that most answers are from disk.
            "remote.repository.size=2 MB".to_owned(),
            "remote.repository.entry=1 MB".to_owned(),
            "remote.log.level=error".to_owned(),
        ];
        let sets = sets.iter().flat_map(|set| ["--set", set.as_str()]);
        Local::start(&["--allow", "127.0.0.0/8"].into_iter().chain(sets).collect::<Vec<_>>())
    }

    fn index(&self) -> Vec<PathBuf> {
        [self.store().join("index.redb")].into_iter().filter(|file| file.is_file()).collect()
    }

    fn bodies(&self) -> Vec<PathBuf> {
        let files = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        files(&self.store().join("bodies")).iter().flat_map(|folder| files(folder)).collect()
    }
}

fn cut_in_half(file: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(file)?;
    file.set_len(file.metadata()?.len() / 2)
}

/// A few bytes in each 4 KiB become others.
fn overwrite(file: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(file)?;
    for at in (0..file.metadata()?.len().saturating_sub(8)).step_by(4096) {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at)?;
        file.write_all_at(&bytes.map(|byte| !byte), at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmed_is_harmed() {
        let place = Place::new().unwrap();
        let file = place.store().join("bodies/ab/cd");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, vec![7; 10_000]).unwrap();
        assert_eq!((place.bodies(), place.index()), (vec![file.clone()], Vec::new()));
        overwrite(&file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte != 7).count(), 24);
        cut_in_half(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 5_000);
    }
}
