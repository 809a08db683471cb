//! What scripts ask for on `geo-hylas2`, over HTTPS, Farhop intercepting: pages whose scripts compute every name, so that only
//! earlier visits tell what will be asked for.

use std::time::Duration;

use farhop_compare::{Variant, Visit, Visits, Who};
use farhop_workload::npm;
use farhop_workload::pages::{self, BY_SCRIPT, Page, SCRIPTED};
use url::Url;

use crate::group::Context;
use crate::visits::{middle, tell, up};
use crate::{MeasureError, Row};

/// Share of what scripts ask for that has to be on its way before, and of bytes that may come for nothing.
const BEFORE: f64 = 0.90;
const WASTE: f64 = 0.10;
/// DESIGN.md, "never slower than direct".
const SLOWER: f64 = 1.03;
/// Visits of a course: the first and second teach, those from the third on are judged.
const TEACHING: u32 = 2;
/// What is learned of a visit is told a moment after its last answer.
const LEARNING: Duration = Duration::from_secs(5);

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let runs = context.runs.unwrap_or(5);
    let mut rows = Vec::new();
    for name in SCRIPTED {
        rows.extend(match of_page(context, name, runs) {
            Ok(rows) => rows,
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => vec![Row::unmeasured(name, &error)],
        });
    }
    Ok(rows)
}

fn of_page(context: &Context, name: &str, runs: u32) -> Result<Vec<Row>, MeasureError> {
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let mut page = pages::build(name, folder.path(), &npm::cache_folder())
        .map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    // Nothing is held, so that all of it is needed at each visit.
    for site in &mut page.sites {
        site.caching = [("/".to_owned(), "no-store".to_owned())].into();
    }
    let mut visits = up(context, &page)?;
    // First visits beside direct loads, each with ends that know nothing.
    let (mut direct, mut first) = (Vec::new(), Vec::new());
    let mut wrong = Vec::new();
    for run in 1..=runs {
        context.interrupt.check()?;
        let visit = visits.direct(&page, Variant::DirectH2)?;
        tell(name, run, "direct-h2", &visit);
        direct.extend(visit.last_s);
        visits.begin()?;
        let visit = visits.visit(&page, Who::User)?;
        tell(name, run, "first visit", &visit);
        first.extend(visit.last_s.filter(|_| visit.unfit.is_none()));
        wrong.extend(visit.wrong);
    }
    // The ends of the last first visit go on.
    let later = learned(context, &mut visits, &page, runs)?;
    wrong.extend(later.iter().flat_map(|visit| visit.wrong.clone()));
    Ok(vec![
        before(name, &later),
        wasted(name, &later),
        never_slower(name, first, direct),
        right(name, &wrong),
    ])
}

/// Visits from the third on.
fn learned(
    context: &Context,
    visits: &mut Visits,
    page: &Page,
    runs: u32,
) -> Result<Vec<Visit>, MeasureError> {
    let mut later = Vec::new();
    for number in 2..=TEACHING + runs {
        context.interrupt.sleep(LEARNING)?;
        let visit = visits.visit(page, Who::User)?;
        tell(&page.name, number, "visit", &visit);
        if number > TEACHING {
            later.push(visit);
        }
    }
    Ok(later)
}

/// Of the first request for each name that only a script knows: how many there were, and which were not on their way.
fn late(visits: &[Visit]) -> (usize, Vec<&str>) {
    let by_script = |url: &&String| Url::parse(url).is_ok_and(|url| url.path().starts_with(BY_SCRIPT));
    let asked = visits.iter().flat_map(|visit| visit.unasked.iter().filter(|(url, _)| by_script(url)));
    let first: Vec<(&str, bool)> =
        asked.map(|(url, before)| (url.as_str(), before.first() == Some(&true))).collect();
    (first.len(), first.iter().filter(|(_, before)| !before).map(|(url, _)| *url).collect())
}

fn before(name: &str, visits: &[Visit]) -> Row {
    let (all, mut late) = late(visits);
    late.sort_unstable();
    late.dedup();
    for url in &late {
        eprintln!("{name}: not on its way: {url}");
    }
    let (_, late) = self::late(visits);
    let share = 1.0 - late.len() as f64 / all.max(1) as f64;
    let measured = format!("{:.1} % of {all} requests in {} visits", share * 100.0, visits.len());
    let what = format!("{name}, on the way before the browser asks");
    let bound = format!("≥ {:.0} % of what scripts ask for, from the third visit on", BEFORE * 100.0);
    Row::judged(what, measured, bound, all > 0 && share >= BEFORE)
}

fn wasted(name: &str, visits: &[Visit]) -> Row {
    let sum = |of: fn(&Visit) -> u64| visits.iter().map(of).sum::<u64>();
    let (waste, all) = (sum(|visit| visit.wasted_bytes), sum(|visit| visit.bytes[0]));
    let share = waste as f64 / all.max(1) as f64;
    let measured = format!("{:.1} % ({waste} of {all} bytes)", share * 100.0);
    let what = format!("{name}, sent in vain, from the third visit on");
    Row::judged(what, measured, format!("≤ {:.0} % of bytes", WASTE * 100.0), all > 0 && share <= WASTE)
}

/// Load events do not wait for all that scripts ask for: what counts is when the last of it was there.
fn never_slower(name: &str, mut first: Vec<f64>, mut direct: Vec<f64>) -> Row {
    let what = format!("{name}, first visit, never slower than direct");
    let bound = "last resource not later than direct-h2's by more than 3 %, ≥ 5 runs";
    let runs = first.len().min(direct.len());
    match (middle(&mut first), middle(&mut direct)) {
        (Some(farhop), Some(direct)) => {
            let measured =
                format!("{:.2} × ({farhop:.2} s; direct-h2 {direct:.2}; {runs} runs)", farhop / direct);
            Row::judged(what, measured, bound, farhop <= direct * SLOWER && runs >= 5)
        }
        _ => Row::judged(what, "not loaded", bound, false),
    }
}

fn right(name: &str, wrong: &[String]) -> Row {
    for line in wrong {
        eprintln!("{name}: {line}");
    }
    Row::judged(
        format!("{name}, files"),
        format!("{} wrong", wrong.len()),
        "all right, by hash",
        wrong.is_empty(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn visit(asked: &[(&str, bool)], wasted_bytes: u64) -> Visit {
        Visit {
            plt_s: Some(1.0),
            last_s: Some(1.0),
            bytes: [1_000, 0],
            crossed: Vec::new(),
            wasted_bytes,
            unasked: asked
                .iter()
                .map(|(path, before)| (format!("https://a.test{path}"), vec![*before]))
                .collect(),
            load: None,
            files: Vec::new(),
            right: 1,
            wrong: Vec::new(),
            smallest_bytes: 0,
            unfit: None,
        }
    }

    #[test]
    fn only_what_scripts_ask_for_counts() {
        let visits = [visit(&[("/", false), ("/late/a", true), ("/late/b", false)], 0)];
        let row = before("p", &visits);
        assert_eq!((row.measured.as_str(), row.verdict), ("50.0 % of 2 requests in 1 visits", Verdict::Miss));
        assert_eq!(before("p", &[visit(&[("/", true)], 0)]).verdict, Verdict::Miss, "nothing proves nothing");
    }

    #[test]
    fn waste_is_a_share_of_all_that_crossed() {
        assert_eq!(wasted("p", &[visit(&[], 0), visit(&[], 200)]).verdict, Verdict::Pass);
        assert_eq!(wasted("p", &[visit(&[], 101)]).verdict, Verdict::Miss);
    }

    #[test]
    fn fewer_runs_than_five_prove_nothing() {
        let row = |runs: usize| never_slower("p", vec![1.0; runs], vec![1.0; runs]);
        assert_eq!((row(4).verdict, row(5).verdict), (Verdict::Miss, Verdict::Pass));
    }
}
