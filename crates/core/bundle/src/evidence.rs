//! Whether fetching unasked helps a site: a few loads of its pages are done with less of it, in between all others, and how
//! long they take is compared. What makes pages slower is given up, site by site, and taken up again once it helps.
//!
//! ```text
//!   a load begins ──► in every block of so many loads one is done another way ──► its requests, until it is quiet
//!                                                                                          │ seconds
//!        the way that a site's loads are done ◄── slower than another way, and not by chance ◄─┘
//! ```
//!
//! Loads are compared only with loads of like pages: a Wilcoxon–Mann–Whitney test (Mann and Whitney 1947) stratified as by van
//! Elteren (1960) says whether a difference is chance, the median of all differences (Hodges and Lehmann 1963) how large it is.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::site::site;

/// A page on which nothing is under way for so long is loaded.
const QUIET: Duration = Duration::from_secs(3);
/// What goes on for longer is no load but a conversation.
const LONGEST: Duration = Duration::from_secs(120);
/// Loads of a site before the first that is done another way: there has to be something to compare with.
const FIRST: usize = 8;
/// Loads of each way that a comparison takes at the least.
const LEAST: usize = 5;
/// Loads of each way that are remembered of a site, and for how long.
const MOST_TRIALS: usize = 32;
const MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A way that takes this many times as long as another is slower: "never slower than direct" is within 3 %.
const SLOWER: f64 = 1.03;
/// Standard deviations above which a difference is no chance: one in a hundred, one-sided. Each load is another look at the
/// same numbers, so that chance has its way more often; what it does is undone by the same rule.
const UNLIKELY: f64 = 2.33;
/// Sites that are remembered, and loads that are watched at a time.
const MOST_SITES: usize = 1024;
const MOST_LOADS: usize = 4096;

/// How much is fetched unasked for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Eagerness {
    /// Nothing.
    Nothing,
    /// What its documents and stylesheets name, and no guesses.
    Named,
    /// All that it may need.
    #[default]
    All,
}

impl Eagerness {
    const EVERY: [Eagerness; 3] = [Eagerness::Nothing, Eagerness::Named, Eagerness::All];

    /// As it is called on the hop and in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Eagerness::Nothing => "nothing",
            Eagerness::Named => "named",
            Eagerness::All => "all",
        }
    }

    /// What this word stands for; all else is everything.
    pub fn named(word: &str) -> Eagerness {
        Eagerness::EVERY.into_iter().find(|known| known.as_str() == word).unwrap_or_default()
    }
}

/// What is known of sites. Told the time; its interleaving follows from `seed`.
#[derive(Debug)]
pub struct Evidence {
    seed: u64,
    sites: HashMap<Arc<str>, Site>,
    /// By the exchange of the document.
    loads: HashMap<u64, Watched>,
    /// Exchanges under way, each with its load.
    exchanges: HashMap<u64, u64>,
}

/// A change of how the loads of a site are done.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Scheme and registrable domain.
    pub site: Arc<str>,
    /// How they were done.
    pub before: Eagerness,
    /// How they are done from now on.
    pub now: Eagerness,
    /// How many times as long they took before.
    pub ratio: f64,
    /// Loads of both ways that say so.
    pub loads: (usize, usize),
}

/// What is known of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Scheme and registrable domain.
    pub site: Arc<str>,
    /// How its loads are done.
    pub now: Eagerness,
    /// Loads that are remembered of each way, the least eager first.
    pub loads: [usize; 3],
}

#[derive(Debug, Default)]
struct Site {
    now: Eagerness,
    /// Loads begun.
    begun: u64,
    used: Duration,
    trials: [VecDeque<Trial>; 3],
}

/// A load that has been timed.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// Of like pages.
    kind: u64,
    /// Natural logarithm of the seconds that it took.
    log_s: f64,
    at: Duration,
}

#[derive(Debug)]
struct Watched {
    user: Arc<str>,
    site: Arc<str>,
    kind: u64,
    way: Eagerness,
    begun: Duration,
    last: Duration,
    under_way: u32,
    requests: u32,
    /// Its document was asked for across the hop, or ground is told of it: the way mattered.
    crossed: bool,
    is_over: bool,
    is_spoilt: bool,
}

impl Watched {
    fn is_quiet(&self, now: Duration) -> bool {
        self.under_way == 0 && now.saturating_sub(self.last) >= QUIET
    }
}

impl Evidence {
    /// Nothing known yet.
    pub fn new(seed: u64) -> Evidence {
        Evidence { seed, sites: HashMap::new(), loads: HashMap::new(), exchanges: HashMap::new() }
    }

    /// A load of `url` by `user` begins, whose document `load` fetches. Gives how it is to be done: as its site's loads are, but
    /// for one in each block of `every`.
    pub fn begin(&mut self, user: &Arc<str>, load: u64, url: &Url, every: u64, now: Duration) -> Eagerness {
        // What is left half loaded says nothing, nor do two that share the link.
        for other in self.loads.values_mut().filter(|other| other.user == *user) {
            other.is_spoilt |= !other.is_over && !other.is_quiet(now);
        }
        let name: Arc<str> = site(url).into();
        if !self.sites.contains_key(&name) && self.sites.len() >= MOST_SITES {
            let unused =
                self.sites.iter().min_by_key(|(_, site)| site.used).map(|(name, _)| Arc::clone(name));
            if let Some(unused) = unused {
                self.sites.remove(&unused);
            }
        }
        let block = hash(&(self.seed, &name));
        let site = self.sites.entry(Arc::clone(&name)).or_default();
        site.used = now;
        let way = site.next(every.max(2), block);
        if self.loads.len() < MOST_LOADS {
            let watched = Watched {
                user: Arc::clone(user),
                site: name,
                kind: kind(url),
                way,
                begun: now,
                last: now,
                under_way: 0,
                requests: 0,
                crossed: false,
                is_over: false,
                is_spoilt: false,
            };
            self.loads.insert(load, watched);
        }
        way
    }

    /// The load of `before`, whose document a redirect has led on, goes on as that of `load`: it is done the same way, and timed from
    /// its beginning. `None` where it is not watched any more.
    pub fn goes_on(&mut self, before: u64, load: u64) -> Option<Eagerness> {
        let way = self.way(before)?;
        let mut watched = self.loads.remove(&before)?;
        // What its document comes by shows now.
        watched.crossed = false;
        self.loads.insert(load, watched);
        self.exchanges.values_mut().filter(|of| **of == before).for_each(|of| *of = load);
        Some(way)
    }

    /// How `load` is done, as long as it is watched.
    pub fn way(&self, load: u64) -> Option<Eagerness> {
        self.loads.get(&load).filter(|watched| !watched.is_over).map(|watched| watched.way)
    }

    /// `exchange` begins, a request of the page of `load`.
    pub fn asks(&mut self, exchange: u64, load: u64, now: Duration) {
        let Some(watched) = self.loads.get_mut(&load) else { return };
        watched.is_over |= watched.requests > 0 && watched.is_quiet(now);
        if !watched.is_over {
            watched.under_way += 1;
            watched.requests += 1;
            self.exchanges.insert(exchange, load);
        }
    }

    /// `exchange` is asked across the hop.
    pub fn crosses(&mut self, exchange: u64) {
        if let Some(watched) = self.loads.get_mut(&exchange) {
            watched.crossed = true;
        }
    }

    /// The document of `exchange` is held, and ground does its part all the same. Such a load is compared with no other kind: it
    /// takes a round trip less.
    pub fn held(&mut self, exchange: u64) {
        if let Some(watched) = self.loads.get_mut(&exchange).filter(|watched| !watched.crossed) {
            watched.crossed = true;
            watched.kind = hash(&(watched.kind, "held"));
        }
    }

    /// `exchange` was not answered as it should have been: its load says nothing.
    pub fn spoil(&mut self, exchange: u64) {
        if let Some(watched) = self.exchanges.get(&exchange).and_then(|load| self.loads.get_mut(load)) {
            watched.is_spoilt = true;
        }
    }

    /// `exchange` has ended.
    pub fn settled(&mut self, exchange: u64, now: Duration) {
        let Some(load) = self.exchanges.remove(&exchange) else { return };
        if let Some(watched) = self.loads.get_mut(&load) {
            watched.under_way -= 1;
            watched.last = now;
        }
    }

    /// Takes in what the loads show that are over by now, and gives what follows from it.
    pub fn close(&mut self, now: Duration) -> Vec<Finding> {
        let is_done = |watched: &Watched| {
            (watched.is_over && watched.under_way == 0)
                || watched.is_quiet(now)
                || now.saturating_sub(watched.begun) > LONGEST
        };
        let done: Vec<u64> =
            self.loads.iter().filter(|(_, watched)| is_done(watched)).map(|(load, _)| *load).collect();
        let mut findings = Vec::new();
        for load in done {
            let Some(watched) = self.loads.remove(&load) else { continue };
            let took = watched.last.saturating_sub(watched.begun);
            // A document alone needs nothing that could be fetched for it.
            let counts = watched.under_way == 0 && watched.crossed && watched.requests > 1 && !took.is_zero();
            let Some(site) = self.sites.get_mut(&watched.site).filter(|_| counts && !watched.is_spoilt)
            else {
                continue;
            };
            site.take(watched.way, Trial { kind: watched.kind, log_s: took.as_secs_f64().ln(), at: now });
            findings.extend(site.judge(&watched.site));
        }
        let open = &self.loads;
        self.exchanges.retain(|_, load| open.contains_key(load));
        findings
    }

    /// What is known of at most so many sites, those used last first.
    pub fn known(&self, most: usize) -> Vec<Known> {
        let mut sites: Vec<_> = self.sites.iter().collect();
        sites.sort_by(|(a, one), (b, other)| (other.used, a).cmp(&(one.used, b)));
        let known = |(name, site): (&Arc<str>, &Site)| Known {
            site: Arc::clone(name),
            now: site.now,
            loads: site.trials.each_ref().map(VecDeque::len),
        };
        sites.into_iter().take(most).map(known).collect()
    }
}

impl Site {
    /// How the next load is done.
    fn next(&mut self, every: u64, seed: u64) -> Eagerness {
        let (block, place) = (self.begun / every, self.begun % every);
        self.begun += 1;
        let is_other = hash(&(seed, block)) % every == place;
        if !is_other || self.of(self.now).len() < FIRST {
            return self.now;
        }
        // Both others in turn.
        let mut others = Eagerness::EVERY.into_iter().filter(|way| *way != self.now);
        others.nth((block % 2) as usize).unwrap_or(self.now)
    }

    fn of(&self, way: Eagerness) -> &VecDeque<Trial> {
        &self.trials[way as usize]
    }

    fn take(&mut self, way: Eagerness, trial: Trial) {
        for trials in &mut self.trials {
            trials.retain(|old| trial.at.saturating_sub(old.at) <= MEMORY);
        }
        let trials = &mut self.trials[way as usize];
        trials.push_back(trial);
        if trials.len() > MOST_TRIALS {
            trials.pop_front();
        }
    }

    /// Goes over to the way that is quickest, if the present one is slower.
    fn judge(&mut self, name: &Arc<str>) -> Option<Finding> {
        let others = Eagerness::EVERY.into_iter().filter(|way| *way != self.now);
        let slower = others.filter_map(|way| {
            let found = compare(self.of(self.now), self.of(way))?;
            (found.ratio > SLOWER && found.deviations > UNLIKELY).then_some((way, found))
        });
        let (now, found) = slower.max_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio))?;
        let before = std::mem::replace(&mut self.now, now);
        Some(Finding { site: Arc::clone(name), before, now, ratio: found.ratio, loads: found.loads })
    }
}

struct Compared {
    /// How many times as long the first ones took.
    ratio: f64,
    deviations: f64,
    loads: (usize, usize),
}

/// Compares loads of like pages; `None` where there are too few.
fn compare(a: &VecDeque<Trial>, b: &VecDeque<Trial>) -> Option<Compared> {
    let mut kinds: Vec<u64> = a.iter().map(|trial| trial.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of = |trials: &VecDeque<Trial>, kind: u64| -> Vec<f64> {
        trials.iter().filter(|trial| trial.kind == kind).map(|trial| trial.log_s).collect()
    };
    let (mut differences, mut above, mut variance) = (Vec::new(), 0.0, 0.0);
    let mut loads = (0, 0);
    for kind in kinds {
        let (a, b) = (of(a, kind), of(b, kind));
        if b.is_empty() {
            continue;
        }
        loads = (loads.0 + a.len(), loads.1 + b.len());
        let (n, m) = (a.len() as f64, b.len() as f64);
        for one in &a {
            for other in &b {
                differences.push(one - other);
                // Mann and Whitney's U: pairs in which the first took longer, equal ones half.
                above += match one.total_cmp(other) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
            }
        }
        above -= n * m / 2.0;
        variance += n * m * (n + m + 1.0) / 12.0;
    }
    if loads.0 < LEAST || loads.1 < LEAST {
        return None;
    }
    let middle = differences.len() / 2;
    let (_, shift, _) = differences.select_nth_unstable_by(middle, f64::total_cmp);
    Some(Compared { ratio: shift.exp(), deviations: above / variance.sqrt(), loads })
}

/// Pages are alike whose paths differ only in numbers; what a query asks for is no difference.
fn kind(url: &Url) -> u64 {
    let mut shape = String::new();
    for symbol in url.path().chars() {
        match symbol.is_ascii_digit() {
            true if shape.ends_with('0') => {}
            true => shape.push('0'),
            false => shape.push(symbol),
        }
    }
    hash(&(url.host_str(), shape))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
