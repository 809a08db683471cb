//! Where the loads of a plan are made: a scene on the link that is wanted, both ends of Farhop where they are, and the loader
//! in the client's namespace.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farhop_compare::{Besides, CompareError, Ends, Interrupt, Scene, Tuning, Variant};
use farhop_loader::{Handshake, Loaded, Loader, Names, PageGraph, TcpConnector};
use farhop_orbit::{Leg, Loss, Profile, Supply};
use farhop_testbed::{Fitness, LoadRecord, Place, fit};
use farhop_workload::pages::Page;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::course::Next;
use crate::error::PlanError;
use crate::journal::Run;
use crate::own::{self, OwnServers};
use crate::pages;
use crate::plan::{Plan, Through, VariantSpec};

/// Attempts at a load during which the link was late, and at measuring the link.
const ATTEMPTS: usize = 4;
/// How often the user is asked whether it shall end.
const LOOK: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Bench<'a> {
    plan: &'a Plan,
    interrupt: Interrupt,
    pages: Vec<Page>,
    /// In the clear, and over TLS.
    graphs: Vec<[Arc<PageGraph>; 2]>,
    scene: Option<OnLink>,
    /// Links that were measured, and what a reader must be told of those that no load has told of yet.
    measured: HashSet<usize>,
    notes: Vec<String>,
    _folder: tempfile::TempDir,
}

struct OnLink {
    link: usize,
    // Dropped before the namespaces that they live in.
    own: Option<OwnServers>,
    scene: Scene,
}

impl<'a> Bench<'a> {
    /// Builds every page. Needs no privileges yet.
    ///
    /// # Errors
    /// A page cannot be built.
    pub(crate) fn prepare(plan: &'a Plan, interrupt: Interrupt) -> Result<Bench<'a>, PlanError> {
        let folder = tempfile::Builder::new().prefix("farhop-plan-").tempdir();
        let folder = folder.map_err(PlanError::file(std::env::temp_dir()))?;
        let built: Vec<Page> =
            plan.pages.iter().map(|page| pages::build(page, folder.path())).collect::<Result<_, _>>()?;
        let graphs = built
            .iter()
            .map(|page| Ok([Arc::new(PageGraph::of(page, false)?), Arc::new(PageGraph::of(page, true)?)]));
        let graphs = graphs.collect::<Result<_, PlanError>>()?;
        Ok(Bench {
            plan,
            interrupt,
            pages: built,
            graphs,
            scene: None,
            measured: HashSet::new(),
            notes: Vec::new(),
            _folder: folder,
        })
    }

    /// Makes one load; a load that goes wrong is a run with faults.
    ///
    /// # Errors
    /// The testbed breaks, or the user wants to stop.
    pub(crate) fn load(&mut self, next: Next) -> Result<Run, PlanError> {
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
        for attempt in 1..=ATTEMPTS {
            let aliases = own::aliases(plan, variant, &self.pages);
            let on = self.scene(cell.link, next.seed)?;
            match once(on, variant, &graph, aliases) {
                Ok((loaded, record)) => {
                    run.late = !fit(&record).is_fit();
                    if run.late && attempt < ATTEMPTS {
                        continue;
                    }
                    run.faults = loaded.faults();
                    let value = |measure: &crate::Measure| {
                        Some((measure.name().to_owned(), measure.of(&loaded, &record)?))
                    };
                    run.values = plan.measures.iter().filter_map(value).collect();
                }
                // What Farhop's own programs do wrong is theirs, and no reason to end the others' runs.
                Err(PlanError::Compare(error @ (CompareError::End { .. } | CompareError::Peer { .. }))) => {
                    run.faults = vec![error.to_string()];
                }
                Err(error) => return Err(error),
            }
            break;
        }
        run.notes = std::mem::take(&mut self.notes);
        run.took_s = (begin.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        Ok(run)
    }

    /// The scene on this link. Where chance is in the link, each load has it from the seed on, so that every variant of a
    /// repetition meets the same one.
    fn scene(&mut self, link: usize, seed: u64) -> Result<&OnLink, PlanError> {
        let is_random = is_random(&self.plan.links[link].profile);
        // What stands on another link goes before the next comes up.
        let on = match self.scene.take().filter(|on| on.link == link && !is_random) {
            Some(on) => on,
            None => {
                let scene = self.bring_up(link, seed)?;
                let own = OwnServers::start(self.plan, &self.pages, &self.graphs, &scene)?;
                OnLink { link, own, scene }
            }
        };
        Ok(self.scene.insert(on))
    }

    fn bring_up(&mut self, link: usize, seed: u64) -> Result<Scene, PlanError> {
        let (plan, spec) = (self.plan, &self.plan.links[link]);
        let variants = plan.variants.iter().map(|variant| match &variant.through {
            Through::Direct => Variant::DirectH1,
            Through::Farhop { variant, .. } => *variant,
        });
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
            Besides { names: own::names(plan, &self.pages), ..Besides::default() },
            self.interrupt.clone(),
        )?;
        if self.measured.insert(link) {
            let mut calibration = scene.testbed.calibrate()?;
            for _ in 1..ATTEMPTS {
                if calibration.fitness().is_fit() {
                    break;
                }
                self.interrupt.check()?;
                calibration = scene.testbed.calibrate()?;
            }
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

/// Whether what crosses meets chance: losses, jitter, capacity on demand with others.
fn is_random(profile: &Profile) -> bool {
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

/// One attempt, everything cold, Farhop's ends new.
fn once(
    on: &OnLink,
    variant: &VariantSpec,
    graph: &Arc<PageGraph>,
    aliases: HashMap<String, String>,
) -> Result<(Loaded, LoadRecord), PlanError> {
    let scene = &on.scene;
    let mut settings = variant.settings.clone();
    let mut ends = None;
    let interrupt = &scene.interrupt;
    if let Through::Farhop { variant, link, remote, ground } = &variant.through {
        let tuning = Tuning {
            link: link.clone(),
            remote: remote.clone(),
            ground: ground.clone(),
            ..Tuning::default()
        };
        let started = Ends::start_tuned(scene.stage(), *variant, &tuning)?;
        settings.proxy = Some((started.proxy.ip().to_string(), started.proxy.port()));
        // As the lab's own check has it: what is lossy by policy.
        settings.may_recode =
            matches!(variant, Variant::Farhop | Variant::FarhopHttp | Variant::FarhopHttpep);
        ends = Some(started);
    }
    let roots = roots(on)?;
    let connector = TcpConnector::new(Names::of((scene.testbed.addresses.dns, 53).into()).aliased(aliases));
    let loader = Loader::new(Arc::new(connector.anew()), roots)?;
    let client = scene.testbed.namespace(Place::Client);
    let pause = scene.testbed.link().profile().rtt() + LOOK;
    let inside = |what: &(dyn Fn() -> Result<Loaded, PlanError> + Sync)| {
        client.run(what).map_err(farhop_testbed::Error::from)?
    };
    if matches!(settings.handshake, Handshake::Resumed | Handshake::ZeroRtt) {
        inside(&|| {
            blocking(interrupt, async { loader.prime(graph, &settings).await.map(|()| Loaded::default()) })
        })?;
    }
    // Nothing is on the link when it begins, and everything has crossed it when it is read.
    interrupt.sleep(pause)?;
    scene.testbed.link().take_record();
    let cold = loader.over(Arc::new(connector.anew()));
    let loaded = inside(&|| blocking(interrupt, async { Ok(cold.load(graph, &settings).await) }))?;
    interrupt.sleep(pause)?;
    if let Some(ends) = &mut ends {
        ends.check_alive()?;
    }
    let record = scene.testbed.link().take_record();
    Ok((loaded, record))
}

/// Runs on this thread until it is done or the user wants to stop.
fn blocking(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<Loaded, farhop_loader::LoaderError>>,
) -> Result<Loaded, PlanError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(PlanError::file("the loader's runtime"))?;
    runtime.block_on(async {
        let stopped = async {
            while interrupt.check().is_ok() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            done = work => Ok(done?),
            () = stopped => Err(CompareError::Interrupted.into()),
        }
    })
}

/// The origins' CA, and that of the remote where it intercepts.
fn roots(on: &OnLink) -> Result<RootCertStore, PlanError> {
    let scene = &on.scene;
    let mut roots = RootCertStore::empty();
    let files =
        [Some(scene.spec.ca.as_path()), scene.interception.as_ref().map(|with| with.certificate.as_path())];
    for file in files.into_iter().flatten() {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| PlanError::file(file)(std::io::Error::other(error)))?;
        }
    }
    if let Some(own) = &on.own {
        let added = roots.add(own.certificate.clone());
        added.map_err(|error| PlanError::file("the servers' certificate")(std::io::Error::other(error)))?;
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PlanError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.map_err(|error| PlanError::file(file)(std::io::Error::other(error)))
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
