//! The course of a comparison: rounds of pages, rounds of variants, A/B/A/B, unfit loads repeated, everything summed up.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use farhop_orbit::Profile;
use farhop_report::{Calibration, Comparison, Leg, Link, PageResult, Servers};
use farhop_testbed::Fitness;
use farhop_workload::browser::PageLoad;
use farhop_workload::pages::Page;

use crate::bench::Bench;
use crate::interrupt::Interrupt;
use crate::limit::{PageLimit, Smallest};
use crate::load::{Last, Loader, Measured};
use crate::summary::{Gathered, summarise};
use crate::{CompareError, Variant};

/// Told, line by line, what is going on.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// A load that came to its load event, resource by resource.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// The page's name.
    pub page: &'a str,
    /// The way it was loaded.
    pub variant: Variant,
    /// Over the link; else over link `none`.
    pub is_far: bool,
    /// What the browser saw.
    pub load: &'a PageLoad,
    /// For each URL, request by request, whether its answer was there or on its way before it was asked for. Empty for
    /// direct loads.
    pub unasked: &'a HashMap<String, Vec<bool>>,
    /// A picture of the page (PNG), there until the next load.
    pub picture: Option<&'a Path>,
}

/// Shown every load.
pub type Watch<'a> = dyn FnMut(Loaded<'_>) + 'a;

/// Attempts at a load that is unfit: the first and three more.
const ATTEMPTS: u32 = 4;

/// What is loaded, how, how often.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The pages.
    pub pages: Vec<Page>,
    /// The ways.
    pub variants: Vec<Variant>,
    /// Loads of each page by each way.
    pub runs: u32,
    /// When a load is given up.
    pub timeout: Duration,
    /// Whether the sites are loaded over HTTPS, Farhop intercepting.
    pub tls: bool,
}

/// A whole comparison: the link, and what is loaded over it.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The link.
    pub profile: Profile,
    /// Decides which packets a lossy link loses.
    pub seed: u64,
    /// What is loaded.
    pub plan: Plan,
}

impl Experiment {
    /// Brings a testbed up, carries the plan out on it and takes it down. Needs root.
    ///
    /// # Errors
    /// See [`CompareError`]; a page that does not load is a result.
    pub fn carry_out(
        &self,
        interrupt: Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<Comparison, CompareError> {
        let bench = Bench::up(self, interrupt, progress)?;
        run(&bench, &self.plan, progress)
    }

    /// The same, with a picture of the page at the end of each load, and `watch` shown each.
    ///
    /// # Errors
    /// As [`carry_out`](Self::carry_out).
    pub fn carry_out_watched(
        &self,
        interrupt: Interrupt,
        progress: &mut Progress<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Comparison, CompareError> {
        let bench = Bench::up(self, interrupt, progress)?;
        let mut loader = Loader::new(&bench, self.plan.timeout);
        loader.pictures = true;
        run_with(loader, &self.plan, progress, watch)
    }
}

/// Carries a plan out on a bench.
///
/// # Errors
/// Something of the bench cannot be run, or the user wants to stop.
pub(crate) fn run(
    bench: &Bench,
    plan: &Plan,
    progress: &mut Progress<'_>,
) -> Result<Comparison, CompareError> {
    run_with(Loader::new(bench, plan.timeout), plan, progress, &mut |_| {})
}

fn run_with(
    mut loader: Loader<'_>,
    plan: &Plan,
    progress: &mut Progress<'_>,
    watch: &mut Watch<'_>,
) -> Result<Comparison, CompareError> {
    let bench = loader.bench;
    let profile = bench.testbed.link().profile();
    let mut notes = Vec::new();
    if let Fitness::Unfit(reason) = bench.calibration.fitness() {
        notes.push(format!("the link itself was off by more than 2 % when it was measured: {reason}"));
    }
    for (variant, program) in plan.variants.iter().filter_map(|variant| Some((variant, variant.lacks()?))) {
        let said = format!(
            "{}: not present: {program} is not installed (apt-get install {program})",
            variant.name()
        );
        progress(&said);
        notes.push(said);
    }
    let mut browser = None;
    let mut smallest = Smallest::default();
    let mut results = Vec::new();
    for page in &plan.pages {
        let mut gathered: Vec<Gathered> = plan.variants.iter().map(|_| Gathered::default()).collect();
        let mut reference = Vec::new();
        for round in 1..=plan.runs {
            let said = format!("{} {round}/{}", page.name, plan.runs);
            let mut over_none = loader.load_over_none(page)?;
            progress(&format!("{said} over link none: {}", in_words(&over_none)));
            if over_none.plt_s.is_some() {
                show(&loader, page, Variant::DirectH2, false, watch);
            }
            browser = browser.or_else(|| over_none.browser.take());
            reference.push(over_none);
            for (variant, gathered) in plan.variants.iter().zip(&mut gathered) {
                if variant.lacks().is_some() {
                    continue;
                }
                let progress = &mut |line: &str| progress(&format!("{said} {}: {line}", variant.name()));
                fit_load(&mut loader, page, *variant, gathered, &mut notes, progress, watch)?;
            }
        }
        let limit = PageLimit::of(&reference, page, &profile, &mut smallest);
        let rate = profile.forward.rate.map(|rate| rate.0);
        let mut variants = Vec::new();
        for (variant, gathered) in plan.variants.iter().zip(&gathered) {
            let own = limit.recoded(gathered.loads(), &mut smallest);
            let result = summarise(*variant, gathered, &own, rate);
            if result.unfit {
                let said = format!(
                    "{}, {}: no load was fit; the least late stands in, an indication only",
                    page.name, result.name
                );
                progress(&said);
                notes.push(said);
            }
            variants.push(result);
        }
        results.push(PageResult {
            page: page.name.clone(),
            entry: page.entry.clone(),
            limit_s: limit.parts.seconds(rate),
            limit: limit.parts,
            variants,
        });
    }
    notes.dedup();
    Ok(Comparison { link: conditions(bench, &profile, browser, notes), results })
}

/// Loads until a load counts, or says that none did.
pub(crate) fn fit_load(
    loader: &mut Loader<'_>,
    page: &Page,
    variant: Variant,
    gathered: &mut Gathered,
    notes: &mut Vec<String>,
    progress: &mut Progress<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), CompareError> {
    let who = format!("{}, {}", page.name, variant.name());
    for attempt in 1..=ATTEMPTS {
        let measured = loader.load(page, variant)?;
        progress(&in_words(&measured));
        for name in &measured.seen.strange_names {
            notes.push(format!("{who}: the name {name} was asked for across the link, which is no site's"));
        }
        let bad = &measured.checked.bad;
        for line in bad.iter().take(3) {
            notes.push(format!("{who}: {line}"));
        }
        if bad.len() > 3 {
            notes.push(format!("{who}: and {} more", bad.len() - 3));
        }
        let wrong = bad.len() as u64;
        let loaded = measured.plt_s.is_some();
        if loaded {
            show(loader, page, variant, true, watch);
        }
        let why = match (&measured.fitness, loaded) {
            (Fitness::Fit, true) => {
                gathered.counted.push(measured);
                return Ok(());
            }
            (Fitness::Unfit(reason), _) => format!("unfit, {reason}"),
            (Fitness::Fit, false) => {
                let said = measured.errors.first().map_or("no load event", String::as_str);
                gathered.bad_elsewhere = gathered.bad_elsewhere.max(1);
                format!("the page did not load, {said}")
            }
        };
        gathered.bad_elsewhere = gathered.bad_elsewhere.max(wrong);
        gathered.unfit(measured);
        let next = if attempt < ATTEMPTS { "repeated" } else { "given up" };
        progress(&format!("{why}: {next}"));
        notes.push(format!("{who}: a load was left out and {next}: {why}"));
        // A page that fails the same way twice is not the link's doing.
        if !loaded && attempt >= 2 {
            return Ok(());
        }
    }
    Ok(())
}

/// Shows the last load.
fn show(loader: &Loader<'_>, page: &Page, variant: Variant, is_far: bool, watch: &mut Watch<'_>) {
    if let Some(Last { load, unasked, picture }) = &loader.last {
        watch(Loaded { page: &page.name, variant, is_far, load, unasked, picture: picture.as_deref() });
    }
}

fn in_words(measured: &Measured) -> String {
    let load = measured.plt_s.map_or("did not load".into(), |plt| format!("{plt:.2} s"));
    let bad = match measured.checked.bad.len() {
        0 => String::new(),
        bad => format!(", {bad} wrong"),
    };
    format!(
        "{load}, {} files right{bad}, {} requests crossed",
        measured.checked.ok, measured.counters.requests_crossed
    )
}

fn conditions(bench: &Bench, profile: &Profile, browser: Option<String>, notes: Vec<String>) -> Link {
    let leg = |leg: &farhop_orbit::Leg| Leg {
        rate_bit_s: leg.rate.map(|rate| rate.0),
        delay_s: leg.delay.as_secs_f64(),
        queue_bytes: leg.queue.0,
        loss: leg.loss_share(),
    };
    let calibration = &bench.calibration;
    let mut method: Vec<String> = [
        "each load in a browser process of its own with an empty profile, variants in turn",
        "Farhop's two ends restarted for each load, their caches empty, their carrier up before the load starts",
        "direct loads open their connections and look names up across the link, as browsers do",
        "bytes and packets counted on the link, as IP packets",
        "every resource compared by hash with the folder",
        "service workers off: over plain HTTP there are none",
    ]
    .map(str::to_owned)
    .into();
    method.extend(bench.methods());
    method.extend(bench.testbed.conditions().into_iter().map(|(name, value)| format!("{name}: {value}")));
    Link {
        profile: profile.name.clone(),
        rtt_s: profile.rtt().as_secs_f64(),
        forward: leg(&profile.forward),
        return_: leg(&profile.return_),
        calibration: Calibration {
            rtt_s: calibration.rtt.as_secs_f64(),
            forward_bit_s: calibration.forward.map(|check| check.measured.0),
            return_bit_s: calibration.return_.map(|check| check.measured.0),
            fit: calibration.fitness().is_fit(),
            text: calibration.to_string(),
        },
        servers: Servers { settings: bench.ready.settings.to_string(), origins: bench.origins_in_words() },
        browser: browser.map_or("unknown".into(), |version| format!("Chromium {version}")),
        method,
        notes,
    }
}
