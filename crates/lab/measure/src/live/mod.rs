//! The live web on `geo-hylas2`: WebSocket echoes, server-sent events, long polls, each through an intercepting Farhop and
//! directly, from the user's end of the link.

pub(crate) mod events;
mod framing;
pub(crate) mod socket;

use std::io;
use std::time::Duration;

use farhop_compare::{Besides, Ends, Plan, Scene, Variant};
use farhop_orbit::Profile;
use farhop_testbed::Place;
use farhop_workload::pages::{Page, Site};

use crate::group::Context;
use crate::visitor::{Visitor, on_this_thread};
use crate::{MeasureError, Row};

/// The site that does it all.
const HOST: &str = "live.test";
/// No step takes so long unless something hangs: the longest are thirty round trips in a row.
const PATIENCE: Duration = Duration::from_secs(90);
/// What may be added to what the path itself takes.
const ALLOWED: Duration = Duration::from_millis(5);

/// Both ways to the origin.
pub(crate) struct Ways {
    direct: Visitor,
    farhop: Visitor,
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let profile =
        Profile::named("geo-hylas2").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let half = profile.forward.delay;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let scene = scene(context, &profile, vec![Site::new(HOST, folder.path())], Besides::default())?;
    let ends = Ends::start(scene.stage(), Variant::Farhop)?;
    let ways = Ways::of(&scene, &ends)?;
    let mut rows = Vec::new();
    rows.extend(step(context, &scene, "WebSocket echoes", || socket::echoes(&ways))?);
    rows.push(step(context, &scene, "WebSocket messages in order", || socket::in_order(&ways.farhop))?);
    rows.push(step(context, &scene, "WebSocket framing", || framing::compared(&ways))?);
    rows.extend(step(context, &scene, "events and long polls", || events::rows(&ways, half))?);
    Ok(rows)
}

/// Says what is measured next and does it at the user's end.
fn step<T: Send, F: Future<Output = io::Result<T>>>(
    context: &Context,
    scene: &Scene,
    what: &str,
    work: impl FnOnce() -> F + Send,
) -> Result<T, MeasureError> {
    context.interrupt.check()?;
    eprintln!("{what}");
    let slow = || {
        let told = format!("{what}: not done after {} s; is the link or an end stuck?", PATIENCE.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, told)
    };
    inside(scene, || {
        on_this_thread(async { tokio::time::timeout(PATIENCE, work()).await.unwrap_or_else(|_| Err(slow())) })
    })
}

/// A scene with these sites over HTTPS, Farhop intercepting.
pub(crate) fn scene(
    context: &Context,
    profile: &Profile,
    sites: Vec<Site>,
    besides: Besides,
) -> Result<Scene, MeasureError> {
    let page = Page { name: HOST.into(), entry: "/".into(), sites };
    let plan = Plan {
        pages: vec![page],
        variants: vec![Variant::Farhop],
        runs: 1,
        timeout: Duration::from_secs(60),
        tls: true,
    };
    Ok(Scene::up(profile, 1, &plan, besides, context.interrupt.clone())?)
}

/// Does `work` on a thread at the user's end.
pub(crate) fn inside<T: Send>(
    scene: &Scene,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, MeasureError> {
    let done = scene.testbed.namespace(Place::Client).run(work).map_err(farhop_testbed::Error::from)?;
    done.map_err(MeasureError::system("the client"))
}

impl Ways {
    /// To the first origin of a scene.
    pub(crate) fn of(scene: &Scene, ends: &Ends) -> Result<Ways, MeasureError> {
        let nowhere = || MeasureError::Unexpected("the scene has no origin, or no CA of Farhop's".into());
        let origin = scene.ready.origins.first().map(|origin| origin.https).ok_or_else(nowhere)?;
        let own = scene.interception.as_ref().ok_or_else(nowhere)?;
        let failed = MeasureError::system("a CA's certificate");
        Ok(Ways {
            direct: Visitor::direct(origin, &scene.spec.ca).map_err(&failed)?,
            farhop: Visitor::through(ends.proxy, &own.certificate).map_err(&failed)?,
        })
    }

    fn each(&self) -> [&Visitor; 2] {
        [&self.direct, &self.farhop]
    }
}

/// The middle one of some times.
fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
