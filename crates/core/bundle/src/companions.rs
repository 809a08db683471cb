//! Which hosts usually follow a host: a page that is tunnelled cannot be read, but the tunnels that a browser opens for
//! it come again in the same company. Learned from whole tunnels, never from what is in them.
//!
//! One learner serves a group of users who share an uplink. What a single user has shown serves that user alone; what
//! two have shown serves all of the group. Memory is bounded, and the old counts ever less.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// A host and a port, as a client named them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// In lower case, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// What comes later than this belongs to something else.
const WINDOW: Duration = Duration::from_secs(5);
/// Places of which something is learned; the one seen the longest ago goes first.
const PLACES: usize = 1024;
/// Followers of one place.
const FOLLOWERS: usize = 16;
/// Users of whom the last few places are known.
const USERS: usize = 256;
/// Places that a user has in mind at a time: a page of many hosts.
const RECENT: usize = 24;
/// Visits after which everything counts half: what has changed is unlearned as fast.
const MEMORY: u32 = 16;
/// Visits that have to be seen before anything is concluded.
const ENOUGH: u32 = 2;

/// See the module. `U` names a user, and never stands for another one later.
#[derive(Debug)]
pub struct Companions<U> {
    places: HashMap<Place, Known<U>>,
    users: HashMap<U, VecDeque<(Duration, Place)>>,
    visits: u64,
}

/// What is known of one place.
#[derive(Debug)]
struct Known<U> {
    /// Visits, the old ones counted less.
    visits: u32,
    followers: Vec<Follower<U>>,
    /// When it was last visited, in visits of all places.
    seen: u64,
}

/// A place that has followed.
#[derive(Debug)]
struct Follower<U> {
    place: Place,
    times: u32,
    /// Who has shown it: one user, or several.
    shown_by: Option<U>,
}

impl<U> Default for Companions<U> {
    fn default() -> Self {
        Companions { places: HashMap::new(), users: HashMap::new(), visits: 0 }
    }
}

impl<U: Copy + Eq + Hash> Companions<U> {
    /// This user opens a tunnel to `place`: gives the places that have followed it in more than half of the cases, the
    /// surest first. Nothing while the visit goes on: a browser opens several connections to a host.
    pub fn follow(&mut self, user: U, place: &Place, now: Duration) -> Vec<Place> {
        let Some(earlier) = self.remember(user, place, now) else { return Vec::new() };
        for leader in &earlier {
            if let Some(known) = self.places.get_mut(leader) {
                known.followed(place, user);
            }
        }
        self.visit(user, place)
    }

    /// As [`Companions::follow`] where it is not a tunnel that goes to `place`: what follows it is learned and told, but
    /// it is itself nobody's follower.
    pub fn lead(&mut self, user: U, place: &Place, now: Duration) -> Vec<Place> {
        if self.remember(user, place, now).is_none() {
            return Vec::new();
        }
        self.visit(user, place)
    }

    fn visit(&mut self, user: U, place: &Place) -> Vec<Place> {
        self.visits += 1;
        if !self.places.contains_key(place) && self.places.len() >= PLACES {
            self.forget_oldest();
        }
        let unknown = || Known { visits: 0, followers: Vec::new(), seen: 0 };
        let known = self.places.entry(place.clone()).or_insert_with(unknown);
        known.seen = self.visits;
        let usual = known.usual(user);
        known.visited();
        usual
    }

    /// Notes where a user is and gives the places that this one follows; `None` if the user is there already.
    fn remember(&mut self, user: U, place: &Place, now: Duration) -> Option<Vec<Place>> {
        if !self.users.contains_key(&user) && self.users.len() >= USERS {
            let is_idle = |recent: &VecDeque<(Duration, Place)>| {
                recent.back().is_none_or(|(at, _)| now.saturating_sub(*at) > WINDOW)
            };
            self.users.retain(|_, recent| !is_idle(recent));
            if self.users.len() >= USERS {
                // So many users at once show nothing that one of them would not show later.
                return None;
            }
        }
        let recent = self.users.entry(user).or_default();
        while recent.front().is_some_and(|(at, _)| now.saturating_sub(*at) > WINDOW) {
            recent.pop_front();
        }
        if recent.iter().any(|(_, other)| other == place) {
            return None;
        }
        let earlier = recent.iter().map(|(_, place)| place.clone()).collect();
        if recent.len() >= RECENT {
            recent.pop_front();
        }
        recent.push_back((now, place.clone()));
        Some(earlier)
    }

    fn forget_oldest(&mut self) {
        let oldest = self.places.iter().min_by_key(|(_, known)| known.seen).map(|(place, _)| place.clone());
        if let Some(oldest) = oldest {
            self.places.remove(&oldest);
        }
    }
}

impl<U: Copy + Eq> Known<U> {
    fn visited(&mut self) {
        self.visits += 1;
        if self.visits >= MEMORY {
            self.visits /= 2;
            self.followers.iter_mut().for_each(|follower| follower.times /= 2);
            self.followers.retain(|follower| follower.times > 0);
        }
    }

    fn followed(&mut self, place: &Place, user: U) {
        if let Some(follower) = self.followers.iter_mut().find(|follower| follower.place == *place) {
            // Halving may have left more times than visits; never more than always.
            follower.times = (follower.times + 1).min(self.visits);
            if follower.shown_by != Some(user) {
                follower.shown_by = None;
            }
            return;
        }
        if self.followers.len() >= FOLLOWERS {
            let rarest = self.followers.iter().enumerate().min_by_key(|(_, follower)| follower.times);
            if let Some((index, _)) = rarest {
                self.followers.swap_remove(index);
            }
        }
        self.followers.push(Follower { place: place.clone(), times: 1, shown_by: Some(user) });
    }

    /// Those that followed in more than half of the visits so far, as far as this user may know.
    fn usual(&self, user: U) -> Vec<Place> {
        if self.visits < ENOUGH {
            return Vec::new();
        }
        let may_know = |follower: &&Follower<U>| follower.shown_by.is_none_or(|only| only == user);
        let usual = |follower: &&Follower<U>| follower.times * 2 > self.visits;
        let mut found: Vec<_> = self.followers.iter().filter(may_know).filter(usual).collect();
        found.sort_by_key(|follower| std::cmp::Reverse(follower.times));
        found.into_iter().map(|follower| follower.place.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(host: &str) -> Place {
        Place { host: host.into(), port: 443 }
    }

    /// A visit of a page: the first host, then those that it needs, half a second apart. Gives what was foretold at the
    /// first.
    fn page(learner: &mut Companions<u64>, user: u64, at: u64, hosts: &[&str]) -> Vec<String> {
        let mut foretold = Vec::new();
        for (index, host) in (0u64..).zip(hosts) {
            let now = Duration::from_secs(at) + Duration::from_millis(500) * index as u32;
            let usual = learner.follow(user, &place(host), now);
            if index == 0 {
                foretold = usual.into_iter().map(|place| place.host).collect();
            }
        }
        foretold
    }

    #[test]
    fn what_follows_in_most_cases_is_foretold_after_two_visits() {
        let mut learner = Companions::default();
        assert!(page(&mut learner, 1, 0, &["news.test", "cdn.test", "ads.test"]).is_empty());
        assert!(page(&mut learner, 1, 100, &["news.test", "cdn.test"]).is_empty());
        assert_eq!(
            page(&mut learner, 1, 200, &["news.test", "cdn.test"]),
            ["cdn.test"],
            "and no longer ads.test"
        );
    }

    #[test]
    fn what_comes_later_or_before_is_no_follower() {
        let mut learner = Companions::default();
        for at in [0, 100, 200] {
            page(&mut learner, 1, at, &["first.test"]);
            page(&mut learner, 1, at + 6, &["second.test", "third.test"]);
        }
        assert!(page(&mut learner, 1, 300, &["first.test"]).is_empty());
        assert_eq!(page(&mut learner, 1, 400, &["second.test"]), ["third.test"]);
        assert!(page(&mut learner, 1, 500, &["third.test"]).is_empty());
    }

    #[test]
    fn further_connections_to_a_host_are_one_visit() {
        let mut learner = Companions::default();
        for at in [0, 100] {
            page(&mut learner, 1, at, &["a.test", "a.test", "a.test", "b.test", "a.test"]);
        }
        assert_eq!(page(&mut learner, 1, 200, &["a.test", "a.test"]), ["b.test"]);
    }

    #[test]
    fn what_one_user_has_shown_serves_no_other_and_what_two_have_shown_all() {
        let mut learner = Companions::default();
        for at in [0, 100, 200] {
            page(&mut learner, 1, at, &["portal.test", "clinic.test"]);
        }
        assert_eq!(page(&mut learner, 1, 300, &["portal.test", "clinic.test"]), ["clinic.test"]);
        assert!(page(&mut learner, 2, 400, &["portal.test", "clinic.test"]).is_empty());
        assert_eq!(page(&mut learner, 3, 500, &["portal.test"]), ["clinic.test"]);
    }

    #[test]
    fn what_leads_without_a_tunnel_is_nobodys_follower() {
        let mut learner = Companions::default();
        let (read, hidden) = (place("read.test"), place("hidden.test"));
        for at in [0, 100, 200] {
            let now = Duration::from_secs(at);
            let usual = learner.lead(1, &read, now);
            assert_eq!(usual.contains(&hidden), at == 200);
            learner.follow(1, &hidden, now);
            learner.lead(1, &place("late.test"), now);
        }
        assert!(learner.follow(1, &hidden, Duration::from_secs(300)).is_empty());
    }

    #[test]
    fn users_who_browse_at_the_same_time_do_not_follow_each_other() {
        let mut learner = Companions::default();
        for at in [0, 100, 200] {
            page(&mut learner, 1, at, &["a.test"]);
            page(&mut learner, 2, at + 1, &["b.test"]);
        }
        assert!(page(&mut learner, 1, 300, &["a.test"]).is_empty());
    }

    #[test]
    fn what_has_changed_is_unlearned() {
        let mut learner = Companions::default();
        let (mut at, mut visits) = (0, 0);
        let mut go = |learner: &mut Companions<u64>, hosts: &[&str]| {
            at += 100;
            page(learner, 1, at, hosts)
        };
        for _ in 0..200 {
            go(&mut learner, &["a.test", "old.test"]);
        }
        while go(&mut learner, &["a.test", "new.test"]).contains(&"old.test".to_owned()) {
            visits += 1;
            assert!(visits < MEMORY, "200 visits of before are not outvoted");
        }
        assert!(visits > 1, "one visit is no change");
    }

    proptest! {
        #[test]
        fn memory_is_bounded_whatever_is_visited(visits in proptest::collection::vec((0u64..600, 0u16..3000, 0u64..4000), 0..1500)) {
            let mut learner = Companions::default();
            let mut now = Duration::ZERO;
            for (user, port, pause) in visits {
                now += Duration::from_millis(pause);
                let usual = learner.follow(user, &Place { host: "a.test".into(), port }, now);
                prop_assert!(usual.len() <= FOLLOWERS);
            }
            prop_assert!(learner.places.len() <= PLACES && learner.users.len() <= USERS);
            prop_assert!(learner.places.values().all(|known| known.followers.len() <= FOLLOWERS && known.visits < MEMORY));
            prop_assert!(learner.users.values().all(|recent| recent.len() <= RECENT));
        }
    }
}
