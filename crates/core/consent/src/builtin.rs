//! The bypass lists that come with the program; `builtin.txt` holds them and says how entries are chosen.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::host::Host;

/// A kind of hosts that are better left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Banks, payment, and the cards' own checks.
    Banking,
    /// Health insurers, records and appointments.
    Health,
    /// Where states let people sign in.
    Government,
    /// App stores and the services that telephones trust no other certificate for.
    AppStores,
    /// Updates of systems and programs.
    Updates,
    /// Messengers and conferences.
    Messaging,
    /// Captchas and proofs of a genuine device or browser.
    Attestation,
}

impl Category {
    /// Every category.
    pub const ALL: &'static [Category] = &[
        Category::Banking,
        Category::Health,
        Category::Government,
        Category::AppStores,
        Category::Updates,
        Category::Messaging,
        Category::Attestation,
    ];

    /// As settings and lists spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Category::Banking => "banking",
            Category::Health => "health",
            Category::Government => "government",
            Category::AppStores => "app-stores",
            Category::Updates => "updates",
            Category::Messaging => "messaging",
            Category::Attestation => "attestation",
        }
    }
}

impl FromStr for Category {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Category::ALL.iter().copied().find(|category| category.as_str() == text).ok_or(())
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const TEXT: &str = include_str!("builtin.txt");

static SUFFIXES: LazyLock<HashMap<&'static str, Category>> =
    LazyLock::new(|| entries().filter_map(|entry| Some((entry.suffix, entry.category?))).collect());

/// The category that names `host` or something above it, the nearest first.
pub fn builtin(host: &Host) -> Option<Category> {
    host.suffixes().find_map(|suffix| SUFFIXES.get(suffix)).copied()
}

/// A line of the list.
struct Entry {
    suffix: &'static str,
    /// `None` under a heading that is no category; a test sees that there is none.
    category: Option<Category>,
}

fn entries() -> impl Iterator<Item = Entry> {
    let mut category = None;
    TEXT.lines().filter_map(move |line| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            category = heading.parse().ok();
            return None;
        }
        (!line.is_empty()).then_some(Entry { suffix: line, category })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Public suffixes below which only members of the trade can register.
    const RESTRICTED: &[&str] = &["bank", "bnpparibas", "nhs.uk"];

    #[test]
    fn every_line_is_a_host_in_its_one_form_under_a_category() {
        for Entry { suffix, category } in entries() {
            assert!(category.is_some(), "{suffix} stands under no category");
            assert_eq!(suffix.parse::<Host>().map(|host| host.to_string()).as_deref(), Ok(suffix));
        }
    }

    #[test]
    fn categories_stand_in_order_and_their_lines_too() {
        let listed: Vec<_> = entries().map(|entry| (entry.category, entry.suffix)).collect();
        assert!(listed.is_sorted());
        for category in Category::ALL {
            assert!(listed.iter().filter(|(it, _)| *it == Some(*category)).count() >= 10, "{category}");
        }
    }

    #[test]
    fn no_line_is_said_twice_or_by_one_above_it() {
        let mut seen = BTreeMap::new();
        for Entry { suffix, category } in entries() {
            assert!(seen.insert(suffix, category).is_none(), "{suffix} is there twice");
        }
        for (suffix, category) in &seen {
            let host: Host = suffix.parse().unwrap();
            let above = host.suffixes().skip(1).find_map(|above| seen.get(above));
            assert_ne!(above, Some(category), "{suffix} is covered by what is above it");
        }
    }

    #[test]
    fn no_line_covers_the_sites_of_strangers() {
        for Entry { suffix, .. } in entries().filter(|entry| !RESTRICTED.contains(&entry.suffix)) {
            assert!(
                psl::domain_str(suffix).is_some(),
                "{suffix} is a public suffix: anyone may register below it"
            );
        }
    }

    #[test]
    fn hosts_below_a_line_are_of_its_category_and_lookalikes_are_not() {
        let of = |host: &str| builtin(&host.parse().unwrap());
        assert_eq!(of("paypal.com"), Some(Category::Banking));
        assert_eq!(of("www.PayPal.com."), Some(Category::Banking));
        assert_eq!(of("branch.bank"), Some(Category::Banking));
        assert_eq!(of("notpaypal.com"), None);
        assert_eq!(of("paypal.com.example"), None);
        assert_eq!(of("192.0.2.1"), None);
    }

    #[test]
    fn categories_are_spelt_one_way() {
        for category in Category::ALL {
            assert_eq!(category.to_string().parse(), Ok(*category));
        }
        assert_eq!("Banking".parse::<Category>(), Err(()));
    }
}
