//! What all loads of a comparison share: the testbed with its link measured, the origins, the browser, a folder for
//! everything that is written. Nothing here knows variants or pages beyond their sites.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use farhop_orbit::Profile;
use farhop_testbed::{Calibration, Fitness, Place, Running, Testbed};
use farhop_workload::browser::Browser;
use farhop_workload::npm;
use farhop_workload::origins::site::Site;
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, await_ready};
use farhop_workload::pages::Page;

use crate::check::Sites;
use crate::ends::Keys;
use crate::ends::Stage;
use crate::interrupt::Interrupt;
use crate::{CompareError, Progress};

/// How often the link is measured before it is taken as it is.
const CALIBRATIONS: u32 = 3;

/// A testbed ready for loads. Dropping it takes everything down, processes first.
pub(crate) struct Bench {
    pub(crate) calibration: Calibration,
    pub(crate) ready: Ready,
    pub(crate) sites: Sites,
    pub(crate) browser: Browser,
    pub(crate) delays: HashMap<String, Duration>,
    pub(crate) interrupt: Interrupt,
    /// The identities of Farhop's ends.
    pub(crate) keys: Keys,
    /// What the origins saw.
    pub(crate) log: PathBuf,
    _origins: Running,
    pub(crate) testbed: Testbed,
    pub(crate) folder: tempfile::TempDir,
}

/// What a bench is made for.
pub(crate) struct Wanted<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) pages: &'a [Page],
    pub(crate) delays: HashMap<String, Duration>,
    pub(crate) seed: u64,
    pub(crate) interrupt: Interrupt,
}

impl Bench {
    /// Brings everything up and measures the link.
    ///
    /// # Errors
    /// No privileges, a host name used twice, a folder that cannot be read, a link that passes nothing.
    pub(crate) fn up(wanted: Wanted<'_>, progress: &mut Progress<'_>) -> Result<Bench, CompareError> {
        let node = npm::cache_folder();
        npm::ensure(&node, &[npm::PLAYWRIGHT])?;
        let folder = tempfile::Builder::new().prefix("farhop-lab-").tempdir();
        let folder = folder.map_err(CompareError::file(std::env::temp_dir()))?;
        wanted.interrupt.check()?;

        progress(&format!("bringing up the testbed on {}", wanted.profile.name));
        let testbed = Testbed::up(wanted.profile, wanted.seed)?;
        let spec = origins_spec(&wanted, &testbed, folder.path())?;
        let mut sites = Sites::new();
        for origin in &spec.origins {
            let site = Site::open(&origin.folder).map_err(CompareError::file(&origin.folder))?;
            sites.insert(origin.name.clone(), Arc::new(site));
        }
        let (origins, ready) = start_origins(&testbed, &spec, folder.path())?;
        wanted.interrupt.check()?;

        progress("measuring the link");
        let mut calibration = testbed.calibrate()?;
        for _ in 1..CALIBRATIONS {
            if calibration.fitness().is_fit() {
                break;
            }
            wanted.interrupt.check()?;
            calibration = testbed.calibrate()?;
        }
        progress(&calibration.to_string());
        if let Fitness::Unfit(reason) = calibration.fitness() {
            progress(&format!("the link is unfit: {reason}"));
        }
        progress(&format!("servers: {}", ready.settings));
        Ok(Bench {
            calibration,
            ready,
            sites,
            browser: Browser::new(node),
            delays: wanted.delays,
            interrupt: wanted.interrupt,
            keys: Keys::make(folder.path())?,
            log: spec.log.unwrap_or_default(),
            _origins: origins,
            testbed,
            folder,
        })
    }

    /// Where Farhop's ends run.
    pub(crate) fn stage(&self) -> Stage<'_> {
        Stage {
            testbed: &self.testbed,
            folder: self.folder.path(),
            keys: &self.keys,
            interrupt: &self.interrupt,
        }
    }

    /// The delay of the origin of this name.
    pub(crate) fn delay(&self, host: &str) -> Duration {
        self.delays.get(host).copied().unwrap_or_default()
    }

    /// The origins as the report names them.
    pub(crate) fn origins_in_words(&self) -> Vec<String> {
        let name = |origin: &farhop_workload::origins::Listening| {
            format!(
                "{} at {}, delay {} ms",
                origin.name,
                origin.http.ip(),
                self.delay(&origin.name).as_millis()
            )
        };
        self.ready.origins.iter().map(name).collect()
    }
}

/// Every site of every page, each at an address of its own.
fn origins_spec(wanted: &Wanted<'_>, testbed: &Testbed, folder: &Path) -> Result<OriginsSpec, CompareError> {
    let mut origins: Vec<OriginSpec> = Vec::new();
    for site in wanted.pages.iter().flat_map(|page| &page.sites) {
        if origins.iter().any(|origin| origin.name == site.host) {
            return Err(CompareError::Arguments(format!(
                "two sites are called {}: name one of them DIR=HOST",
                site.host
            )));
        }
        let number = u16::try_from(origins.len()).unwrap_or(u16::MAX);
        origins.push(OriginSpec {
            name: site.host.clone(),
            address: testbed.addresses.origin(number).into(),
            folder: site.folder.clone(),
            delay_ms: wanted.delays.get(&site.host).map_or(0, |delay| delay.as_millis() as u64),
        });
    }
    if let Some(host) = wanted.delays.keys().find(|host| !origins.iter().any(|origin| origin.name == **host))
    {
        return Err(CompareError::Arguments(format!(
            "no site is called {host}, so that it can have no delay"
        )));
    }
    Ok(OriginsSpec {
        origins,
        dns: Some((testbed.addresses.dns, 53).into()),
        http_port: 80,
        https_port: 443,
        ca: folder.join("ca.pem"),
        ready: folder.join("origins-ready.json"),
        log: Some(folder.join("origins.log")),
    })
}

fn start_origins(
    testbed: &Testbed,
    spec: &OriginsSpec,
    folder: &Path,
) -> Result<(Running, Ready), CompareError> {
    let path = folder.join("origins.json");
    let text = serde_json::to_string_pretty(spec).unwrap_or_default();
    std::fs::write(&path, text).map_err(CompareError::file(&path))?;
    let stderr = folder.join("origins.stderr");
    let mut command = this_program()?;
    command.args(["lab", "origins", "--spec"]).arg(&path);
    let mut running = spawn(testbed, Place::Origins, command, &stderr)?;
    // Large folders take a while to be hashed and compressed.
    let ready = await_ready(&spec.ready, Duration::from_secs(120), || matches!(running.try_wait(), Ok(None)));
    match ready {
        Ok(ready) => Ok((running, ready)),
        Err(reason) => Err(CompareError::Origins { reason, said: last_words(&stderr) }),
    }
}

/// The program that is running, to be run again as another part of the experiment.
pub(crate) fn this_program() -> Result<Command, CompareError> {
    Ok(Command::new(std::env::current_exe().map_err(CompareError::file("the running program"))?))
}

/// Starts a command at a place of the testbed with its standard error in a file.
pub(crate) fn spawn(
    testbed: &Testbed,
    place: Place,
    mut command: Command,
    stderr: &Path,
) -> Result<Running, CompareError> {
    let file = std::fs::File::create(stderr).map_err(CompareError::file(stderr))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    Ok(testbed.spawn_in(place, command)?)
}

/// The last line that a process wrote to its standard error.
pub(crate) fn last_words(stderr: &Path) -> String {
    let text = std::fs::read_to_string(stderr).unwrap_or_default();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}
