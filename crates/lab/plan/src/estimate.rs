//! How long a plan will take, roughly: what is known of a load before it is made. Pure.

use std::time::Duration;

use farhop_loader::{Handshake, Persistence, Protocol};

use crate::plan::{Client, LinkSpec, PageKind, PageSpec, Plan, Through, VariantSpec};
use crate::read::rate_of;

/// Bringing a scene up and measuring its link, once for each link.
const SCENE: Duration = Duration::from_secs(15);
/// Starting both ends, letting promises lapse, and ending them.
const ENDS: Duration = Duration::from_secs(14);
/// Starting a program of others.
const PEER: Duration = Duration::from_secs(2);
/// Starting a browser and looking at what it loaded.
const BROWSER: Duration = Duration::from_secs(6);

/// From the fewest repetitions to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Loads, at least and at most.
    pub loads: [u64; 2],
    /// The time they take.
    pub time: [Duration; 2],
}

/// Adds up every cell.
pub fn estimate(plan: &Plan) -> Estimate {
    let round: Duration = plan
        .cells()
        .into_iter()
        .map(|cell| load(&plan.pages[cell.page], &plan.links[cell.link], &plan.variants[cell.variant]))
        .map(|time| time.min(plan.timeout))
        .zip(plan.cells())
        .map(|(time, cell)| time + around(&plan.links[cell.link], &plan.variants[cell.variant]))
        .sum();
    let cells = plan.cells().len() as u64;
    let runs = [plan.runs.least, plan.runs.most];
    // Scenes come up for each link in each repetition.
    let scenes = SCENE * plan.links.len() as u32;
    Estimate {
        loads: runs.map(|runs| cells * u64::from(runs)),
        time: runs.map(|runs| (round + scenes) * runs),
    }
}

/// What belongs to a load besides the load.
fn around(link: &LinkSpec, variant: &VariantSpec) -> Duration {
    let pause = link.profile.rtt() * 2;
    let client = if variant.client == Client::Loader { Duration::ZERO } else { BROWSER };
    match variant.through {
        Through::Direct => pause + client,
        Through::Farhop { .. } => pause + ENDS + client,
        Through::Peer(_) => pause + PEER + client,
    }
}

/// Round trips and bytes: what the protocol needs at least, slow start left out.
fn load(page: &PageSpec, link: &LinkSpec, variant: &VariantSpec) -> Duration {
    let (objects, bytes) = weight(page);
    let settings = &variant.settings;
    let parallel = settings.connections as u64;
    let rounds = match (&variant.through, settings.protocol) {
        (Through::Farhop { caught: false, .. }, _) => 2,
        (_, Protocol::Http2(_) | Protocol::Http3) => 1 + objects.div_ceil(settings.streams as u64),
        (_, Protocol::Http1(Persistence::NonPersistent)) => {
            let each = if settings.handshake == Handshake::Plain { 2 } else { 3 };
            each * (1 + objects.div_ceil(parallel))
        }
        (_, Protocol::Http1(persistence)) => {
            let depth = if let Persistence::Pipelined(depth) = persistence { depth as u64 } else { 1 };
            1 + objects.div_ceil(parallel * depth)
        }
    };
    // The name, the connection, the handshake.
    let begin = if settings.handshake == Handshake::Plain { 2 } else { 3 };
    let rtt = link.profile.rtt();
    let way = match page.kind {
        PageKind::Upload(_) => &link.profile.return_,
        _ => &link.profile.forward,
    };
    let sending = rate_of(way.rate).map_or(0.0, |rate| bytes as f64 * 8.0 / rate.max(1.0));
    rtt.saturating_mul(u32::try_from(rounds + begin).unwrap_or(u32::MAX))
        + Duration::from_secs_f64(sending.min(1e6))
}

/// Objects and bytes of a page, as far as they are known before it is built.
fn weight(page: &PageSpec) -> (u64, u64) {
    match &page.kind {
        PageKind::Made { objects, object, document } => {
            (u64::from(*objects), u64::from(*objects) * object.0 + document.0)
        }
        PageKind::Known(name) => match name.as_str() {
            "flags" => (250, 820_000),
            "photos" => (30, 310_000),
            name if name.starts_with("almanac-") => {
                let requests =
                    name.strip_prefix("almanac-").and_then(|count| count.parse().ok()).unwrap_or(80);
                (requests, requests * 36_000)
            }
            name => {
                let images = name.strip_prefix("httpep-").and_then(|count| count.parse().ok()).unwrap_or(40);
                (images, 2_000 + images * 10_000)
            }
        },
        PageKind::Folder(..) | PageKind::Recording(..) => (40, 1_000_000),
        PageKind::Upload(bytes) => (0, bytes.0),
    }
}
