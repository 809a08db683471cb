//! Random histories, against a model that knows only the rule.

use crate::book::{seconds, user};
use crate::support::fields;
use farhop_bundle::{Answer, LoadId, PromiseId, Promises};
use http::Method;
use proptest::prelude::*;
use std::time::Duration;
use url::Url;

proptest! {
    /// Against a model that knows only the rule for what no cache may reuse: equal once, or not at all.
    #[test]
    fn histories_of_uncacheable_promises_never_answer_twice_or_unequal(
        steps in proptest::collection::vec((0u8..6, 0u64..4, 0usize..2, 0usize..2, 0u64..15), 1..60)
    ) {
        let users = ["u", "v"];
        let cookies = ["a=1", "a=2"];
        let mut book = Promises::new(50, 100);
        let (mut now, mut next) = (Duration::ZERO, 0u64);
        let mut open: Vec<(u64, usize, u64, usize)> = Vec::new(); // id, user, url, cookie
        for (what, url, who, cookie, wait) in steps {
            let address = Url::parse(&format!("http://site.test/{url}")).unwrap();
            let like = fields(&[("cookie", cookies[cookie])]);
            match what {
                0 | 1 => {
                    next += 1;
                    prop_assert!(book.promise(PromiseId(next), &user(users[who]), LoadId(url), address, like));
                    open.push((next, who, url, cookie));
                }
                2 | 3 => match book.ask(&user(users[who]), &Method::GET, &address, &like, now) {
                    Answer::Promise(PromiseId(id)) => {
                        let at = open.iter().position(|entry| *entry == (id, who, url, cookie));
                        prop_assert!(at.is_some(), "answered by {id}, which is spent, gone or different");
                        open.remove(at.unwrap());
                    }
                    Answer::Ask(_) => prop_assert!(!open.iter().any(|&(_, w, u, c)| (w, u, c) == (who, url, cookie))),
                },
                4 => {
                    now += seconds(wait);
                    for PromiseId(id) in book.lapse(now) {
                        open.retain(|entry| entry.0 != id);
                    }
                    if let Some(&(id, ..)) = open.first() {
                        book.complete(PromiseId(id), now);
                    }
                }
                _ => {
                    for lost in book.carrier_lost(|_| true) {
                        open.retain(|entry| entry.0 != lost.id.0);
                    }
                }
            }
        }
    }
}
