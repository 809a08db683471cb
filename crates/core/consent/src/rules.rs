//! The bypass lists that are in force: the operator's own, and the built-in categories that are on.

use crate::builtin::{Category, builtin};
use crate::host::Host;
use crate::pattern::HostPattern;
use crate::set::HostSet;

/// Which hosts go through untouched because a list says so.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    configured: HostSet,
    exceptions: HostSet,
    categories: Vec<Category>,
}

/// Which list names a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// The operator's own.
    Configured,
    /// A built-in one.
    BuiltIn(Category),
}

impl Rules {
    /// Rules from the operator's patterns and the categories that are on.
    pub fn new(patterns: &[HostPattern], categories: &[Category]) -> Rules {
        let forms = |exceptions: bool| {
            patterns.iter().filter(move |it| it.is_exception == exceptions).map(|it| &it.form).collect()
        };
        Rules { configured: forms(false), exceptions: forms(true), categories: categories.into() }
    }

    /// The list that names `host`; none where an exception does too, however exactly either is written.
    pub fn find(&self, host: &Host) -> Option<Listing> {
        if self.exceptions.contains(host) {
            return None;
        }
        if self.configured.contains(host) {
            return Some(Listing::Configured);
        }
        builtin(host).filter(|category| self.categories.contains(category)).map(Listing::BuiltIn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str], categories: &[Category]) -> Rules {
        let patterns: Vec<_> = patterns.iter().map(|text| text.parse().unwrap()).collect();
        Rules::new(&patterns, categories)
    }

    fn found(rules: &Rules, host: &str) -> Option<Listing> {
        rules.find(&host.parse().unwrap())
    }

    #[test]
    fn a_category_counts_only_while_it_is_on() {
        let banking = Some(Listing::BuiltIn(Category::Banking));
        assert_eq!(found(&rules(&[], Category::ALL), "www.paypal.com"), banking);
        assert_eq!(found(&rules(&[], &[Category::Banking]), "www.paypal.com"), banking);
        assert_eq!(found(&rules(&[], &[Category::Health]), "www.paypal.com"), None);
    }

    #[test]
    fn an_exception_stands_over_every_list() {
        let rules = rules(&[".a.example", "!www.a.example", "!paypal.com"], Category::ALL);
        assert_eq!(found(&rules, "a.example"), Some(Listing::Configured));
        assert_eq!(found(&rules, "www.a.example"), None);
        assert_eq!(found(&rules, "deep.www.a.example"), Some(Listing::Configured));
        assert_eq!(found(&rules, "paypal.com"), None);
        assert_eq!(found(&rules, "www.paypal.com"), Some(Listing::BuiltIn(Category::Banking)));
    }

    #[test]
    fn all_but_some_can_be_said() {
        let rules = rules(&["*", "!.intranet.example"], &[]);
        assert_eq!(found(&rules, "anything.test"), Some(Listing::Configured));
        assert_eq!(found(&rules, "wiki.intranet.example"), None);
    }
}
