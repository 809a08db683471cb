//! The model of one page, or of one template: the resources that follow it, and what each visit has shown of them.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use crate::foresight::{Foreseen, Means};
use crate::history::History;
use crate::needs::Needs;
use crate::pattern::pattern;
use crate::visit::{Asked, Policies, Showers, Visit};

/// Bytes of one model; what is least sure goes first. Room for the 2,000 resources of a visit, with URLs of 80 characters and two
/// users who have shown each.
const MOST_BYTES: usize = 800 * 1024;
/// Longer URLs are not learned.
pub const LONGEST_URL: usize = 1024;
/// What nobody has asked for in so many seconds is forgotten.
const FORGOTTEN: u64 = 180 * 24 * 3600;
/// What is less sure than this after [`SEEN`] visits is forgotten.
const HOPELESS: f64 = 0.1;
const SEEN: u32 = 4;
/// Where several modules import one, it is a race whose name it is asked for in. After so many visits in which it was the same one,
/// it is taken to be no race.
pub(crate) const STEADY: u8 = 4;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) visits: u32,
    /// The last one, Unix seconds.
    pub(crate) at: u64,
    /// Of what was sent of late before anyone asked: how many percent were used.
    pub(crate) trust: u8,
    pub(crate) policies: Policies,
    pub(crate) resources: Vec<Resource>,
}

/// A resource, and what is known of its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) url: Url,
    pub(crate) needs: Needs,
    pub(crate) history: History,
    /// When it was last asked for, Unix seconds.
    pub(crate) at: u64,
    /// How long after the page it is asked for.
    pub(crate) delay_ms: u32,
    /// `Some` while it may serve nobody.
    pub(crate) shown_by: Option<Showers>,
    /// In how many visits, up to [`STEADY`], it was asked for in the same name since that was another, as far as that matters.
    pub(crate) steady: u8,
}

impl Default for Model {
    fn default() -> Self {
        Model { visits: 0, at: 0, trust: 100, policies: Policies::unheard(), resources: Vec::new() }
    }
}

impl Model {
    /// A visit at `now` teaches the model, which is the user's own or `for_all`.
    pub(crate) fn learn(&mut self, visit: &Visit, for_all: bool, now: u64) {
        self.visits = self.visits.saturating_add(1);
        self.at = now;
        if let Some(policies) = &visit.policies {
            self.policies = policies.kept(for_all);
        }
        if let Some(share) = visit.used.saturating_mul(100).checked_div(visit.sent) {
            self.trust = ((u32::from(self.trust) * 3 + share.min(100)) / 4) as u8;
        }
        let may = |asked: &&Asked| {
            asked.needs.may_be_learned()
                && (!for_all || asked.anyones && asked.needs.may_be_shared())
                && asked.url.as_str().len() <= LONGEST_URL
                && matches!(asked.url.scheme(), "http" | "https")
        };
        let mut asked: BTreeMap<&Url, &Asked> = BTreeMap::new();
        for one in visit.asked.iter().filter(may) {
            asked.entry(&one.url).or_insert(one);
        }
        let mut missed = Vec::new();
        for (place, resource) in self.resources.iter_mut().enumerate() {
            match asked.remove(&resource.url) {
                Some(one) => resource.again(one, visit, now),
                None if visit.otherwise.contains(&resource.url) => {
                    resource.history.push(true);
                    (resource.at, resource.steady) = (now, 0);
                }
                None if visit.unknown.contains(&resource.url) => {}
                None => missed.push(place),
            }
        }
        self.renamed(&mut missed, &mut asked, visit, for_all, now);
        for place in missed {
            self.resources[place].history.push(false);
        }
        self.resources.extend(asked.into_values().map(|one| Resource::new(one, visit, for_all, now)));
        self.forget(now);
    }

    /// What one file was called before and is called now: it is not foreseen by its old name again, and the new one has to
    /// prove that it stays.
    fn renamed(
        &mut self,
        missed: &mut Vec<usize>,
        asked: &mut BTreeMap<&Url, &Asked>,
        visit: &Visit,
        for_all: bool,
        now: u64,
    ) {
        let mut patterns: BTreeMap<String, (Vec<usize>, Vec<Url>)> = BTreeMap::new();
        for place in missed.iter() {
            patterns.entry(pattern(&self.resources[*place].url)).or_default().0.push(*place);
        }
        for url in asked.keys() {
            patterns.entry(pattern(url)).or_default().1.push((*url).clone());
        }
        // Several of one pattern are a list, of which nobody knows which has become which.
        for (old, new) in patterns.into_values() {
            let ([place], [url]) = (&old[..], &new[..]) else { continue };
            let Some(one) = asked.remove(url) else { continue };
            missed.retain(|missed| missed != place);
            let mut history = self.resources[*place].history;
            history.push(false);
            self.resources[*place] = Resource { history, ..Resource::new(one, visit, for_all, now) };
        }
    }

    fn forget(&mut self, now: u64) {
        self.resources.retain(|resource| {
            let hopeless = resource.history.counts().0 >= SEEN && resource.confidence(now) < HOPELESS;
            !hopeless && now.saturating_sub(resource.at) < FORGOTTEN
        });
        let mut size = self.size();
        if size > MOST_BYTES {
            // The order among equals is that in which they came.
            self.resources.sort_by(|a, b| b.confidence(now).total_cmp(&a.confidence(now)));
            while size > MOST_BYTES
                && let Some(gone) = self.resources.pop()
            {
                size -= gone.size();
            }
        }
    }

    /// What it knows of at `now`, for the user whose `own` it is, or for all; nothing of what is in `known`, to which it adds.
    pub(crate) fn foresee(&self, own: bool, now: u64, known: &mut BTreeSet<Url>) -> Vec<(u32, Foreseen)> {
        let mut foreseen = Vec::new();
        for resource in self.resources.iter().filter(|resource| resource.shown_by.is_none()) {
            if !known.insert(resource.url.clone()) {
                continue;
            }
            let one = Foreseen {
                url: resource.url.clone(),
                needs: resource.needs.clone(),
                confidence: (resource.confidence(now) * 100.0) as u8,
                means: resource.means(self.trust, now),
                own,
            };
            foreseen.push((resource.delay_ms, one));
        }
        foreseen
    }

    /// Bytes, about.
    pub(crate) fn size(&self) -> usize {
        let resources: usize = self.resources.iter().map(Resource::size).sum();
        size_of::<Self>() + self.policies.size() + resources
    }
}

impl Resource {
    fn new(asked: &Asked, visit: &Visit, for_all: bool, now: u64) -> Self {
        let mut history = History::default();
        history.push(true);
        Resource {
            url: asked.url.clone(),
            needs: asked.needs.clone(),
            history,
            at: now,
            delay_ms: milliseconds(asked),
            shown_by: for_all.then(|| Showers::first(&visit.user)),
            steady: STEADY,
        }
    }

    fn again(&mut self, asked: &Asked, visit: &Visit, now: u64) {
        self.history.push(true);
        self.at = now;
        let is_same = asked.foreseen || asked.needs.initiator == self.needs.initiator;
        self.steady = if is_same || !asked.unkept { STEADY.min(self.steady + 1) } else { 0 };
        if !asked.foreseen {
            self.needs = asked.needs.clone();
        }
        // A quarter of what is new: one slow visit changes little.
        let mixed = (u64::from(self.delay_ms) * 3 + u64::from(milliseconds(asked))) / 4;
        self.delay_ms = mixed as u32;
        if self.shown_by.as_mut().is_some_and(|shown| shown.note(&visit.user)) {
            self.shown_by = None;
        }
    }

    /// See [`History::confidence`].
    pub(crate) fn confidence(&self, now: u64) -> f64 {
        self.history.confidence(now.saturating_sub(self.at))
    }

    /// What the next visit does, in a model of which so many percent of what was sent is used.
    pub(crate) fn means(&self, trust: u8, now: u64) -> Option<Means> {
        let means = Means::of(self.confidence(now), trust);
        if self.steady < STEADY { means.map(|means| means.min(Means::Connect)) } else { means }
    }

    pub(crate) fn size(&self) -> usize {
        let shown = self.shown_by.as_ref().map_or(0, Showers::size);
        size_of::<Self>() + self.url.as_str().len() + self.needs.size() + shown
    }
}

fn milliseconds(asked: &Asked) -> u32 {
    u32::try_from(asked.delay.as_millis()).unwrap_or(u32::MAX)
}
