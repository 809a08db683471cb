//! Plans of pages whose service worker may be the one that asks.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, NeverUnasked, Skip, Unasked};
use farhop_page::{Destination, Mode, Source};
use support::planned::{Planned, plan_of};
use support::{CHROMIUM, at, fields, hint, image, url};

const BY_WORKER: [(&str, &str); 2] = [("sec-fetch-dest", "empty"), ("sec-fetch-mode", "navigate")];

#[test]
fn what_a_page_names_that_a_service_worker_has_asked_for_is_asked_for_by_it() {
    let page = url("https://site.test/");
    let all = [image("https://site.test/a.png"), image("https://cdn.test/a.png")];
    let mut plan = plan_of(&page, CHROMIUM, &BY_WORKER, &[], Budget::default());
    assert_eq!(plan.only(&all[0]), Err(Skip::UnknownHints), "it shows none of its client hints itself");
    let seen = fields(&[
        ("user-agent", CHROMIUM),
        ("sec-fetch-dest", "image"),
        ("sec-ch-ua", "x"),
        ("referer", page.as_str()),
    ]);
    plan.cookies.note_request(&url("https://site.test/seen.png"), &seen, at(0));
    for hint in &all {
        let asked = plan.only(hint).unwrap().fields;
        assert_eq!(
            (&asked["sec-fetch-dest"], &asked["sec-fetch-mode"]),
            (&"empty".parse().unwrap(), &"no-cors".parse().unwrap())
        );
        assert_eq!(asked["sec-ch-ua"], "x");
    }
    let icon = hint(url("https://site.test/i.ico"), Destination::Icon, Mode::NoCors, Source::Icon);
    assert_eq!(plan.only(&icon).unwrap().fields["sec-fetch-dest"], "image", "not for it");
}

#[test]
fn a_service_worker_that_leaves_navigations_alone_is_known_by_what_it_asks_for() {
    let page = url("https://site.test/");
    let request = [("sec-fetch-dest", "document"), ("sec-ch-ua", "x")];
    let mut plan = plan_of(&page, CHROMIUM, &request, &[], Budget::default());
    let dest = |plan: &mut Planned, number: u32| -> Result<(String, Unasked), Skip> {
        let asked = plan.only(&image(&format!("https://site.test/{number}.png")))?;
        Ok((asked.fields["sec-fetch-dest"].to_str().unwrap().to_owned(), asked))
    };
    let asks = |plan: &mut Planned, asked: &Unasked, dest: &str| {
        let mut fields = asked.fields.clone();
        fields.insert("sec-fetch-dest", dest.parse().unwrap());
        plan.plan.asked(&asked.url, &fields, &mut NeverUnasked::new(1), &mut plan.cookies, at(1));
    };
    let (own, first) = dest(&mut plan, 1).unwrap();
    assert_eq!(own, "image");
    // What a script fetches by itself says more than that.
    let mut fetched = Unasked { fields: first.fields.clone(), ..first.clone() };
    fetched.fields.insert("sec-fetch-mode", "cors".parse().unwrap());
    asks(&mut plan, &fetched, "empty");
    asks(&mut plan, &first, "image");
    let (own, second) = dest(&mut plan, 2).unwrap();
    assert_eq!(own, "image");
    asks(&mut plan, &second, "empty");
    let (own, third) = dest(&mut plan, 3).unwrap();
    assert_eq!(own, "empty");
    let script = hint(url("https://site.test/a.js"), Destination::Script, Mode::NoCors, Source::Script);
    assert_eq!(plan.only(&script).unwrap().fields["sec-fetch-dest"], "script", "of each kind by itself");
    // One that has an answer to some of a kind: nothing of it is promised any more.
    asks(&mut plan, &third, "image");
    assert_eq!(dest(&mut plan, 4).unwrap_err(), Skip::UnknownAsker);
}
