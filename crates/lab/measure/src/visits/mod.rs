//! Visits to the pages of the demonstration over HTTPS on `geo-hylas2`, Farhop intercepting and keeping what it holds, browsers that
//! hold nothing: again with nothing changed, again with some of the text changed, and by another user.

mod edit;
mod second_user;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use farhop_compare::{Experiment, Plan, Variant, Visit, Visits, Who, delta};
use farhop_orbit::Profile;
use farhop_workload::pages::{self, NAMES, Page};
use farhop_workload::{npm, packages};

use crate::group::Context;
use crate::{MeasureError, Row};
use edit::{edited, is_text};

/// How many times the time that physics allows a load may take.
const LIMITS: f64 = 1.1;
/// What may cross towards the user for a page that has not changed, without validators.
const UNCHANGED: u64 = 2_000;
/// What a validator and the word on it take on the hop, at most: a hash, a number, a frame around it.
const VALIDATOR: u64 = 64;
/// Share of the text that is changed, and of a cold direct load's bytes that may cross for it.
const CHANGED: f64 = 0.05;
const CROSSES: f64 = 0.10;

/// The demonstration's pages, and the page of two users.
pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = Vec::new();
    for name in NAMES {
        rows.extend(each(context, name, |folder| {
            let built = pages::build(name, folder, &npm::cache_folder());
            built.map_err(|error| MeasureError::Unexpected(error.to_string()))
        })?);
    }
    rows.push(match second_user::row(context) {
        Ok(row) => row,
        Err(error) if error.is_interruption() => return Err(error),
        Err(error) => Row::unmeasured("a second user's first visit", &error),
    });
    Ok(rows)
}

/// The pages of packages, which others made.
pub(crate) fn package_rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let cache = npm::cache_folder().join("packages");
    let only = std::env::var("FARHOP_PACKAGE").ok();
    let mut rows = Vec::new();
    for listed in packages::list()?.iter().filter(|page| only.as_ref().is_none_or(|name| *name == page.name))
    {
        rows.extend(each(context, &listed.name, |folder| {
            let mut page = listed.fetch(&cache)?.page;
            // It is changed here, and the cache is everybody's.
            for (number, site) in page.sites.iter_mut().enumerate() {
                let own = folder.join(number.to_string());
                copy(&site.folder, &own).map_err(MeasureError::system("a copy of a package"))?;
                site.folder = own;
            }
            Ok(page)
        })?);
    }
    Ok(rows)
}

/// Both kinds of second visit to the page that `made` makes in a folder, or the reason why there are none.
fn each(
    context: &Context,
    name: &str,
    made: impl FnOnce(&Path) -> Result<Page, MeasureError>,
) -> Result<Vec<Row>, MeasureError> {
    context.interrupt.check()?;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let rows = made(folder.path()).and_then(|page| again(context, &page, context.runs.unwrap_or(5)));
    match rows {
        // Said at once: the others take an hour, and who stops meanwhile keeps these.
        Ok(rows) => Ok(rows.into_iter().inspect(|row| eprintln!("{row}")).collect()),
        Err(error) if error.is_interruption() => Err(error),
        Err(error) => Ok(vec![Row::unmeasured(name, &error)]),
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        // A link to a file becomes the file; one that leads nowhere is no part of a site.
        match path.metadata() {
            Ok(about) if about.is_dir() && !path.is_symlink() => copy(&path, &place)?,
            Ok(about) if about.is_file() => drop(std::fs::copy(&path, &place)?),
            _ => {}
        }
    }
    Ok(())
}

/// A testbed for this page on `geo-hylas2`.
pub(crate) fn up(context: &Context, page: &Page) -> Result<Visits, MeasureError> {
    let profile =
        Profile::named("geo-hylas2").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let plan = Plan {
        pages: vec![page.clone()],
        variants: vec![Variant::DirectH2, Variant::Farhop],
        runs: 1,
        timeout: Duration::from_secs(120),
        tls: true,
    };
    let experiment = Experiment { profile, seed: 1, plan };
    Ok(Visits::up(&experiment, context.interrupt.clone(), &mut |line| eprintln!("{line}"))?)
}

/// Both kinds of second visit, `runs` times, each run with new ends and a first visit of its own.
fn again(context: &Context, page: &Page, runs: u32) -> Result<Vec<Row>, MeasureError> {
    let name = &*page.name;
    let mut visits = up(context, page)?;
    let rtt = visits.profile().rtt().as_secs_f64();
    let rate = visits.profile().forward.rate.map_or(f64::INFINITY, |rate| rate.0 as f64 / 8.0);
    let origin = page.sites.first().map_or(0.0, |site| site.delay.as_secs_f64());
    let (mut browser, mut cold) = (Vec::new(), Vec::new());
    let (mut unchanged, mut changed) = (Seen::default(), Seen::default());
    let mut deltas = 0;
    for run in 1..=runs {
        context.interrupt.check()?;
        browser.extend(visits.without_link(page)?.plt_s);
        cold.push(visits.direct(page, Variant::DirectH2)?.bytes[0]);
        visits.begin()?;
        // What changed a moment ago is held fresh for no moment (RFC 9111 §4.2.2): a second visit asks about all of it.
        touch(page, SystemTime::now())?;
        let first = visits.visit(page, Who::User)?;
        tell(name, run, "first visit", &first);
        let visit = visits.visit(page, Who::User)?;
        tell(name, run, "unchanged", &visit);
        unchanged.add(visit);
        deltas = change(&first.files, u64::from(run))?;
        let visit = visits.visit(page, Who::User)?;
        tell(name, run, "changed", &visit);
        changed.add(visit);
    }
    let browser = middle(&mut browser).ok_or_else(|| not_loaded("without a link"))?;
    cold.sort_unstable();
    let cold = cold.get(cold.len() / 2).copied().unwrap_or_default();
    let mut rows = unchanged.rows(name, "second visit, unchanged", browser + rtt, "browser_s + RTT");
    rows.push(unchanged.few_bytes(name));
    // Only what changed must cross (DESIGN.md, "The limit").
    let limit = browser + rtt + origin + deltas as f64 / rate;
    rows.extend(changed.rows(name, "second visit, 5 % of the text changed", limit, "limit_s"));
    rows.push(changed.share(name, cold));
    Ok(rows)
}

/// What several visits of one kind showed.
#[derive(Debug, Default)]
struct Seen {
    plt_s: Vec<f64>,
    bytes: Vec<u64>,
    resources: u64,
    unfit: usize,
    wrong: Vec<String>,
    visits: usize,
}

impl Seen {
    fn add(&mut self, visit: Visit) {
        self.visits += 1;
        if visit.unfit.is_some() {
            self.unfit += 1;
        } else {
            self.plt_s.extend(visit.plt_s);
        }
        self.bytes.push(visit.bytes[0]);
        self.resources = self.resources.max(visit.right);
        self.wrong.extend(visit.wrong);
    }

    /// The load time against `limit`, and whether every byte was right.
    fn rows(&mut self, name: &str, kind: &str, limit: f64, limit_name: &str) -> Vec<Row> {
        let what = format!("{name}, {kind}");
        let bound = format!("≤ {LIMITS} × ({limit_name})");
        let counted = self.plt_s.len();
        let unfit = if self.unfit > 0 { format!(", {} unfit", self.unfit) } else { String::new() };
        let time = match middle(&mut self.plt_s) {
            Some(plt) => {
                let times = plt / limit;
                let measured = format!("{times:.2} × ({plt:.2} s of {limit:.2} s, {counted} visits{unfit})");
                Row::judged(&what, measured, bound, times <= LIMITS)
            }
            None => Row::judged(&what, format!("not loaded{unfit}"), bound, false),
        };
        for line in &self.wrong {
            eprintln!("{what}: {line}");
        }
        let right = format!("{} wrong in {} visits", self.wrong.len(), self.visits);
        let pass = self.wrong.is_empty() && self.resources > 0;
        vec![time, Row::judged(format!("{what}, files"), right, "all right, by hash", pass)]
    }

    fn bytes(&mut self) -> Option<u64> {
        self.bytes.sort_unstable();
        self.bytes.get(self.bytes.len() / 2).copied()
    }

    fn few_bytes(&mut self, name: &str) -> Row {
        let most = UNCHANGED + VALIDATOR * self.resources;
        let bound = format!("< {UNCHANGED} + {VALIDATOR} for each of {} validators", self.resources);
        let what = format!("{name}, second visit, unchanged, bytes that cross towards the user");
        match self.bytes() {
            Some(bytes) => Row::judged(what, format!("{bytes} (IP)"), bound, bytes < most),
            None => Row::judged(what, "not loaded", bound, false),
        }
    }

    fn share(&mut self, name: &str, cold: u64) -> Row {
        let what = format!("{name}, second visit, 5 % of the text changed, bytes that cross");
        let bound = format!("≤ {:.0} % of a cold direct load's", CROSSES * 100.0);
        match self.bytes().filter(|_| cold > 0) {
            Some(bytes) => {
                let share = bytes as f64 / cold as f64;
                let measured = format!("{:.1} % ({bytes} of {cold})", share * 100.0);
                Row::judged(what, measured, bound, share <= CROSSES)
            }
            None => Row::judged(what, "not loaded", bound, false),
        }
    }
}

/// Changes a share of the text of each of these files that is text; what of it must cross at least, in bytes.
fn change(files: &[PathBuf], seed: u64) -> Result<u64, MeasureError> {
    let failed = MeasureError::system("the text of a page");
    let mut all = 0;
    for file in files.iter().filter(|file| is_text(file)) {
        let old = std::fs::read(file).map_err(&failed)?;
        let Ok(text) = std::str::from_utf8(&old) else { continue };
        let new = edited(file, text, CHANGED, seed).into_bytes();
        all += delta(&old, &new).map_err(&failed)?;
        std::fs::write(file, new).map_err(&failed)?;
    }
    if all == 0 {
        return Err(MeasureError::Unexpected("no text of the page could be changed".into()));
    }
    Ok(all)
}

fn touch(page: &Page, time: SystemTime) -> Result<(), MeasureError> {
    let failed = MeasureError::system("the files of a page");
    for path in files(page)? {
        let file = std::fs::File::options().write(true).open(path).map_err(&failed)?;
        file.set_modified(time).map_err(&failed)?;
    }
    Ok(())
}

/// Every file of every site of a page.
fn files(page: &Page) -> Result<Vec<PathBuf>, MeasureError> {
    let mut folders: Vec<PathBuf> = page.sites.iter().map(|site| site.folder.clone()).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).map_err(MeasureError::system("the files of a page"))? {
            let path = entry.map_err(MeasureError::system("the files of a page"))?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

pub(crate) fn tell(page: &str, run: u32, kind: &str, visit: &Visit) {
    let time = visit.plt_s.map_or("did not load".into(), |plt| format!("{plt:.2} s"));
    let unfit = visit.unfit.as_ref().map(|why| format!(", unfit: {why}")).unwrap_or_default();
    eprintln!(
        "{page} {run}, {kind}: {time}, {} bytes towards the user, {} requests crossed, {} right, {} wrong{unfit}",
        visit.bytes[0],
        visit.crossed.len(),
        visit.right,
        visit.wrong.len()
    );
}

pub(crate) fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn not_loaded(what: &str) -> MeasureError {
    MeasureError::Unexpected(format!("the page did not load: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn visit(plt_s: f64, bytes: u64, wrong: &[&str]) -> Visit {
        Visit {
            plt_s: Some(plt_s),
            last_s: None,
            bytes: [bytes, 0],
            crossed: Vec::new(),
            wasted_bytes: 0,
            unasked: Default::default(),
            load: None,
            files: Vec::new(),
            right: 10,
            wrong: wrong.iter().map(|line| (*line).to_owned()).collect(),
            smallest_bytes: 0,
            unfit: None,
        }
    }

    #[test]
    fn the_middle_visit_is_judged_and_an_unfit_one_is_not_timed() {
        let mut seen = Seen::default();
        for plt in [1.0, 1.05, 9.0] {
            seen.add(visit(plt, 2_500, &[]));
        }
        seen.add(Visit { unfit: Some("late".into()), ..visit(99.0, 2_500, &[]) });
        let rows = seen.rows("p", "again", 1.0, "limit_s");
        assert_eq!(rows[0].measured, "1.05 × (1.05 s of 1.00 s, 3 visits, 1 unfit)");
        assert!(rows.iter().all(|row| row.verdict == Verdict::Pass));
        assert_eq!(seen.few_bytes("p").verdict, Verdict::Pass, "2,000 and ten validators");
        assert_eq!(seen.share("p", 20_000).verdict, Verdict::Miss);
        assert_eq!(seen.share("p", 25_000).verdict, Verdict::Pass);
    }

    #[test]
    fn a_wrong_byte_misses_however_quick_it_came() {
        let mut seen = Seen::default();
        seen.add(visit(0.1, 1, &["other bytes"]));
        let rows = seen.rows("p", "again", 1.0, "limit_s");
        assert_eq!(rows.iter().map(|row| row.verdict).collect::<Vec<_>>(), [Verdict::Pass, Verdict::Miss]);
    }

    #[test]
    fn a_copy_has_all_files_and_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir_all(from.join("a")).unwrap();
        std::fs::write(from.join("a/b.css"), "p { color: red } /* some words that are here */").unwrap();
        copy(&from, &to).unwrap();
        assert!(change(&[to.join("a/b.css")], 1).unwrap() > 0);
        let read = |folder: &Path| std::fs::read_to_string(folder.join("a/b.css")).unwrap();
        assert!(read(&to).starts_with("p { color: red }") && read(&to) != read(&from));
        assert!(change(&[from.join("none.png")], 1).is_err(), "nothing would be changed");
    }
}
