//! Which guesses are fetched unasked: few, small and harmless.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, Room, Skip};
use farhop_page::{Confidence, Hint, Mode, Source};
use support::planned::plan;
use support::{CHROMIUM, image};
use url::Url;

#[test]
fn guesses_are_plain_files_without_query_and_without_cookies() {
    let guess = |address: &str| Hint { confidence: Confidence::Guess, ..image(address) };
    let mut anonymous = plan(CHROMIUM, &[], &[], Budget::default());
    for risky in ["a.png?x=1", "a.json", "a.php", "logout", "a.png/", "x.js/logout", ".png.cgi"] {
        let address = format!("http://site.test/{risky}");
        assert_eq!(anonymous.only(&guess(&address)), Err(Skip::RiskyGuess), "{risky}");
        assert!(anonymous.only(&image(&address)).is_ok(), "not a guess: {risky}");
    }
    for plain in ["a.png", "a.SVG", "a.woff2", "a.css", "a.min.js", "a.mjs"] {
        assert!(anonymous.only(&guess(&format!("http://site.test/{plain}"))).is_ok(), "{plain}");
    }
    let mut known = plan(CHROMIUM, &[("cookie", "a=1")], &[], Budget::default());
    assert_eq!(known.only(&guess("http://site.test/a.png")), Err(Skip::RiskyGuess), "with cookies");
    assert!(known.only(&guess("http://other.test/a.png")).is_ok(), "none are held for it");
    let without = Hint { mode: Mode::CorsAnonymous, ..guess("http://site.test/b.woff2") };
    assert!(known.only(&without).is_ok(), "the browser would send none");
}

#[test]
fn guesses_have_a_budget_of_their_own_in_number_and_in_bytes() {
    let guess =
        |n: u32| Hint { confidence: Confidence::Guess, ..image(&format!("http://site.test/g{n}.png")) };
    let mut many = plan(CHROMIUM, &[], &[], Budget { max_guesses: 2, ..Budget::default() });
    assert!(many.only(&guess(1)).is_ok() && many.only(&guess(2)).is_ok());
    assert_eq!(many.only(&guess(3)), Err(Skip::OverGuesses));
    let mut named = plan(CHROMIUM, &[], &[], Budget::default());
    named.plan.leave_guesses();
    assert_eq!(named.only(&guess(1)), Err(Skip::OverGuesses), "what is named alone is wanted");
    assert!(named.only(&image("http://site.test/named.png")).is_ok());
    assert!(many.only(&image("http://site.test/sure.png")).is_ok(), "what is sure has its own");
    let budget = Budget { max_guess_bytes: 1000, max_bytes_per_guess: 400, ..Budget::default() };
    let mut large = plan(CHROMIUM, &[], &[], budget);
    assert_eq!(large.plan.guess_allowance(), 400);
    assert!((1..=4).all(|n| large.only(&guess(n)).is_ok()), "in turn");
    assert_eq!([1, 2].map(|n| large.plan.begin_guess(&guess(n))), [Room::Left; 2]);
    assert_eq!(large.plan.begin_guess(&guess(3)), Room::SetAside, "both may take all that they are allowed");
    large.plan.spent_on_guess(&guess(1), 200);
    assert_eq!(large.plan.begin_guess(&guess(3)), Room::Left, "the first took less");
    large.plan.spent_on_guess(&guess(2), 400);
    large.plan.spent_on_guess(&guess(3), 100);
    assert_eq!(large.plan.begin_guess(&guess(4)), Room::UsedUp, "it might take more than is left");
    assert_eq!(large.only(&guess(5)), Err(Skip::OverGuesses));
}

#[test]
fn names_in_scripts_have_a_budget_of_their_own_and_are_plain_files_like_any_guess() {
    let mention = |n: u32| Hint {
        confidence: Confidence::Guess,
        source: Source::Mention,
        ..image(&format!("http://site.test/icons/{n}.svg"))
    };
    let budget = Budget { max_guesses: 1, max_mentions: 3, max_mention_bytes: 1000, ..Budget::default() };
    let mut many = plan(CHROMIUM, &[], &[], budget.clone());
    assert!((1..=3).all(|n| many.only(&mention(n)).is_ok()), "more than there may be guesses");
    assert_eq!(many.only(&mention(4)), Err(Skip::OverGuesses));
    let mut large = plan(CHROMIUM, &[], &[], budget);
    assert!(large.only(&mention(1)).is_ok());
    assert_eq!(large.plan.begin_guess(&mention(1)), Room::Left);
    large.plan.spent_on_guess(&mention(1), 1001);
    assert_eq!(large.only(&mention(2)), Err(Skip::OverGuesses));
    let query = Hint { url: Url::parse("http://site.test/icons/5.svg?v=1").unwrap(), ..mention(5) };
    let mut careful = plan(CHROMIUM, &[], &[], Budget::default());
    assert_eq!(careful.only(&query), Err(Skip::RiskyGuess));
}

#[test]
fn guesses_that_are_all_named_at_once_are_fetched_in_turn_and_take_no_more_than_their_bytes() {
    let mut plan = plan(CHROMIUM, &[], &[], Budget::default());
    let guess =
        |n: u32| Hint { confidence: Confidence::Guess, ..image(&format!("http://site.test/g{n}.png")) };
    assert!((0..20).all(|n| plan.only(&guess(n)).is_ok()));
    assert_eq!(plan.only(&guess(20)), Err(Skip::OverGuesses));
    let under_way = (0..20).filter(|n| plan.plan.begin_guess(&guess(*n)) == Room::Left).count() as u64;
    assert!(under_way > 0 && under_way * plan.plan.guess_allowance() <= Budget::default().max_guess_bytes);
    plan.plan.spent_on_guess(&guess(0), 250);
    for n in 8..20 {
        plan.plan.spent_on_guess(&guess(n - 7), 250);
        assert_eq!(plan.plan.begin_guess(&guess(n)), Room::Left, "{n}: what was set aside is back");
    }
}

#[test]
fn a_guess_that_the_page_names_by_itself_takes_no_other_guesss_place() {
    let named = |n: u32| image(&format!("http://site.test/g{n}.png"));
    for source in [Source::Literal, Source::Mention] {
        let guess = |n: u32| Hint { confidence: Confidence::Guess, source, ..named(n) };
        let budget = Budget { max_guesses: 1, max_mentions: 1, ..Budget::default() };
        let mut plan = plan(CHROMIUM, &[], &[], budget);
        assert!(plan.only(&guess(1)).is_ok());
        assert_eq!(plan.only(&guess(2)), Err(Skip::OverGuesses));
        for _ in 0..2 {
            assert_eq!(plan.only(&named(1)), Err(Skip::Duplicate));
        }
        assert!(plan.only(&guess(2)).is_ok());
        assert_eq!(plan.only(&guess(3)), Err(Skip::OverGuesses), "once");
    }
}

#[test]
fn a_guess_that_was_not_sent_is_fetched_if_the_page_names_it() {
    let named = image("http://site.test/long.png");
    let guess = Hint { confidence: Confidence::Guess, ..named.clone() };
    let mut plan = plan(CHROMIUM, &[], &[], Budget::default());
    let request = plan.only(&guess).unwrap();
    plan.plan.forget_guess(&request);
    assert!(plan.only(&named).is_ok());
    plan.plan.forget_guess(&request);
    assert_eq!(plan.only(&named), Err(Skip::Duplicate), "what is named stays");
}
