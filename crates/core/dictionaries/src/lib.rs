//! Dictionaries: bytes that make bodies of one origin smaller. What is trained on which bodies and when ([`School`]), whether
//! a remote is to have it ([`Accounts`]), and which responses an origin names as dictionaries for others (RFC 9842, [`Shelf`]).
//!
//! Pure: bodies and sizes in, decisions out. Training and coding are `farhop-squeeze`'s.

mod accounts;
mod named;
mod school;

pub use accounts::Accounts;
pub use named::{LARGEST_NAMED, Named, Offer, Pattern, Shelf, available};
pub use school::{Dictionary, Lesson, School};

/// Entry point of the fuzz target: the first line is a `Use-As-Dictionary`, each other a path that its pattern is tried on.
pub fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let Ok(base) = url::Url::parse("https://site.test/app/v1/main.js?x=1") else { return };
    let Some(offer) = lines.next().and_then(|field| Offer::read(field, &base)) else { return };
    for path in lines {
        if let Ok(url) = base.join(path) {
            offer.pattern.matches(&url);
        }
    }
    if let Some(id) = offer.id_field() {
        let again = Offer::read(&format!("match=\"/\", id={id}"), &base);
        assert!(again.is_some_and(|again| again.id == offer.id), "an id is read as it is written");
    }
}
