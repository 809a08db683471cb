//! What each user was spared, counted as answers end. In memory; no I/O.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use farhop_events::AnsweredFrom;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::users::User;

/// What was answered to one user since the proxy was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Savings {
    /// Answers.
    pub(crate) answers: u64,
    /// Answers for which nothing had to cross the satellite link any more: held, or promised and there already.
    pub(crate) at_once: u64,
    /// Answers that were on their way before they were asked for.
    pub(crate) ahead: u64,
    /// Body bytes as the user got them.
    pub(crate) bytes: u64,
    /// Those of them that had crossed for an earlier answer.
    pub(crate) bytes_held: u64,
    /// Bodies by what they are, in the order of [`Kind::ALL`].
    kinds: [Sizes; 3],
}

/// Bodies before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes as the sites have them, text unpacked.
    pub(crate) whole: u64,
    /// Bytes that crossed for them.
    pub(crate) crossed: u64,
}

/// What a body is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text of any sort: it is packed.
    Text,
    /// What may be coded anew.
    Picture,
    /// All else crosses as it is.
    #[default]
    Other,
}

/// A body that was given to a user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Given {
    kind: Kind,
    /// Bytes that it was before it was coded anew, where it was.
    was: Option<u64>,
    /// Bytes that crossed for it.
    pub(crate) crossed: u64,
}

/// Users that are counted; beyond, who was answered least is forgotten.
const MOST: usize = 10_000;

/// The savings of all users.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<HashMap<u64, Savings>>);

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Text, Kind::Picture, Kind::Other];

    fn of(media: &str) -> Kind {
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (family, kind) = media.split_once('/').unwrap_or((media.as_str(), ""));
        let is_text = family == "text"
            || ["+xml", "+json"].iter().any(|suffix| kind.ends_with(suffix))
            || matches!(kind, "javascript" | "x-javascript" | "ecmascript" | "json" | "xml" | "wasm");
        match family {
            _ if is_text => Kind::Text,
            "image" => Kind::Picture,
            _ => Kind::Other,
        }
    }
}

impl Given {
    /// A body with this head; nothing of it has crossed yet.
    pub(crate) fn with(fields: &HeaderMap) -> Given {
        let text = |name: &str| fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // `Farhop-Image: webp; q=74; from=jpeg; was=9000`
        let was =
            text("farhop-image").split(';').find_map(|part| part.trim().strip_prefix("was=")?.parse().ok());
        Given { kind: Kind::of(text(CONTENT_TYPE.as_str())), was, crossed: 0 }
    }
}

impl Savings {
    /// What this kind was and became.
    pub(crate) fn of(&self, kind: Kind) -> Sizes {
        self.kinds[kind as usize]
    }

    /// All kinds together.
    pub(crate) fn all(&self) -> Sizes {
        let sum = |of: fn(&Sizes) -> u64| self.kinds.iter().map(of).sum();
        Sizes { whole: sum(|sizes| sizes.whole), crossed: sum(|sizes| sizes.crossed) }
    }
}

impl Sizes {
    /// Bytes that did not have to cross.
    pub(crate) fn spared(&self) -> u64 {
        self.whole.saturating_sub(self.crossed)
    }
}

impl Ledger {
    /// An answer has ended, of which the user got so many bytes.
    pub(crate) fn answered(&self, user: &User, from: AnsweredFrom, bytes: u64, given: &Given) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= MOST && !users.contains_key(&user.id) {
            let least = users.iter().min_by_key(|(_, savings)| savings.answers).map(|(id, _)| *id);
            least.and_then(|id| users.remove(&id));
        }
        let savings = users.entry(user.id).or_default();
        savings.answers += 1;
        savings.bytes += bytes;
        let sizes = &mut savings.kinds[given.kind as usize];
        sizes.whole += given.was.unwrap_or(bytes);
        sizes.crossed += given.crossed;
        match from {
            AnsweredFrom::Repository | AnsweredFrom::Stale | AnsweredFrom::PromiseEarly => {
                savings.at_once += 1
            }
            AnsweredFrom::PromiseOnTheWay => savings.ahead += 1,
            AnsweredFrom::Validated => {}
            AnsweredFrom::Asked | AnsweredFrom::Remote => return,
        }
        // What came ahead crossed for its first answer.
        if given.crossed == 0 {
            savings.bytes_held += bytes;
        }
    }

    /// One user's.
    pub(crate) fn of(&self, user: &User) -> Savings {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&user.id).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn given(media: &'static str, image: &'static str, crossed: u64) -> Given {
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if !image.is_empty() {
            fields.insert("farhop-image", HeaderValue::from_static(image));
        }
        Given { crossed, ..Given::with(&fields) }
    }

    #[test]
    fn each_user_has_savings_of_their_own() {
        let user = |id| User { id, name: format!("10.0.0.{id}").into() };
        let ledger = Ledger::default();
        for (from, bytes, crossed) in [
            (AnsweredFrom::Asked, 100, 40),
            (AnsweredFrom::Repository, 10, 0),
            (AnsweredFrom::Repository, 50, 20), // promised, and whole before it was asked for
            (AnsweredFrom::PromiseEarly, 20, 8),
            (AnsweredFrom::PromiseOnTheWay, 30, 12),
            (AnsweredFrom::Validated, 5, 0),
        ] {
            ledger.answered(&user(1), from, bytes, &given("text/html; charset=utf-8", "", crossed));
        }
        let one = ledger.of(&user(1));
        assert_eq!((one.answers, one.bytes, one.at_once, one.ahead, one.bytes_held), (6, 215, 3, 1, 15));
        assert_eq!(one.all(), Sizes { whole: 215, crossed: 80 });
        assert_eq!(ledger.of(&user(2)), Savings::default());
    }

    #[test]
    fn bodies_are_counted_by_what_they_are_as_the_site_has_them() {
        let user = User { id: 1, name: "u".into() };
        let ledger = Ledger::default();
        let answered = |bytes, given| ledger.answered(&user, AnsweredFrom::Asked, bytes, &given);
        for media in
            ["Text/CSS", "application/json", "image/svg+xml", "application/ld+json", "text/javascript"]
        {
            answered(100, given(media, "", 20));
        }
        answered(30, given("image/webp", "webp; q=74; from=jpeg; was=90", 30));
        answered(40, given("image/png", "", 40));
        answered(500, given("font/woff2", "", 500));
        answered(5, given("", "", 9));
        let savings = ledger.of(&user);
        assert_eq!(savings.of(Kind::Text), Sizes { whole: 500, crossed: 100 });
        assert_eq!(savings.of(Kind::Picture), Sizes { whole: 130, crossed: 70 });
        assert_eq!(savings.of(Kind::Other), Sizes { whole: 505, crossed: 509 });
        assert_eq!(savings.of(Kind::Other).spared(), 0);
        assert_eq!(savings.all().spared(), 1135 - 679);
    }

    #[test]
    fn of_too_many_users_the_least_answered_is_forgotten() {
        let user = |id| User { id, name: "u".into() };
        let ledger = Ledger::default();
        for id in [0, 0, 1].into_iter().chain(2..MOST as u64).chain(2..=MOST as u64) {
            ledger.answered(&user(id), AnsweredFrom::Asked, 1, &given("text/html", "", 1));
        }
        assert_eq!(ledger.of(&user(0)).answers, 2);
        assert_eq!(ledger.of(&user(1)).answers, 0);
        assert_eq!(ledger.of(&user(MOST as u64)).answers, 1);
    }
}
