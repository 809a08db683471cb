//! The loads of a plan on one testbed or on several at once. Each lane takes a page on a link and makes a whole repetition of
//! it, so that what is compared is loaded on one testbed, one load right after the other. Knows no testbed itself: who makes
//! loads is handed in.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use farhop_report::StudyLoad;

use crate::bench::Made;
use crate::course::{Course, Next};
use crate::error::PlanError;
use crate::journal::{Gallery, Journal, Run};
use crate::plan::Plan;

/// How often a lane that finds nothing to do looks again.
const LOOK: Duration = Duration::from_millis(100);
/// A lane ends where so many of the last loads met a late link: the machine cannot bear them all.
const LATE: usize = 3;
const OF_LAST: usize = 10;

/// Makes loads, one after the other.
pub(crate) type Maker<'a> = Box<dyn FnMut(Next) -> Result<Made, PlanError> + 'a>;

/// What was measured so far, and where it is kept.
pub(crate) struct Kept {
    pub(crate) runs: Vec<Run>,
    pub(crate) journal: Journal,
    pub(crate) loads: Vec<StudyLoad>,
    pub(crate) gallery: Gallery,
    /// Loads of this run that went wrong; not those for which this machine lacks something.
    pub(crate) failed: u64,
}

impl Kept {
    pub(crate) fn new(runs: Vec<Run>, journal: Journal, loads: Vec<StudyLoad>, gallery: Gallery) -> Kept {
        Kept { runs, journal, loads, gallery, failed: 0 }
    }
}

/// How a plan is carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Testbeds at once, at most.
    pub(crate) lanes: usize,
    /// When no further load begins.
    pub(crate) until: Option<Instant>,
}

/// Why it ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All is measured.
    Done,
    /// The time was up.
    TimeUp,
}

struct State<'a> {
    course: Course<'a>,
    kept: &'a mut Kept,
    /// For each lane the page on a link and the repetition that it is at, and the link that it was at last.
    at: Vec<Option<((usize, usize), u32)>>,
    links: Vec<Option<usize>>,
    /// Lanes from here on end once they are through with what they have.
    allowed: usize,
    late: VecDeque<bool>,
    ended: Option<Result<Ended, PlanError>>,
}

/// Makes every load that the course wants, and keeps each. `maker` is called once in each lane.
///
/// # Errors
/// The first error of any lane; what was made is kept.
pub(crate) fn carry_out<'a>(
    plan: &Plan,
    kept: &mut Kept,
    pace: Pace,
    maker: &(dyn Fn() -> Result<Maker<'a>, PlanError> + Sync),
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Ended, PlanError> {
    let lanes = pace.lanes.max(1);
    let state = Mutex::new(State {
        course: Course::new(plan, &kept.runs),
        kept,
        at: vec![None; lanes],
        links: vec![None; lanes],
        allowed: lanes,
        late: VecDeque::new(),
        ended: None,
    });
    let lane = |number: usize| {
        let ended = live(number, plan, &state, pace.until, maker, progress);
        if let Err(error) = ended {
            locked(&state).ended.get_or_insert(Err(error));
        }
    };
    if lanes == 1 {
        lane(0);
    } else {
        std::thread::scope(|scope| (0..lanes).for_each(|number| drop(scope.spawn(move || lane(number)))));
    }
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.ended.unwrap_or(Ok(Ended::Done))
}

fn locked<'a, 'b>(state: &'a Mutex<State<'b>>) -> MutexGuard<'a, State<'b>> {
    // Whoever panicked had its load either kept or not.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn live<'a>(
    lane: usize,
    plan: &Plan,
    state: &Mutex<State<'_>>,
    until: Option<Instant>,
    maker: &(dyn Fn() -> Result<Maker<'a>, PlanError> + Sync),
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), PlanError> {
    let mut make = None;
    loop {
        let next = {
            let mut state = locked(state);
            if state.ended.is_some() || state.course.next().is_none() {
                return Ok(());
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                state.ended = Some(Ok(Ended::TimeUp));
                return Ok(());
            }
            match state.next(lane) {
                Some(next) => next,
                None if lane >= state.allowed => return Ok(()),
                None => {
                    drop(state);
                    std::thread::sleep(LOOK);
                    continue;
                }
            }
        };
        // A lane that never has anything to do builds no pages.
        let make = match &mut make {
            Some(make) => make,
            None => make.insert(maker()?),
        };
        let made = make(next)?;
        for line in locked(state).take(plan, next, made)? {
            progress(&line);
        }
    }
}

impl State<'_> {
    /// What a lane does next: the repetition that it is at, or another that nobody is at.
    fn next(&mut self, lane: usize) -> Option<Next> {
        if let Some((group, round)) = self.at[lane] {
            if let Some(next) = self.course.next_of(group, round) {
                return Some(next);
            }
            self.at[lane] = None;
        }
        if lane >= self.allowed {
            return None;
        }
        let busy: Vec<(usize, usize)> = self.at.iter().flatten().map(|(group, _)| *group).collect();
        let next = self.course.next_besides(&busy, self.links[lane])?;
        self.at[lane] = Some(((next.cell.link, next.cell.page), next.round));
        self.links[lane] = Some(next.cell.link);
        Some(next)
    }

    /// Keeps a load; what is to be told.
    fn take(&mut self, plan: &Plan, next: Next, made: Made) -> Result<Vec<String>, PlanError> {
        let Made { run, load, was_late, has_failed } = made;
        self.kept.journal.keep(&run)?;
        self.course.made(&run);
        if let Some(load) = load {
            self.kept.gallery.keep(&load)?;
            self.kept.loads.push(load);
        }
        self.kept.failed += u64::from(has_failed);
        let told = in_words(plan, &run);
        self.kept.runs.push(run);
        let runs = &self.kept.runs;
        let took = runs.iter().map(|run| run.took_s).sum::<f64>() / runs.len() as f64 / self.allowed as f64;
        let left = between(self.course.left().map(|loads| Duration::from_secs_f64(took * loads as f64)));
        let cell = plan.in_words(next.cell);
        let mut lines = vec![format!("{cell} #{}: {told}; left {left}", next.round + 1)];
        self.late.push_back(was_late);
        if self.late.len() > OF_LAST {
            self.late.pop_front();
        }
        if self.allowed > 1 && self.late.iter().filter(|late| **late).count() >= LATE {
            self.allowed -= 1;
            self.late.clear();
            lines.push(format!("the link was late too often: {} testbeds at once from now on", self.allowed));
        }
        Ok(lines)
    }
}

/// What a load gave.
fn in_words(plan: &Plan, run: &Run) -> String {
    let value = run.values.get(plan.goal.name()).filter(|_| run.counts());
    let told = match (value, run.faults.first()) {
        (Some(value), _) => format!("{} {value:.2} {}", plan.goal.name(), plan.goal.unit()),
        (None, Some(fault)) => fault.clone(),
        (None, None) => "nothing measured".into(),
    };
    if run.late { format!("{told}, the link was late") } else { told }
}

/// `12 min to 40 min`, or one where both are as long.
pub(crate) fn between(times: [Duration; 2]) -> String {
    let [soon, late] = times.map(duration);
    if soon == late { soon } else { format!("{soon} to {late}") }
}

/// `40 s`, `12 min`, `3.5 h`: as precise as an estimate is.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 5400.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped::shipped;
    use farhop_compare::CompareError;
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn plan(name: &str) -> Plan {
        let text = shipped(name).unwrap();
        Plan::from_toml(text, name, &mut |_| Err("nothing".into())).unwrap().quickened()
    }

    fn made(plan: &Plan, next: Next, was_late: bool) -> Made {
        let cell = next.cell;
        let value = (cell.page * 100 + cell.link * 10 + cell.variant) as f64 + 1.0;
        let run = Run {
            page: plan.pages[cell.page].name.clone(),
            link: plan.links[cell.link].name.clone(),
            variant: plan.variants[cell.variant].name.clone(),
            round: next.round,
            seed: next.seed,
            values: [("load".to_owned(), value)].into(),
            ..Run::default()
        };
        Made { run, load: None, was_late, has_failed: false }
    }

    fn kept(folder: &Path, name: &str, plan: &Plan) -> Kept {
        let path = folder.join(name);
        let (journal, runs) = Journal::resume(&path, plan).unwrap();
        let (gallery, loads) = Gallery::resume(&folder.join("loads.jsonl")).unwrap();
        Kept::new(runs, journal, loads, gallery)
    }

    const ALONE: Pace = Pace { lanes: 1, until: None };

    #[test]
    fn a_run_that_was_stopped_goes_on_where_it_stopped_and_comes_to_the_same() {
        let plan = plan("httpep-7");
        let maker = || -> Result<Maker<'_>, PlanError> {
            let plan = &plan;
            Ok(Box::new(move |next| Ok(made(plan, next, false))))
        };
        let folder = tempfile::tempdir().unwrap();
        let mut whole = kept(folder.path(), "whole.jsonl", &plan);
        assert_eq!(carry_out(&plan, &mut whole, ALONE, &maker, &|_| {}).unwrap(), Ended::Done);
        assert_eq!(whole.runs.len(), plan.cells().len() * plan.runs.least as usize);

        // Stopped after three, in the middle of writing the fourth.
        let path = folder.path().join("runs.jsonl");
        let mut begun = kept(folder.path(), "runs.jsonl", &plan);
        let three = || -> Result<Maker<'_>, PlanError> {
            let mut count = 0;
            let plan = &plan;
            Ok(Box::new(move |next| {
                count += 1;
                if count > 3 { Err(CompareError::Interrupted.into()) } else { Ok(made(plan, next, false)) }
            }))
        };
        let stopped = carry_out(&plan, &mut begun, ALONE, &three, &|_| {});
        assert!(matches!(stopped, Err(PlanError::Compare(CompareError::Interrupted))));
        let mut torn = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"page\":\"httpep").unwrap();
        let mut again = kept(folder.path(), "runs.jsonl", &plan);
        assert_eq!(again.runs.len(), 3);
        // The time is up before anything more is done.
        let no_time = Pace { until: Some(Instant::now()), ..ALONE };
        assert_eq!(carry_out(&plan, &mut again, no_time, &maker, &|_| {}).unwrap(), Ended::TimeUp);
        assert_eq!(carry_out(&plan, &mut again, ALONE, &maker, &|_| {}).unwrap(), Ended::Done);
        assert_eq!(again.runs, whole.runs);
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(text("runs.jsonl"), text("whole.jsonl"));

        // Of another plan nothing is taken over, and nothing of it is lost.
        let other = super::tests::plan("httpep-8");
        assert!(matches!(Journal::resume(&path, &other), Err(PlanError::OtherPlan { .. })));
        assert_eq!(Journal::resume(&path, &plan).unwrap().1.len(), whole.runs.len());
    }

    #[test]
    fn lanes_share_the_work_and_each_repetition_stays_on_one_of_them() {
        let plan = plan("httpep-5-6");
        let folder = tempfile::tempdir().unwrap();
        let mut kept = kept(folder.path(), "runs.jsonl", &plan);
        let (makers, places) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let maker = || -> Result<Maker<'_>, PlanError> {
            let lane = makers.fetch_add(1, Ordering::Relaxed);
            let (plan, places) = (&plan, &places);
            Ok(Box::new(move |next| {
                places.lock().unwrap().push((next.cell.link, next.cell.page, next.round, lane));
                Ok(made(plan, next, false))
            }))
        };
        let pace = Pace { lanes: 2, until: None };
        assert_eq!(carry_out(&plan, &mut kept, pace, &maker, &|_| {}).unwrap(), Ended::Done);
        assert_eq!(kept.runs.len(), plan.cells().len() * plan.runs.least as usize);
        let mut cells: Vec<_> =
            kept.runs.iter().map(|run| (&run.page, &run.link, &run.variant, run.round)).collect();
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), kept.runs.len(), "no load twice");
        let places = places.into_inner().unwrap();
        for (link, page, round, lane) in &places {
            let elsewhere = |it: &&(usize, usize, u32, usize)| {
                (it.0, it.1, it.2) == (*link, *page, *round) && it.3 != *lane
            };
            assert_eq!(places.iter().find(elsewhere), None);
        }
    }

    #[test]
    fn a_machine_that_cannot_bear_all_lanes_has_fewer() {
        let plan = plan("httpep-7");
        let folder = tempfile::tempdir().unwrap();
        let mut kept = kept(folder.path(), "runs.jsonl", &plan);
        let maker = || -> Result<Maker<'_>, PlanError> {
            let plan = &plan;
            Ok(Box::new(move |next| Ok(made(plan, next, true))))
        };
        let told = Mutex::new(Vec::new());
        let progress = |line: &str| told.lock().unwrap().push(line.to_owned());
        let pace = Pace { lanes: 3, until: None };
        assert_eq!(carry_out(&plan, &mut kept, pace, &maker, &progress).unwrap(), Ended::Done);
        let told = told.into_inner().unwrap();
        let fewer: Vec<&String> = told.iter().filter(|line| line.contains("testbeds at once")).collect();
        assert_eq!(fewer.len(), 2, "{told:?}");
        assert_eq!(kept.runs.len(), plan.cells().len() * plan.runs.least as usize, "and all is done");
    }
}
