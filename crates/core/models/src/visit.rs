//! One visit of a page: what was asked for because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use farhop_page::ReferrerPolicy;
use url::Url;

use crate::needs::Needs;

/// Users who have to have shown something before it serves others (DESIGN.md, "No user learns of another").
const ENOUGH: usize = 3;
/// Of what is not known to enough users: those who have shown it.
const MOST_SHOWERS: usize = 16;

/// A user of a remote. Numbers mean nothing in another epoch of the remote: it may have given them anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// The remote, by the name that ground has for it.
    pub remote: Arc<str>,
    /// The remote's epoch.
    pub epoch: u64,
    /// The user's number there.
    pub number: u64,
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.remote, self.number)
    }
}

/// What a page's response said that decides about requests for what it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    /// The policy that a `Referrer-Policy` field or the mark-up said last, by its name.
    pub referrer: Option<String>,
    /// Each `Content-Security-Policy`. Kept for the user alone who was told it.
    pub content: Vec<String>,
}

/// Longest policies that are kept; of a page that says more, only what it tells of itself is.
const LONGEST_POLICIES: usize = 4096;

impl Policies {
    /// Bytes, about.
    pub(crate) fn size(&self) -> usize {
        self.referrer.as_ref().map_or(0, String::len) + self.content.iter().map(String::len).sum::<usize>()
    }

    /// Of a page of which it was not heard yet: nothing is told of it.
    pub(crate) fn unheard() -> Policies {
        let referrer = ReferrerPolicy::NoReferrer.as_str().to_owned();
        Policies { referrer: Some(referrer), content: Vec::new() }
    }

    /// As they are kept: for whoever asks, only what is the same for all.
    pub(crate) fn kept(&self, for_all: bool) -> Policies {
        let is_kept = !for_all && self.size() <= LONGEST_POLICIES;
        let content = if is_kept { self.content.clone() } else { Vec::new() };
        // What is no policy's name says nothing, however long it is.
        let named = self.referrer.as_deref().and_then(ReferrerPolicy::from_field);
        Policies { referrer: named.map(|policy| policy.as_str().to_owned()), content }
    }
}

/// One resource that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Without a fragment.
    pub url: Url,
    /// How.
    pub needs: Needs,
    /// How long after the page.
    pub delay: Duration,
    /// Its response is one that anyone may be given: else others need not be told of it.
    pub anyones: bool,
    /// It was promised as the models had foreseen it: they know best how it is asked for.
    pub foreseen: bool,
    /// Its response may not be kept, so that a promise of it answers only a request that is the same in every word.
    pub unkept: bool,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Whose.
    pub user: User,
    /// The document, after redirects.
    pub page: Url,
    /// What its response and its mark-up said; `None` where it has not changed, and says what it said before.
    pub policies: Option<Policies>,
    /// What was asked for, each once.
    pub asked: Vec<Asked>,
    /// Of what may have been asked for and answered without a word here: that is no visit for these.
    pub unknown: BTreeSet<Url>,
    /// What was promised and may not be kept, and was asked for in another's name than was foreseen: that promise was in vain.
    pub otherwise: BTreeSet<Url>,
    /// How many of what was foreseen were sent before anyone asked.
    pub sent: u32,
    /// How many of these the browser used.
    pub used: u32,
}

impl Visit {
    /// Of a page of which nothing is known yet.
    pub fn new(user: User, page: Url) -> Self {
        let (asked, unknown, otherwise) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Visit { user, page, policies: None, asked, unknown, otherwise, sent: 0, used: 0 }
    }
}

/// Who has shown something that may not serve others yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Showers(Vec<User>);

impl Showers {
    pub(crate) fn first(user: &User) -> Self {
        Showers(vec![user.clone()])
    }

    /// One more has. Returns whether they are enough now. Of one remote only users of one epoch are counted together: one
    /// who is numbered anew is not another.
    pub(crate) fn note(&mut self, user: &User) -> bool {
        if !self.0.contains(user) {
            if self.0.len() >= MOST_SHOWERS {
                self.0.remove(0);
            }
            self.0.push(user.clone());
        }
        let mut epochs: BTreeMap<(&str, u64), usize> = BTreeMap::new();
        for user in &self.0 {
            *epochs.entry((&*user.remote, user.epoch)).or_default() += 1;
        }
        let mut remotes: BTreeMap<&str, usize> = BTreeMap::new();
        for ((remote, _), users) in epochs {
            let most = remotes.entry(remote).or_default();
            *most = users.max(*most);
        }
        remotes.values().sum::<usize>() >= ENOUGH
    }

    /// Bytes, about.
    pub(crate) fn size(&self) -> usize {
        self.0.len() * size_of::<User>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(remote: &str, epoch: u64, number: u64) -> User {
        User { remote: remote.into(), epoch, number }
    }

    #[test]
    fn three_users_are_enough_and_one_who_is_numbered_anew_is_one() {
        let mut showers = Showers::first(&user("ship", 1, 1));
        assert!(!showers.note(&user("ship", 1, 1)));
        assert!(!showers.note(&user("ship", 1, 2)));
        assert!(showers.clone().note(&user("ship", 1, 3)));
        assert!(showers.clone().note(&user("polar", 9, 1)), "another remote's");
        for epoch in 2..40 {
            assert!(!showers.note(&user("ship", epoch, 1)), "a remote that is restarted again and again");
        }
    }
}
