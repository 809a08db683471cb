//! A million flows one after the other: neither memory nor open files may grow.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use farhop_compare::Ends;
use farhop_testbed::Place;
use farhop_units::Bytes;

use super::flows::{self, Outcome};
use super::{Scene, fewer};
use crate::carriers::median_of_fifth;
use crate::group::Context;
use crate::{MeasureError, Row};

/// How many flows; the environment may ask for fewer.
const CONNECTIONS: u64 = 1_000_000;
const FEWER: &str = "FARHOP_CONNECTIONS";
/// How many at a time, and to how many addresses: ports on the way are used again only a minute after a connection.
const AT_ONCE: usize = 200;
const SERVERS: u16 = 500;
/// Open files are compared with what they were after so many, when everything had been done a few times.
const WARM: u64 = 2000;
/// Memory at the end, as a multiple of what it was after a fifth: what an allocator makes of what comes and goes is within this.
const GROWTH: f64 = 1.03;
/// How often ends are looked at, and how long they may take to close what was.
const LOOK: Duration = Duration::from_millis(500);
const SETTLE: Duration = Duration::from_secs(30);

/// What was seen of one end.
#[derive(Debug, Default)]
struct Seen {
    memory: Vec<Bytes>,
    /// Open files before the course and after it.
    files: [usize; 2],
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let count = fewer(FEWER, CONNECTIONS);
    let scene = Scene::up()?;
    for place in [Place::Client, Place::Ground] {
        // A port may be used again to another address at once, to the same after a second (RFC 6191).
        let namespace = scene.testbed.namespace(place);
        namespace.sysctl("net/ipv4/tcp_tw_reuse", "1").map_err(farhop_testbed::Error::from)?;
    }
    let servers: Vec<SocketAddr> = (0..SERVERS).map(|number| scene.server(number)).collect();
    let mut rows = Vec::new();
    for carrier in ["quic", "tcp"] {
        let ends = scene.ends(context, carrier)?;
        rows.extend(course(context, &scene, ends, carrier, &servers, count)?);
    }
    Ok(rows)
}

fn course(
    context: &Context,
    scene: &Scene,
    mut ends: Ends,
    carrier: &str,
    servers: &[SocketAddr],
    count: u64,
) -> Result<Vec<Row>, MeasureError> {
    let run = |count: u64, done: &AtomicU64| {
        scene.as_clients(async || flows::in_turn(servers, count, AT_ONCE, done, &context.interrupt).await)
    };
    run(WARM.min(count), &AtomicU64::new(0))?;
    let idle = settled(context, &ends, None)?;
    let mut seen = idle.map(|files| Seen { memory: Vec::new(), files: [files; 2] });
    let (done, over, start) = (AtomicU64::new(0), AtomicBool::new(false), Instant::now());
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let outcome = run(count, &done);
            over.store(true, Ordering::Relaxed);
            outcome
        });
        let mut told = Instant::now();
        while !over.load(Ordering::Relaxed) && context.interrupt.sleep(LOOK).is_ok() {
            for (seen, memory) in seen.iter_mut().zip(ends.memory()) {
                seen.memory.extend(memory);
            }
            if told.elapsed() > Duration::from_secs(20) {
                told = Instant::now();
                let (done, each) = (done.load(Ordering::Relaxed), start.elapsed().as_secs_f64());
                let left = count.saturating_sub(done) as f64 * each / done.max(1) as f64;
                eprintln!("{done} of {count} connections over {carrier}, about {left:.0} s left");
            }
        }
        running.join()
    });
    context.interrupt.check()?;
    ends.check_alive()?;
    let outcome = outcome.map_err(|_| MeasureError::Unexpected("the clients stopped".into()))??;
    let after = settled(context, &ends, Some(idle))?;
    for (seen, files) in seen.iter_mut().zip(after) {
        seen.files[1] = files;
    }
    let rows = ["remote", "ground"].into_iter().zip(&seen);
    Ok(rows.map(|(end, seen)| judged(end, carrier, count, start.elapsed(), &outcome, seen)).collect())
}

/// The open files of both ends, once there are as few as there were (`before`), or none has been closed for a while.
fn settled(context: &Context, ends: &Ends, before: Option<[usize; 2]>) -> Result<[usize; 2], MeasureError> {
    let deadline = Instant::now() + SETTLE;
    let mut last = ends.open_files();
    loop {
        context.interrupt.sleep(2 * LOOK)?;
        let now = ends.open_files();
        let is_down =
            before.map_or(now == last, |before| now.iter().zip(before).all(|(now, then)| *now <= then));
        if is_down || Instant::now() > deadline {
            return Ok(now);
        }
        last = now;
    }
}

fn judged(end: &str, carrier: &str, count: u64, time: Duration, outcome: &Outcome, seen: &Seen) -> Row {
    let [early, late] = [1, 4].map(|fifth| median_of_fifth(&seen.memory, fifth));
    let growth = late.0 as f64 / early.0.max(1) as f64;
    let Outcome { done, failed: (failed, why) } = outcome;
    let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let [before, after] = seen.files;
    Row::judged(
        format!("1,000,000 connections in sequence, {carrier}, {end}"),
        format!(
            "{done} in {:.0} s, {failed} failed{why}, {:.1} → {:.1} MB, {before} → {after} files",
            time.as_secs_f64(),
            early.0 as f64 / 1e6,
            late.0 as f64 / 1e6
        ),
        format!("none failed, memory ≤ {GROWTH} × that of the second fifth, no more files"),
        *failed == 0
            && *done >= CONNECTIONS.max(count)
            && early.0 > 0
            && growth <= GROWTH
            && (1..=before).contains(&after),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn growth_failures_and_fewer_connections_do_not_pass() {
        let verdict = |done, failed: u64, memory: [u64; 2], files| {
            let memory = (0..100).map(|at| Bytes(memory[at / 50])).collect();
            let outcome = Outcome { done, failed: (failed, None) };
            judged("ground", "quic", 1, Duration::ZERO, &outcome, &Seen { memory, files }).verdict
        };
        assert_eq!(verdict(CONNECTIONS, 0, [1000, 1030], [20, 20]), Verdict::Pass);
        for (done, failed, memory, files) in [
            (CONNECTIONS - 1, 0, [1000, 1000], [20, 20]),
            (CONNECTIONS, 1, [1000, 1000], [20, 20]),
            (CONNECTIONS, 0, [1000, 1031], [20, 20]),
            (CONNECTIONS, 0, [0, 0], [20, 20]),
            (CONNECTIONS, 0, [1000, 1000], [20, 21]),
            (CONNECTIONS, 0, [1000, 1000], [20, 0]),
        ] {
            assert_eq!(
                verdict(done, failed, memory, files),
                Verdict::Miss,
                "{done} {failed} {memory:?} {files:?}"
            );
        }
    }
}
