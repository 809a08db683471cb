//! What visits teach, whom it serves, what is forgotten.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::time::Duration;

use farhop_models::{Asked, Limits, Means, Models, Needs, Policies, User, Visit};
use farhop_page::{Destination, Mode};
use url::Url;

const LIMITS: Limits = Limits { bytes: 4 << 20 };
const NOW: u64 = 1_800_000_000;
const DAY: u64 = 24 * 3600;

fn user(number: u64) -> User {
    User { remote: "ship".into(), epoch: 1, number }
}

fn url(path: &str) -> Url {
    Url::parse("http://site.test/").unwrap().join(path).unwrap()
}

fn script(path: &str) -> Asked {
    asked(path, Destination::Script)
}

fn asked(path: &str, destination: Destination) -> Asked {
    let delay = Duration::from_millis(100);
    Asked {
        url: url(path),
        needs: Needs::new(destination, Mode::NoCors),
        delay,
        anyones: true,
        foreseen: false,
        unkept: false,
    }
}

fn visit(number: u64, page: &str, asked: &[Asked]) -> Visit {
    Visit { asked: asked.to_vec(), ..Visit::new(user(number), url(page)) }
}

/// What is foreseen at all, with what is done about it.
fn foreseen(models: &mut Models, number: u64, page: &str, now: u64) -> Vec<(String, Means)> {
    let (_, foreseen) = models.foresee(&user(number), &url(page), now);
    let done = foreseen.into_iter().filter_map(|one| Some((one.url.path().to_owned(), one.means?)));
    done.collect()
}

fn pushed(models: &mut Models, number: u64, page: &str) -> Vec<String> {
    let foreseen = foreseen(models, number, page, NOW);
    foreseen.into_iter().filter(|(_, means)| *means == Means::Push).map(|(path, _)| path).collect()
}

#[test]
fn from_the_third_visit_on_what_each_asked_for_is_sent() {
    let mut models = Models::new(LIMITS);
    assert!(foreseen(&mut models, 1, "/", NOW).is_empty());
    models.learn(&visit(1, "/", &[script("/a.js"), script("/b.js")]), NOW);
    let second = foreseen(&mut models, 1, "/", NOW);
    assert_eq!(second.len(), 2);
    assert!(second.iter().all(|(_, means)| *means == Means::Promise), "one visit may be chance");
    models.learn(&visit(1, "/", &[script("/a.js"), script("/b.js")]), NOW);
    assert_eq!(pushed(&mut models, 1, "/"), ["/a.js", "/b.js"]);
}

#[test]
fn a_page_of_two_thousand_images_is_foreseen_whole_from_the_third_visit_on() {
    let mut models = Models::new(Limits { bytes: 16_000_000 });
    let list: Vec<Asked> =
        (0..2_000).map(|number| asked(&format!("/{number:a>60}"), Destination::Image)).collect();
    for user in [1, 1, 2, 3] {
        models.learn(&visit(user, "/gallery", &list), NOW);
    }
    assert_eq!(pushed(&mut models, 1, "/gallery").len(), 2_000, "to whom has seen them twice");
    assert_eq!(pushed(&mut models, 4, "/gallery").len(), 2_000, "which three users have shown");
    // Another list at the next visit is no more than one model has room for.
    let other: Vec<Asked> =
        (0..2_000).map(|number| asked(&format!("/{number:b>60}"), Destination::Image)).collect();
    models.learn(&visit(1, "/gallery", &other), NOW);
    assert!(models.bytes() < 4 * 820_000, "{}", models.bytes());
    assert!(pushed(&mut models, 1, "/gallery").is_empty());
    assert!(foreseen(&mut models, 1, "/gallery", NOW).len() > 2_000);
}

#[test]
fn what_is_asked_for_now_and_then_is_not_sent() {
    let mut models = Models::new(LIMITS);
    for number in 0..12 {
        let sometimes = [script("/a.js"), script("/sometimes.js")];
        let all = if number % 2 == 0 { &sometimes[..] } else { &sometimes[..1] };
        models.learn(&visit(1, "/", all), NOW);
        assert!(!pushed(&mut models, 1, "/").contains(&"/sometimes.js".to_owned()), "after {number}");
    }
    assert_eq!(pushed(&mut models, 1, "/"), ["/a.js"]);
}

#[test]
fn what_is_not_seen_is_no_visit() {
    let mut models = Models::new(LIMITS);
    for _ in 0..2 {
        models.learn(&visit(1, "/", &[script("/a.js")]), NOW);
    }
    for _ in 0..10 {
        let mut blind = visit(1, "/", &[]);
        blind.unknown.insert(url("/a.js"));
        models.learn(&blind, NOW);
    }
    assert_eq!(pushed(&mut models, 1, "/"), ["/a.js"], "the remote answered by itself meanwhile");
}

#[test]
fn what_is_asked_for_in_one_name_or_another_is_not_sent_where_it_may_not_be_kept() {
    let by = |name: &str, unkept| {
        let mut chunk = Asked { unkept, ..script("/chunk.js") };
        chunk.needs.initiator = Some(url(name));
        chunk
    };
    let learn = |models: &mut Models, names: &[&str], unkept| {
        names.iter().for_each(|name| models.learn(&visit(1, "/", &[by(name, unkept)]), NOW));
    };
    let mut models = Models::new(LIMITS);
    learn(&mut models, &["/a.js", "/b.js", "/a.js", "/a.js", "/a.js", "/a.js"], true);
    assert_eq!(foreseen(&mut models, 1, "/", NOW), [("/chunk.js".to_owned(), Means::Connect)]);
    assert_eq!(Models::from_text(&models.to_text(), LIMITS).unwrap().to_text(), models.to_text());
    let mut read = Models::new(LIMITS);
    read.add_own(&models.own_to_text()).unwrap();
    assert_eq!(foreseen(&mut read, 1, "/", NOW), [("/chunk.js".to_owned(), Means::Connect)]);
    learn(&mut models, &["/a.js"], true);
    assert_eq!(pushed(&mut models, 1, "/"), ["/chunk.js"], "it is no race any more");
    // A promise in the wrong name shows it, too.
    let mut vain = visit(1, "/", &[]);
    vain.otherwise.insert(url("/chunk.js"));
    models.learn(&vain, NOW);
    assert_eq!(foreseen(&mut models, 1, "/", NOW), [("/chunk.js".to_owned(), Means::Connect)]);
    // What may be kept answers whoever names it.
    let mut models = Models::new(LIMITS);
    learn(&mut models, &["/a.js", "/b.js", "/a.js", "/b.js"], false);
    assert_eq!(pushed(&mut models, 1, "/"), ["/chunk.js"]);
}

#[test]
fn what_is_called_otherwise_each_time_is_never_sent_and_takes_one_place() {
    let mut models = Models::new(LIMITS);
    for number in 0..20 {
        let busted = script(&format!("/api.js?t={number}"));
        models.learn(&visit(1, "/", &[busted, script("/app.js")]), NOW);
        assert!(!pushed(&mut models, 1, "/").contains(&"/api.js".to_owned()));
    }
    let told = models.told("site.test", NOW);
    let own = told.iter().find(|model| model.user.is_some()).unwrap();
    assert!(own.resources.len() <= 2, "{own:?}");
}

#[test]
fn a_new_release_has_to_prove_itself_and_the_old_one_is_gone() {
    let mut models = Models::new(LIMITS);
    for _ in 0..6 {
        models.learn(&visit(1, "/", &[script("/app.11aa22bb.js")]), NOW);
    }
    models.learn(&visit(1, "/", &[script("/app.99aa22bb.js")]), NOW);
    assert_eq!(foreseen(&mut models, 1, "/", NOW), [("/app.99aa22bb.js".to_owned(), Means::Promise)]);
    for _ in 0..4 {
        models.learn(&visit(1, "/", &[script("/app.99aa22bb.js")]), NOW);
    }
    assert_eq!(pushed(&mut models, 1, "/"), ["/app.99aa22bb.js"]);
}

#[test]
fn one_users_visits_serve_no_other_until_three_have_shown_the_same() {
    let mut models = Models::new(LIMITS);
    let mut all = [script("/a.js"), asked("/list.json", Destination::Fetch), script("/x.js")];
    all[2].needs.said.push(("accept".into(), "application/json".into()));
    for _ in 0..5 {
        models.learn(&visit(1, "/", &all), NOW);
    }
    assert!(foreseen(&mut models, 2, "/", NOW).is_empty(), "only one has");
    models.learn(&visit(2, "/", &all), NOW);
    assert!(foreseen(&mut models, 3, "/", NOW).is_empty(), "only two have");
    models.learn(&visit(3, "/", &all), NOW);
    assert_eq!(
        pushed(&mut models, 4, "/"),
        ["/a.js"],
        "neither what is fetched nor what a script asks in words of its own"
    );
    let (_, for_first) = models.foresee(&user(1), &url("/"), NOW);
    assert_eq!(for_first.len(), 3);
    assert!(for_first.iter().all(|one| one.own));
    let (_, for_fourth) = models.foresee(&user(4), &url("/"), NOW);
    assert!(for_fourth.iter().all(|one| !one.own));
}

#[test]
fn what_was_seen_of_a_request_is_not_forgotten_when_a_promise_answers_it() {
    let mut models = Models::new(LIMITS);
    let mut list = asked("/list.json", Destination::Fetch);
    list.needs.said.push(("accept".into(), "application/json".into()));
    models.learn(&visit(1, "/", &[list.clone()]), NOW);
    let answered = Asked { foreseen: true, ..asked("/list.json", Destination::Fetch) };
    models.learn(&visit(1, "/", &[answered]), NOW);
    let (_, foreseen) = models.foresee(&user(1), &url("/"), NOW);
    assert_eq!(foreseen[0].needs, list.needs);
}

#[test]
fn what_may_be_personal_is_learned_for_its_user_alone() {
    let mut models = Models::new(LIMITS);
    for number in 1..=4 {
        let personal = Asked { anyones: false, ..script("/me.js") };
        for _ in 0..2 {
            models.learn(&visit(number, "/", &[personal.clone(), script("/a.js")]), NOW);
        }
    }
    assert_eq!(pushed(&mut models, 1, "/"), ["/a.js", "/me.js"]);
    assert_eq!(pushed(&mut models, 9, "/"), ["/a.js"]);
}

#[test]
fn only_what_three_users_have_shown_is_written_down() {
    let mut models = Models::new(LIMITS);
    for number in 1..=3 {
        let own = script(&format!("/mine-{number}.js"));
        let told = Policies { referrer: Some("no-referrer".into()), content: vec!["img-src 'self'".into()] };
        let all = [script("/a.js"), asked("/list.json", Destination::Fetch), own];
        models.learn(&Visit { policies: Some(told), ..visit(number, "/p/1", &all) }, NOW);
        if number < 3 {
            assert!(!models.to_text().contains("site.test"), "{}", models.to_text());
        }
    }
    let text = models.to_text();
    assert!(text.contains("/a.js") && text.contains("no-referrer"), "{text}");
    for private in ["mine", "list.json", "img-src", "ship"] {
        assert!(!text.contains(private), "{private} in {text}");
    }
    let mut read = Models::from_text(&text, LIMITS).unwrap();
    assert_eq!(pushed(&mut read, 9, "/p/1"), ["/a.js"]);
    assert_eq!(read.to_text(), text);
}

#[test]
fn a_page_of_which_no_response_was_seen_is_told_to_nobody() {
    let told = |models: &mut Models| models.foresee(&user(1), &url("/"), NOW).0.referrer;
    let mut models = Models::new(LIMITS);
    models.learn(&visit(1, "/", &[script("/a.js")]), NOW);
    assert_eq!(told(&mut models).as_deref(), Some("no-referrer"));
    let says = |referrer: Option<&str>, content: &str| {
        let policies = Policies { referrer: referrer.map(str::to_owned), content: vec![content.to_owned()] };
        Visit { policies: Some(policies), ..visit(1, "/", &[script("/a.js")]) }
    };
    models.learn(&says(None, "img-src 'self'"), NOW);
    assert_eq!(told(&mut models), None);
    // However long its other policies are; and what has not changed says what it said.
    models.learn(&says(Some("origin"), &"x".repeat(5000)), NOW);
    models.learn(&visit(1, "/", &[script("/a.js")]), NOW);
    assert_eq!(told(&mut models).as_deref(), Some("origin"));
}

#[test]
fn pages_like_it_teach_what_a_new_page_brings() {
    let mut models = Models::new(LIMITS);
    for number in 1..=2 {
        let own = script(&format!("/item/{number}/own.js"));
        for _ in 0..4 {
            models.learn(&visit(1, &format!("/item/{number}"), &[script("/site.js"), own.clone()]), NOW);
        }
    }
    assert_eq!(pushed(&mut models, 1, "/item/3"), ["/site.js"]);
    assert_eq!(
        pushed(&mut models, 1, "/item/2"),
        ["/item/2/own.js", "/site.js"],
        "in the order of their names"
    );
    assert!(foreseen(&mut models, 1, "/user/3", NOW).is_empty());
}

#[test]
fn what_was_sent_in_vain_makes_it_cautious() {
    let mut models = Models::new(LIMITS);
    for _ in 0..2 {
        models.learn(&visit(1, "/", &[script("/a.js")]), NOW);
    }
    for _ in 0..2 {
        let vain = Visit { sent: 10, used: 0, ..visit(1, "/", &[script("/a.js")]) };
        models.learn(&vain, NOW);
    }
    assert!(pushed(&mut models, 1, "/").is_empty());
    for _ in 0..14 {
        let used = Visit { sent: 10, used: 10, ..visit(1, "/", &[script("/a.js")]) };
        models.learn(&used, NOW);
    }
    assert_eq!(pushed(&mut models, 1, "/"), ["/a.js"]);
}

#[test]
fn what_was_not_asked_for_in_months_is_forgotten() {
    let mut models = Models::new(LIMITS);
    for _ in 0..6 {
        models.learn(&visit(1, "/", &[script("/a.js")]), NOW);
    }
    assert_eq!(foreseen(&mut models, 1, "/", NOW + 5 * DAY), [("/a.js".to_owned(), Means::Push)]);
    assert_eq!(foreseen(&mut models, 1, "/", NOW + 30 * DAY), [("/a.js".to_owned(), Means::Promise)]);
    assert_eq!(foreseen(&mut models, 1, "/", NOW + 170 * DAY), []);
    let mut blind = visit(1, "/", &[]);
    blind.unknown.insert(url("/a.js"));
    models.learn(&blind, NOW + 181 * DAY);
    let told = models.told("site.test", NOW + 181 * DAY);
    assert!(told.iter().all(|model| model.resources.is_empty() && model.withheld == 0), "{told:?}");
}

#[test]
fn one_host_or_all_are_erased() {
    let mut models = Models::new(LIMITS);
    let other = Visit::new(user(1), Url::parse("http://other.test/").unwrap());
    models.learn(&visit(1, "/item/1", &[script("/a.js")]), NOW);
    models.learn(&other, NOW);
    assert_eq!(models.hosts().into_keys().collect::<Vec<_>>(), ["other.test", "site.test"]);
    assert_eq!(models.erase(Some("site.test")), 4, "own and everyone's, page and template");
    assert!(models.told("site.test", NOW).is_empty());
    assert_eq!(models.erase(None), 2);
    assert!(models.is_empty() && models.bytes() == 0);
}

#[test]
fn another_version_is_told_from_damage() {
    let error = |text: &str| Models::from_text(text, LIMITS).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        error("{\"version\": 7, \"more\": []}"),
        "it is of version 7, and this program reads version 2"
    );
    assert!(error("{\"version\": 2}").starts_with("it is damaged"));
    assert!(error("").starts_with("it is damaged"));
}

#[test]
fn what_is_known_of_one_page_is_told_with_what_pages_like_it_have_taught() {
    let mut models = Models::new(LIMITS);
    models.learn(&visit(1, "/item/1", &[script("/a.js")]), NOW);
    models.learn(&visit(1, "/other", &[script("/b.js")]), NOW);
    let told = models.told_of(&url("/item/1#part"), NOW);
    let names: Vec<_> = told.iter().map(|model| (model.user.is_some(), model.template)).collect();
    assert_eq!(names.len(), 4, "{told:?}");
    assert!(names.contains(&(true, false)) && names.contains(&(false, true)), "{told:?}");
    let own = told.iter().find(|model| model.user.is_some() && !model.template).unwrap();
    assert_eq!(own.resources[0].url, url("/a.js").as_str());
    let like = models.told_of(&url("/item/2"), NOW);
    assert!(like.len() == 2 && like.iter().all(|model| model.template), "{like:?}");
    assert!(models.told_of(&url("/else"), NOW).is_empty());
}

#[test]
fn a_users_own_models_are_written_and_read_by_themselves() {
    let mut models = Models::new(LIMITS);
    let policies = Policies { referrer: None, content: vec!["img-src 'self'".into()] };
    let mut list = asked("/list.json", Destination::Fetch);
    list.needs.said = vec![("accept".into(), "application/json".into())];
    for _ in 0..2 {
        let seen = [script("/a.js"), list.clone()];
        models.learn(&Visit { policies: Some(policies.clone()), ..visit(1, "/p/1", &seen) }, NOW);
    }
    let text = models.own_to_text();
    assert!(!models.to_text().contains("site.test"), "it is not everyone's");
    let mut read = Models::new(LIMITS);
    read.add_own(&text).unwrap();
    assert_eq!(read.own_to_text(), text);
    assert_eq!(read.foresee(&user(1), &url("/p/1"), NOW), models.foresee(&user(1), &url("/p/1"), NOW));
    assert!(foreseen(&mut read, 2, "/p/1", NOW).is_empty(), "another user's");
    // Neither is taken for the other.
    assert!(Models::from_text(&text, LIMITS).is_err());
    let mut shared = Models::new(LIMITS);
    (1..=3).for_each(|number| shared.learn(&visit(number, "/", &[script("/a.js")]), NOW));
    assert!(read.add_own(&shared.to_text()).is_err());
    assert_eq!(read.own_to_text(), text, "nothing of it was added");
    assert!(Models::new(Limits { bytes: 100 }).add_own(&text).is_ok());
    assert!(read.erase(Some("site.test")) > 0);
    assert!(!read.own_to_text().contains("site.test"));
}
