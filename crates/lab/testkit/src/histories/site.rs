//! The site of a history: what it has, which fields of a request each answer depends on, and what may be reused. Pure: the
//! origin answers with it, and the judge asks it again.

use std::fmt::Write as _;

use super::random::Random;

/// What a thing is to a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Page,
    Style,
    Script,
    Image,
}

/// What the origin allows caches. Lifetimes are longer than any history, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    /// Anyone's cache.
    Shared,
    /// Anyone's, credentials or not.
    Public,
    /// The same, said of shared caches alone.
    SharedMaxAge,
    /// Anyone's, stale at once, and given all the same while it is asked about.
    Renewed,
    /// The user's own.
    Private,
    /// Nobody without asking, and there is a tag to ask with.
    Checked,
    /// Nobody without asking: stale at once.
    Expired,
    /// The user's own, and even that asks.
    PrivateChecked,
    /// Nobody, ever.
    Never,
    /// Nothing is said.
    Silent,
    /// Nothing is said but when it last changed, long ago, which lets caches guess that it lasts (RFC 9111 §4.2.2).
    Dated,
}

const REUSES: [Reuse; 11] = [
    Reuse::Shared,
    Reuse::Public,
    Reuse::SharedMaxAge,
    Reuse::Renewed,
    Reuse::Private,
    Reuse::Checked,
    Reuse::Expired,
    Reuse::PrivateChecked,
    Reuse::Never,
    Reuse::Silent,
    Reuse::Dated,
];

impl Reuse {
    fn cache_control(self) -> Option<&'static str> {
        Some(match self {
            Reuse::Shared => "max-age=3600",
            Reuse::Public => "public, max-age=3600",
            Reuse::SharedMaxAge => "max-age=0, s-maxage=3600",
            Reuse::Renewed => "max-age=0, stale-while-revalidate=3600",
            Reuse::Private => "private, max-age=3600",
            Reuse::Checked => "no-cache",
            Reuse::Expired => "max-age=0, must-revalidate",
            Reuse::PrivateChecked => "private, no-cache",
            Reuse::Never => "no-store",
            Reuse::Silent | Reuse::Dated => return None,
        })
    }

    /// Whether an answer may be given again without asking.
    pub(super) fn lasts(self) -> bool {
        self.is_anyones() || matches!(self, Reuse::Private | Reuse::Dated)
    }

    fn is_anyones(self) -> bool {
        matches!(self, Reuse::Shared | Reuse::Public | Reuse::SharedMaxAge | Reuse::Renewed)
    }

    /// Whether what came for credentials answers requests without (RFC 9111 §3.5).
    fn shares_with_credentials(self) -> bool {
        matches!(self, Reuse::Public | Reuse::SharedMaxAge)
    }

    /// Whether what is the user's own may stand in the answer.
    fn may_be_personal(self) -> bool {
        !self.is_anyones()
    }
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
    /// Whether equal content has an equal strong tag; else each answer is one of its kind and says its number.
    pub(super) tagged: bool,
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
    pub(super) fn random(random: &mut Random) -> Model {
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
            Thing::random(random, kind, names)
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
    /// answers of things without a tag.
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
    fn random(random: &mut Random, kind: Kind, names: Vec<usize>) -> Thing {
        let reuse = random.one_of(&REUSES);
        let asks_with_a_tag = matches!(reuse, Reuse::Checked | Reuse::PrivateChecked);
        Thing {
            kind,
            reuse,
            tagged: asks_with_a_tag || random.chance(1, 3),
            sets_cookie: random.chance(1, 8),
            by_cookie: random.chance(1, 3),
            by_language: random.chance(1, 3),
            by_accept: random.chance(1, 3),
            // What came for credentials no shared cache keeps unless it is public (RFC 9111 §3.5).
            by_authorization: !reuse.shares_with_credentials() && random.chance(1, 4),
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
        if !self.tagged {
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

/// Stands before the number of an answer without a tag.
const SERIAL: &str = "serial ";

/// The number of an answer without a tag, if its text says one.
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
        for _ in 0..500 {
            let model = Model::random(&mut random);
            for (place, thing) in model.things.iter().enumerate() {
                let fields = |cookie: &str| Fields { cookie: cookie.into(), ..Fields::default() };
                let [one, other] = ["sid=A", "sid=B"]
                    .map(|cookie| model.body(place, 0, user_of(cookie), &fields(cookie), 1));
                let shared = thing.reuse.is_anyones();
                let varies = thing.vary().is_some_and(|vary| vary.contains("Cookie"));
                assert!(!shared || varies || one == other, "{thing:?}");
                assert_eq!(serial_of(&one), (!thing.tagged).then_some(1));
            }
        }
    }
}
