//! Single loads in a browser, over a scene that someone else brought up and ways that someone else opened: what plans need
//! beside their own loader. Judges every byte as comparisons do; sums nothing up.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use farhop_report::Waterfall;
use farhop_testbed::{LoadRecord, Place};
use farhop_workload::browser::{Browser, Engine, Film, Order, PageLoad, Prepared};
use farhop_workload::npm;
use farhop_workload::origins::site::{Asset, Site};
use farhop_workload::pages::Page;

use crate::check::{Sites, check};
use crate::falls::waterfall;
use crate::interrupt::Ended;
use crate::limit::{Smallest, used};
use crate::scene::Scene;
use crate::settle::{opened, quiet_link};
use crate::{CompareError, Variant};

/// A browser, and what every site of a scene has to give.
#[derive(Debug)]
pub struct Browsing {
    browser: Browser,
    sites: Sites,
}

/// One load to be made.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The page.
    pub page: &'a Page,
    /// Which servers are asked and what the browser may speak.
    pub variant: Variant,
    /// Whether over HTTPS.
    pub secure: bool,
    /// The proxy, where there is one.
    pub proxy: Option<SocketAddr>,
    /// When it is given up.
    pub timeout: Duration,
    /// Whether it is filmed: needs time of the browser's own.
    pub filmed: bool,
}

/// What a load gave.
#[derive(Debug)]
pub struct Browsed {
    /// As the browser tells it; `load_ms` is none where the document did not come.
    pub load: PageLoad,
    /// What the link saw.
    pub record: LoadRecord,
    /// Connections over TCP that the client's machine began until the load was over.
    pub connections: Option<u64>,
    /// What was wrong, one line each.
    pub faults: Vec<String>,
    /// Resources that came and could not be compared: the browser kept no byte of them.
    pub unseen: u64,
    /// Resource by resource.
    pub waterfall: Waterfall,
    /// What it looked like, where it was filmed.
    pub film: Option<Film>,
    /// The files that the page was made of.
    used: Vec<Arc<Asset>>,
}

impl Browsed {
    /// Bytes that any way has to bring for a page that loaded so, each file once in its smallest known encoding: what DESIGN.md's
    /// limit counts.
    pub fn least_bytes<'a>(loads: impl IntoIterator<Item = &'a Browsed>) -> u64 {
        let mut smallest = Smallest::default();
        used(loads.into_iter().flat_map(|load| &load.used)).iter().map(|asset| smallest.size(asset)).sum()
    }
}

impl Browsing {
    /// A browser of this machine, for the sites of `scene`.
    ///
    /// # Errors
    /// There is none, its driver cannot be had, or a folder cannot be read.
    pub fn of(scene: &Scene, engine: Engine) -> Result<Browsing, CompareError> {
        Ok(Browsing { browser: browser(engine)?, sites: sites(scene)? })
    }

    /// Loads a page once, everything cold.
    ///
    /// # Errors
    /// The browser could not be run, or the user wants to stop. A page that does not load is a result.
    pub fn load(&self, scene: &Scene, visit: &Wanted<'_>) -> Result<Browsed, CompareError> {
        let Wanted { page, variant, .. } = *visit;
        let host = page.sites.first().map(|site| site.host.as_str()).unwrap_or_default();
        let scheme = if visit.secure { "https" } else { "http" };
        let film = visit.filmed.then(tempfile::tempdir).transpose();
        let film = film.map_err(CompareError::file(std::env::temp_dir()))?;
        let order = Order {
            proxy: visit.proxy.map(|proxy| proxy.to_string()),
            http2: variant.http2(),
            http3: match variant {
                Variant::DirectH3 => page.sites.iter().map(|site| site.host.clone()).collect(),
                _ => Vec::new(),
            },
            looked_up_as: scene.looked_up_as(variant),
            spki: Some(scene.ready.spki.clone()),
            authority: scene.trusted_for(variant),
            timeout: visit.timeout,
            idle: Duration::from_millis(800) + scene.testbed.link().profile().rtt(),
            film: film.as_ref().map(|folder| folder.path().to_path_buf()),
            pauses: true,
            ..Order::new(format!("{scheme}://{host}{}", page.entry))
        };
        let prepared = self.browser.prepare(&order)?;
        scene.testbed.link().take_record();
        let seen = browse(scene, prepared, Place::Client, visit.timeout)?;
        let (mut load, record) = (seen.load, seen.record);
        let mut faults = Vec::new();
        if let Some(failure) = load.document_failure() {
            load.load_ms = None; // an error page is no page, however quickly it loads
            faults.push(failure);
        }
        faults.extend(load.errors.iter().cloned());
        if load.load_ms.is_none() && faults.is_empty() {
            faults.push("the load event did not come".into());
        }
        let checked = check(&self.sites, &load, variant.may_recode());
        faults.extend(checked.bad);
        let waterfall = waterfall(&load, &std::collections::HashMap::new());
        let film = film.as_ref().zip(load.began_ms).map(|(folder, began)| read(folder.path(), began));
        Ok(Browsed {
            load,
            record,
            connections: seen.connections,
            faults,
            unseen: checked.unseen,
            waterfall,
            film: film.transpose()?,
            used: checked.used,
        })
    }
}

fn read(folder: &Path, began_ms: f64) -> Result<Film, CompareError> {
    Film::read(folder, began_ms).map_err(|error| CompareError::file(folder)(std::io::Error::other(error)))
}

/// A browser of this machine, its driver fetched where it is missing.
pub(crate) fn browser(engine: Engine) -> Result<Browser, CompareError> {
    let browser = Browser::of(engine, npm::cache_folder());
    // Looked for first: the library is fetched for nobody else.
    if !browser.executable.exists() {
        let missing = std::io::Error::new(std::io::ErrorKind::NotFound, "there is no such browser");
        return Err(CompareError::file(&browser.executable)(missing));
    }
    if engine == Engine::Chromium {
        npm::ensure(&browser.node, &[npm::PLAYWRIGHT])?;
    }
    Ok(browser)
}

/// What every site of a scene has to give, read through the code that serves it.
pub(crate) fn sites(scene: &Scene) -> Result<Sites, CompareError> {
    let mut sites = Sites::new();
    for origin in scene.spec.origins.iter().filter(|origin| origin.dns_name.is_none()) {
        let site = Site::open(&origin.folder).map_err(CompareError::file(&origin.folder))?;
        sites.insert(origin.name.clone(), Arc::new(site));
    }
    Ok(sites)
}

/// A load as it was seen from both sides.
pub(crate) struct Visited {
    pub(crate) load: PageLoad,
    /// What the link saw until it was quiet after the load. What the browser does while it is looked at and when it ends is
    /// none of the load.
    pub(crate) record: LoadRecord,
    /// Connections over TCP that were begun where the browser ran.
    pub(crate) connections: Option<u64>,
}

/// Beyond a page's own time: starting the browser and waiting for idleness, and looking at bodies.
const STARTING: Duration = Duration::from_secs(60);
const LOOKING: Duration = Duration::from_secs(120);

/// Runs a load that is made ready and whose order [pauses](Order::pauses), in the namespace of `place`.
pub(crate) fn browse(
    scene: &Scene,
    prepared: Prepared,
    place: Place,
    timeout: Duration,
) -> Result<Visited, CompareError> {
    let inside = scene.testbed.namespace(place);
    let before = opened(inside);
    let mut process = scene.testbed.spawn_in(place, prepared.command()?)?;
    let mut connections = None;
    let mut visit = || -> Result<(LoadRecord, Ended), CompareError> {
        let patience = timeout + STARTING;
        let ended = scene.interrupt.wait_until(&mut process, patience, &|| prepared.is_loaded())?;
        let record = quiet_link(scene)?;
        connections = opened(inside).zip(before).map(|(now, before)| now.saturating_sub(before));
        if ended != Ended::SoFar {
            return Ok((record, ended));
        }
        prepared.look()?;
        Ok((record, scene.interrupt.wait(&mut process, LOOKING)?))
    };
    let visited = visit();
    if !matches!(visited, Ok((_, Ended::Exited))) {
        // Its browser left the group: only itself can close it well.
        let _ = process.terminate();
        for _ in 0..300 {
            if matches!(process.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let (record, _) = visited?;
    drop(process);
    let load = prepared.finish()?;
    // What the driver counts has none of its own connections in it.
    let connections = load.connections.or(connections);
    quiet_link(scene)?; // its connections' ends are none of the next load
    Ok(Visited { load, record, connections })
}
