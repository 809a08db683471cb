//! What all loads of a comparison share: the testbed with its link measured, the origins, the browser, a folder for
//! everything that is written. Nothing here knows variants or pages beyond their sites.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use farhop_testbed::{Calibration, Fitness, Place, Running, Testbed};
use farhop_workload::browser::Browser;
use farhop_workload::npm;
use farhop_workload::origins::site::Site;
use farhop_workload::origins::{OriginSpec, Ready};

use crate::check::Sites;
use crate::ends::{Keys, Stage};
use crate::interrupt::Interrupt;
use crate::{CompareError, Experiment, Progress, origins};

/// How often the link is measured before it is taken as it is.
const CALIBRATIONS: u32 = 3;

/// A testbed ready for loads. Dropping it takes everything down, processes first.
pub(crate) struct Bench {
    pub(crate) calibration: Calibration,
    /// Every server of every site.
    pub(crate) origins: Vec<OriginSpec>,
    pub(crate) ready: Ready,
    pub(crate) sites: Sites,
    pub(crate) browser: Browser,
    pub(crate) interrupt: Interrupt,
    /// The identities of Farhop's ends.
    pub(crate) keys: Keys,
    /// What the origins saw.
    pub(crate) log: PathBuf,
    _serving: Running,
    pub(crate) testbed: Testbed,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    /// Brings everything up and measures the link.
    ///
    /// # Errors
    /// No privileges, a host name used twice, a folder that cannot be read, a link that passes nothing.
    pub(crate) fn up(
        experiment: &Experiment,
        interrupt: Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<Bench, CompareError> {
        let node = npm::cache_folder();
        npm::ensure(&node, &[npm::PLAYWRIGHT])?;
        let folder = tempfile::Builder::new().prefix("farhop-lab-").tempdir();
        let folder = folder.map_err(CompareError::file(std::env::temp_dir()))?;
        interrupt.check()?;

        progress(&format!("bringing up the testbed on {}", experiment.profile.name));
        let testbed = Testbed::up(&experiment.profile, experiment.seed)?;
        let spec = origins::spec(&experiment.plan, &testbed, folder.path())?;
        let mut sites = Sites::new();
        for origin in spec.origins.iter().filter(|origin| origin.dns_name.is_none()) {
            let site = Site::open(&origin.folder).map_err(CompareError::file(&origin.folder))?;
            sites.insert(origin.name.clone(), Arc::new(site));
        }
        let (serving, ready) = origins::start(&testbed, &spec, folder.path())?;
        interrupt.check()?;

        progress("measuring the link");
        let mut calibration = testbed.calibrate()?;
        for _ in 1..CALIBRATIONS {
            if calibration.fitness().is_fit() {
                break;
            }
            interrupt.check()?;
            calibration = testbed.calibrate()?;
        }
        progress(&calibration.to_string());
        if let Fitness::Unfit(reason) = calibration.fitness() {
            progress(&format!("the link is unfit: {reason}"));
        }
        progress(&format!("servers: {}", ready.settings));
        Ok(Bench {
            calibration,
            origins: spec.origins,
            ready,
            sites,
            browser: Browser::new(node),
            interrupt,
            keys: Keys::make(folder.path())?,
            log: spec.log.unwrap_or_default(),
            _serving: serving,
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

    /// The origins as the report names them.
    pub(crate) fn origins_in_words(&self) -> Vec<String> {
        self.origins.iter().map(origins::in_words).collect()
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
