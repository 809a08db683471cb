//! What all loads of a comparison share: the scene with its link measured, the sites as their folders have them, the browser.
//! Nothing here knows variants or pages beyond their sites.

use std::ops::Deref;

use farhop_testbed::{Calibration, Fitness};
use farhop_workload::browser::{Browser, Engine};

use crate::browsing;
use crate::check::Sites;
use crate::interrupt::Interrupt;
use crate::scene::{Besides, Scene};
use crate::{CompareError, Experiment, Progress};

/// How often the link is measured before it is taken as it is.
const CALIBRATIONS: u32 = 3;

/// A scene ready for loads. Dropping it takes everything down.
pub(crate) struct Bench {
    pub(crate) calibration: Calibration,
    pub(crate) sites: Sites,
    pub(crate) browser: Browser,
    scene: Scene,
}

impl Deref for Bench {
    type Target = Scene;
    fn deref(&self) -> &Scene {
        &self.scene
    }
}

impl Bench {
    /// Brings everything up and measures the link.
    ///
    /// # Errors
    /// As [`Scene::up`]; the browser's driver cannot be had; the link passes nothing.
    pub(crate) fn up(
        experiment: &Experiment,
        interrupt: Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<Bench, CompareError> {
        let browser = browsing::browser(Engine::Chromium)?;
        progress(&format!("bringing up the testbed on {}", experiment.profile.name));
        let Experiment { profile, seed, plan } = experiment;
        let scene = Scene::up(profile, *seed, plan, Besides::default(), interrupt)?;
        let sites = browsing::sites(&scene)?;

        progress("measuring the link");
        let mut calibration = scene.testbed.calibrate()?;
        for _ in 1..CALIBRATIONS {
            if calibration.fitness().is_fit() {
                break;
            }
            scene.interrupt.check()?;
            calibration = scene.testbed.calibrate()?;
        }
        progress(&calibration.to_string());
        if let Fitness::Unfit(reason) = calibration.fitness() {
            progress(&format!("the link is unfit: {reason}"));
        }
        progress(&format!("servers: {}", scene.ready.settings));
        Ok(Bench { calibration, sites, browser, scene })
    }
}
