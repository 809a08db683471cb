//! What was seen of the ends, judged: no growth under equal load, all given back afterwards, nothing wrong. Pure.

use std::time::Duration;

use serde::Serialize;

use super::level::{Level, Thing};
use super::tally::Counts;
use super::trend::{LEAST_POINTS, median, trend};
use crate::{Row, Verdict};

/// What an end held at a time of the load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Sample {
    /// Since the load began.
    pub(super) at: Duration,
    pub(super) level: Level,
}

/// All that was seen of an end.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Watched {
    pub(super) end: String,
    /// Under the load that is judged.
    pub(super) loaded: Vec<Sample>,
    /// Idle before that load, once everything had been done, and after it.
    pub(super) before: Level,
    pub(super) after: Option<Level>,
}

/// Growth of memory that is no leak, as a share of what an end holds: an allocator that is given pieces of all sizes from many
/// threads, and bodies that come and go, is steady within this (`carriers` of part 4 has the same bound), and at least so much.
/// A load of half an hour is some 20,000 exchanges: no more than 100 bytes of each may stay.
const SHARE: f64 = 0.03;
const LEAST: f64 = 2e6;
/// Growth of what is counted: a whole one over the course, beyond what noise explains.
const ONE: f64 = 1.0;

/// By how much an end's memory may grow that holds so much.
fn allowance(memory: u64) -> f64 {
    LEAST.max(SHARE * memory as f64)
}

/// The rows of one end.
pub(super) fn end(watched: &Watched, period: Duration) -> Vec<Row> {
    let counted = [Thing::Sockets, Thing::Files, Thing::Threads, Thing::Streams];
    let after = watched.after.as_ref().map(|after| given_back(watched, after));
    [memory(watched, period), steady(watched, &counted, period)].into_iter().chain(after).collect()
}

/// What is typical of each whole period of a load: time in seconds, and the median.
fn points(watched: &Watched, thing: Thing, period: Duration) -> Vec<(f64, f64)> {
    let number = |sample: &Sample| (sample.at.as_secs_f64() / period.as_secs_f64()) as u32;
    let periods = watched.loaded.last().map_or(0, number);
    let typical = |wanted: u32| {
        let of_it = watched.loaded.iter().filter(|sample| number(sample) == wanted);
        let value = median(of_it.map(|sample| sample.level.of(thing) as f64))?;
        Some((f64::from(wanted) * period.as_secs_f64(), value))
    };
    (0..periods).filter_map(typical).collect()
}

/// From the first point to the last, in the median and at least.
fn growth(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let trend = trend(points)?;
    let course = points.last()?.0 - points.first()?.0;
    Some((trend.slope * course, trend.least * course))
}

fn too_short(what: String, points: usize) -> Row {
    Row {
        what,
        measured: format!("{points} periods"),
        bound: format!("{LEAST_POINTS} periods and more, or nothing can be told"),
        verdict: Verdict::Told,
    }
}

fn memory(watched: &Watched, period: Duration) -> Row {
    let what = format!("{}, memory under equal load", watched.end);
    let points = points(watched, Thing::Memory, period);
    let Some((grown, least)) = growth(&points) else { return too_short(what, points.len()) };
    let typical = median(points.iter().map(|(_, value)| *value)).unwrap_or_default();
    let most = allowance(typical as u64);
    let measured = format!(
        "{:.1} MB, {:+.2} MB in {} periods, {:+.2} at least",
        typical / 1e6,
        grown / 1e6,
        points.len(),
        least / 1e6
    );
    Row::judged(what, measured, format!("not shown to be above {:+.1} MB", most / 1e6), least <= most)
}

fn steady(watched: &Watched, things: &[Thing], period: Duration) -> Row {
    let what = format!("{}, counts under equal load", watched.end);
    let (mut told, mut growing) = (Vec::new(), false);
    for thing in things {
        let points = points(watched, *thing, period);
        let Some((grown, least)) = growth(&points) else { return too_short(what, points.len()) };
        told.push(format!("{} {grown:+.1}", thing.name()));
        growing |= least > ONE;
    }
    Row::judged(what, told.join(", "), "not shown to be above +1", !growing)
}

fn given_back(watched: &Watched, after: &Level) -> Row {
    let Watched { end, before, .. } = watched;
    let kept = after.beyond(before);
    let grown = after.memory as f64 - before.memory as f64;
    let most = allowance(before.memory);
    let measured = match kept.is_empty() {
        true => format!("{after}, {:+.2} MB", grown / 1e6),
        false => kept.join("; "),
    };
    let bound = format!("counts exactly as before, memory ≤ {:+.1} MB", most / 1e6);
    Row::judged(format!("{end}, idle again"), measured, bound, kept.is_empty() && grown <= most)
}

/// The row of all that was loaded.
pub(super) fn loads(counts: &Counts) -> Row {
    let first = counts.told.first().map(|fault| format!(" ({fault})")).unwrap_or_default();
    let measured = format!(
        "{} in {} rounds, {:.0} MB compared, {} wrong{first}",
        counts.loads(),
        counts.rounds,
        counts.bytes as f64 / 1e6,
        counts.faults
    );
    Row::judged("loads of every kind", measured, "none wrong", counts.faults == 0 && counts.rounds > 0)
}

/// A row of things of which there must be none.
pub(super) fn none(what: &str, found: &[String], bound: &str) -> Row {
    let measured = match found {
        [] => "none".into(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    Row::judged(what, measured, bound, found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_orbit::Rng;

    const PERIOD: Duration = Duration::from_secs(40);

    /// Ten minutes, looked at every 2 s; what `grow` makes of the minute is added to a load that goes up and down.
    fn watched(seed: u64, grow: impl Fn(f64, &mut Level)) -> Watched {
        let mut rng = Rng::new(seed);
        let idle = Level { memory: 40_000_000, sockets: 7, files: 20, threads: 4, ..Level::default() };
        let samples = (0..300).map(|number| {
            let mut level = idle.clone();
            level.sockets += 20 + rng.next_u64() % 30;
            level.memory += rng.next_u64() % 6_000_000;
            grow(f64::from(number) / 30.0, &mut level);
            Sample { at: Duration::from_secs(2 * u64::from(number as u32)), level }
        });
        Watched { end: "ground".into(), loaded: samples.collect(), before: idle.clone(), after: Some(idle) }
    }

    fn passes(watched: &Watched) -> [bool; 3] {
        let rows = end(watched, PERIOD);
        let [memory, counts, idle] = rows.as_slice() else { panic!("{rows:?}") };
        [memory, counts, idle].map(|row| row.verdict == Verdict::Pass)
    }

    #[test]
    fn a_load_that_only_goes_up_and_down_passes() {
        for seed in 0..50 {
            assert_eq!(passes(&watched(seed, |_, _| {})), [true; 3], "seed {seed}");
        }
    }

    #[test]
    fn a_descriptor_or_a_socket_lost_each_minute_and_memory_lost_with_each_load_are_seen() {
        for seed in 0..50 {
            let files = watched(seed, |minute, level| level.files += minute as u64);
            assert_eq!(passes(&files), [true, false, true], "seed {seed}");
            let sockets = watched(seed, |minute, level| level.sockets += (4.0 * minute) as u64);
            assert_eq!(passes(&sockets), [true, false, true], "seed {seed}");
            let memory = watched(seed, |minute, level| level.memory += (800_000.0 * minute) as u64);
            assert_eq!(passes(&memory), [false, true, true], "seed {seed}");
        }
    }

    #[test]
    fn what_is_not_given_back_is_named() {
        let watched = watched(1, |_, _| {});
        let left = Level { files: 21, ..watched.before.clone() };
        let row = given_back(&watched, &left);
        assert_eq!((row.verdict, row.measured.as_str()), (Verdict::Miss, "files 21, was 20"));
        let grown = Level { memory: watched.before.memory + 3_000_000, ..watched.before.clone() };
        assert_eq!(given_back(&watched, &grown).verdict, Verdict::Miss);
    }

    #[test]
    fn too_little_is_told_and_neither_passes_nor_misses() {
        let mut short = watched(1, |minute, level| level.files += 100 * minute as u64);
        short.loaded.truncate(100);
        let verdicts: Vec<_> = end(&short, PERIOD).into_iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Told, Verdict::Told, Verdict::Pass]);
    }
}
