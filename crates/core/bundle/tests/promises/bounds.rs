//! Carriers that are lost, promises taken back, and books that are full.

use crate::book::{BASIC, IMAGE, LOAD, NOT_PROMISED, ONE, ask, book, request, seconds, user};
use crate::support::fields;
use farhop_bundle::{Answer, Lost, PromiseId, Promises};
use http::Method;
use http::header::HeaderMap;
use url::Url;

#[test]
fn a_lost_carrier_breaks_what_is_not_whole_and_says_who_was_waiting() {
    let mut book = book();
    let more = |book: &mut Promises, id: u64| {
        let url = Url::parse(&format!("http://site.test/{id}.png")).unwrap();
        assert!(book.promise(PromiseId(id), &user("u"), LOAD, url, fields(&BASIC)));
    };
    more(&mut book, 2);
    more(&mut book, 3);
    more(&mut book, 4);
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    book.complete(PromiseId(2), seconds(2));
    assert_eq!(
        book.carrier_lost(|id| id != PromiseId(4)),
        [Lost { id: ONE, answering: true }, Lost { id: PromiseId(3), answering: false }]
    );
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
    let whole = Url::parse("http://site.test/2.png").unwrap();
    let answer = book.ask(&user("u"), &Method::GET, &whole, &request(&[]), seconds(3));
    assert_eq!(answer, Answer::Promise(PromiseId(2)), "what is whole is still there");
    let other = Url::parse("http://site.test/4.png").unwrap();
    let answer = book.ask(&user("u"), &Method::GET, &other, &request(&[]), seconds(3));
    assert_eq!(answer, Answer::Promise(PromiseId(4)), "what another carrier brings still comes");
}

#[test]
fn a_withdrawn_promise_answers_nothing() {
    let mut book = book();
    book.withdraw(ONE);
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
}

#[test]
fn a_full_book_refuses_and_other_users_are_not_affected() {
    let mut book = Promises::new(1, 100);
    let url = Url::parse(IMAGE).unwrap();
    assert!(book.promise(ONE, &user("u"), LOAD, url.clone(), HeaderMap::new()));
    assert!(!book.promise(PromiseId(2), &user("u"), LOAD, url.clone(), HeaderMap::new()));
    assert!(book.promise(PromiseId(2), &user("v"), LOAD, url, HeaderMap::new()));
}

#[test]
fn users_without_end_do_not_fill_the_book_without_end() {
    let mut book = Promises::new(10, 3);
    let url = Url::parse(IMAGE).unwrap();
    let taken: Vec<bool> = (0..5)
        .map(|n| book.promise(PromiseId(n), &user(&n.to_string()), LOAD, url.clone(), HeaderMap::new()))
        .collect();
    assert_eq!(taken, [true, true, true, false, false]);
    book.withdraw(PromiseId(0));
    assert!(book.promise(PromiseId(5), &user("5"), LOAD, url, HeaderMap::new()));
}
