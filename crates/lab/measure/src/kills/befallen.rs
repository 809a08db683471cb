//! What else can happen to a store: its disk is full, its clock is set, a second process wants it.

use std::process::{Command, Stdio};

use farhop_testkit::clock::{Clock, DAY};
use farhop_testkit::versions::Outcome;
use farhop_testkit::{HostileOrigin, Step, Versions};
use tokio::runtime::Runtime;

use super::{PATIENCE, Place, THINGS};
use crate::local::{Local, farhop, told_in_one_line};
use crate::{MeasureError, Row};

/// Clients that ask meanwhile.
const CLIENTS: u8 = 6;
/// Answers on a disk that is full.
const ANSWERS: u64 = 600;
/// A message that comes more often than this is no message any more.
const MESSAGES: usize = 20;

/// On a disk of 5 MB.
pub(super) fn full(runtime: &Runtime) -> Result<Row, MeasureError> {
    let (place, site) = (Place::new()?, runtime.block_on(Versions::of(THINGS)));
    std::fs::create_dir(place.store()).map_err(MeasureError::system("a folder"))?;
    // In a mount namespace of its own, so that the disk goes with the program.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=5m small \"$0\" && exec \"$@\""]);
    command.arg(place.store()).arg(farhop()?.get_program());
    let mut local = place.start_as(command)?;
    let outcome = runtime.block_on(answered(&site, &local, 1, ANSWERS))?;
    let messages = place.said().lines().filter(|line| line.contains("No space left")).count();
    let pass = is_right(&outcome) && outcome.hits > 0 && (1..MESSAGES).contains(&messages) && local.runs();
    local.end(PATIENCE)?;
    let measured = format!("{}, told {messages} times", told(&outcome));
    Ok(Row::judged("disk full", measured, format!("told, < {MESSAGES} times, and no answer lost"), pass))
}

/// While its clock jumps both ways, running and while it is away.
pub(super) fn set(runtime: &Runtime) -> Result<Row, MeasureError> {
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let clock = Clock::new(folder.path()).map_err(MeasureError::system("a clock made with cc"))?;
    let (place, site) = (Place::new()?, runtime.block_on(Versions::of(THINGS)));
    let (mut all, mut up) = (Outcome::default(), true);
    for (round, jumps) in [[DAY, -DAY, 5, 0], [-5, -300, 400 * DAY, -60]].into_iter().enumerate() {
        let mut local = place.start_as(clocked(&clock)?)?;
        let outcome = runtime.block_on(async {
            let mut load = site.load(local.proxy(), CLIENTS, round as u64);
            for (number, jump) in jumps.into_iter().enumerate() {
                enough(load.answers(60 * (1 + number as u64))).await?;
                clock.set(jump).map_err(MeasureError::system("a clock"))?;
            }
            enough(load.answers(300)).await?;
            Ok::<_, MeasureError>(load.end().await)
        })?;
        up &= local.runs();
        all.add(outcome);
        local.end(PATIENCE)?;
    }
    let asked = asked_anew(runtime, &clock)?;
    let pass = is_right(&all) && all.hits > 0 && up && asked;
    let fresh = if asked { "nothing fresh for ever" } else { "something FRESH FOR EVER" };
    let measured = format!("{}, {fresh}", told(&all));
    Ok(Row::judged("clock jumps both ways", measured, "no wrong byte, nothing fresh for ever", pass))
}

/// Whether what seems to come from the future is asked for anew.
fn asked_anew(runtime: &Runtime, clock: &Clock) -> Result<bool, MeasureError> {
    let answers = ["one", "two", "three"].map(|body| {
        let head = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        let text = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=99999999999\r\n{head}");
        vec![Step::ReadHead, Step::Send(text.into()), Step::Close]
    });
    let origin = runtime.block_on(HostileOrigin::playing(answers.to_vec()));
    let (place, url) = (Place::new()?, origin.url("/"));
    let gives = |local: &Local, body: &str| {
        let twice = [local.get(&url)?.body, local.get(&url)?.body];
        Ok::<_, MeasureError>(twice.iter().all(|got| got == body.as_bytes()))
    };
    let set = |ahead| clock.set(ahead).map_err(MeasureError::system("a clock"));
    set(0)?;
    let local = place.start_as(clocked(clock)?)?;
    let mut right = gives(&local, "one")?;
    set(-DAY)?;
    right &= gives(&local, "two")?;
    local.end(PATIENCE)?;
    set(-2 * DAY)?;
    let local = place.start_as(clocked(clock)?)?;
    right &= gives(&local, "three")?;
    set(0)?;
    right &= gives(&local, "three")?;
    Ok(right && origin.heads().len() == 3)
}

/// The program, seeing this clock.
fn clocked(clock: &Clock) -> Result<Command, MeasureError> {
    let mut command = farhop()?;
    command.envs(clock.environment());
    Ok(command)
}

/// While another process has it.
pub(super) fn shared(runtime: &Runtime) -> Result<Row, MeasureError> {
    let (place, site) = (Place::new()?, runtime.block_on(Versions::of(THINGS)));
    let mut local = place.start()?;
    let mut outcome = runtime.block_on(answered(&site, &local, 1, 100))?;
    let mut second = farhop()?;
    second.args(["local", "--listen", "127.0.0.1:0"]).args(place.options(&[])).stdout(Stdio::null());
    let said = told_in_one_line(&mut second);
    let refused = said.as_ref().is_ok_and(|line| line.contains("in use by another process"));
    outcome.add(runtime.block_on(answered(&site, &local, 2, 100))?);
    let pass = refused && is_right(&outcome) && outcome.hits > 0 && local.runs();
    local.end(PATIENCE)?;
    let words = if refused { "refused in one line".to_owned() } else { format!("{said:?}") };
    let measured = format!("the second {words}; {}", told(&outcome));
    let bound = "the second refused in one line, no answer lost";
    Ok(Row::judged("two processes on one store", measured, bound, pass))
}

/// So many answers.
async fn answered(
    site: &Versions,
    local: &Local,
    number: u64,
    answers: u64,
) -> Result<Outcome, MeasureError> {
    let mut load = site.load(local.proxy(), CLIENTS, number);
    enough(load.answers(answers)).await?;
    Ok(load.end().await)
}

async fn enough(answers: impl Future<Output = ()>) -> Result<(), MeasureError> {
    let waited = tokio::time::timeout(PATIENCE, answers).await;
    waited.map_err(|_| MeasureError::Unexpected("the program stands still".into()))
}

fn is_right(outcome: &Outcome) -> bool {
    for line in &outcome.wrong {
        eprintln!("{line}");
    }
    outcome.wrong.is_empty() && outcome.cut == 0 && outcome.errors == 0
}

fn told(outcome: &Outcome) -> String {
    let Outcome { right, hits, cut, errors, wrong, .. } = outcome;
    format!("{right} answers right ({hits} held), {cut} cut off, {errors} errors, {} wrong", wrong.len())
}
