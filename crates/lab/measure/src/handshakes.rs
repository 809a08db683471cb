//! What an intercepted handshake costs at the remote: the time that the first one with a host adds, and how many of them a
//! core makes in a second.

use std::io;
use std::time::{Duration, Instant};

use farhop_compare::{Besides, Ends, Variant};
use farhop_orbit::Profile;
use farhop_workload::pages::Site;

use crate::group::Context;
use crate::live::{inside, scene};
use crate::visitor::Visitor;
use crate::{MeasureError, Row};

/// Hosts that nobody has been to: each first handshake needs a leaf of its own.
const HOSTS: usize = 20;
/// Handshakes for the rate, and how many are under way at a time.
const HANDSHAKES: usize = 4000;
const AT_A_TIME: usize = 8;
/// The bounds.
const FIRST: Duration = Duration::from_millis(5);
const PER_CORE: f64 = 2000.0;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let sites = (0..HOSTS).map(|number| Site::new(host(number), folder.path())).collect();
    let scene = scene(context, &profile, sites, Besides::default())?;
    let ends = Ends::start(scene.stage(), Variant::Farhop)?;
    let own = scene.interception.as_ref().map(|own| own.certificate.clone()).unwrap_or_default();
    let visitor = Visitor::through(ends.proxy, &own).map_err(MeasureError::system("a CA's certificate"))?;
    let mut firsts = inside(&scene, || within(firsts(&visitor)))?;
    firsts.sort();
    context.interrupt.check()?;

    // Nobody has each handshake told where it is not measured.
    ends.stop_listening();
    let computed = || ends.computed()[0].unwrap_or_default();
    let mut courses = Vec::new();
    for _ in 0..context.runs.unwrap_or(5).max(1) {
        context.interrupt.check()?;
        let (before, start) = (computed(), Instant::now());
        inside(&scene, || within(many(&visitor)))?;
        courses.push((computed().saturating_sub(before), start.elapsed()));
    }
    courses.sort();
    let (spent, taken) = courses[courses.len() / 2];
    let rate = HANDSHAKES as f64 / spent.as_secs_f64().max(1e-9);
    let middle = firsts.get(firsts.len() / 2).copied().unwrap_or(Duration::MAX);
    let worst = firsts.last().copied().unwrap_or(Duration::MAX);
    Ok(vec![
        Row::judged(
            "first intercepted handshake with a host",
            format!(
                "{:.1} ms (median of {HOSTS}, the client's part and CONNECT included; {:.1} at most)",
                ms(middle),
                ms(worst)
            ),
            "< 5 ms",
            middle < FIRST,
        ),
        Row::judged(
            "intercepted handshakes, the remote's core",
            format!(
                "{rate:.0} per second of it ({HANDSHAKES} in {:.1} s, {:.1} s of the core; median of {})",
                taken.as_secs_f64(),
                spent.as_secs_f64(),
                courses.len()
            ),
            format!("≥ {PER_CORE:.0}"),
            rate >= PER_CORE,
        ),
    ])
}

fn host(number: usize) -> String {
    format!("h{number}.handshakes.test")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// On a thread at the user's end.
fn within<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// How long CONNECT and handshake take, host by host. A request afterwards shows that the client means it: one that always
/// leaves after the handshake is taken for one that does not trust it, and passed through.
async fn firsts(visitor: &Visitor) -> io::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for number in 0..HOSTS {
        let start = Instant::now();
        drop(visitor.secure(&host(number), &["h2", "http/1.1"]).await?);
        times.push(start.elapsed());
        visitor.get(&host(number), "/").await?;
    }
    Ok(times)
}

/// Handshakes one after the other, several at a time.
async fn many(visitor: &Visitor) -> io::Result<()> {
    let some = |first: usize| async move {
        for number in (first..HANDSHAKES).step_by(AT_A_TIME) {
            drop(visitor.secure(&host(number % HOSTS), &["h2", "http/1.1"]).await?);
        }
        Ok::<_, io::Error>(())
    };
    futures_util::future::try_join_all((0..AT_A_TIME).map(some)).await.map(drop)
}
