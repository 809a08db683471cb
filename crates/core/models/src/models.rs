//! All models, by whose they are and of what: learning, foresight, and what is forgotten for want of room.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use crate::foresight::Foreseen;
use crate::model::Model;
use crate::pattern::{plain, template};
use crate::visit::{Policies, User, Visit};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all models together, about. Those used the longest ago go first.
    pub bytes: usize,
}

/// Whose a model is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// Everyone's.
    All,
    /// One user's.
    Own(User),
}

/// Of what a model is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// The page at this URL.
    Page(String),
    /// Pages whose URLs are like this.
    Template(String),
}

impl Of {
    pub(crate) fn text(&self) -> &str {
        match self {
            Of::Page(text) | Of::Template(text) => text,
        }
    }

    /// The host, as URLs write it.
    pub(crate) fn host(&self) -> Option<String> {
        Some(Url::parse(self.text()).ok()?.host_str()?.to_owned())
    }
}

/// A model with its place among those that may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) model: Model,
    /// By the clock of uses.
    pub(crate) used: u64,
    size: usize,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    limits: Limits,
    pub(crate) kept: BTreeMap<(Whose, Of), Kept>,
    bytes: usize,
    clock: u64,
}

/// Longer URLs of pages are not learned.
pub(crate) const LONGEST_PAGE: usize = 1024;

impl Models {
    /// No models yet.
    pub fn new(limits: Limits) -> Self {
        Models { limits, kept: BTreeMap::new(), bytes: 0, clock: 0 }
    }

    /// Bytes of all models, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many models there are.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Other limits hold from now on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
        self.make_room();
    }

    /// A visit has ended, at `now` in Unix seconds.
    pub fn learn(&mut self, visit: &Visit, now: u64) {
        let page = plain(&visit.page);
        if page.len() > LONGEST_PAGE || !matches!(visit.page.scheme(), "http" | "https") {
            return;
        }
        let like = template(&visit.page);
        for whose in [Whose::Own(visit.user.clone()), Whose::All] {
            let of_page = (whose.clone(), Of::Page(page.clone()));
            // A template is taught by pages, each once: what one of them shows at each visit is not what they all show.
            if let Some(like) = like.clone().filter(|_| !self.kept.contains_key(&of_page)) {
                self.teach((whose, Of::Template(like)), visit, now);
            }
            self.teach(of_page, visit, now);
        }
        self.make_room();
    }

    fn teach(&mut self, key: (Whose, Of), visit: &Visit, now: u64) {
        self.clock += 1;
        let for_all = key.0 == Whose::All;
        let own = key.1.text().len();
        let kept = self.kept.entry(key).or_insert_with(|| Kept { model: Model::default(), used: 0, size: 0 });
        kept.model.learn(visit, for_all, now);
        kept.used = self.clock;
        let size = own + size_of::<(Whose, Of)>() + kept.model.size();
        self.bytes = self.bytes + size - kept.size;
        kept.size = size;
    }

    /// What was read from a file, used at this time of the clock, unless there is no room for it or it is known better.
    pub(crate) fn restore(&mut self, whose: Whose, of: Of, model: Model, used: u64) {
        let key = (whose, of);
        let size = key.1.text().len() + size_of::<(Whose, Of)>() + model.size();
        if self.kept.contains_key(&key) || self.bytes + size > self.limits.bytes {
            return;
        }
        self.clock = self.clock.max(used);
        self.bytes += size;
        self.kept.insert(key, Kept { model, used, size });
    }

    fn make_room(&mut self) {
        while self.bytes > self.limits.bytes {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            let Some(gone) = oldest.and_then(|key| self.kept.remove(&key)) else { return };
            self.bytes -= gone.size;
        }
    }

    /// `user` asks for `page` at `now`, in Unix seconds: what follows, what is needed first at the front, and what the page
    /// said when it was last seen. What the user has shown counts before what others have.
    pub fn foresee(&mut self, user: &User, page: &Url, now: u64) -> (Policies, Vec<Foreseen>) {
        let of_page = Of::Page(plain(page));
        let of_template = template(page).map(Of::Template);
        let (mut known, mut foreseen) = (BTreeSet::new(), Vec::new());
        let mut policies = None;
        self.clock += 1;
        for whose in [Whose::Own(user.clone()), Whose::All] {
            let own = whose != Whose::All;
            // Who knows the page need not guess at it from others like it.
            for of in [Some(&of_page), of_template.as_ref()].into_iter().flatten() {
                let Some(kept) = self.kept.get_mut(&(whose.clone(), of.clone())) else { continue };
                kept.used = self.clock;
                foreseen.extend(kept.model.foresee(own, now, &mut known));
                policies.get_or_insert_with(|| kept.model.policies.clone());
                if own {
                    break;
                }
            }
        }
        foreseen.sort_by_key(|(delay, one)| (one.needs.urgency.unwrap_or(3), *delay));
        (policies.unwrap_or_default(), foreseen.into_iter().map(|(_, one)| one).collect())
    }

    /// Forgets what is known of pages of this host, or everything. Gives how many models that were.
    pub fn erase(&mut self, host: Option<&str>) -> usize {
        let before = self.kept.len();
        let is_meant = |of: &Of| host.is_none_or(|host| of.host().as_deref() == Some(host));
        self.kept.retain(|(_, of), _| !is_meant(of));
        self.bytes = self.kept.values().map(|kept| kept.size).sum();
        before - self.kept.len()
    }
}
