//! What the desk answers, ends and counts.

use super::*;
use farhop_events::Event;
use farhop_store::Budget;
use http::{HeaderName, HeaderValue, StatusCode, header};

/// A promise of this number, of what was asked for at the same time as its page.
fn made(number: u64, url: Url, asked_at: SystemTime) -> Made {
    Made {
        wire: (0, number),
        client: IpAddr::from([10, 0, 0, 1]),
        page: ExchangeId(1),
        asked_at,
        url,
        request: Arc::default(),
        priority: Priority::default(),
        leading: None,
    }
}

fn lasting(cache_control: &'static str) -> Arc<ResponseHead> {
    let fields = [(header::CACHE_CONTROL, HeaderValue::from_static(cache_control))];
    Arc::new(ResponseHead { status: StatusCode::OK, fields: fields.into_iter().collect() })
}

#[test]
fn what_waits_for_its_turn_at_ground_grows_old_there() {
    let (user, now) = (User { id: 1, name: "10.0.0.1".into() }, Duration::from_secs(1_000));
    let is_reused_after = |waited| {
        let mut desk = Desk::new(Bus::new());
        let asked_at = SystemTime::now() - Duration::from_secs(waited);
        let url = Url::parse("http://site.test/").unwrap();
        let (id, _) = desk.promise(&user, made(1, url, asked_at)).unwrap();
        assert_eq!(desk.known(id).unwrap().asked_at, asked_at, "its age in the repository counts from then");
        let body = Body::whole(&Budget::new(100), "body".into(), None);
        assert!(desk.head(id, &lasting("max-age=600"), body, now));
        desk.complete(id, Some(1), now);
        desk.handed_over.len() == 1
    };
    assert!(is_reused_after(0) && is_reused_after(500));
    assert!(!is_reused_after(595) && !is_reused_after(700));
}

#[test]
fn what_the_repository_answers_in_place_of_a_promise_that_waits_is_used() {
    let (bus, now) = (Bus::new(), Duration::from_secs(100));
    let mut desk = Desk::new(bus.clone());
    let user = User { id: 1, name: "10.0.0.1".into() };
    let url = Url::parse("http://site.test/").unwrap();
    let (id, _) = desk.promise(&user, made(1, url, SystemTime::now())).unwrap();
    let body = Body::whole(&Budget::new(100), "body".into(), None);
    assert!(desk.head(id, &lasting("private, max-age=100"), body, now));
    desk.complete(id, Some(7), now);
    desk.used_from_repository(8, now);
    assert_eq!(desk.len(), 1, "another entry says nothing of it");
    desk.used_from_repository(7, now);
    assert_eq!(desk.len(), 0);
    desk.lapse(now + Duration::from_secs(60));
    assert_eq!(bus.counters().used(), 1);
    assert!(bus.counters().snapshot()["promise_ends"].get("lapsed").is_none_or(|lapsed| *lapsed == 0));
}

#[test]
fn what_was_promised_before_an_invalidation_answers_nothing_after_it() {
    let (mut desk, now) = (Desk::new(Bus::new()), Duration::from_secs(100));
    let user = User { id: 1, name: "10.0.0.1".into() };
    let url = |path: &str| Url::parse("http://site.test/").unwrap().join(path).unwrap();
    for (number, path) in [(0, "a"), (1, "b"), (2, "c")] {
        desk.promise(&user, made(number, url(path), SystemTime::now())).unwrap();
    }
    for path in ["a", "c"] {
        desk.invalidate(&url(path), (0, &[2]), now);
    }
    let mut answers =
        |path| desk.ask((ExchangeId(2), &user), &Method::GET, &url(path), &HeaderMap::new(), now).is_ok();
    let answered = ["a", "b", "c"].map(&mut answers);
    assert_eq!(answered, [false, true, true], "the last was asked for since");
    assert_eq!(desk.take_untold(), [(0, 0..=0)], "ground is told");
}

#[test]
fn a_carrier_that_another_has_taken_the_place_of_ends_its_own_promises_alone() {
    let (mut desk, now) = (Desk::new(Bus::new()), Duration::from_secs(100));
    let user = User { id: 1, name: "10.0.0.1".into() };
    let url = |path: &str| Url::parse("http://site.test/").unwrap().join(path).unwrap();
    for (generation, path) in [(1, "a"), (2, "b")] {
        let made = Made { wire: (generation, 0), ..made(0, url(path), SystemTime::now()) };
        desk.promise(&user, made).unwrap();
    }
    desk.carrier_lost(1, now);
    let mut answers =
        |path| desk.ask((ExchangeId(2), &user), &Method::GET, &url(path), &HeaderMap::new(), now).is_ok();
    assert_eq!(["a", "b"].map(&mut answers), [false, true]);
}

#[test]
fn a_link_to_a_file_that_is_saved_leaves_no_page() {
    let navigation = |referer: Option<&'static str>| -> HeaderMap {
        let fields = [("accept", "text/html"), ("upgrade-insecure-requests", "1")];
        let fields = fields.into_iter().chain(referer.map(|referer| ("referer", referer)));
        fields.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    };
    let left_by = |status, kind: &[(HeaderName, HeaderValue)]| {
        let (mut desk, second) = (Desk::new(Bus::new()), Duration::from_secs);
        let user = User { id: 1, name: "10.0.0.1".into() };
        let [page, next] = ["http://site.test/", "http://site.test/next"].map(|url| Url::parse(url).unwrap());
        desk.begin_load(&user, ExchangeId(1), &page, &navigation(None), second(1));
        let request = navigation(Some("http://site.test/"));
        desk.begin_load(&user, ExchangeId(2), &next, &request, second(2));
        let fields = kind.iter().cloned().collect();
        desk.answered(ExchangeId(2), &next, status, &fields, second(3));
        desk.settled(ExchangeId(2), second(3));
        desk.lapse(second(60));
        desk.is_left(LoadId(1))
    };
    let saved = |kind| [(header::CONTENT_DISPOSITION, HeaderValue::from_static(kind))];
    assert!(left_by(StatusCode::OK, &[]));
    assert!(left_by(StatusCode::OK, &saved("inline; filename=a.pdf")));
    assert!(!left_by(StatusCode::OK, &saved("attachment; filename=a.zip")));
    assert!(!left_by(StatusCode::NO_CONTENT, &[]));
}

#[test]
fn of_too_many_that_were_handed_over_the_oldest_count_as_unused() {
    let (bus, now) = (Bus::new(), Duration::from_secs(100));
    let mut desk = Desk::new(bus.clone());
    let user = User { id: 1, name: "10.0.0.1".into() };
    let head = lasting("max-age=3600");
    let body = Body::whole(&Budget::new(100), "body".into(), None);
    let mut hand_over = |number: u64| {
        let url = Url::parse(&format!("http://site.test/{number}")).unwrap();
        let (id, _) = desk.promise(&user, made(number, url, SystemTime::now())).unwrap();
        assert!(desk.head(id, &head, body.clone(), now));
        desk.complete(id, Some(number), now);
        desk.handed_over.len()
    };
    let most = handed_over::MOST as u64;
    (0..most).for_each(|number| assert_eq!(hand_over(number) as u64, number + 1));
    let unused = || bus.counters().snapshot()["promise_ends"]["lapsed"].clone();
    assert_eq!(unused(), 0);
    assert_eq!(hand_over(most) as u64, most);
    assert_eq!(unused(), 1);
    desk.used_from_repository(0, now);
    assert_eq!(bus.counters().used(), 0, "the first was given up");
    desk.used_from_repository(most, now);
    assert_eq!(bus.counters().used(), 1);
}

#[test]
fn what_is_whole_after_its_browser_gave_it_up_counts_as_used_once_another_takes_it() {
    /// Bytes that were used and wasted of what was given up, or not, and was then asked for again, or not.
    fn counted(is_given_up: bool, stored: Option<u64>, again: bool) -> (u64, u64) {
        let (bus, second) = (Bus::new(), Duration::from_secs);
        let (mut events, mut desk) = (bus.subscribe(), Desk::new(bus));
        let user = User { id: 1, name: "10.0.0.1".into() };
        let [page, url] = ["http://site.test/", "http://site.test/a"].map(|url| Url::parse(url).unwrap());
        let request = HeaderMap::from_iter([(
            HeaderName::from_static("sec-fetch-dest"),
            HeaderValue::from_static("document"),
        )]);
        desk.begin_load(&user, ExchangeId(1), &page, &request, second(1));
        let (id, _) = desk.promise(&user, made(1, url.clone(), SystemTime::now())).unwrap();
        let (mut intake, body) = Body::new(&Budget::new(100), 100);
        assert!(desk.head(id, &lasting("max-age=600"), body, second(2)));
        desk.ask((ExchangeId(2), &user), &Method::GET, &url, &HeaderMap::new(), second(2)).unwrap();
        if is_given_up {
            desk.settled(ExchangeId(2), second(3));
        }
        intake.push("body".into());
        desk.complete(id, stored, second(4));
        if let Some(stored) = stored.filter(|_| again) {
            desk.used_from_repository(stored, second(5));
        }
        desk.lapse(second(60));
        let told: Vec<_> =
            std::iter::from_fn(|| events.next_now()).map(|told| told.unwrap().event.clone()).collect();
        let ends = told.iter().filter(|event| matches!(event, Event::PromiseEnded { .. })).count();
        assert_eq!(ends, 1, "it is told once that it answered");
        told.iter().fold((0, 0), |(used, wasted), event| match event {
            Event::PageSettled { used_bytes, wasted_bytes, .. } => (used + used_bytes, wasted + wasted_bytes),
            _ => (used, wasted),
        })
    }
    assert_eq!(counted(false, Some(7), false), (4, 0));
    assert_eq!(counted(true, Some(7), false), (0, 4), "nobody has taken it whole");
    assert_eq!(counted(true, Some(7), true), (4, 0), "the next page did");
    assert_eq!(counted(true, None, false), (0, 4), "it has no place");
}
