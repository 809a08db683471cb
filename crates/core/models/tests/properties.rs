//! Whatever users visit: bounded, deterministic, and nothing of one user's for another.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use farhop_models::{Asked, Limits, Models, Needs, User, Visit};
use farhop_page::{Destination, Mode};
use proptest::prelude::*;
use url::Url;

const LIMITS: Limits = Limits { bytes: 48 * 1024 };

#[derive(Debug, Clone)]
struct Step {
    user: u64,
    page: u8,
    asked: Vec<(u8, bool)>,
    pause: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let asked = proptest::collection::vec((0..40u8, any::<bool>()), 0..12);
    let step = (0..5u64, 0..12u8, asked, 0..1_000_000u64).prop_map(|(user, page, asked, pause)| Step {
        user,
        page,
        asked,
        pause,
    });
    proptest::collection::vec(step, 0..120)
}

fn user(number: u64) -> User {
    User { remote: "ship".into(), epoch: 3, number }
}

fn page(number: u8) -> Url {
    Url::parse(&format!("https://site.test/item/{number}?from=list")).unwrap()
}

fn visit(step: &Step) -> Visit {
    let mut visit = Visit::new(user(step.user), page(step.page));
    for (number, fetched) in &step.asked {
        let url = Url::parse(&format!("https://cdn.test/part-{number}/file.js")).unwrap();
        let destination = if *fetched { Destination::Fetch } else { Destination::Script };
        let needs = Needs::new(destination, Mode::Cors);
        let delay = Duration::from_millis(u64::from(*number));
        visit.asked.push(Asked {
            url,
            needs,
            delay,
            anyones: true,
            foreseen: *number % 2 == 0,
            unkept: *fetched,
        });
    }
    visit
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nobody_is_served_what_only_others_have_shown(steps in steps()) {
        let mut models = Models::new(LIMITS);
        let mut shown: BTreeMap<Url, BTreeSet<u64>> = BTreeMap::new();
        let mut now = 1_800_000_000;
        for step in &steps {
            now += step.pause;
            let (_, foreseen) = models.foresee(&user(step.user), &page(step.page), now);
            for one in foreseen {
                let by = shown.get(&one.url).cloned().unwrap_or_default();
                if one.own {
                    prop_assert!(by.contains(&step.user), "{} is not this user's", one.url);
                } else {
                    prop_assert!(by.len() >= 3, "{} was shown by {by:?}", one.url);
                    prop_assert_eq!(one.needs.destination, Destination::Script);
                }
            }
            let visit = visit(step);
            models.learn(&visit, now);
            for asked in &visit.asked {
                shown.entry(asked.url.clone()).or_default().insert(step.user);
            }
            prop_assert!(models.bytes() <= LIMITS.bytes);
        }
    }

    #[test]
    fn the_same_visits_make_the_same_models_which_are_read_as_they_were_written(steps in steps()) {
        let (mut one, mut other) = (Models::new(LIMITS), Models::new(LIMITS));
        for (number, step) in steps.iter().enumerate() {
            one.learn(&visit(step), number as u64);
            other.learn(&visit(step), number as u64);
        }
        prop_assert_eq!(&one, &other);
        let text = one.to_text();
        let read = Models::from_text(&text, LIMITS).unwrap();
        prop_assert_eq!(read.to_text(), text);
        one.erase(None);
        prop_assert!(one.is_empty() && one.bytes() == 0);
    }
}
