//! Pages that others made, from packages, on `geo-hylas2`: what is known before the browser asks, what is sent in vain,
//! whether every byte and every pixel is right, and whether it is ever slower than direct.

mod discovery;
mod list;
mod pictures;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_compare::{Experiment, Loaded, Plan, Variant};
use farhop_orbit::Profile;
use farhop_report::{PageResult, VariantResult};
use farhop_workload::{npm, packages};
use image::RgbImage;
use url::Url;

use crate::group::Context;
use crate::secure_pages::like_plain;
use crate::{MeasureError, Row, Verdict};
use discovery::{Discovery, Names};
pub use list::{PagesArguments, package_pages};
use pictures::{TOLERANCE, likeness};

/// Share of the names in HTML and CSS that have to be promised before the browser asks.
const DISCOVERED: f64 = 0.95;
/// Share of forward bytes that nobody used: over the pages, and of any page.
const WASTE: (f64, f64) = (0.05, 0.15);
/// Direct loads whose pictures are compared among themselves at the least: some pages come out in two ways.
const PICTURES: usize = 3;
/// DESIGN.md, "never slower than direct".
const SLOWER: f64 = 1.03;

/// What was seen of one page.
struct Seen {
    /// The page's files.
    folder: PathBuf,
    /// What direct loads asked for because HTML or CSS names it.
    names: Names,
    discovery: Discovery,
    /// Pictures of direct loads, over the link and without, then of the first loads of each of Farhop's variants.
    direct: Vec<RgbImage>,
    farhop: HashMap<&'static str, Vec<RgbImage>>,
}

/// Over plain HTTP: everything that is said of these pages.
pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let variants = [Variant::DirectH1, Variant::DirectH2, Variant::Farhop, Variant::FarhopIdentity];
    let mut wastes = Vec::new();
    let mut rows = loaded(context, &variants, false, |name, seen, result| {
        let waste = result.variant("farhop").and_then(waste);
        wastes.extend(waste);
        vec![
            seen.discovery.row(name, DISCOVERED),
            wasted(name, waste),
            hashes(name, result.variant("farhop-identity")),
            seen.looks(name, Variant::FarhopIdentity.name()),
            seen.looks(name, Variant::Farhop.name()),
            never_slower(name, result, &["direct-h1", "direct-h2"]),
        ]
    })?;
    rows.push(median_waste(&mut wastes));
    Ok(rows)
}

/// Over HTTPS, Farhop intercepting: they are as quick, and they are the same pages.
pub(crate) fn secure_rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let variants = [Variant::DirectH2, Variant::FarhopHttp, Variant::Farhop, Variant::FarhopIdentity];
    loaded(context, &variants, true, |name, seen, result| {
        vec![
            like_plain(Some(result), name),
            never_slower(name, result, &["direct-h2"]),
            hashes(name, result.variant("farhop-identity")),
            seen.looks(name, Variant::FarhopIdentity.name()),
            seen.looks(name, Variant::Farhop.name()),
        ]
    })
}

/// Loads every page through these variants, over HTTPS or not, and has `judge` make rows of what was seen of each.
fn loaded(
    context: &Context,
    variants: &[Variant],
    tls: bool,
    mut judge: impl FnMut(&str, &Seen, &PageResult) -> Vec<Row>,
) -> Result<Vec<Row>, MeasureError> {
    let cache = npm::cache_folder().join("packages");
    let only = std::env::var("FARHOP_PACKAGE").ok();
    let (mut pages, mut rows) = (Vec::new(), Vec::new());
    for listed in packages::list()?.iter().filter(|page| only.as_ref().is_none_or(|name| *name == page.name))
    {
        context.interrupt.check()?;
        eprintln!("fetching {}: {}", listed.name, listed.packages.join(", "));
        // A page that cannot be had is a row that misses, not the end of the others.
        match listed.fetch(&cache) {
            Ok(fetched) => {
                rows.extend(fetched.replaced.into_iter().map(|what| told(&listed.name, "fetched", what)));
                pages.push(fetched.page);
            }
            Err(error) => rows.push(Row::unmeasured(&listed.name, &error.into())),
        }
    }
    let profile =
        Profile::named("geo-hylas2").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    for page in pages {
        context.interrupt.check()?;
        let name = page.name.clone();
        let folder = page.sites.first().map(|site| site.folder.clone()).unwrap_or_default();
        let plan = Plan {
            pages: vec![page],
            variants: variants.into(),
            runs: context.runs.unwrap_or(5),
            timeout: Duration::from_secs(300),
            tls,
        };
        let experiment = Experiment { profile: profile.clone(), seed: 1, plan };
        let mut seen = Seen::of(folder);
        let comparison = experiment.carry_out_watched(
            context.interrupt.clone(),
            &mut |line| eprintln!("{line}"),
            &mut |loaded| seen.take(&loaded),
        );
        match comparison.map_err(MeasureError::from) {
            Ok(comparison) => {
                let of_page = comparison.results.iter().flat_map(|result| judge(&name, &seen, result));
                // Said at once: the other pages take an hour, and who stops meanwhile keeps these.
                rows.extend(of_page.inspect(|row| eprintln!("{row}")));
            }
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => rows.push(Row::unmeasured(&name, &error)),
        }
    }
    Ok(rows)
}

impl Seen {
    fn of(folder: PathBuf) -> Seen {
        let (names, discovery) = (Names::default(), Discovery::default());
        Seen { folder, names, discovery, direct: Vec::new(), farhop: HashMap::new() }
    }

    fn take(&mut self, loaded: &Loaded<'_>) {
        let picture = || image::open(loaded.picture?).ok().map(|picture| picture.into_rgb8());
        if loaded.variant.is_farhop() {
            if loaded.variant == Variant::Farhop {
                self.discovery.add(&self.names, loaded.load, loaded.unasked);
            }
            let own = self.farhop.entry(loaded.variant.name()).or_default();
            if own.len() < PICTURES {
                own.extend(picture());
            }
        } else {
            // Those without a link as well: a page that comes sooner may come out in another way, whoever brings it.
            self.direct.extend(picture());
            if loaded.is_far {
                self.names.add(loaded.load, |url| text(&self.folder, url));
            }
        }
    }

    fn looks(&self, page: &str, variant: &'static str) -> Row {
        let what = format!("{page}, {variant} looks like direct");
        let bound =
            format!("no pixel beyond {TOLERANCE} levels, {} direct loads", self.direct.len().max(PICTURES));
        // The median: a browser that is starved may come to its picture before it has laid out the page.
        let of_all = self.farhop.get(variant).into_iter().flatten();
        let mut alike: Vec<_> = of_all.filter_map(|picture| likeness(&self.direct, picture)).collect();
        alike.sort_by_key(|it| it.beyond);
        let alike = alike.get(alike.len() / 2).copied();
        match alike.filter(|_| self.direct.len() >= PICTURES) {
            Some(alike) => {
                let left_out = match alike.left_out {
                    0.0 => String::new(),
                    share => format!(", {:.1} % left out: direct loads disagree there", share * 100.0),
                };
                let measured =
                    format!("{} levels at most, {} pixels beyond{left_out}", alike.worst, alike.beyond);
                Row::judged(what, measured, bound, alike.holds())
            }
            None => {
                let pictures = self.direct.len() + self.farhop.values().map(Vec::len).sum::<usize>();
                Row::judged(what, format!("only {pictures} pictures"), bound, false)
            }
        }
    }
}

/// The file that the origin serves at `url`, as far as it is text.
fn text(folder: &Path, url: &Url) -> Option<String> {
    let path = url.path().trim_start_matches('/');
    let file = if path.is_empty() || path.ends_with('/') { format!("{path}index.html") } else { path.into() };
    Some(String::from_utf8_lossy(&std::fs::read(folder.join(file)).ok()?).into_owned())
}

fn told(page: &str, what: &str, measured: String) -> Row {
    let bound = "none, printed".into();
    Row { what: format!("{page}, {what}"), measured, bound, verdict: Verdict::Told }
}

/// Body bytes that nobody used, as a share of what crossed towards the user.
fn waste(farhop: &VariantResult) -> Option<f64> {
    (farhop.link_bytes.forward > 0.0).then(|| farhop.wasted_bytes / farhop.link_bytes.forward)
}

fn wasted(page: &str, share: Option<f64>) -> Row {
    let measured =
        share.map_or("not loaded".into(), |share| format!("{:.1} % of forward bytes", share * 100.0));
    let bound = format!("≤ {:.0} %", WASTE.1 * 100.0);
    Row::judged(format!("{page}, waste"), measured, bound, share.is_some_and(|share| share <= WASTE.1))
}

fn median_waste(wastes: &mut [f64]) -> Row {
    wastes.sort_by(f64::total_cmp);
    let median = match wastes.len() {
        0 => None,
        count => Some((wastes[(count - 1) / 2] + wastes[count / 2]) / 2.0),
    };
    let measured = median.map_or("no page".into(), |share| {
        format!("{:.1} % of forward bytes, {} pages", share * 100.0, wastes.len())
    });
    let bound = format!("≤ {:.0} %, at least 8 pages", WASTE.0 * 100.0);
    let pass = wastes.len() >= 8 && median.is_some_and(|share| share <= WASTE.0);
    Row::judged("package pages, median waste", measured, bound, pass)
}

fn hashes(page: &str, identity: Option<&VariantResult>) -> Row {
    let (ok, bad) = identity.map_or((0, 0), |identity| (identity.resources_ok, identity.resources_bad));
    let what = format!("{page}, farhop-identity, files right");
    Row::judged(what, format!("{ok} right, {bad} wrong"), "all right, by hash", ok > 0 && bad == 0)
}

fn never_slower(page: &str, result: &PageResult, direct: &[&str]) -> Row {
    let what = format!("{page}, never slower than direct");
    let bound = match direct {
        [only] => format!("median not above {only}'s by more than 3 %, ≥ 5 runs"),
        _ => "median not above the better direct one's by more than 3 %, ≥ 5 runs".into(),
    };
    let plt = |name: &str| Some((result.variant(name)?.plt_s?.median, result.variant(name)?.runs));
    let times: Option<Vec<_>> = direct.iter().map(|name| Some((*name, plt(name)?))).collect();
    match (times, plt("farhop")) {
        (Some(times), Some((farhop, runs))) => {
            let best = times.iter().map(|(_, (time, _))| *time).fold(f64::INFINITY, f64::min);
            let runs = times.iter().map(|(_, (_, runs))| *runs).fold(runs, u32::min);
            let others: Vec<_> = times.iter().map(|(name, (time, _))| format!("{name} {time:.2}")).collect();
            let measured =
                format!("{:.2} × ({farhop:.2} s; {}; {runs} runs)", farhop / best, others.join(", "));
            Row::judged(what, measured, bound, farhop <= best * SLOWER && runs >= 5)
        }
        _ => Row::judged(what, "not loaded", bound, false),
    }
}
