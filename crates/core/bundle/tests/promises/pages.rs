//! Promises and the pages that they were made for.

use crate::book::{
    IMAGE, LOAD, NOT_PROMISED, ONE, PAGE, SHARED, ask, book, head, navigation, request, seconds, user,
};
use crate::support::fields;
use farhop_bundle::{Answer, LoadId, PromiseId, Promises, WhyAsk};
use http::Method;
use http::header::HeaderMap;
use url::Url;

#[test]
fn a_new_load_of_the_same_document_ends_the_old_loads_promises() {
    let mut book = book();
    assert_eq!(book.begin_load(&user("u"), LoadId(2), &Url::parse(PAGE).unwrap(), &navigation(None)), [ONE]);
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
}

#[test]
fn what_may_be_reused_outlives_a_reload() {
    let mut book = book();
    assert!(head(&mut book, &SHARED));
    assert!(book.begin_load(&user("u"), LoadId(2), &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn other_pages_other_users_and_subresources_end_nothing() {
    let url = |text: &str| Url::parse(text).unwrap();
    let mut book = book();
    assert!(
        book.begin_load(&user("u"), LoadId(2), &url("http://site.test/next"), &navigation(None)).is_empty()
    );
    assert!(
        book.begin_load(
            &user("u"),
            LoadId(3),
            &url("http://site.test/x"),
            &navigation(Some("http://site.test/next"))
        )
        .is_empty()
    );
    assert!(book.begin_load(&user("v"), LoadId(4), &url(PAGE), &navigation(Some(PAGE))).is_empty());
    assert!(
        book.begin_load(&user("u"), LoadId(5), &url(PAGE), &fields(&[("accept", "*/*"), ("referer", PAGE)]))
            .is_empty()
    );
    let script = fields(&[("accept", "text/html, */*; q=0.01"), ("referer", PAGE)]);
    assert!(book.begin_load(&user("u"), LoadId(6), &url("http://site.test/part"), &script).is_empty());
    assert!(!book.is_open(LoadId(6)), "what a script asks for is no page");
    assert_eq!(book.len(), 1);
}

#[test]
fn a_promise_that_is_being_sent_to_a_client_outlives_its_page() {
    let mut book = book();
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert!(book.end_load(LOAD).is_empty());
    assert!(!book.complete(ONE, seconds(3)));
    assert!(book.is_empty());
}

#[test]
fn the_oldest_of_very_many_pages_counts_as_left() {
    let mut book = book();
    let ended: Vec<_> = (2..70)
        .flat_map(|n| {
            book.begin_load(
                &user("u"),
                LoadId(n),
                &Url::parse(&format!("http://site.test/{n}")).unwrap(),
                &navigation(None),
            )
        })
        .collect();
    assert_eq!(ended, [ONE]);
}

/// A promise for a request whose `Referer` is `referer`, and a page that the user opened after it.
fn with_a_later_page(referer: &str) -> Promises {
    let mut book = Promises::new(100, 100);
    assert!(book.begin_load(&user("u"), LOAD, &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    let like = request(&[("referer", referer)]);
    assert!(book.promise(ONE, &user("u"), LOAD, Url::parse(IMAGE).unwrap(), like));
    let later = Url::parse("http://site.test/later").unwrap();
    assert!(book.begin_load(&user("u"), LoadId(2), &later, &navigation(None)).is_empty());
    book
}

#[test]
fn an_uncacheable_promise_answers_only_for_the_page_load_it_was_made_for() {
    let origin = "http://site.test/";
    let mut book = with_a_later_page(origin);
    assert_eq!(
        ask(&mut book, &[("referer", origin)]),
        Answer::Ask(WhyAsk::OtherLoad),
        "it may be the later page's"
    );
    let mut book = with_a_later_page("");
    assert_eq!(ask(&mut book, &[]), Answer::Ask(WhyAsk::OtherLoad));
    let mut book = with_a_later_page(PAGE);
    assert_eq!(ask(&mut book, &[("referer", PAGE)]), Answer::Promise(ONE), "it names its page");
    let mut book = with_a_later_page(origin);
    assert!(head(&mut book, &SHARED));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE), "what is to be shared is for every page");
}

#[test]
fn pages_at_the_root_of_their_site_load_side_by_side_with_others() {
    let url = |text: &str| Url::parse(text).unwrap();
    let (home, far) = ("http://site.test/", "http://cdn.test/a.png");
    let ask = |page: &str, image: &str| {
        let mut book = Promises::new(100, 100);
        let like = request(&[("referer", page)]);
        assert!(book.begin_load(&user("u"), LOAD, &url(page), &navigation(None)).is_empty());
        assert!(book.promise(ONE, &user("u"), LOAD, url(image), like.clone()));
        let other = url("http://site.test/?p=2");
        assert!(book.begin_load(&user("u"), LoadId(2), &other, &navigation(None)).is_empty());
        book.ask(&user("u"), &Method::GET, &url(image), &like, seconds(2))
    };
    assert_eq!(ask("http://site.test/?p=1", IMAGE), Answer::Promise(ONE));
    assert_eq!(ask("http://site.test/?p=1", far), Answer::Promise(ONE));
    assert_eq!(ask(home, IMAGE), Answer::Promise(ONE), "towards their own site, pages are named in full");
    assert_eq!(ask(home, far), Answer::Ask(WhyAsk::OtherLoad), "all pages of the site are named so there");
}

#[test]
fn what_a_frame_of_a_page_asks_for_is_of_that_page_unless_a_later_one_has_the_frame_too() {
    let url = |text: &str| Url::parse(text).unwrap();
    let frame = "http://site.test/frame";
    let ask = |later_has_it: bool| {
        let mut book = Promises::new(100, 100);
        assert!(book.begin_load(&user("u"), LOAD, &url(PAGE), &navigation(None)).is_empty());
        assert!(book.promise(PromiseId(7), &user("u"), LOAD, url(frame), navigation(Some(PAGE))));
        let like = request(&[("referer", frame)]);
        assert!(book.promise(ONE, &user("u"), LOAD, url(IMAGE), like.clone()));
        // Over plain HTTP a frame that a script has made begins a load like any page.
        let later = url("http://site.test/of-a-script");
        assert!(book.begin_load(&user("u"), LoadId(2), &later, &navigation(Some(PAGE))).is_empty());
        if later_has_it {
            let request = navigation(Some(later.as_str()));
            assert!(book.promise(PromiseId(8), &user("u"), LoadId(2), url(frame), request));
        }
        book.ask(&user("u"), &Method::GET, &url(IMAGE), &like, seconds(2))
    };
    assert_eq!(ask(false), Answer::Promise(ONE));
    assert_eq!(ask(true), Answer::Ask(WhyAsk::OtherLoad));
}

#[test]
fn a_later_page_of_another_user_does_not_matter() {
    let mut book = book();
    assert!(book.begin_load(&user("v"), LoadId(2), &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn what_is_promised_beside_an_answer_belongs_to_the_page_that_asked() {
    let mut book = book();
    let later = LoadId(5);
    assert!(
        book.begin_load(&user("u"), later, &Url::parse("http://other.test/a").unwrap(), &navigation(None))
            .is_empty()
    );
    let asks = |referer: &str| fields(&[("accept", "image/*"), ("referer", referer)]);
    let exchange = LoadId(9);
    let style = Url::parse("http://site.test/style.css").unwrap();
    let of = |book: &Promises, load, user: &str, referer| book.load_of(load, user, &style, &asks(referer));
    assert_eq!(of(&book, exchange, "u", PAGE), LOAD);
    assert_eq!(of(&book, exchange, "u", "http://other.test/"), later, "only the origin is told");
    assert_eq!(of(&book, exchange, "u", "http://site.test/app.css"), LOAD, "a file of the page");
    assert_eq!(of(&book, exchange, "u", "http://else.test/"), exchange);
    assert_eq!(of(&book, exchange, "v", PAGE), exchange, "another user's page");
    assert_eq!(of(&book, later, "u", PAGE), later, "a document's own");
}

/// A book whose page is answered with a redirect to `MOVED`, which was promised along with what that names.
fn led_on() -> (Promises, HeaderMap) {
    let mut book = Promises::new(100, 100);
    let (page, moved, like) = (Url::parse(PAGE).unwrap(), Url::parse(MOVED).unwrap(), navigation(None));
    assert!(book.begin_load(&user("u"), LOAD, &page, &like).is_empty());
    assert!(book.promise(ONE, &user("u"), LOAD, moved.clone(), like.clone()));
    book.moved(LOAD, &page, &moved);
    let needs = request(&[("referer", MOVED)]);
    assert!(book.promise(PromiseId(2), &user("u"), LOAD, Url::parse(IMAGE).unwrap(), needs));
    (book, like)
}

const MOVED: &str = "http://site.test/en/";

#[test]
fn what_a_redirect_leads_to_is_the_same_page_load_though_another_page_was_opened_since() {
    let (mut book, like) = led_on();
    let other = Url::parse("http://other.test/").unwrap();
    assert!(book.begin_load(&user("u"), LoadId(3), &other, &navigation(None)).is_empty());
    let moved = Url::parse(MOVED).unwrap();
    assert!(book.begin_load(&user("u"), LoadId(4), &moved, &like).is_empty(), "the page goes on");
    assert!(!book.is_open(LoadId(4)));
    assert_eq!(book.ask(&user("u"), &Method::GET, &moved, &like, seconds(1)), Answer::Promise(ONE));
    assert_eq!(ask(&mut book, &[("referer", MOVED)]), Answer::Promise(PromiseId(2)), "it names where it is");
}

#[test]
fn a_document_that_is_asked_for_otherwise_than_promised_begins_a_load_that_ends_the_one_before() {
    let (mut book, mut like) = led_on();
    let moved = Url::parse(MOVED).unwrap();
    like.insert("cookie", "a=1".parse().unwrap());
    let ended = book.begin_load(&user("u"), LoadId(4), &moved, &like);
    assert_eq!(ended, [ONE, PromiseId(2)]);
    assert!(book.is_open(LoadId(4)));
}

#[test]
fn a_document_whose_promise_has_answered_begins_a_load_when_it_is_asked_for_again() {
    let (mut book, like) = led_on();
    let moved = Url::parse(MOVED).unwrap();
    assert_eq!(book.ask(&user("u"), &Method::GET, &moved, &like, seconds(1)), Answer::Promise(ONE));
    assert_eq!(book.begin_load(&user("u"), LoadId(4), &moved, &like), [PromiseId(2)]);
    assert!(book.is_open(LoadId(4)));
}

#[test]
fn a_document_whose_promise_was_taken_back_belongs_to_the_load_that_led_to_it() {
    let (mut book, like) = led_on();
    let moved = Url::parse(MOVED).unwrap();
    assert!(book.begin_load(&user("u"), LoadId(4), &moved, &like).is_empty());
    book.withdraw(ONE);
    assert_eq!(book.load_of(LoadId(4), "u", &moved, &like), LOAD);
    assert_eq!(book.load_of(LoadId(4), "v", &moved, &like), LoadId(4));
}
