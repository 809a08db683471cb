//! Loads of sites that are helped, harmed, and change, in virtual time.

use super::*;

const EVERY: u64 = 25;

fn page(path: &str) -> Url {
    Url::parse("http://www.site.test/").unwrap().join(path).unwrap()
}

/// Loads of one user, one after the other, in virtual time.
struct Course {
    evidence: Evidence,
    now: Duration,
    next: u64,
    noise: u64,
    user: Arc<str>,
    found: Vec<Finding>,
}

impl Course {
    fn new(seed: u64) -> Course {
        let (evidence, now) = (Evidence::new(seed), Duration::from_secs(100));
        Course { evidence, now, next: 0, noise: seed, user: "anna".into(), found: Vec::new() }
    }

    /// A number from 0 to 1 (Knuth's MMIX generator).
    fn random(&mut self) -> f64 {
        self.noise =
            self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.noise >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A load whose last request is answered after `seconds` of the way that it is done, and give or take a fifth of that.
    fn load(&mut self, url: &Url, seconds: impl Fn(Eagerness) -> f64) -> Eagerness {
        let document = self.next;
        self.next += 2;
        let way = self.evidence.begin(&self.user, document, url, EVERY, self.now);
        let took = seconds(way) * (0.8 + 0.4 * self.random());
        self.evidence.asks(document, document, self.now);
        self.evidence.crosses(document);
        self.wait(0.5);
        self.evidence.asks(document + 1, document, self.now);
        self.evidence.settled(document, self.now);
        self.wait(took - 0.5);
        self.evidence.settled(document + 1, self.now);
        self.wait(10.0);
        let found = self.evidence.close(self.now);
        self.found.extend(found);
        way
    }

    fn wait(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn known(&self) -> Known {
        self.evidence.known(1).remove(0)
    }
}

/// A page that is the slower the more is fetched for it.
fn harmed(way: Eagerness) -> f64 {
    [4.0, 4.0, 5.0][way as usize]
}

fn helped(way: Eagerness) -> f64 {
    [5.0, 4.5, 3.0][way as usize]
}

#[test]
fn what_makes_a_sites_pages_slower_is_given_up() {
    for seed in 0..8 {
        let mut course = Course::new(seed);
        let loads = (0..2_000).position(|number| {
            course.load(&page(&format!("/article/{number}")), harmed);
            course.known().now != Eagerness::All
        });
        let found = course.found.first().unwrap_or_else(|| panic!("seed {seed}: never"));
        assert!(loads < Some(1_000), "seed {seed}: after {loads:?}");
        assert!(
            found.before == Eagerness::All && (1.05..1.6).contains(&found.ratio),
            "seed {seed}: {found:?}"
        );
        assert!(found.loads.0 >= LEAST && found.loads.1 >= LEAST && &*found.site == "http://site.test");
    }
}

#[test]
fn what_helps_a_site_goes_on_helping_it() {
    for seed in 0..8 {
        let mut course = Course::new(seed);
        let all = (0..1_000).filter(|_| course.load(&page("/"), helped) == Eagerness::All).count();
        assert_eq!(course.found, [], "seed {seed}");
        // One in 25 is done another way, none of the first ones.
        assert!((955..=965).contains(&all), "seed {seed}: {all}");
    }
}

#[test]
fn the_first_loads_of_a_site_are_done_like_all_others() {
    for seed in 0..20 {
        let mut course = Course::new(seed);
        for _ in 0..FIRST {
            assert_eq!(course.load(&page("/"), helped), Eagerness::All, "seed {seed}");
        }
    }
}

#[test]
fn what_was_given_up_is_taken_up_again_once_it_helps() {
    let mut course = Course::new(7);
    while course.known_now() == Eagerness::All {
        course.load(&page("/"), harmed);
        assert!(course.next < 10_000);
    }
    let from = course.next;
    while course.known_now() != Eagerness::All {
        course.load(&page("/"), helped);
        assert!(course.next < from + 20_000, "{:?}", course.found);
    }
}

impl Course {
    fn known_now(&self) -> Eagerness {
        self.evidence.known(1).first().map_or(Eagerness::All, |known| known.now)
    }
}

#[test]
fn loads_are_compared_with_loads_of_like_pages_only() {
    // The long pages are done one way and the short ones the other: that says nothing.
    let trial = |kind, log_s| Trial { kind, log_s, at: Duration::ZERO };
    let long: VecDeque<Trial> = (0..20).map(|_| trial(1, 3.0)).collect();
    let short: VecDeque<Trial> = (0..20).map(|_| trial(2, 1.0)).collect();
    assert!(compare(&long, &short).is_none());
    let both: VecDeque<Trial> = long.iter().chain(&short).copied().collect();
    let same = compare(&both, &both).unwrap();
    assert!((same.ratio - 1.0).abs() < 1e-9 && same.deviations.abs() < 1e-9);
    assert_eq!(kind(&page("/article/12?from=a")), kind(&page("/article/345")));
    assert_ne!(kind(&page("/article/12")), kind(&page("/author/12")));
}

#[test]
fn loads_whose_document_is_held_are_compared_with_their_like_alone() {
    let mut course = Course::new(1);
    for document in [10, 20, 30] {
        let user = Arc::clone(&course.user);
        course.evidence.begin(&user, document, &page("/"), EVERY, course.now);
        course.evidence.asks(document, document, course.now);
        match document {
            10 => course.evidence.crosses(document),
            _ => course.evidence.held(document),
        }
        course.evidence.asks(document + 1, document, course.now);
        course.wait(1.0);
        course.evidence.settled(document, course.now);
        course.evidence.settled(document + 1, course.now);
        course.wait(10.0);
        course.evidence.close(course.now);
    }
    let site = course.evidence.sites.values().next().unwrap();
    let kinds: Vec<u64> = site.of(Eagerness::All).iter().map(|trial| trial.kind).collect();
    assert!(kinds.len() == 3 && kinds[0] != kinds[1] && kinds[1] == kinds[2], "{kinds:?}");
}

#[test]
fn a_load_that_a_redirect_leads_on_is_done_one_way_and_timed_as_one() {
    let mut course = Course::new(1);
    let user = Arc::clone(&course.user);
    for held in [false, true] {
        let (first, second) = (course.next, course.next + 1);
        course.next += 10;
        let way = course.evidence.begin(&user, first, &page("/"), EVERY, course.now);
        course.evidence.asks(first, first, course.now);
        course.evidence.crosses(first);
        course.wait(1.0);
        course.evidence.settled(first, course.now);
        assert_eq!(course.evidence.goes_on(first, second), Some(way));
        assert_eq!((course.evidence.way(first), course.evidence.way(second)), (None, Some(way)));
        course.evidence.asks(second, second, course.now);
        if held {
            course.evidence.held(second);
        } else {
            course.evidence.crosses(second);
        }
        course.wait(2.0);
        course.evidence.settled(second, course.now);
        course.wait(10.0);
        course.evidence.close(course.now);
        assert_eq!(course.evidence.goes_on(second, second + 1), None, "it is over");
    }
    let site = course.evidence.sites.values().next().unwrap();
    let trials: Vec<_> = site.of(Eagerness::All).iter().collect();
    assert!(trials.iter().all(|trial| (trial.log_s.exp() - 3.0).abs() < 1e-6), "{trials:?}");
    assert!(trials.len() == 2 && trials[0].kind != trials[1].kind, "{trials:?}");
}

#[test]
fn what_is_left_broken_alone_or_endless_says_nothing() {
    let of = |course: &mut Course, spoil: &dyn Fn(&mut Course, u64)| {
        let document = course.next;
        course.next += 2;
        let user = Arc::clone(&course.user);
        course.evidence.begin(&user, document, &page("/"), EVERY, course.now);
        course.evidence.asks(document, document, course.now);
        spoil(course, document);
        course.wait(130.0);
        let found = course.evidence.close(course.now);
        course.found.extend(found);
    };
    let rest = |course: &mut Course, document: u64| {
        course.evidence.crosses(document);
        course.evidence.asks(document + 1, document, course.now);
        course.wait(1.0);
        course.evidence.settled(document, course.now);
        course.evidence.settled(document + 1, course.now);
    };
    let mut course = Course::new(1);
    of(&mut course, &|course, document| {
        course.evidence.crosses(document);
        course.wait(1.0);
        course.evidence.settled(document, course.now);
    });
    of(&mut course, &|course, document| {
        course.evidence.spoil(document);
        rest(course, document);
    });
    of(&mut course, &|course, document| {
        // Another page is opened while this one loads.
        let user = Arc::clone(&course.user);
        course.evidence.begin(&user, 1_000 + document, &page("/next"), EVERY, course.now);
        rest(course, document);
    });
    of(&mut course, &|course, document| {
        // Answered from what is held.
        course.evidence.asks(document + 1, document, course.now);
        course.evidence.settled(document + 1, course.now);
        course.evidence.settled(document, course.now);
    });
    of(&mut course, &|course, document| {
        // One request goes on and on.
        course.evidence.crosses(document);
        course.evidence.asks(document + 1, document, course.now);
        course.evidence.settled(document, course.now);
    });
    assert_eq!(course.known().loads, [0, 0, 0]);
    of(&mut course, &rest);
    assert_eq!(course.known().loads, [0, 0, 1]);
    assert!(course.evidence.loads.is_empty() && course.evidence.exchanges.is_empty());
}

#[test]
fn what_is_asked_for_when_the_page_is_quiet_is_no_part_of_its_load() {
    let mut course = Course::new(1);
    let user = Arc::clone(&course.user);
    course.evidence.begin(&user, 1, &page("/"), EVERY, course.now);
    course.evidence.crosses(1);
    for exchange in [1, 2] {
        course.evidence.asks(exchange, 1, course.now);
        course.wait(1.0);
        course.evidence.settled(exchange, course.now);
    }
    course.wait(3.0);
    course.evidence.asks(3, 1, course.now);
    course.wait(50.0);
    course.evidence.settled(3, course.now);
    course.evidence.close(course.now);
    let site = course.evidence.sites.values().next().unwrap();
    assert_eq!(site.of(Eagerness::All)[0].log_s, 2.0_f64.ln());
}

#[test]
fn sites_and_loads_without_end_are_bounded() {
    let mut evidence = Evidence::new(1);
    for number in 0..2 * MOST_LOADS as u64 {
        let url = Url::parse(&format!("http://site{number}.test/")).unwrap();
        let user = format!("user {number}").into();
        evidence.begin(&user, number, &url, EVERY, Duration::from_secs(number));
        evidence.asks(number, number, Duration::from_secs(number));
    }
    assert_eq!((evidence.sites.len(), evidence.loads.len()), (MOST_SITES, MOST_LOADS));
    assert!(evidence.exchanges.len() <= MOST_LOADS);
    assert_eq!(&*evidence.known(1)[0].site, "http://site8191.test");
}
