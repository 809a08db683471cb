//! A page whose ground dies in the middle of it and comes back a while later: what the browser makes of that.

use std::time::{Duration, Instant};

use farhop_orbit::Profile;
use farhop_testbed::Place;
use farhop_workload::browser::Order;

use crate::bench::Bench;
use crate::check::check;
use crate::compare::{Experiment, Plan, Progress};
use crate::demo::build;
use crate::ends::Ends;
use crate::interrupt::Interrupt;
use crate::{CompareError, Variant};

/// What became of the page.
#[derive(Debug)]
pub struct Restarted {
    /// Resources equal to the folder's.
    pub right: u64,
    /// What was wrong, error pages included: one line each.
    pub wrong: Vec<String>,
    /// Load time in seconds, the outage included; none when the load event did not come.
    pub plt_s: Option<f64>,
    /// Bytes that had crossed towards the terminal when ground was killed, and at the end.
    pub crossed: [u64; 2],
}

/// Loads the page of this name through Farhop over `profile`, kills ground with SIGKILL once `after` bytes have crossed
/// towards the terminal, and starts it again after `pause`.
///
/// # Errors
/// See [`CompareError`]; a page that does not load is a result.
pub fn restart_mid_page(
    name: &str,
    profile: &Profile,
    after: u64,
    pause: Duration,
    interrupt: Interrupt,
    progress: &mut Progress<'_>,
) -> Result<Restarted, CompareError> {
    let folder = tempfile::tempdir().map_err(CompareError::file(std::env::temp_dir()))?;
    let pages = build(&[name.to_owned()], folder.path().to_path_buf(), &interrupt, progress)?;
    let timeout = Duration::from_secs(120);
    let plan = Plan { pages, variants: vec![Variant::Farhop], runs: 1, timeout, tls: false };
    let experiment = Experiment { profile: profile.clone(), seed: 1, plan };
    let bench = Bench::up(&experiment, interrupt, progress)?;
    let mut ends = Ends::start(bench.stage(), Variant::Farhop)?;
    let page = &experiment.plan.pages[0];
    let order = Order {
        proxy: Some(ends.proxy.to_string()),
        timeout,
        ..Order::new(format!("http://{}{}", page.sites[0].host, page.entry))
    };
    let prepared = bench.browser.prepare(&order)?;
    let link = bench.testbed.link();
    link.take_record();
    let crossed = || link.record().forward.counters.delivered.bytes.0;
    let mut browser = bench.testbed.spawn_in(Place::Client, prepared.command()?)?;
    let deadline = Instant::now() + Duration::from_secs(60);
    while crossed() < after && Instant::now() < deadline {
        bench.interrupt.sleep(Duration::from_millis(2))?;
    }
    let at_death = crossed();
    ends.kill_ground()?;
    progress(&format!("ground killed after {at_death} bytes, back in {} s", pause.as_secs()));
    bench.interrupt.sleep(pause)?;
    ends.restart_ground(bench.stage())?;
    bench.interrupt.wait(&mut browser, Duration::from_secs(240))?;
    let at_end = crossed();
    ends.check_alive()?;
    drop(browser);
    let load = prepared.finish()?;
    let checked = check(&bench.sites, &load, false);
    let mut wrong = checked.bad;
    wrong.extend(load.errors);
    Ok(Restarted {
        right: checked.ok,
        wrong,
        plt_s: load.load_ms.map(|ms| ms / 1e3),
        crossed: [at_death, at_end],
    })
}
