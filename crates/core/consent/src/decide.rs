//! The decision.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::builtin::Category;
use crate::host::Host;
use crate::learned::{Learned, Lesson, Terms};
use crate::moment::Moment;
use crate::rules::{Listing, Rules};
use crate::switches::{Scope, Switches};

/// The operator's word.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether anything may be looked into.
    pub enabled: bool,
    /// Whether users are asked first: it is off for each who has not agreed.
    pub asks: bool,
    /// Ports on which TLS is expected to carry HTTP.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Bypass lists.
    pub rules: Rules,
    /// How long lessons last.
    pub terms: Terms,
}

/// What outlives the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Users' choices.
    pub switches: Switches,
    /// Experience.
    pub learned: Learned,
}

/// A connection that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Whose it is.
    pub user: &'a str,
    /// Where it comes from.
    pub client: IpAddr,
    /// Where it is to go.
    pub host: &'a Host,
    /// The port there.
    pub port: u16,
}

/// What is to be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may be looked into.
    Intercept,
    /// It goes through untouched.
    PassThrough(Why),
}

/// Why a connection goes through untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Interception is off at this remote.
    Off,
    /// It goes to a port on which nothing is intercepted.
    Port,
    /// What it is to go to is no host that a certificate could be for.
    NoHost,
    /// Users are asked first, and this one has not agreed.
    NotAgreed,
    /// The user has switched interception off.
    SwitchedOff,
    /// The user has switched it off for this site.
    SiteSwitchedOff,
    /// The operator lists the host.
    Configured,
    /// A built-in list names the host.
    BuiltIn(Category),
    /// Experience says so.
    Learned(Lesson),
}

impl Policy {
    /// Decides on a connection.
    pub fn decide(&self, kept: &Kept, asked: &Asked<'_>, now: Moment) -> Decision {
        self.objection(kept, asked, now).map_or(Decision::Intercept, Decision::PassThrough)
    }

    fn objection(&self, kept: &Kept, asked: &Asked<'_>, now: Moment) -> Option<Why> {
        let Asked { user, client, host, port } = *asked;
        if !self.enabled {
            return Some(Why::Off);
        }
        if !self.ports.iter().any(|range| range.contains(&port)) {
            return Some(Why::Port);
        }
        if self.asks && !kept.switches.has_agreed(user) {
            return Some(Why::NotAgreed);
        }
        match kept.switches.find(user, host, now) {
            Some(Scope::Everything) => return Some(Why::SwitchedOff),
            Some(Scope::Site(_)) => return Some(Why::SiteSwitchedOff),
            None => {}
        }
        match self.rules.find(host) {
            Some(Listing::Configured) => return Some(Why::Configured),
            Some(Listing::BuiltIn(category)) => return Some(Why::BuiltIn(category)),
            None => {}
        }
        kept.learned.find(client, host, port, now).map(Why::Learned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Moment = Moment(1_800_000_000);

    fn policy() -> Policy {
        let patterns = [".own.example".parse().unwrap(), "!www.paypal.com".parse().unwrap()];
        let hour = Duration::from_secs(3600);
        Policy {
            enabled: true,
            asks: false,
            ports: vec![443..=443, 8443..=8444],
            rules: Rules::new(&patterns, Category::ALL),
            terms: Terms { first: hour, longest: hour },
        }
    }

    fn decide(policy: &Policy, kept: &Kept, host: &str, port: u16) -> Decision {
        let host: Host = host.parse().unwrap();
        let asked = Asked { user: "anna", client: IpAddr::from([10, 0, 0, 1]), host: &host, port };
        policy.decide(kept, &asked, NOW)
    }

    #[test]
    fn nothing_is_intercepted_unless_it_is_on() {
        let off = Policy { enabled: false, ..policy() };
        assert_eq!(decide(&off, &Kept::default(), "a.example", 443), Decision::PassThrough(Why::Off));
        assert_eq!(decide(&policy(), &Kept::default(), "a.example", 443), Decision::Intercept);
    }

    #[test]
    fn only_the_ports_named_are_intercepted() {
        for (port, is_named) in [(443, true), (8443, true), (8444, true), (8445, false), (22, false)] {
            let expected = if is_named { Decision::Intercept } else { Decision::PassThrough(Why::Port) };
            assert_eq!(decide(&policy(), &Kept::default(), "a.example", port), expected, "{port}");
        }
    }

    #[test]
    fn where_users_are_asked_first_it_is_on_for_who_has_agreed_alone() {
        let asking = Policy { asks: true, ..policy() };
        let mut kept = Kept::default();
        assert_eq!(decide(&asking, &kept, "a.example", 443), Decision::PassThrough(Why::NotAgreed));
        kept.switches.agree("ben");
        assert_eq!(decide(&asking, &kept, "a.example", 443), Decision::PassThrough(Why::NotAgreed));
        kept.switches.agree("anna");
        assert_eq!(decide(&asking, &kept, "a.example", 443), Decision::Intercept);
        kept.switches.switch_off("anna", Scope::Everything, None, NOW).unwrap();
        assert_eq!(decide(&asking, &kept, "a.example", 443), Decision::PassThrough(Why::SwitchedOff));
    }

    #[test]
    fn lists_are_asked() {
        let why = |host| decide(&policy(), &Kept::default(), host, 443);
        assert_eq!(why("www.own.example"), Decision::PassThrough(Why::Configured));
        assert_eq!(why("paypal.com"), Decision::PassThrough(Why::BuiltIn(Category::Banking)));
        assert_eq!(why("www.paypal.com"), Decision::Intercept);
    }

    #[test]
    fn a_users_switch_stands_over_an_exception_of_the_operator() {
        let mut kept = Kept::default();
        let site = Scope::site(&"www.paypal.com".parse().unwrap());
        kept.switches.switch_off("anna", site, None, NOW).unwrap();
        let why = decide(&policy(), &kept, "www.paypal.com", 443);
        assert_eq!(why, Decision::PassThrough(Why::SiteSwitchedOff));
        kept.switches.switch_off("anna", Scope::Everything, None, NOW).unwrap();
        let why = decide(&policy(), &kept, "a.example", 443);
        assert_eq!(why, Decision::PassThrough(Why::SwitchedOff));
        kept.switches.switch_off("ben", Scope::Everything, None, NOW).unwrap();
        kept.switches.switch_on("anna", &Scope::Everything, NOW);
        assert_eq!(decide(&policy(), &kept, "a.example", 443), Decision::Intercept, "ben's is ben's");
    }

    #[test]
    fn experience_is_asked() {
        let mut kept = Kept::default();
        let client = IpAddr::from([10, 0, 0, 1]);
        let host = "pinned.example".parse().unwrap();
        kept.learned.learn(Lesson::Distrusted, (client, &host, 443), NOW, &policy().terms);
        let why = decide(&policy(), &kept, "pinned.example", 443);
        assert_eq!(why, Decision::PassThrough(Why::Learned(Lesson::Distrusted)));
        assert_eq!(decide(&policy(), &kept, "pinned.example", 8443), Decision::Intercept);
    }
}
