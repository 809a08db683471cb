//! Which load is next, and when there are enough. Pure: what was measured comes in, the next cell goes out.
//!
//! Repetition by repetition, within each link by link and page by page; the variants of one page on one link one after the
//! other, beginning with another one in each repetition, so that what the machine does meanwhile falls on all of them and
//! each repetition gives pairs. They go on together until each is known well enough or the most was done.

use std::collections::{BTreeMap, HashMap};

use farhop_statistics::Summary;

use crate::journal::Run;
use crate::plan::{Cell, Plan};

/// See the module.
#[derive(Debug)]
pub struct Course<'a> {
    plan: &'a Plan,
    /// For each cell, the value of the goal in each repetition that was made; none where it gave none.
    values: HashMap<Cell, BTreeMap<u32, Option<f64>>>,
}

/// What is to be loaded next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// What.
    pub cell: Cell,
    /// The repetition, from 0.
    pub round: u32,
    /// Its seed: the same for every variant.
    pub seed: u64,
}

impl<'a> Course<'a> {
    /// A course in which these loads are made already.
    pub fn new(plan: &'a Plan, made: &[Run]) -> Course<'a> {
        let mut course = Course { plan, values: HashMap::new() };
        made.iter().for_each(|run| course.made(run));
        course
    }

    /// A load was made.
    pub fn made(&mut self, run: &Run) {
        let Some(cell) = run.cell(self.plan) else { return };
        let goal = run.values.get(self.plan.goal.name()).copied().filter(|_| run.counts());
        self.values.entry(cell).or_default().insert(run.round, goal);
    }

    fn count(&self, cell: Cell) -> u32 {
        self.values.get(&cell).map_or(0, |values| values.len() as u32)
    }

    fn has(&self, cell: Cell, round: u32) -> bool {
        self.values.get(&cell).is_some_and(|values| values.contains_key(&round))
    }

    /// The first repetition of a cell that is not made. Later ones may be, where this one did not stand.
    fn open(&self, cell: Cell) -> u32 {
        (0..).find(|round| !self.has(cell, *round)).unwrap_or(u32::MAX)
    }

    /// Whether what is known of a cell is known well enough.
    pub fn is_settled(&self, cell: Cell) -> bool {
        let values = self.values.get(&cell).into_iter().flat_map(BTreeMap::values).flatten().copied();
        Summary::of(values).is_some_and(|summary| summary.is_within(self.plan.runs.within))
    }

    /// Whether a page on a link has all its repetitions.
    fn is_done(&self, link: usize, page: usize) -> bool {
        let runs = &self.plan.runs;
        let cells = || (0..self.plan.variants.len()).map(|variant| Cell { link, page, variant });
        let rounds = cells().map(|cell| self.open(cell)).min().unwrap_or(0);
        // A repetition that was begun is finished: else it would give no pairs.
        let even = cells().all(|cell| self.open(cell) == rounds);
        let hopeless =
            |cell| self.values.get(&cell).is_some_and(|values| values.values().all(Option::is_none));
        let enough = rounds >= runs.least
            && (runs.least == runs.most || cells().all(|cell| self.is_settled(cell) || hopeless(cell)));
        rounds >= runs.most || even && enough
    }

    /// The next load; none when all is known.
    pub fn next(&self) -> Option<Next> {
        self.next_besides(&[], None)
    }

    /// The next load on a link and a page that nobody is at; on this link, if there is as good a one.
    pub(crate) fn next_besides(&self, busy: &[(usize, usize)], at: Option<usize>) -> Option<Next> {
        let plan = self.plan;
        let groups =
            (0..plan.links.len()).flat_map(|link| (0..plan.pages.len()).map(move |page| (link, page)));
        let open: Vec<(usize, usize)> =
            groups.filter(|group| !busy.contains(group) && !self.is_done(group.0, group.1)).collect();
        let round = open.iter().map(|group| self.round_of(*group)).min()?;
        let next = || open.iter().copied().filter(|group| self.round_of(*group) == round);
        let group = next().find(|(link, _)| Some(*link) == at).or_else(|| next().next())?;
        self.next_of(group, round)
    }

    /// The next load of a repetition of a page on a link; none when it is done.
    pub(crate) fn next_of(&self, (link, page): (usize, usize), round: u32) -> Option<Next> {
        let plan = self.plan;
        let variants = plan.variants.len();
        let order = (0..variants).map(|place| (place + round as usize) % variants);
        let mut cells = order.map(|variant| Cell { link, page, variant });
        let cell = cells.find(|cell| !self.has(*cell, round))?;
        Some(Next { cell, round, seed: plan.seed + u64::from(round) })
    }

    /// The repetition that a page on a link is at.
    fn round_of(&self, (link, page): (usize, usize)) -> u32 {
        let cells = (0..self.plan.variants.len()).map(|variant| Cell { link, page, variant });
        cells.map(|cell| self.open(cell)).min().unwrap_or(0)
    }

    /// Whether every cell has a load at least, whatever came of it.
    pub(crate) fn is_begun_everywhere(&self) -> bool {
        self.plan.cells().into_iter().all(|cell| self.count(cell) > 0)
    }

    /// How many loads are still to be made: at least, and at most.
    pub fn left(&self) -> [u64; 2] {
        let mut left = [0, 0];
        for cell in self.plan.cells() {
            if self.is_done(cell.link, cell.page) {
                continue;
            }
            let count = self.count(cell);
            left[0] += u64::from(self.plan.runs.least.saturating_sub(count));
            left[1] += u64::from(self.plan.runs.most.saturating_sub(count));
        }
        left
    }
}
