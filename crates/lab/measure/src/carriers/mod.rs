//! A thousand carriers to one ground: what each takes while it is idle, over QUIC and over TCP, and small pages over all of them
//! for five minutes, in which nothing may fail and nothing grow.

mod visitors;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use farhop_compare::{Ends, Keys, Stage, Variant, resident};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Running, Testbed};
use farhop_units::Bytes;

use crate::group::Context;
use crate::local::farhop;
use crate::{MeasureError, Row};
use visitors::{Course, Outcome, site, visit};

/// How many carriers; the environment may ask for fewer, which cannot pass.
const CARRIERS: u16 = 1000;
const FEWER: &str = "FARHOP_CARRIERS";
/// Where the first of the remotes listens, and the others on the ports after it.
const FIRST_PORT: u16 = 20_000;
/// What one may take at either end while it is idle.
const IDLE: Bytes = Bytes(256_000);
/// How long they may take to come up, all of them; and after that to settle.
const PATIENCE: Duration = Duration::from_secs(120);
const SETTLE: Duration = Duration::from_secs(5);
/// How long pages are loaded before memory counts, and how often then: longer than anything is kept that comes and goes with them
/// (heads that later ones refer to, two minutes after they were replaced), and so many that every page was seen, and each of the
/// 256 streams that may be open at a time was used: QUIC keeps what one took for the next of its number.
const WARM: Duration = Duration::from_secs(300);
const HURRIED: Duration = Duration::from_millis(4_500);
/// For how long they are then, how often over each carrier, and how often memory is looked at.
const COURSE: Duration = Duration::from_secs(300);
const PERIOD: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_secs(2);
/// Memory in the last of these minutes, as a multiple of what it was in the first of them: what an allocator makes of pages that
/// come and go is within this.
const GROWTH: f64 = 1.03;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let count = std::env::var(FEWER).ok().and_then(|text| text.parse().ok()).unwrap_or(CARRIERS);
    let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let testbed = Testbed::up(&profile, 1)?;
    let keys = Keys::make(folder.path())?;
    let stage = Stage {
        testbed: &testbed,
        folder: folder.path(),
        keys: &keys,
        interception: None,
        interrupt: &context.interrupt,
    };
    let mut rows = Vec::new();
    for carrier in ["quic", "tcp"] {
        let mut ends = Ends::start(stage, Variant::FarhopIdentity)?;
        let [_, before] = ends.memory();
        let remotes = fleet(stage, &mut ends, carrier, count)?;
        context.interrupt.sleep(SETTLE)?;
        let [_, after] = ends.memory();
        let ground = after.unwrap_or_default().0.saturating_sub(before.unwrap_or_default().0);
        for (end, bytes) in [("ground", ground), ("remote", resident(&remotes).unwrap_or_default().0)] {
            rows.push(idle(end, carrier, count, Bytes(bytes / u64::from(count.max(1)))));
        }
        if carrier == "quic" {
            rows.push(in_use(context, &testbed, &mut ends, &remotes, count)?);
        }
    }
    Ok(rows)
}

fn idle(end: &str, carrier: &str, count: u16, each: Bytes) -> Row {
    let whole = if end == "remote" { ", the remote around it included" } else { "" };
    Row::judged(
        format!("memory of an idle carrier at {end}, {carrier}"),
        format!("{:.0} KB, of {count}{whole}", each.0 as f64 / 1e3),
        format!("≤ {} KB", IDLE.0 / 1000),
        (1..=IDLE.0).contains(&each.0) && count >= CARRIERS,
    )
}

/// Starts so many remotes beside the one that runs, and waits until the carrier of each is up.
fn fleet(stage: Stage<'_>, ends: &mut Ends, carrier: &str, count: u16) -> Result<Running, MeasureError> {
    let mut command = farhop()?;
    let first = SocketAddr::from((stage.testbed.addresses.remote, FIRST_PORT));
    command.args(["lab", "remotes", "--config"]).arg(stage.folder.join("remote.toml"));
    command.args(["--set", &format!("carrier={carrier}"), "--first", &first.to_string()]);
    command.args(["--count", &count.to_string()]);
    let stderr = stage.folder.join("remotes.stderr");
    let mut remotes = farhop_compare::spawn(stage.testbed, Place::Remote, command, &stderr)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = ends.ground_status()?;
        let up = status["carriers"].as_array().map_or(0, Vec::len);
        if up > usize::from(count) {
            return Ok(remotes);
        }
        ends.check_alive()?;
        let ended = remotes.try_wait().ok().flatten();
        if ended.is_some() || Instant::now() > deadline {
            let said = farhop_compare::last_words(&stderr);
            return Err(MeasureError::Unexpected(format!("{up} of {count} carriers came up: {said}")));
        }
        stage.interrupt.sleep(Duration::from_millis(200))?;
    }
}

/// Loads pages over all of them and watches ground and the remotes.
fn in_use(
    context: &Context,
    testbed: &Testbed,
    ends: &mut Ends,
    remotes: &Running,
    count: u16,
) -> Result<Row, MeasureError> {
    let address = SocketAddr::from((testbed.addresses.origin(0), 80));
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let listening = testbed.namespace(Place::Origins).run(|| std::net::TcpListener::bind(address));
    let listener = listening.map_err(farhop_testbed::Error::from)?;
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let listener = listener.map_err(MeasureError::system("the origin's port"))?;
    let _origin = {
        let _inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener);
        site().serve_on(listener.map_err(MeasureError::system("the origin"))?)
    };
    let first = SocketAddr::from((testbed.addresses.remote, FIRST_PORT));
    let client = testbed.namespace(Place::Client);
    let course = Course {
        first,
        count,
        origin: address,
        length: WARM + COURSE,
        warm: WARM,
        hurried: HURRIED,
        period: PERIOD,
    };
    let mut samples = [Vec::new(), Vec::new()];
    let visited = std::thread::scope(|scope| {
        let visiting = scope.spawn(|| client.run(|| visit(&course, &context.interrupt)));
        // The visitors heed the user's wish themselves.
        let warm = Instant::now() + WARM;
        while !visiting.is_finished() && context.interrupt.sleep(LOOK).is_ok() {
            if Instant::now() > warm {
                samples[0].extend(ends.memory()[1]);
                samples[1].extend(resident(remotes));
            }
        }
        visiting.join()
    });
    context.interrupt.check()?;
    let visited = visited.map_err(|_| MeasureError::Unexpected("the visitors stopped".into()))?;
    let visited = visited.map_err(farhop_testbed::Error::from)?;
    let Outcome { pages, errors } = visited.map_err(MeasureError::system("the visitors"))?;
    ends.check_alive()?;
    let grown = samples.map(|samples| [0, 4].map(|fifth| median_of_fifth(&samples, fifth)));
    let is_steady = |[early, late]: [Bytes; 2]| early.0 > 0 && late.0 as f64 <= GROWTH * early.0 as f64;
    let why = errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    let [ground, remote] =
        grown.map(|[early, late]| format!("{:.1} → {:.1} MB", early.0 as f64 / 1e6, late.0 as f64 / 1e6));
    Ok(Row::judged(
        format!("{count} carriers to one ground, small pages for 5 minutes"),
        format!(
            "{pages} pages, {} errors{why}, ground {ground}, remotes {remote} in the last 5 minutes of 10",
            errors.len(),
        ),
        format!("no error, memory at the end ≤ {GROWTH} × that of their first"),
        errors.is_empty() && pages > 0 && grown.into_iter().all(is_steady) && count >= CARRIERS,
    ))
}

/// The middle one of one fifth of some samples, counted from 0.
pub(crate) fn median_of_fifth(samples: &[Bytes], fifth: usize) -> Bytes {
    let part = |fifth: usize| samples.len() * fifth / 5;
    let mut samples = samples[part(fifth)..part(fifth + 1)].to_vec();
    samples.sort();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_compared_by_fifths() {
        let samples: Vec<Bytes> = (0..100).map(Bytes).collect();
        assert_eq!((median_of_fifth(&samples, 1), median_of_fifth(&samples, 4)), (Bytes(30), Bytes(90)));
        assert_eq!(median_of_fifth(&[], 4), Bytes(0));
    }

    #[test]
    fn fewer_carriers_than_wanted_cannot_pass() {
        let verdict = |count, each| idle("ground", "quic", count, Bytes(each)).verdict;
        assert_eq!(verdict(1000, 256_000), crate::Verdict::Pass);
        assert_eq!(verdict(1000, 256_001), crate::Verdict::Miss);
        assert_eq!(verdict(999, 1_000), crate::Verdict::Miss);
        assert_eq!(verdict(1000, 0), crate::Verdict::Miss, "what was not measured does not pass");
    }
}
