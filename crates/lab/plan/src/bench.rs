//! Where the loads of a plan are made: a scene on the link that is wanted, both ends of Farhop where they are, and the loader
//! in the client's namespace.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use farhop_compare::{Besides, Browsing, CompareError, Interrupt, Peers, Scene};
use farhop_loader::{Handshake, PageGraph};
use farhop_orbit::{Leg, Loss, Profile, Supply};
use farhop_report::StudyLoad;
use farhop_testbed::{Fitness, fit};
use farhop_workload::browser::{BrowserError, Engine};
use farhop_workload::pages::Page;

use crate::attempt::Attempt;
use crate::course::Next;
use crate::error::PlanError;
use crate::journal::Run;
use crate::lanes::duration;
use crate::lasting::told_while_lasting;
use crate::measure::Measure;
use crate::own::{self, OwnServers};
use crate::pages;
use crate::plan::Plan;

/// Attempts at a load during which the link was late, and at measuring the link.
const ATTEMPTS: usize = 4;
/// What a reader must be told of a run without root.
const ROOTLESS: &str = "without root, in a user namespace: the link's threads have no priority, so that what is measured is indicative";
/// How finely figures over time are drawn: the study's samples.
const STEP: Duration = Duration::from_millis(100);

/// How long a load lasts before it is told of, and from then on again and again.
const LONG: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Bench<'a> {
    plan: &'a Plan,
    /// What happens meanwhile is told there.
    progress: &'a (dyn Fn(&str) + Sync),
    interrupt: Interrupt,
    peers: Peers,
    pages: Vec<Page>,
    /// In the clear, and over TLS.
    graphs: Vec<[Arc<PageGraph>; 2]>,
    scene: Option<OnLink>,
    /// Links that were measured, and what a reader must be told of those that no load has told of yet.
    measured: HashSet<usize>,
    notes: Vec<String>,
    told: HashSet<String>,
    _folder: tempfile::TempDir,
}

struct OnLink {
    link: usize,
    // Dropped before the namespaces that they live in.
    own: Option<OwnServers>,
    /// Browsers that variants want, or why there is none.
    browsing: BTreeMap<Engine, Result<Browsing, String>>,
    scene: Scene,
}

/// A load that was made, and what is drawn of it where it counts.
pub(crate) struct Made {
    pub(crate) run: Run,
    pub(crate) load: Option<StudyLoad>,
    /// Whether the link was late at the first attempt.
    pub(crate) was_late: bool,
    /// Whether it went wrong; not where this machine lacks something for it.
    pub(crate) has_failed: bool,
}

impl<'a> Bench<'a> {
    /// Builds every page. Needs no privileges yet.
    ///
    /// # Errors
    /// A page cannot be built.
    pub(crate) fn prepare(
        plan: &'a Plan,
        peers: Peers,
        interrupt: Interrupt,
        progress: &'a (dyn Fn(&str) + Sync),
    ) -> Result<Bench<'a>, PlanError> {
        let folder = tempfile::Builder::new().prefix("farhop-plan-").tempdir();
        let folder = folder.map_err(PlanError::file(std::env::temp_dir()))?;
        let built: Vec<Page> =
            plan.pages.iter().map(|page| pages::build(page, folder.path())).collect::<Result<_, _>>()?;
        let graph = |(page, spec), secure| Ok::<_, PlanError>(Arc::new(pages::graph(page, spec, secure)?));
        let both = |it| Ok([graph(it, false)?, graph(it, true)?]);
        let graphs = built.iter().zip(&plan.pages).map(both).collect::<Result<_, PlanError>>()?;
        Ok(Bench {
            plan,
            progress,
            interrupt,
            peers,
            pages: built,
            graphs,
            scene: None,
            measured: HashSet::new(),
            notes: Vec::new(),
            told: HashSet::new(),
            _folder: folder,
        })
    }

    /// Makes one load; a load that goes wrong is a run with faults.
    ///
    /// # Errors
    /// The testbed breaks, or the user wants to stop.
    pub(crate) fn load(&mut self, next: Next) -> Result<Made, PlanError> {
        let begin = Instant::now();
        let (cell, plan) = (next.cell, self.plan);
        let variant = &plan.variants[cell.variant];
        let graph =
            self.graphs[cell.page][usize::from(variant.settings.handshake != Handshake::Plain)].clone();
        let mut run = Run {
            page: plan.pages[cell.page].name.clone(),
            link: plan.links[cell.link].name.clone(),
            variant: variant.name.clone(),
            round: next.round,
            seed: next.seed,
            ..Run::default()
        };
        let (mut load, mut was_late, mut is_lacking) = (None, false, false);
        let (name, progress) = (format!("{} #{}", plan.in_words(cell), next.round + 1), self.progress);
        let lasting = |time: Duration| progress(&format!("{name}: not done after {}", duration(time)));
        for attempt in 1..=ATTEMPTS {
            self.scene(cell.link, next.seed)?;
            let page = &self.pages[cell.page];
            let Some(on) = &self.scene else { break }; // it was just brought up
            // The first load of each cell is drawn, and watched where figures over time are wanted.
            let is_first = next.round == 0;
            let watched = is_first && !plan.dynamics.is_empty();
            on.scene.testbed.link().watch(watched.then_some(STEP));
            let attempted = Attempt {
                scene: &on.scene,
                own: on.own.as_ref(),
                browsing: variant.engine().and_then(|engine| on.browsing.get(&engine)),
                peers: &self.peers,
                variant,
                page,
                graph: &graph,
                aliases: own::aliases(plan, variant, &self.pages)
                    .into_iter()
                    .chain(on.scene.looked_up_as(variant.servers()))
                    .chain(at_gateway(&on.scene, variant))
                    .collect(),
                filmed: plan.measures.contains(&Measure::SpeedIndex),
            };
            match told_while_lasting(LONG, &lasting, || attempted.make()) {
                Ok(Ok(made)) => {
                    run.late = !fit(&made.seen.record).is_fit();
                    was_late |= run.late;
                    if run.late && attempt < ATTEMPTS {
                        progress(&format!("{name}: the link was late, so it is loaded again"));
                        continue;
                    }
                    let value =
                        |measure: &Measure| Some((measure.name().to_owned(), measure.of(&made.seen)?));
                    run.values = plan.measures.iter().filter_map(value).collect();
                    run.series = made.seen.series();
                    load = is_first.then(|| made.load(&run.page, &run.link, &run.variant));
                    run.faults = made.faults;
                    self.notes.extend(made.notes);
                }
                Ok(Err(lacking)) => {
                    is_lacking = true;
                    run.faults = vec![lacking];
                }
                // What a program does wrong is its own, and no reason to end the others' runs.
                Err(PlanError::Compare(error)) if is_a_programs(&error) => {
                    run.faults = vec![error.to_string()]
                }
                Err(error) => return Err(error),
            }
            break;
        }
        let servers = self.scene.as_mut().map_or(Ok(()), |on| on.scene.check_servers());
        if let Err(error) = servers {
            // Nothing was to be measured without them. The next load finds others.
            self.scene = None;
            (run.values, run.series, is_lacking) = (BTreeMap::new(), None, false);
            run.faults = vec![error.to_string()];
        }
        run.notes = std::mem::take(&mut self.notes);
        run.notes.retain(|note| self.told.insert(note.clone()));
        run.took_s = (begin.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let load = load.filter(|_| run.counts());
        let has_failed = !run.counts() && !is_lacking;
        Ok(Made { run: run.in_brief(), load, was_late, has_failed })
    }

    /// The scene on this link. Where chance is in the link, each load has it from the seed on, so that every variant of a
    /// repetition meets the same one.
    fn scene(&mut self, link: usize, seed: u64) -> Result<(), PlanError> {
        let is_random = is_random(&self.plan.links[link].profile);
        // What stands on another link goes before the next comes up.
        let on = match self.scene.take().filter(|on| on.link == link && !is_random) {
            Some(on) => on,
            None => {
                let scene = self.bring_up(link, seed)?;
                let own = OwnServers::start(self.plan, &self.pages, &self.graphs, &scene)?;
                let engines: BTreeSet<Engine> =
                    self.plan.variants.iter().filter_map(crate::VariantSpec::engine).collect();
                let browsing = |engine| {
                    let made = Browsing::of(&scene, engine);
                    (engine, made.map_err(|error| format!("not present: {error}")))
                };
                let browsing = engines.into_iter().map(browsing).collect();
                OnLink { link, own, browsing, scene }
            }
        };
        self.scene = Some(on);
        Ok(())
    }

    fn bring_up(&mut self, link: usize, seed: u64) -> Result<Scene, PlanError> {
        let (plan, spec) = (self.plan, &self.plan.links[link]);
        let variants = plan.variants.iter().map(crate::VariantSpec::servers);
        let wanted = farhop_compare::Plan {
            pages: self.pages.clone(),
            variants: variants.collect(),
            runs: plan.runs.most,
            timeout: plan.timeout,
            tls: plan.variants.iter().any(|variant| variant.settings.handshake != Handshake::Plain),
        };
        let scene = Scene::up(
            &spec.profile,
            seed,
            &wanted,
            Besides {
                names: own::names(plan, &self.pages),
                terminals: spec.terminals - 1,
                gateway: plan.variants.iter().any(crate::VariantSpec::is_at_gateway),
                ..Besides::default()
            },
            self.interrupt.clone(),
        )?;
        if farhop_testbed::is_rootless() {
            self.notes.push(ROOTLESS.to_owned());
        }
        if self.measured.insert(link) {
            let mut calibration = scene.testbed.calibrate()?;
            for _ in 1..ATTEMPTS {
                if calibration.fitness().is_fit() {
                    break;
                }
                self.interrupt.check()?;
                calibration = scene.testbed.calibrate()?;
            }
            let conditions = scene.testbed.conditions();
            let conditions: Vec<String> =
                conditions.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
            self.notes.push(format!("testbed: {}", conditions.join("; ")));
            let unfit = match calibration.fitness() {
                Fitness::Fit => String::new(),
                Fitness::Unfit(reason) => format!("; off by more than 2 %: {reason}"),
            };
            self.notes
                .push(format!("{}: {calibration}{unfit}; servers: {}", spec.name, scene.ready.settings));
        }
        Ok(scene)
    }
}

/// What a variant looks up instead of each host where it asks the gateway.
fn at_gateway(scene: &Scene, variant: &crate::VariantSpec) -> Vec<(String, String)> {
    if variant.is_at_gateway() { scene.looked_up_at_gateway() } else { Vec::new() }
}

/// Whether a program failed that a load was made with; else it is this machine.
fn is_a_programs(error: &CompareError) -> bool {
    match error {
        CompareError::End { .. } | CompareError::Peer { .. } => true,
        CompareError::Browser(error) => {
            matches!(error, BrowserError::Failed { .. } | BrowserError::Result(_))
        }
        _ => false,
    }
}

/// Whether what crosses meets chance: losses, jitter, capacity on demand with others.
pub(crate) fn is_random(profile: &Profile) -> bool {
    let chance = |leg: &Leg| {
        leg.loss != Loss::NONE
            || !leg.jitter.is_zero()
            || leg.reordering.is_some()
            || matches!(leg.supply, Supply::OnDemand(_))
            || [&leg.before, &leg.after]
                .iter()
                .any(|on_ground| on_ground.loss != Loss::NONE || !on_ground.jitter.is_zero())
    };
    chance(&profile.forward) || chance(&profile.return_)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_wherever_packets_are_lost_or_delayed_by_it() {
        let plain = Profile::named("geo-hylas2").unwrap();
        assert!(!is_random(&plain));
        assert!(is_random(&plain.clone().with_loss(0.0, 0.01)));
        let mut on_ground = plain.clone();
        on_ground.forward.before.loss = Loss::Independent(0.01);
        let mut jitter = plain;
        jitter.return_.jitter = Duration::from_millis(2);
        assert!(is_random(&on_ground) && is_random(&jitter));
    }
}
