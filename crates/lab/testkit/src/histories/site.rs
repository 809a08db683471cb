//! The site of a history: what it has, which fields of a request each answer depends on, and what may be reused. Pure: the
//! origin answers with it, and the judge asks it again.

use std::fmt::Write as _;
use std::time::Duration;

use super::random::Random;
use super::reuse::{AGE_S, MOMENT, REUSES, Reuse, SHORT};

/// What a thing is to a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Page,
    Style,
    Script,
    Image,
}

/// The fields of a request that answers may depend on; empty where the request has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fields {
    pub(super) cookie: String,
    pub(super) language: String,
    pub(super) accept: String,
    pub(super) authorization: String,
}

/// Something of the site.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    pub(super) kind: Kind,
    pub(super) reuse: Reuse,
    /// Whether equal content has an equal strong tag.
    pub(super) tagged: bool,
    /// Whether equal content has an equal date, which is all there is to ask with.
    pub(super) dated: bool,
    pub(super) sets_cookie: bool,
    by_cookie: bool,
    by_language: bool,
    by_accept: bool,
    by_authorization: bool,
    /// Whether `Vary` is told where it changes nothing for a cache that asks each time.
    tells_vary: bool,
    filler: usize,
    /// What its text names.
    pub(super) names: Vec<usize>,
}

/// A site.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) things: Vec<Thing>,
    /// The first so many things are pages.
    pub(super) pages: usize,
}

impl Model {
    /// A site; with things that end within seconds if its history `waits` for it.
    pub(super) fn random(random: &mut Random, waits: bool) -> Model {
        let (pages, styles) = (random.between(1, 2) as usize, random.between(0, 1) as usize);
        let rest = random.between(2, 5) as usize;
        let count = pages + styles + rest;
        let things = (0..count).map(|place| {
            let (kind, candidates) = match place {
                _ if place < pages => (Kind::Page, pages..count),
                _ if place < pages + styles => (Kind::Style, pages + styles..count),
                _ => (random.one_of(&[Kind::Script, Kind::Image, Kind::Image]), 0..0),
            };
            let names = candidates.filter(|_| random.chance(2, 3)).collect();
            Thing::random(random, kind, names, waits)
        });
        Model { things: things.collect(), pages }
    }

    /// The pages that name a thing, themselves or by a style, and the page that it is.
    pub(super) fn pages_with(&self, thing: usize) -> Vec<usize> {
        let names = |page: usize| {
            let direct = &self.things[page].names;
            page == thing
                || direct.contains(&thing)
                || direct.iter().any(|style| self.things[*style].names.contains(&thing))
        };
        (0..self.pages).filter(|page| names(*page)).collect()
    }

    /// The bytes of a thing in a version, for a request with these fields from the user of this name. `serial` numbers the
    /// answers of things that neither tag nor date tells apart.
    pub(super) fn body(
        &self,
        place: usize,
        version: usize,
        user: &str,
        fields: &Fields,
        serial: u64,
    ) -> Vec<u8> {
        let thing = &self.things[place];
        let told = thing.told(place, version, user, fields, serial);
        let text = match thing.kind {
            Kind::Page => {
                let tags: String =
                    thing.names.iter().map(|name| self.things[*name].tag_in_page(*name)).collect();
                format!("<!doctype html><title>t</title>\n{tags}<p>{told}</p>\n")
            }
            Kind::Style => {
                let rules = thing.names.iter().map(|name| format!("body {{ background: url({name}) }}\n"));
                format!("/* {told} */\n{}", rules.collect::<String>())
            }
            Kind::Script => format!("/* {told} */\n"),
            Kind::Image => told,
        };
        text.into_bytes()
    }
}

impl Thing {
    fn random(random: &mut Random, kind: Kind, names: Vec<usize>, waits: bool) -> Thing {
        let is_short = waits && random.chance(2, 3);
        let reuse = if is_short { random.one_of(&SHORT) } else { random.one_of(&REUSES) };
        let asks_with_a_tag = matches!(reuse, Reuse::Checked | Reuse::PrivateChecked);
        let tagged = asks_with_a_tag || random.chance(1, 3);
        // What came for credentials no shared cache keeps unless it is public (RFC 9111 §3.5).
        let by_authorization = !reuse.shares_with_credentials() && random.chance(1, 4);
        Thing {
            kind,
            reuse,
            tagged,
            // A date says nothing of who asked: it is asked with where no answer is somebody's own.
            dated: !tagged && !by_authorization && reuse.is_anyones() && random.chance(1, 3),
            sets_cookie: reuse == Reuse::WithoutCookie || random.chance(1, 8),
            by_cookie: random.chance(1, 3),
            by_language: random.chance(1, 3),
            by_accept: random.chance(1, 3),
            by_authorization,
            tells_vary: random.chance(1, 2),
            filler: random.one_of(&[0, 0, 0, 0, 300, 300, 3_000, 30_000]),
            names,
        }
    }

    /// Its media type. Pictures cannot be decoded: nothing but their bytes is looked at.
    pub(super) fn media_type(&self) -> &'static str {
        match self.kind {
            Kind::Page => "text/html; charset=utf-8",
            Kind::Style => "text/css",
            Kind::Script => "text/javascript",
            Kind::Image => "image/png",
        }
    }

    /// `Cache-Control`, where there is one.
    pub(super) fn cache_control(&self) -> Option<&'static str> {
        self.reuse.cache_control()
    }

    /// `Age` in seconds, where there is one.
    pub(super) fn age(&self) -> Option<u64> {
        (self.reuse == Reuse::Aged).then_some(AGE_S)
    }

    /// How long after its `Date` it expires, where that is all that is said.
    pub(super) fn expires(&self) -> Option<Duration> {
        (self.reuse == Reuse::Until).then_some(MOMENT)
    }

    /// Whether a field of its answers is the user's own.
    pub(super) fn has_own_field(&self) -> bool {
        self.reuse == Reuse::WithoutField
    }

    /// When a version of it came to be, in seconds since 1970, as `Last-Modified` says; nothing where none is told.
    pub(super) fn modified_s(&self, version: usize) -> Option<u64> {
        match self.reuse {
            // It never says that it has changed.
            Reuse::Dated => Some(LONG_AGO_S),
            _ => self.dated.then_some(LONG_AGO_S + 60 * version as u64),
        }
    }

    /// Whether each of its answers is one of its kind, and says its number.
    pub(super) fn is_numbered(&self) -> bool {
        !self.tagged && !self.dated
    }

    /// `Vary`: always the truth where an answer may be given again, else told by some and not by others.
    pub(super) fn vary(&self) -> Option<String> {
        let told = self.reuse.lasts() || self.tells_vary;
        let names =
            [(self.by_cookie, "Cookie"), (self.by_language, "Accept-Language"), (self.by_accept, "Accept")];
        let names: Vec<_> = names.iter().filter(|(by, _)| *by).map(|(_, name)| *name).collect();
        (told && !names.is_empty()).then(|| names.join(", "))
    }

    fn tag_in_page(&self, place: usize) -> String {
        match self.kind {
            Kind::Style => format!("<link rel=stylesheet href={place}>\n"),
            Kind::Script => format!("<script src={place}></script>\n"),
            Kind::Image | Kind::Page => format!("<img src={place}>\n"),
        }
    }

    /// What makes an answer the answer to this request and no other.
    fn told(&self, place: usize, version: usize, user: &str, fields: &Fields, serial: u64) -> String {
        let mut told = format!("thing {place} version {version}");
        if self.is_numbered() {
            let _ = write!(told, " {SERIAL}{serial};");
        }
        if self.reuse.may_be_personal() {
            let _ = write!(told, " for {user}");
        }
        let parts = [
            (self.by_cookie, "cookie", &fields.cookie),
            (self.by_language, "language", &fields.language),
            (self.by_accept, "accept", &fields.accept),
            (self.by_authorization, "authorization", &fields.authorization),
        ];
        for (_, name, value) in parts.iter().filter(|(by, ..)| *by) {
            // A comment of a style or a script must not end here.
            let _ = write!(told, " {name} [{}]", value.replace("*/", "* /"));
        }
        told.push_str(&" .".repeat(self.filler / 2));
        told
    }
}

/// 2020-01-01T00:00:00Z.
const LONG_AGO_S: u64 = 1_577_836_800;
/// Stands before the number of an answer that has one.
const SERIAL: &str = "serial ";

/// The number of an answer, if its text says one.
pub(super) fn serial_of(body: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once(SERIAL)?;
    rest.split_once(';')?.0.parse().ok()
}

/// The strong tag of a content.
pub(super) fn tag(body: &[u8]) -> String {
    format!("\"{}\"", &blake3::hash(body).to_hex()[..16])
}

/// The name that a user's cookies give.
pub(super) fn user_of(cookie: &str) -> &str {
    cookie.split("; ").find_map(|pair| pair.strip_prefix("sid=")).unwrap_or("nobody")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_last_and_are_anyones_hold_nothing_of_a_user_and_tell_what_they_depend_on() {
        let mut random = Random::new(7);
        for round in 0..1_000 {
            let model = Model::random(&mut random, round % 2 == 0);
            for (place, thing) in model.things.iter().enumerate() {
                let fields = |cookie: &str| Fields { cookie: cookie.into(), ..Fields::default() };
                let [one, other] = ["sid=A", "sid=B"]
                    .map(|cookie| model.body(place, 0, user_of(cookie), &fields(cookie), 1));
                let shared = thing.reuse.is_anyones();
                let varies = thing.vary().is_some_and(|vary| vary.contains("Cookie"));
                assert!(!shared || varies || one == other, "{thing:?}");
                assert_eq!(serial_of(&one), thing.is_numbered().then_some(1));
                // Who asks with a date gets what is the same for all whose fields `Vary` names.
                assert!(!thing.dated || shared && !thing.by_authorization, "{thing:?}");
            }
        }
    }
}
