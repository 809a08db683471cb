//! What users have said for themselves: interception switched off as a whole or for a site, or agreed to where they are
//! asked first.

use std::collections::BTreeMap;

use crate::host::Host;
use crate::moment::Moment;

/// Most sites that one user can have switched off, and most users that can have switched off anything.
const MOST_SITES: usize = 500;
const MOST_USERS: usize = 20_000;

/// What a switch is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Everything,
    /// A site: the host given, which [`Scope::site`] made the registrable domain, and all below it.
    Site(Host),
}

impl Scope {
    /// The site of `host`, so that what a page loads from beside it is meant too.
    #[must_use]
    pub fn site(host: &Host) -> Scope {
        Scope::Site(host.site())
    }
}

/// What one user has switched off, each for ever or until a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Everything, where it is switched off.
    pub everything: Option<Until>,
    /// Sites.
    pub sites: BTreeMap<Host, Until>,
    /// Whether the user has switched it on where everybody has to.
    pub has_agreed: bool,
}

/// The end of a choice; `None` is none.
pub(crate) type Until = Option<Moment>;

/// No room for another choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// This user's list is full.
    #[error("{MOST_SITES} sites are switched off already; switch some on again, or everything off")]
    Sites,
    /// There are too many users.
    #[error("{MOST_USERS} users have switched something off already; ask the operator")]
    Users,
}

/// What users have switched off, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    pub(crate) users: BTreeMap<Box<str>, Choices>,
}

impl Choices {
    fn lapse(&mut self, now: Moment) {
        let lasts = |until: &Until| until.is_none_or(|until| until > now);
        self.everything = self.everything.filter(lasts);
        self.sites.retain(|_, until| lasts(until));
    }

    fn is_empty(&self) -> bool {
        self.everything.is_none() && self.sites.is_empty() && !self.has_agreed
    }
}

impl Switches {
    /// Switches interception off for `user`, for ever or until a moment. An earlier choice of the same scope is replaced.
    ///
    /// # Errors
    /// There are too many choices already; nothing is changed.
    pub fn switch_off(
        &mut self,
        user: &str,
        scope: Scope,
        until: Option<Moment>,
        now: Moment,
    ) -> Result<(), TooMany> {
        self.lapse(now);
        if self.users.len() >= MOST_USERS && !self.users.contains_key(user) {
            return Err(TooMany::Users);
        }
        let choices = self.users.entry(user.into()).or_default();
        match scope {
            Scope::Everything => choices.everything = Some(until),
            Scope::Site(site) if choices.sites.len() < MOST_SITES || choices.sites.contains_key(&site) => {
                choices.sites.insert(site, until);
            }
            Scope::Site(_) => return Err(TooMany::Sites),
        }
        Ok(())
    }

    /// Switches interception on again for `user`. What is on already stays so.
    pub fn switch_on(&mut self, user: &str, scope: &Scope, now: Moment) {
        if let Some(choices) = self.users.get_mut(user) {
            match scope {
                Scope::Everything => choices.everything = None,
                Scope::Site(site) => drop(choices.sites.remove(site)),
            }
        }
        self.lapse(now);
    }

    /// Notes that `user`, who was asked, agrees to interception. Where there are too many users already it is not noted, and
    /// so stays off.
    pub fn agree(&mut self, user: &str) {
        if self.users.len() < MOST_USERS || self.users.contains_key(user) {
            self.users.entry(user.into()).or_default().has_agreed = true;
        }
    }

    /// Whether `user` has agreed.
    pub fn has_agreed(&self, user: &str) -> bool {
        self.users.get(user).is_some_and(|choices| choices.has_agreed)
    }

    /// Whether `user` has switched it off for `host`, and how far.
    pub fn find(&self, user: &str, host: &Host, now: Moment) -> Option<Scope> {
        let choices = self.users.get(user)?;
        let lasts = |until: Until| until.is_none_or(|until| until > now);
        if choices.everything.is_some_and(lasts) {
            return Some(Scope::Everything);
        }
        let is_off = |site: &Host| choices.sites.get(site).copied().is_some_and(lasts);
        let above = host.suffixes().map(|suffix| Host::Name(suffix.into()));
        std::iter::once(host.clone()).chain(above).find(is_off).map(Scope::Site)
    }

    /// What `user` has switched off.
    pub fn of(&self, user: &str, now: Moment) -> Choices {
        let mut choices = self.users.get(user).cloned().unwrap_or_default();
        choices.lapse(now);
        choices
    }

    /// Everyone who has said something, in order.
    pub fn all(&self, now: Moment) -> impl Iterator<Item = (&str, Choices)> {
        let current = move |choices: &Choices| {
            let mut choices = choices.clone();
            choices.lapse(now);
            choices
        };
        let users = self.users.iter().map(move |(user, choices)| (&**user, current(choices)));
        users.filter(|(_, choices)| !choices.is_empty())
    }

    fn lapse(&mut self, now: Moment) {
        self.users.retain(|_, choices| {
            choices.lapse(now);
            !choices.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Moment = Moment(1_800_000_000);

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn a_site_is_switched_off_with_all_its_hosts_for_one_user() {
        let mut switches = Switches::default();
        let site = Scope::site(&host("www.example.co.uk"));
        switches.switch_off("anna", site.clone(), None, NOW).unwrap();
        for name in ["example.co.uk", "www.example.co.uk", "a.b.example.co.uk"] {
            assert_eq!(switches.find("anna", &host(name), NOW), Some(site.clone()), "{name}");
        }
        assert_eq!(switches.find("anna", &host("notexample.co.uk"), NOW), None);
        assert_eq!(switches.find("anna", &host("co.uk"), NOW), None);
        assert_eq!(switches.find("ben", &host("www.example.co.uk"), NOW), None);
        switches.switch_on("anna", &site, NOW);
        assert_eq!(switches, Switches::default());
    }

    #[test]
    fn an_address_is_a_site_of_its_own() {
        let mut switches = Switches::default();
        switches.switch_off("anna", Scope::site(&host("192.0.2.1")), None, NOW).unwrap();
        assert!(switches.find("anna", &host("192.0.2.1"), NOW).is_some());
        assert_eq!(switches.find("anna", &host("192.0.2.2"), NOW), None);
    }

    #[test]
    fn everything_is_everything_and_comes_back_without_touching_the_sites() {
        let mut switches = Switches::default();
        switches.switch_off("anna", Scope::Site(host("a.example")), None, NOW).unwrap();
        switches.switch_off("anna", Scope::Everything, None, NOW).unwrap();
        assert_eq!(switches.find("anna", &host("other.test"), NOW), Some(Scope::Everything));
        switches.switch_on("anna", &Scope::Everything, NOW);
        assert_eq!(switches.find("anna", &host("other.test"), NOW), None);
        assert!(switches.find("anna", &host("a.example"), NOW).is_some());
    }

    #[test]
    fn a_choice_with_an_end_ends() {
        let mut switches = Switches::default();
        let end = NOW.after(Duration::from_secs(60));
        switches.switch_off("anna", Scope::Everything, Some(end), NOW).unwrap();
        assert!(switches.find("anna", &host("a"), Moment(end.0 - 1)).is_some());
        assert_eq!(switches.find("anna", &host("a"), end), None);
        assert_eq!(switches.of("anna", end), Choices::default());
        assert_eq!(switches.all(end).count(), 0);
        switches.switch_off("anna", Scope::Everything, None, NOW).unwrap();
        assert!(switches.find("anna", &host("a"), end).is_some(), "the later choice stands");
    }

    #[test]
    fn choices_are_bounded_and_what_was_chosen_stays() {
        let mut switches = Switches::default();
        for number in 0..MOST_SITES {
            let site = Scope::Site(host(&format!("s{number}.example")));
            switches.switch_off("anna", site, None, NOW).unwrap();
        }
        let one_more = Scope::Site(host("more.example"));
        assert_eq!(switches.switch_off("anna", one_more, None, NOW), Err(TooMany::Sites));
        assert_eq!(switches.switch_off("anna", Scope::Site(host("s7.example")), None, NOW), Ok(()));
        assert_eq!(switches.switch_off("anna", Scope::Everything, None, NOW), Ok(()));
        assert_eq!(switches.of("anna", NOW).sites.len(), MOST_SITES);
    }

    #[test]
    fn who_has_agreed_has_agreed_until_it_is_switched_off_and_again_after_a_while_off() {
        let mut switches = Switches::default();
        assert!(!switches.has_agreed("anna"));
        switches.agree("anna");
        let end = NOW.after(Duration::from_secs(60));
        switches.switch_off("anna", Scope::Everything, Some(end), NOW).unwrap();
        assert_eq!(switches.find("anna", &host("a"), NOW), Some(Scope::Everything));
        assert!(switches.find("anna", &host("a"), end).is_none() && switches.has_agreed("anna"));
        assert!(!switches.has_agreed("ben"));
    }
}
