//! How long a plan will take, roughly: what is known of a load before it is made. Pure.

use std::time::Duration;

use farhop_compare::Variant;
use farhop_loader::{Handshake, Persistence, Protocol};
use farhop_orbit::{OnDemand, Supply};

use crate::bench::is_random;
use crate::plan::{Cell, Client, LinkSpec, PageKind, PageSpec, Plan, Through, VariantSpec};
use crate::read::rate_of;

/// Bringing a scene up: namespaces, origins, the link.
const SCENE: Duration = Duration::from_secs(1);
/// Measuring its link, once for each.
const CALIBRATION: Duration = Duration::from_secs(6);
/// Starting both ends, and ending them.
const ENDS: Duration = Duration::from_secs(1);
/// Starting a program of others.
const PEER: Duration = Duration::from_secs(2);
/// Starting a browser and looking at what it loaded.
const BROWSER: Duration = Duration::from_secs(6);
/// What a server sends at once: ten segments (RFC 6928).
const INITIAL_WINDOW: u64 = 14_600;
/// Where chance is in the link, loads take longer by about this.
const WITH_CHANCE: f64 = 1.3;

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
    let cell = |cell: &Cell| {
        let (link, variant) = (&plan.links[cell.link], &plan.variants[cell.variant]);
        load(&plan.pages[cell.page], link, variant).min(plan.timeout) + around(link, variant)
    };
    let cells = plan.cells();
    let round: Duration = cells.iter().map(cell).sum();
    // Scenes come up for each link in each repetition, but where chance is in it for each load.
    let scenes = plan.links.iter().filter(|link| !is_random(&link.profile)).count() as u32;
    let once = CALIBRATION * plan.links.len() as u32;
    let runs = [plan.runs.least, plan.runs.most];
    Estimate {
        loads: runs.map(|runs| cells.len() as u64 * u64::from(runs)),
        time: runs.map(|runs| once + (round + SCENE * scenes) * runs),
    }
}

/// What belongs to a load besides the load.
fn around(link: &LinkSpec, variant: &VariantSpec) -> Duration {
    // Nothing is on the link before it, and everything has crossed it after.
    let pause = link.profile.rtt() * 2;
    let client = if variant.client == Client::Loader { Duration::ZERO } else { BROWSER };
    let scene = if is_random(&link.profile) { SCENE } else { Duration::ZERO };
    let through = match variant.through {
        Through::Direct => Duration::ZERO,
        Through::Farhop { .. } => ENDS,
        Through::Peer(_) => PEER,
    };
    pause + client + scene + through
}

/// Round trips and bytes: what the protocol needs, roughly.
fn load(page: &PageSpec, link: &LinkSpec, variant: &VariantSpec) -> Duration {
    let (objects, bytes) = weight(page);
    let settings = &variant.settings;
    let parallel = settings.connections as u64;
    let is_secure = settings.handshake != Handshake::Plain
        || matches!(settings.protocol, Protocol::Http2(_) | Protocol::Http3);
    let rtt = link.profile.rtt() + asked_for(link);
    let way = match page.kind {
        PageKind::Upload(_) => &link.profile.return_,
        _ => &link.profile.forward,
    };
    let rate = rate_of(way.rate).map(|rate| rate.max(1.0) / 8.0);
    let rounds = match (&variant.through, settings.protocol) {
        (Through::Farhop { variant, caught: false, .. }, _) if bundles(*variant) => 1,
        (_, Protocol::Http2(_) | Protocol::Http3) => 1 + objects.div_ceil(settings.streams as u64),
        (_, Protocol::Http1(Persistence::NonPersistent)) => {
            (if is_secure { 3 } else { 2 }) * (1 + objects.div_ceil(parallel))
        }
        (_, Protocol::Http1(persistence)) => {
            let depth = if let Persistence::Pipelined(depth) = persistence { depth as u64 } else { 1 };
            1 + objects.div_ceil(parallel * depth)
        }
    };
    // The name, the connection, the handshake; Farhop's carrier is up.
    let begin = match &variant.through {
        Through::Farhop { caught: false, .. } => u64::from(is_secure),
        _ => 2 + u64::from(is_secure),
    };
    // A single connection grows until it fills the path, one round trip for each doubling.
    let growing = match (&variant.through, settings.protocol, rate) {
        (Through::Direct, Protocol::Http2(_) | Protocol::Http3, Some(rate)) => {
            let path = (rate * rtt.as_secs_f64()).min(bytes as f64);
            (path / INITIAL_WINDOW as f64).log2().max(0.0)
        }
        _ => 0.0,
    };
    let chance = if is_random(&link.profile) { WITH_CHANCE } else { 1.0 };
    let sending = rate.map_or(0.0, |rate| bytes as f64 / rate);
    let rounds = (rounds + begin) as f64 + growing;
    Duration::from_secs_f64(((rtt.as_secs_f64() * rounds + sending) * chance).min(1e6))
}

/// Whether ground brings what a page names unasked.
fn bundles(variant: Variant) -> bool {
    matches!(variant, Variant::Farhop | Variant::FarhopHttp | Variant::FarhopIdentity | Variant::FarhopHttpep)
}

/// What each round trip waits for capacity that is not given without being asked for.
fn asked_for(link: &LinkSpec) -> Duration {
    match &link.profile.return_.supply {
        Supply::OnDemand(on_demand) => {
            let OnDemand { control_round, superframe, entitlement, .. } = &**on_demand;
            if entitlement.cra.0 > 0 || entitlement.fca { *superframe } else { *control_round + *superframe }
        }
        _ => Duration::ZERO,
    }
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
