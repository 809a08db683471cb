//! BACOPT's component manager (Davern et al. 2012, §3), as far as it concerns what makes bodies small: while the link or the
//! processor is loaded, rules move users and what is fetched for them to an image policy that makes less of a load, and back.
//! Pure: the time, what was sent and how busy the processor is are passed in, and what changes comes out with its reason.
//!
//! Call [`Manager::handle_sent`] for what goes out, [`Manager::handle_timeout`] whenever [`Manager::poll_timeout`] says, then
//! [`Manager::poll_change`] until it gives nothing. For each link and rule:
//!
//! ```text
//!   idle ──at 'above' or more──► rising ──for 'hold'──► in force ──under 'below'──► falling ──for 'hold'──► idle
//!     ▲                            │ less                   ▲                          │ more
//!     └────────────────────────────┘                        └──────────────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::Policy;

/// Time over which load is averaged: what was sent so long ago counts for 1/e of what is sent now. A page is a burst of a few
/// seconds, and no reason.
const AVERAGED: Duration = Duration::from_secs(5);
/// How often a link that is in use is judged.
const LOOK: Duration = Duration::from_millis(500);
/// Users of a link that are told apart.
const USERS: usize = 1024;
/// A user who takes this many times an equal share is a heavy one, and is none any more under that many.
const HEAVY: f64 = 1.25;
const NOT_HEAVY: f64 = 0.75;
/// Whoever takes less of what is sent does not count among those who share it.
const TRIFLE: f64 = 0.01;
/// Bytes: less than that is nothing.
const NOTHING: f64 = 64.0;

/// What a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The share of the link's rate that is in use.
    Link,
    /// The share of the saved-up processor time that is used up ([`crate::CpuBudget::used`]).
    Cpu,
}

/// Whom a rule moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Everybody behind the link.
    All,
    /// Who takes more than an equal share of what is sent, while others are there.
    Heavy,
}

/// What is moved of what is fetched for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// All of it.
    All,
    /// What they ask for.
    Asked,
    /// What is sent before they ask.
    Unasked,
}

macro_rules! words {
    ($($kind:ident: $wrong:literal, $($word:ident = $text:literal),*;)*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($kind::$word => $text),* })
            }
        }

        impl FromStr for $kind {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text { $($text => Ok($kind::$word),)* _ => Err(UnknownWord($wrong)) }
            }
        }
    )*};
}

/// No such word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not one of {0}")]
pub struct UnknownWord(&'static str);

words! {
    Signal: "link, cpu", Link = "link", Cpu = "cpu";
    Users: "all, heavy", All = "all", Heavy = "heavy";
    Service: "all, asked, unasked", All = "all", Asked = "asked", Unasked = "unasked";
}

/// Under which load who is moved to which policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it looks at.
    pub when: Signal,
    /// From which load on it is in force (1.0: all of it).
    pub above: f64,
    /// Under which load it is not any more.
    pub below: f64,
    /// For how long the load has to be so.
    pub hold: Duration,
    /// Whom it moves.
    pub users: Users,
    /// What of theirs.
    pub service: Service,
    /// To which policy. One that changes more already stays.
    pub policy: Policy,
}

/// That somebody was moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Whose users: the remote.
    pub link: Arc<str>,
    /// Who; all of them where there is none.
    pub user: Option<u64>,
    /// The number of the rule that moved them.
    pub rule: usize,
    /// What of theirs.
    pub service: Service,
    /// By which policy it went before.
    pub before: Policy,
    /// By which it goes now.
    pub policy: Policy,
    /// Why, in words.
    pub why: String,
}

/// What is in force on a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// Its name.
    pub link: Arc<str>,
    /// The share of its rate that is in use.
    pub in_use: f64,
    /// The number of each rule in force, with the users that it moves where it does not move all.
    pub rules: Vec<(usize, Vec<u64>)>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Manager {
    base: Policy,
    rules: Vec<Rule>,
    links: BTreeMap<Arc<str>, Link>,
    changes: VecDeque<Change>,
    next: Option<Duration>,
}

#[derive(Debug, Default)]
struct Link {
    rate: Option<BitRate>,
    all: Sent,
    users: BTreeMap<u64, Sent>,
    /// Of each rule.
    states: Vec<State>,
}

/// Bytes, of which those of long ago count for less.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    bytes: f64,
    at: Duration,
}

#[derive(Debug, Clone, Default)]
struct State {
    in_force: bool,
    /// Since when the load says that this should be otherwise.
    since: Option<Duration>,
    /// Whom it moves, where it does not move everybody.
    moved: BTreeSet<u64>,
}

impl Manager {
    /// Puts other rules into force, over `base`, the policy without load. Whoever was moved by the old ones is moved back, unless
    /// the rules are the same.
    pub fn set(&mut self, base: Policy, rules: Vec<Rule>) {
        if self.base == base && self.rules == rules {
            return;
        }
        for (link, state, number, rule) in self.links.iter().flat_map(|(link, known)| {
            let rules = self.rules.iter().enumerate();
            known.states.iter().zip(rules).map(move |(state, (number, rule))| (link, state, number, rule))
        }) {
            let users: Vec<Option<u64>> = match rule.users {
                Users::All => Some(None).filter(|_| state.in_force).into_iter().collect(),
                Users::Heavy => state.moved.iter().copied().map(Some).collect(),
            };
            let before = rule.policy.max(self.base);
            for user in users.into_iter().filter(|_| before != base) {
                let (link, service, why) = (Arc::clone(link), rule.service, "the rules have changed".into());
                let change = Change { link, user, rule: number, service, before, policy: base, why };
                self.changes.push_back(change);
            }
        }
        (self.base, self.rules) = (base, rules);
        for link in self.links.values_mut() {
            link.states = vec![State::default(); self.rules.len()];
        }
    }

    /// Whether there is a rule at all.
    pub fn is_idle(&self) -> bool {
        self.rules.is_empty()
    }

    /// Bytes were given to the link of this name, which carries `rate`, for a user. True if it has to be judged sooner than
    /// [`poll_timeout`](Self::poll_timeout) said.
    pub fn handle_sent(
        &mut self,
        link: &Arc<str>,
        user: u64,
        bytes: Bytes,
        rate: Option<BitRate>,
        now: Duration,
    ) -> bool {
        if self.rules.is_empty() {
            return false;
        }
        let count = self.rules.len();
        let known = self.links.entry(Arc::clone(link)).or_default();
        known.states.resize(count, State::default());
        known.rate = rate;
        known.all.add(bytes, now);
        if known.users.len() < USERS || known.users.contains_key(&user) {
            known.users.entry(user).or_default().add(bytes, now);
        }
        let first = self.next.is_none();
        self.next.get_or_insert(now + LOOK);
        first
    }

    /// When to judge the links next; `None` while nothing is sent and nobody is moved.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.next
    }

    /// Judges every link; `cpu` is how much of the saved-up processor time is used up.
    pub fn handle_timeout(&mut self, cpu: f64, now: Duration) {
        let (base, rules) = (self.base, &self.rules);
        for (name, link) in &mut self.links {
            link.users.retain(|_, sent| sent.at(now) >= NOTHING);
            let before = link.states.clone();
            let use_of_link = link.in_use(now);
            for (rule, state) in rules.iter().zip(&mut link.states) {
                let load = match rule.when {
                    Signal::Link => use_of_link,
                    Signal::Cpu => cpu,
                };
                state.judge(rule, load, now);
                if rule.users == Users::Heavy {
                    state.moved = match state.in_force {
                        true => heavy(&link.users, &state.moved, now),
                        false => BTreeSet::new(),
                    };
                }
            }
            changes_of(name, base, rules, &before, &link.states, [use_of_link, cpu], &mut self.changes);
        }
        self.links.retain(|_, link| {
            let in_force = link.states.iter().any(|state| state.in_force || state.since.is_some());
            in_force || link.all.at(now) >= NOTHING
        });
        self.next = (!self.links.is_empty()).then_some(now + LOOK);
    }

    /// What has changed, oldest first.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The policy for what is fetched for a user behind a link, asked for or not.
    pub fn policy(&self, link: &str, user: u64, unasked: bool) -> Policy {
        let Some(known) = self.links.get(link) else { return self.base };
        policy_in(self.base, &self.rules, &known.states, Some(user), unasked)
    }

    /// Every link that is in use or whose users are moved.
    pub fn moved(&self, now: Duration) -> Vec<Moved> {
        let moved = |(name, link): (&Arc<str>, &Link)| {
            let states = link.states.iter().enumerate().filter(|(_, state)| state.in_force);
            let rules = states.map(|(number, state)| (number, state.moved.iter().copied().collect()));
            Moved { link: Arc::clone(name), in_use: link.in_use(now), rules: rules.collect() }
        };
        self.links.iter().map(moved).collect()
    }
}

impl Link {
    /// The share of its rate that is in use; none of a link that nothing limits.
    fn in_use(&self, now: Duration) -> f64 {
        let full = self.rate.map_or(f64::INFINITY, |rate| rate.0 as f64 / 8.0 * AVERAGED.as_secs_f64());
        if full > 0.0 { self.all.at(now) / full } else { 0.0 }
    }
}

impl Sent {
    fn at(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.bytes * (-passed / AVERAGED.as_secs_f64()).exp()
    }

    fn add(&mut self, bytes: Bytes, now: Duration) {
        // The clock of another thread may be read a little earlier and arrive a little later.
        let now = now.max(self.at);
        (self.bytes, self.at) = (self.at(now) + bytes.0 as f64, now);
    }
}

impl State {
    fn judge(&mut self, rule: &Rule, load: f64, now: Duration) {
        let should_turn = if self.in_force { load < rule.below } else { load >= rule.above };
        if !should_turn {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(now);
        if now.saturating_sub(since) >= rule.hold {
            (self.in_force, self.since) = (!self.in_force, None);
        }
    }
}

/// Who takes more than an equal share, of those who were moved under a bound of their own.
fn heavy(users: &BTreeMap<u64, Sent>, moved: &BTreeSet<u64>, now: Duration) -> BTreeSet<u64> {
    let all: f64 = users.values().map(|sent| sent.at(now)).sum();
    let counting = users.values().filter(|sent| sent.at(now) >= all * TRIFLE).count();
    let equal = all / counting.max(1) as f64;
    let is_heavy = |(user, sent): &(&u64, &Sent)| {
        let bound = if moved.contains(user) { NOT_HEAVY } else { HEAVY };
        let others = counting > 1 || moved.contains(user);
        others && sent.at(now) > equal * bound
    };
    users.iter().filter(is_heavy).map(|(user, _)| *user).collect()
}

fn policy_in(base: Policy, rules: &[Rule], states: &[State], user: Option<u64>, unasked: bool) -> Policy {
    let in_force = rules.iter().zip(states).filter(|(rule, state)| {
        let is_moved = match (rule.users, user) {
            (Users::All, _) => true,
            (Users::Heavy, Some(user)) => state.moved.contains(&user),
            (Users::Heavy, None) => false,
        };
        let is_meant = match rule.service {
            Service::All => true,
            Service::Asked => !unasked,
            Service::Unasked => unasked,
        };
        state.in_force && is_moved && is_meant
    });
    in_force.map(|(rule, _)| rule.policy).fold(base, Policy::max)
}

/// Tells of each rule that came into force or is not any more, and of each user that it moves.
fn changes_of(
    link: &Arc<str>,
    base: Policy,
    rules: &[Rule],
    before: &[State],
    after: &[State],
    [in_use, cpu]: [f64; 2],
    changes: &mut VecDeque<Change>,
) {
    for (number, rule) in rules.iter().enumerate() {
        let (old, new) = (&before[number], &after[number]);
        let users: Vec<Option<u64>> = match rule.users {
            Users::All if old.in_force != new.in_force => vec![None],
            Users::All => Vec::new(),
            Users::Heavy => old.moved.symmetric_difference(&new.moved).copied().map(Some).collect(),
        };
        let load = match rule.when {
            Signal::Link => in_use,
            Signal::Cpu => cpu,
        };
        for user in users {
            let unasked = rule.service == Service::Unasked;
            let comes = user.map_or(new.in_force, |user| new.moved.contains(&user));
            let by_share = user.is_some() && old.in_force && new.in_force;
            let policy = policy_in(base, rules, after, user, unasked);
            let before = policy_in(base, rules, before, user, unasked);
            // Settings or another rule may ask for more than this one.
            if before != policy {
                let why = reason(rule, load, comes, by_share);
                let (link, service) = (Arc::clone(link), rule.service);
                changes.push_back(Change { link, user, rule: number, service, before, policy, why });
            }
        }
    }
}

fn reason(rule: &Rule, load: f64, comes: bool, by_share: bool) -> String {
    let percent = |share: f64| (share * 100.0).round() as u64;
    let load = format!("{} at {} %", rule.when, percent(load));
    match (by_share, comes) {
        (true, true) => format!("{load}, and the user takes more than an equal share"),
        (true, false) => format!("{load}, but the user takes no more than an equal share"),
        (false, true) => {
            format!("{load}, for {} s at {} % or more", rule.hold.as_secs(), percent(rule.above))
        }
        (false, false) => format!("{load}, for {} s under {} %", rule.hold.as_secs(), percent(rule.below)),
    }
}

#[cfg(test)]
mod tests;
