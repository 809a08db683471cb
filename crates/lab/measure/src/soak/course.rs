//! The course of a soak: everything is done for a while, the ends rest, everything is done again and watched, the ends rest.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use farhop_compare::Interrupt;
use farhop_testbed::Place;

use super::end::End;
use super::judge::{self, Sample, Watched};
use super::level::Level;
use super::load;
use super::place::Grounds;
use super::tally::Tally;
use super::troubles::{PERIOD, Trouble, due, happen, make_good};
use crate::{MeasureError, Row, Verdict};

/// How often the timetable is looked at, the ends are, and the user is told.
const LOOK: Duration = Duration::from_millis(250);
const SAMPLE: Duration = Duration::from_secs(2);
const TELL: Duration = Duration::from_secs(10);
/// How long the ends have to hold the same to count as idle: what is kept for later uses is gone after ten seconds (promises,
/// connections made ahead). And how long they have for that.
const REST: Duration = Duration::from_secs(12);
const LONGEST_REST: Duration = Duration::from_secs(90);

/// Everything that runs, and what was seen of it.
pub(super) struct Course {
    grounds: Grounds,
    interrupt: Interrupt,
    seed: u64,
    tally: Arc<Tally>,
    /// How many faults the user has been told.
    told: usize,
    /// The ends in the order of [`Grounds::each`], once the load that is judged has begun.
    watched: Vec<Watched>,
    /// Files that the ends made meanwhile and kept.
    kept: Vec<String>,
    /// What was not as it should be when the ends went down in order; none where they did not get there.
    down: Option<Vec<String>>,
}

impl Course {
    pub(super) fn up(interrupt: Interrupt, seed: u64) -> Result<Course, MeasureError> {
        let grounds = Grounds::up(&interrupt, seed)?;
        let tally = Arc::default();
        Ok(Course {
            grounds,
            interrupt,
            seed,
            tally,
            told: 0,
            watched: Vec::new(),
            kept: Vec::new(),
            down: None,
        })
    }

    /// Goes through it all, in about `time`: at least two periods, and what the ends take to rest.
    pub(super) fn run(&mut self, time: Duration) -> Result<(), MeasureError> {
        let periods = (time.as_secs() / PERIOD.as_secs()).max(2) as u32;
        let warm_up = (periods / 4).max(1);
        let end = Instant::now() + PERIOD * periods + 4 * REST;
        self.load("warm-up", PERIOD * warm_up, true, end)?;
        let before = self.rest(None)?;
        let files = self.grounds.files();
        self.watched = (self.grounds.each().iter().zip(&before))
            .map(|(end, before)| Watched {
                end: end.name().into(),
                before: before.clone(),
                ..Watched::default()
            })
            .collect();
        self.load("soak", PERIOD * (periods - warm_up), false, end)?;
        let after = self.rest(Some(&before))?;
        for (watched, after) in self.watched.iter_mut().zip(after) {
            watched.after = Some(after);
        }
        self.kept = self.grounds.files().into_iter().filter(|name| !files.contains(name)).collect();
        let mut down = Vec::new();
        let interrupt = self.interrupt.clone();
        for end in self.grounds.each() {
            down.extend(end.take_down(&interrupt)?);
        }
        self.down = Some(down);
        Ok(())
    }

    /// Loads for a while, with everything that happens meanwhile, and samples the ends.
    fn load(&mut self, what: &str, time: Duration, restarts: bool, end: Instant) -> Result<(), MeasureError> {
        let start = Instant::now();
        let loading = self.clients(start + time)?;
        let (mut looked, mut sampled, mut told) = (Duration::ZERO, start, start);
        let mut is_away = false;
        loop {
            match loading.try_recv() {
                Ok(outcome) => break outcome.map_err(MeasureError::system("the clients"))?,
                Err(mpsc::TryRecvError::Empty) => {}
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err(MeasureError::Unexpected("the clients stopped".into()));
                }
            }
            self.interrupt.sleep(LOOK)?;
            let now = start.elapsed();
            for trouble in due(looked, now.min(time), restarts) {
                if trouble == Trouble::KillGround {
                    self.tally.ground_is_gone();
                    is_away = true;
                }
                happen(trouble, &mut self.grounds)?;
            }
            looked = now.min(time);
            if sampled.elapsed() < SAMPLE {
                continue;
            }
            sampled = Instant::now();
            let levels = self.levels();
            if is_away && self.grounds.is_joined() {
                self.tally.ground_is_back();
                is_away = false;
            }
            if told.elapsed() >= TELL {
                told = sampled;
                self.tell(what, end, &levels);
            }
            for (watched, level) in self.watched.iter_mut().zip(levels) {
                // An end that is busy may not answer in time.
                watched.loaded.extend(level.map(|level| Sample { at: now, level }));
            }
            for end in self.grounds.each() {
                // A ground that was killed is about to be started again.
                if !restarts {
                    end.check_alive()?;
                }
            }
        }
        make_good(&mut self.grounds)
    }

    /// Has the clients load until then, on a thread of their own at the user's end; tells when they have ended.
    fn clients(&self, until: Instant) -> Result<mpsc::Receiver<std::io::Result<()>>, MeasureError> {
        let (tell, ended) = mpsc::channel();
        let (map, seed) = (self.grounds.map.clone(), self.seed);
        let (tally, interrupt) = (Arc::clone(&self.tally), self.interrupt.clone());
        let work = move || {
            // Nobody listens any more where the soak itself has failed.
            let _ = tell.send(load::load(&map, seed, until, &tally, &interrupt));
        };
        let client = self.grounds.scene.testbed.namespace(Place::Client);
        client.thread("clients", work).map_err(farhop_testbed::Error::from)?;
        Ok(ended)
    }

    /// What each end holds now; none of one that does not answer.
    fn levels(&mut self) -> Vec<Option<Level>> {
        let Grounds { remote, caught, ground, runtime, .. } = &self.grounds;
        [remote, caught, ground].map(|end: &End| end.level(runtime)).into()
    }

    /// Waits until the ends hold the same for a while, if possible what they held before; gives that.
    fn rest(&mut self, wanted: Option<&[Level]>) -> Result<Vec<Level>, MeasureError> {
        let interrupt = self.interrupt.clone();
        self.grounds.await_carriers(&interrupt)?;
        let start = Instant::now();
        let (mut last, mut since): (Vec<Level>, Instant) = (Vec::new(), start);
        loop {
            let levels: Option<Vec<Level>> = self.levels().into_iter().collect();
            let levels = levels.unwrap_or_default();
            let same = |one: &[Level], other: &[Level]| {
                !one.is_empty()
                    && one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| one.beyond(other).is_empty())
            };
            if !same(&levels, &last) {
                since = Instant::now();
            }
            let idle = match wanted {
                Some(wanted) => same(&levels, wanted),
                None => levels.iter().all(Level::is_idle),
            };
            last = levels;
            let over = start.elapsed() > LONGEST_REST && !last.is_empty();
            if over || (idle && since.elapsed() >= REST) {
                return Ok(last);
            }
            self.interrupt.sleep(Duration::from_secs(1))?;
        }
    }

    fn tell(&mut self, what: &str, end: Instant, levels: &[Option<Level>]) {
        let counts = self.tally.counts();
        for fault in &counts.told[self.told..] {
            eprintln!("wrong: {fault}");
        }
        self.told = counts.told.len();
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        let ends = self.grounds.names().into_iter().zip(levels).map(|(name, level)| match level {
            Some(level) => format!("{name} {level}"),
            None => format!("{name} does not answer"),
        });
        eprintln!(
            "{what}, {}:{:02} left: {} loads, {} wrong, {} ended with their ground; {}",
            left / 60,
            left % 60,
            counts.loads(),
            counts.faults,
            counts.lost,
            ends.collect::<Vec<_>>().join("; ")
        );
    }

    /// Everything that can be said.
    pub(super) fn rows(&self) -> Vec<Row> {
        let counts = self.tally.counts();
        let mut rows = vec![judge::loads(&counts)];
        rows.push(Row {
            what: "loads that ended with a ground that was killed".into(),
            measured: counts.lost.to_string(),
            bound: "none, printed".into(),
            verdict: Verdict::Told,
        });
        rows.extend(self.watched.iter().flat_map(|watched| judge::end(watched, PERIOD)));
        let Grounds { remote, caught, ground, .. } = &self.grounds;
        let complaints: Vec<_> = [remote, caught, ground].into_iter().flat_map(End::complaints).collect();
        rows.push(judge::none("errors and panics in the ends' logs", &complaints, "none"));
        if let Some(down) = &self.down {
            rows.push(judge::none("files that the ends made and kept", &self.kept, "none"));
            rows.push(judge::none("SIGTERM", down, "all end in order and leave no socket"));
        }
        rows
    }

    /// All samples.
    pub(super) fn watched(&self) -> &[Watched] {
        &self.watched
    }

    /// How many loads of each kind went as they had to.
    pub(super) fn loads(&self) -> BTreeMap<&'static str, u64> {
        self.tally.counts().good
    }
}
