//! What visits gather.

use super::super::Namer;
use super::*;
use farhop_page::Mode;
use http::StatusCode;

const PAGE: ExchangeId = ExchangeId(5);

fn owner(user: u64) -> Owner {
    Owner { remote: "ship#1".into(), user }
}

fn user(number: u64) -> User {
    User { remote: "ship".into(), epoch: 1, number }
}

fn url(path: &str) -> Url {
    Url::parse("http://site.test/").unwrap().join(path).unwrap()
}

struct World {
    visits: Visits,
    start: Instant,
}

impl World {
    fn new() -> World {
        let (mut visits, start) = (Visits::default(), Instant::now());
        assert!(visits.begin(&owner(1), user(1), PAGE, &url("/"), start).is_empty());
        let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
        visits.answered(&owner(1), PAGE, Some(&response), start);
        World { visits, start }
    }

    fn promise(&mut self, number: u64, path: &str, source: Source) {
        let hint = Hint::new(url(path), Destination::Script, Mode::NoCors, source);
        let made = Made { hint: &hint, url: &url(path), urgency: 3, by: Namer::default() };
        self.visits.promised(&owner(1), PAGE, number, &made, self.start);
    }

    fn cross(&mut self, path: &str, referer: &str, after_s: u64) {
        let at = self.start + Duration::from_secs(after_s);
        let needs = Needs::new(Destination::Script, Mode::NoCors);
        let seen = Seen { url: url(path), referer: Some(url(referer)), needs, anyones: true, unkept: false };
        self.visits.crossed(&owner(1), seen, at, at);
    }

    /// The visit that ends when the page is loaded again after so long.
    fn again(&mut self, after_s: u64) -> Visit {
        let at = self.start + Duration::from_secs(after_s);
        let mut ended = self.visits.begin(&owner(1), user(1), ExchangeId(6), &url("/"), at);
        assert_eq!(ended.len(), 1);
        ended.pop().unwrap()
    }
}

fn asked(visit: &Visit) -> Vec<&str> {
    visit.asked.iter().map(|asked| asked.url.path()).collect()
}

#[test]
fn what_crosses_and_what_is_used_was_asked_for() {
    let mut world = World::new();
    world.promise(1, "/used.js", Source::Script);
    world.promise(2, "/young.js", Source::Script);
    world.promise(3, "/unwanted.js", Source::Script);
    world.cross("/a.js", "/", 1);
    world.cross("/b.js", "/a.js", 1);
    world.visits.used(&"ship#1".into(), 0..=1);
    world.visits.unwanted(&"ship#1".into(), 3..=u64::MAX);
    world.visits.used(&"ship#2".into(), 2..=2);
    let visit = world.again(3);
    assert_eq!(asked(&visit), ["/a.js", "/b.js", "/used.js"]);
    let unknown: Vec<_> = visit.unknown.iter().map(Url::path).collect();
    assert_eq!(unknown, ["/unwanted.js", "/young.js"]);
    assert_eq!(visit.asked[1].needs.initiator, Some(url("/a.js")));
    assert!(world.visits.promises.is_empty());
}

#[test]
fn what_was_sent_and_is_not_used_in_time_was_sent_in_vain() {
    let mut world = World::new();
    for (number, path) in [(1, "/used.js"), (2, "/vain.js"), (3, "/not-sent.js")] {
        world.promise(number, path, Source::OwnVisits);
    }
    world.promise(4, "/of-the-page.js", Source::Script);
    for number in [1, 2, 4] {
        world.visits.sent(&"ship#1".into(), number, true);
    }
    world.visits.used(&"ship#1".into(), 1..=1);
    let visit = world.again(20);
    assert_eq!((visit.sent, visit.used), (2, 1));
    assert!(visit.unknown.is_empty() && asked(&visit) == ["/used.js"]);
}

#[test]
fn what_was_promised_in_other_words_than_it_is_asked_for_was_of_no_use() {
    let mut world = World::new();
    world.promise(1, "/a.js", Source::OwnVisits);
    world.cross("/a.js", "/", 2);
    assert!(asked(&world.again(20)).is_empty());
    // But what the browser could not have heard of yet was asked for.
    let mut world = World::new();
    world.promise(1, "/a.js", Source::OwnVisits);
    let needs = Needs::new(Destination::Script, Mode::NoCors);
    let seen = Seen { url: url("/a.js"), referer: Some(url("/")), needs, anyones: true, unkept: false };
    let before = world.start.checked_sub(Duration::from_millis(1)).unwrap();
    world.visits.crossed(&owner(1), seen, world.start, before);
    assert_eq!(asked(&world.again(20)), ["/a.js"]);
}

#[test]
fn what_was_promised_in_another_name_is_known_where_that_matters() {
    for (unkept, referer, is_told) in [(true, "/b.js", true), (false, "/b.js", false), (true, "/", false)] {
        let mut world = World::new();
        world.promise(1, "/chunk.js", Source::OwnVisits);
        world.cross("/b.js", "/", 1);
        let (url, referer) = (url("/chunk.js"), Some(url(referer)));
        let needs = Needs::new(Destination::Script, Mode::NoCors);
        let at = world.start + Duration::from_secs(2);
        world.visits.crossed(&owner(1), Seen { url, referer, needs, anyones: false, unkept }, at, at);
        let visit = world.again(20);
        assert_eq!((asked(&visit), !visit.otherwise.is_empty()), (vec!["/b.js"], is_told));
    }
}

#[test]
fn requests_of_others_of_other_pages_and_of_later_teach_nothing() {
    let mut world = World::new();
    world.cross("/late.js", "/", 31);
    world.cross("/elsewhere.js", "/other/page", 1);
    let needs = Needs::new(Destination::Script, Mode::NoCors);
    let seen = Seen { url: url("/others.js"), referer: Some(url("/")), needs, anyones: true, unkept: false };
    world.visits.crossed(&owner(2), seen, world.start, world.start);
    assert!(asked(&world.again(20)).is_empty());
}

#[test]
fn what_a_page_lets_others_know_is_learned_with_what_it_names() {
    let mut world = World::new();
    let told = |path: &str, policy, is_framed, source| {
        let destination = if source == Source::Frame { Destination::Frame } else { Destination::Image };
        let hint = Hint::new(url(path), destination, Mode::NoCors, source);
        let hint = Hint { referrer_policy: policy, ..hint };
        (hint, Namer { is_framed, referrer_policy: Some(ReferrerPolicy::SameOrigin) })
    };
    let silent = Some(ReferrerPolicy::NoReferrer);
    let all = [
        told("/silent.png", silent, false, Source::Image),
        told("/usual.png", None, false, Source::Image),
        told("/styled.png", silent, false, Source::StyleAttribute),
        told("/frame", None, false, Source::Frame),
        told("/in-frame.png", None, true, Source::Image),
    ];
    for (number, (hint, by)) in (1..).zip(&all) {
        let made = Made { hint, url: &hint.url, urgency: 3, by: *by };
        world.visits.promised(&owner(1), PAGE, number, &made, world.start);
    }
    world.visits.used(&"ship#1".into(), 1..=5);
    world.cross("/of-frame.js", "/frame", 1);
    world.visits.tells(&owner(1), PAGE, silent);
    let visit = world.again(20);
    let policies: Vec<_> =
        visit.asked.iter().map(|asked| (asked.url.path(), asked.needs.referrer_policy)).collect();
    assert_eq!(policies, [("/frame", None), ("/silent.png", silent), ("/usual.png", None)]);
    assert_eq!(visit.policies.unwrap().referrer.as_deref(), Some("no-referrer"));
}

#[test]
fn what_was_told_the_origin_alone_is_told_no_more() {
    let mut world = World { start: Instant::now(), visits: Visits::default() };
    world.visits.begin(&owner(1), user(1), PAGE, &url("/page"), world.start);
    let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
    world.visits.answered(&owner(1), PAGE, Some(&response), world.start);
    world.cross("/a.js", "/page", 1);
    world.cross("/b.js", "/", 1);
    let visit = world.visits.over(world.start + KEPT).remove(0);
    let policies: Vec<_> = visit.asked.iter().map(|asked| asked.needs.referrer_policy).collect();
    assert_eq!(policies, [None, Some(ReferrerPolicy::StrictOrigin)]);
}

#[test]
fn what_the_remote_holds_is_learned_as_this_page_names_it() {
    let mut world = World::new();
    let start = world.start;
    let silent = Some(ReferrerPolicy::NoReferrer);
    let kind = |path: &str| Kind {
        url: url(path),
        needs: Needs::new(Destination::Image, Mode::NoCors),
        anyones: true,
    };
    let name = |visits: &mut Visits, path: &str, is_framed| {
        let hint = Hint {
            referrer_policy: silent,
            ..Hint::new(url(path), Destination::Image, Mode::NoCors, Source::Image)
        };
        let by = Namer { is_framed, referrer_policy: None };
        visits.names(&owner(1), PAGE, &Made { hint: &hint, url: &hint.url, urgency: 3, by }, start);
    };
    name(&mut world.visits, "/named.png", false);
    name(&mut world.visits, "/framed.png", true);
    for path in ["/named.png", "/framed.png"] {
        world.visits.answered_here(&"ship#1".into(), PAGE, &kind(path), Duration::from_secs(1));
    }
    let visit = world.again(20);
    assert_eq!(asked(&visit), ["/named.png"]);
    assert_eq!(visit.asked[0].needs.referrer_policy, silent);
}

#[test]
fn of_what_the_remote_has_nothing_is_known_before_it_can_have_told() {
    for (ends, is_unknown) in [(2, true), (20, false)] {
        let mut world = World::new();
        for path in ["/named.js", "/asked.js"] {
            let hint = Hint::new(url(path), Destination::Script, Mode::NoCors, Source::Script);
            let made = Made { hint: &hint, url: &hint.url, urgency: 3, by: Namer::default() };
            world.visits.names(&owner(1), PAGE, &made, world.start);
        }
        let needs = Needs::new(Destination::Script, Mode::NoCors);
        let kind = Kind { url: url("/asked.js"), needs, anyones: true };
        world.visits.answered_here(&"ship#1".into(), PAGE, &kind, Duration::from_secs(1));
        let visit = world.again(ends);
        assert_eq!(asked(&visit), ["/asked.js"]);
        let unknown: Vec<_> = visit.unknown.iter().map(Url::path).collect();
        assert_eq!(unknown == ["/named.js"], is_unknown, "{unknown:?}");
    }
}

#[test]
fn a_page_that_has_not_changed_says_what_it_said() {
    let (mut visits, start) = (Visits::default(), Instant::now());
    visits.begin(&owner(1), user(1), PAGE, &url("/"), start);
    visits.answered(&owner(1), PAGE, None, start);
    assert_eq!(visits.over(start + KEPT).remove(0).policies, None);
}

#[test]
fn a_page_that_was_left_for_another_of_its_origin_teaches_that_one() {
    let mut world = World::new();
    let begin = |world: &mut World, number: u64, exchange: u64, page: &str, after_s: u64| {
        let at = world.start + Duration::from_secs(after_s);
        let ended = world.visits.begin(&owner(number), user(number), ExchangeId(exchange), &url(page), at);
        ended.iter().map(|visit| visit.page.path().to_owned()).collect::<Vec<_>>()
    };
    world.cross("/shared.js", "/", 1);
    world.promise(1, "/promised.js", Source::OwnVisits);
    assert!(begin(&mut world, 1, 6, "/2", 3).is_empty(), "it may have been opened beside it");
    assert!(begin(&mut world, 2, 7, "/2", 6).is_empty(), "another user's");
    assert!(begin(&mut world, 1, 8, "https://site.test/2", 6).is_empty(), "another origin's");
    let at = world.start + Duration::from_secs(6);
    let mut ended = world.visits.begin(&owner(1), user(1), ExchangeId(9), &url("/3"), at);
    let visit = ended.pop().unwrap();
    assert_eq!((asked(&visit), ended.len()), (vec!["/shared.js"], 0), "what has not come is not left");
    assert_eq!(visit.unknown.iter().map(Url::path).collect::<Vec<_>>(), ["/promised.js"]);
    // What is late in coming is not the next one's; but browsers keep what both share, and that asks for more.
    world.cross("/late.js", "/shared.js", 7);
    world.cross("/later.js", "/", 7);
    let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
    world.visits.answered(&owner(1), ExchangeId(9), Some(&response), world.start + Duration::from_secs(8));
    world.cross("/chunk.js", "/shared.js", 9);
    let ended = world.visits.over(world.start + KEPT * 2);
    assert_eq!(ended.iter().map(asked).collect::<Vec<_>>(), [["/chunk.js"]], "and each is learned once");
    assert!(world.visits.len() == 0 && world.visits.promises.is_empty());
}

#[test]
fn a_frame_of_a_page_is_not_what_it_was_left_for() {
    let mut world = World::new();
    let hint = Hint::new(url("/frame"), Destination::Frame, Mode::NoCors, Source::Frame);
    let made = Made { hint: &hint, url: &hint.url, urgency: 3, by: Namer::default() };
    world.visits.names(&owner(1), PAGE, &made, world.start);
    let at = world.start + Duration::from_secs(6);
    assert!(world.visits.begin(&owner(1), user(1), ExchangeId(6), &url("/frame"), at).is_empty());
}

#[test]
fn what_a_frame_of_a_script_asks_for_is_not_the_pages() {
    let mut world = World::new();
    world.visits.framed(&owner(1), url("/frame.html#x"), world.start);
    world.cross("/in-frame.js", "/frame.html", 1);
    world.cross("/in-page.js", "/", 1);
    assert_eq!(asked(&world.again(3)), ["/in-page.js"]);
}

#[test]
fn a_page_that_never_came_teaches_nothing_and_time_ends_visits() {
    let (mut visits, start) = (Visits::default(), Instant::now());
    visits.begin(&owner(1), user(1), PAGE, &url("/"), start);
    assert!(visits.over(start + KEPT).is_empty() && visits.len() == 0);
    visits.begin(&owner(1), user(1), PAGE, &url("/"), start);
    visits.answered(&owner(1), PAGE, None, start);
    assert!(visits.over(start + KEPT / 2).is_empty());
    assert_eq!(visits.over(start + KEPT).len(), 1);
}

#[test]
fn visits_and_promises_are_bounded() {
    let (mut visits, start) = (Visits::default(), Instant::now());
    for number in 0..MOST as u64 + 20 {
        visits.begin(&owner(number), user(number), PAGE, &url("/"), start);
    }
    assert_eq!(visits.len(), MOST);
    let hint = |number: usize| {
        Hint::new(url(&format!("/{number}")), Destination::Image, Mode::NoCors, Source::Image)
    };
    for number in 0..RESOURCES + 20 {
        let (hint, of) = (hint(number), owner(MOST as u64));
        visits.promised(
            &of,
            PAGE,
            number as u64,
            &Made { hint: &hint, url: &hint.url, urgency: 4, by: Namer::default() },
            start,
        );
    }
    assert_eq!(visits.promises.len(), RESOURCES);
    // So are all together: those that began first make room.
    for number in 0..(ALL / RESOURCES) as u64 + 9 {
        visits.begin(&owner(number), user(number), PAGE, &url("/"), start);
        for asked in 0..RESOURCES {
            let needs = Needs::new(Destination::Image, Mode::NoCors);
            let seen =
                Seen { url: hint(asked).url, referer: Some(url("/")), needs, anyones: true, unkept: false };
            visits.crossed(&owner(number), seen, start, start);
        }
        assert!(visits.noted() <= ALL);
    }
    assert!(visits.len() > 80 && visits.noted() > ALL - 2 * RESOURCES, "{}", visits.noted());
    visits.forget();
    assert!(visits.promises.is_empty() && visits.len() == 0);
}
