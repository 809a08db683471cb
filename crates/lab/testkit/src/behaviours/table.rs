//! The behaviours: what an origin answers, one answer to each request that reaches it, the last to all that follow; what a client
//! asks, and what it has to get.

/// What reaches the origin at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nothing: what is held answers.
    Idle,
    /// A request.
    Asked,
    /// A request with this line among its fields, lower case.
    AskedWith(&'static str),
    /// Now or later, perhaps.
    Any,
}

/// One request, and its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) method: &'static str,
    /// Who asks: the last number of the client's own address.
    pub(super) who: u8,
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) status: u16,
    pub(super) body: &'static str,
    pub(super) origin: Origin,
    /// A field that the answer has to have, and what has to stand in it; with an empty text, one that it must not have.
    pub(super) has: Option<(&'static str, &'static str)>,
}

/// What holds, and where that is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    /// Status line's rest and fields, and body.
    pub(super) answers: &'static [(&'static str, &'static str)],
    pub(super) course: &'static [Step],
}

const fn get(status: u16, body: &'static str, origin: Origin) -> Step {
    Step { method: "GET", who: 1, fields: &[], status, body, origin, has: None }
}

impl Step {
    const fn with(self, fields: &'static [(&'static str, &'static str)]) -> Step {
        Step { fields, ..self }
    }

    const fn has(self, name: &'static str, text: &'static str) -> Step {
        Step { has: Some((name, text)), ..self }
    }

    const fn by(self, method: &'static str) -> Step {
        Step { method, ..self }
    }

    /// By another user.
    const fn other(self) -> Step {
        Step { who: 2, ..self }
    }
}

const fn it(
    section: &'static str,
    name: &'static str,
    answers: &'static [(&'static str, &'static str)],
    course: &'static [Step],
) -> Behaviour {
    Behaviour { section, name, answers, course }
}

use Origin::{Any, Asked, AskedWith, Idle};

pub(super) const ALL: &[Behaviour] = &[
    it(
        "RFC 9111 §4.2",
        "what is fresh answers without asking",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle).has("cache-status", "hit"), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §5.2.2.5",
        "what says no-store is asked for each time",
        &[
            ("200 OK\r\nCache-Control: no-store, max-age=600", "a"),
            ("200 OK\r\nCache-Control: no-store", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §5.2.2.4",
        "what says no-cache is validated before each use",
        &[
            ("200 OK\r\nCache-Control: no-cache, max-age=600\r\nETag: \"a\"", "a"),
            ("304 Not Modified\r\nETag: \"a\"", ""),
        ],
        &[get(200, "a", Asked), get(200, "a", AskedWith("if-none-match: \"a\"")), get(200, "a", Asked)],
    ),
    it(
        "RFC 9111 §4.3.1",
        "a stale response is validated by its tag",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"", "a"),
            ("304 Not Modified\r\nETag: \"a\"", ""),
        ],
        &[get(200, "a", Asked), get(200, "a", AskedWith("if-none-match: \"a\""))],
    ),
    it(
        "RFC 9111 §4.3.1",
        "a stale response without a tag is validated by its date",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nLast-Modified: Sun, 02 Mar 2014 10:00:00 GMT", "a"),
            ("304 Not Modified\r\nLast-Modified: Sun, 02 Mar 2014 10:00:00 GMT", ""),
        ],
        &[get(200, "a", Asked), get(200, "a", AskedWith("if-modified-since: sun, 02 mar 2014 10:00:00 gmt"))],
    ),
    it(
        "RFC 9111 §4.3.3",
        "another response to a validation takes the place of what is held",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nETag: \"b\"", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked), get(200, "b", Idle)],
    ),
    it(
        "RFC 9111 §4.3.4",
        "a 304 gives what is held its fields and its freshness",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\nX-Told: one", "a"),
            ("304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nX-Told: two", ""),
        ],
        &[
            get(200, "a", Asked).has("x-told", "one"),
            get(200, "a", Asked).has("x-told", "two"),
            get(200, "a", Idle).has("x-told", "two"),
        ],
    ),
    it(
        "RFC 9111 §5.2.2.10",
        "s-maxage goes before max-age in the shared store",
        &[("200 OK\r\nCache-Control: max-age=0, s-maxage=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §5.3",
        "Expires in the future makes fresh",
        &[("200 OK\r\nExpires: Sat, 06 Nov 2094 08:49:37 GMT", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9110 §5.6.7",
        "Expires as asctime writes it is a date",
        &[("200 OK\r\nExpires: Sat Nov  6 08:49:37 2094", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §5.3",
        "an Expires that is no date is in the past",
        &[("200 OK\r\nExpires: 0", "a"), ("200 OK\r\nExpires: 0", "b")],
        &[get(200, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §5.3",
        "max-age goes before Expires",
        &[("200 OK\r\nCache-Control: max-age=600\r\nExpires: 0", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §4.2.3",
        "the age that a response comes with counts",
        &[("200 OK\r\nCache-Control: max-age=600\r\nAge: 700", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §5.1",
        "what is given from the store says its age",
        &[("200 OK\r\nCache-Control: max-age=600\r\nAge: 100", "a")],
        &[get(200, "a", Asked), get(200, "a", Idle).has("age", "10")],
    ),
    it(
        "RFC 9111 §1.2.2",
        "seconds beyond all numbers are very many",
        &[("200 OK\r\nCache-Control: max-age=99999999999999999999", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §4.2.2",
        "what was changed long ago is fresh for a while without a word",
        &[("200 OK\r\nLast-Modified: Sun, 02 Mar 2014 10:00:00 GMT", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §4.1",
        "what varies answers only requests with the same fields",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nVary: Accept-Language", "en"),
            ("200 OK\r\nCache-Control: max-age=600\r\nVary: Accept-Language", "de"),
            ("200 OK", "none"),
        ],
        &[
            get(200, "en", Asked).with(&[("accept-language", "en")]),
            get(200, "de", Asked).with(&[("accept-language", "de")]),
            get(200, "en", Idle).with(&[("accept-language", "en")]),
            get(200, "de", Idle).with(&[("accept-language", "de")]),
        ],
    ),
    it(
        "RFC 9111 §4.1",
        "what varies by everything answers nothing again",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nVary: *", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nVary: *", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §3.5",
        "what came for credentials answers no others",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK\r\nCache-Control: max-age=600", "b")],
        &[
            get(200, "a", Asked).with(&[("authorization", "Basic YTph")]),
            get(200, "b", Asked).with(&[("authorization", "Basic Yjpi")]),
        ],
    ),
    it(
        "RFC 9111 §4.4",
        "an unsafe request drops what is held",
        &[
            ("200 OK\r\nCache-Control: max-age=600", "a"),
            ("200 OK\r\nCache-Control: no-store", "posted"),
            ("200 OK\r\nCache-Control: max-age=600", "b"),
        ],
        &[
            get(200, "a", Asked),
            get(200, "a", Idle),
            get(200, "posted", Asked).by("POST"),
            get(200, "b", Asked),
        ],
    ),
    it(
        "RFC 9111 §4.4",
        "an unsafe request that failed drops nothing",
        &[
            ("200 OK\r\nCache-Control: max-age=600", "a"),
            ("500 Internal Server Error\r\nCache-Control: no-store", "failed"),
        ],
        &[get(200, "a", Asked), get(500, "failed", Asked).by("POST"), get(200, "a", Idle)],
    ),
    it(
        "RFC 9110 §9.3.2",
        "HEAD is answered from what is held of a GET",
        &[("200 OK\r\nCache-Control: max-age=600", "abc"), ("200 OK", "b")],
        &[get(200, "abc", Asked), get(200, "", Idle).by("HEAD").has("content-length", "3")],
    ),
    it(
        "RFC 9110 §14.2",
        "a range is answered from what is held",
        &[("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "0123456789"), ("200 OK", "b")],
        &[
            get(200, "0123456789", Asked),
            get(206, "234", Idle).with(&[("range", "bytes=2-4")]).has("content-range", "bytes 2-4/10"),
            get(206, "89", Idle).with(&[("range", "bytes=-2")]),
        ],
    ),
    it(
        "RFC 9110 §13.1.5",
        "a range of another representation is the whole",
        &[("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "0123456789"), ("200 OK", "b")],
        &[
            get(200, "0123456789", Asked),
            get(200, "0123456789", Idle).with(&[("range", "bytes=2-4"), ("if-range", "\"other\"")]),
        ],
    ),
    it(
        "RFC 9111 §4.3.2",
        "a client's tag is compared with what is fresh",
        &[("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "a"), ("200 OK", "b")],
        &[
            get(200, "a", Asked),
            get(304, "", Idle).with(&[("if-none-match", "\"x\", W/\"a\"")]),
            get(200, "a", Idle).with(&[("if-none-match", "\"x\"")]),
        ],
    ),
    it(
        "RFC 9111 §4.3.2",
        "a client's date is compared with what is fresh",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nLast-Modified: Sun, 02 Mar 2014 10:00:00 GMT", "a"),
            ("200 OK", "b"),
        ],
        &[
            get(200, "a", Asked),
            get(304, "", Idle).with(&[("if-modified-since", "Sun, 02 Mar 2014 10:00:00 GMT")]),
            get(200, "a", Idle).with(&[("if-modified-since", "Sat, 01 Mar 2014 10:00:00 GMT")]),
        ],
    ),
    it(
        "RFC 5861 §4",
        "what is held stands in for an origin that fails, where that is allowed",
        &[
            ("200 OK\r\nCache-Control: max-age=0, stale-if-error=600", "a"),
            ("503 Service Unavailable", "broken"),
        ],
        &[get(200, "a", Asked), get(200, "a", Asked)],
    ),
    it(
        "RFC 9111 §5.2.2.2",
        "what must be revalidated never stands in",
        &[
            ("200 OK\r\nCache-Control: max-age=0, must-revalidate, stale-if-error=600", "a"),
            ("503 Service Unavailable", "broken"),
        ],
        &[get(200, "a", Asked), get(503, "broken", Asked)],
    ),
    it(
        "RFC 5861 §3",
        "what is stale is given at once where it may be renewed behind",
        &[
            ("200 OK\r\nCache-Control: max-age=0, stale-while-revalidate=600", "a"),
            ("200 OK\r\nCache-Control: max-age=600", "b"),
        ],
        &[get(200, "a", Asked), get(200, "a", Any)],
    ),
    it(
        "RFC 9111 §5.2.1.7",
        "only-if-cached is 504 where nothing is held, and an answer where something is",
        &[("200 OK\r\nCache-Control: max-age=600", "a")],
        &[
            get(504, "*", Idle).with(&[("cache-control", "only-if-cached")]),
            get(200, "a", Asked),
            get(200, "a", Idle).with(&[("cache-control", "only-if-cached")]),
        ],
    ),
    it(
        "RFC 9111 §5.2.1.4",
        "a client that says no-cache has the origin asked",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK\r\nCache-Control: max-age=600", "b")],
        &[
            get(200, "a", Asked),
            get(200, "b", Asked).with(&[("cache-control", "no-cache")]),
            get(200, "b", Idle),
        ],
    ),
    it(
        "RFC 9111 §5.2.1.1",
        "a client that wants nothing older than now has the origin asked",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK\r\nCache-Control: max-age=600", "b")],
        &[get(200, "a", Asked), get(200, "b", Asked).with(&[("cache-control", "max-age=0")])],
    ),
    it(
        "RFC 9111 §5.2.1.5",
        "what came for a client that says no-store is not held",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK\r\nCache-Control: max-age=600", "b")],
        &[get(200, "a", Asked).with(&[("cache-control", "no-store")]), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §5.2.2.4",
        "a field that needs validation is left out of what is given without",
        &[("200 OK\r\nCache-Control: max-age=600, no-cache=\"X-Once\"\r\nX-Once: 1\r\nX-Ever: 1", "a")],
        &[
            get(200, "a", Asked).has("x-once", "1"),
            get(200, "a", Idle).has("x-ever", "1"),
            get(200, "a", Idle).has("x-once", ""),
        ],
    ),
    it(
        "RFC 9111 §3",
        "an error that says for how long is held as anything else",
        &[("404 Not Found\r\nCache-Control: max-age=600", "gone"), ("200 OK", "b")],
        &[get(404, "gone", Asked), get(404, "gone", Idle)],
    ),
    it(
        "RFC 9111 §5.2.2.3",
        "what must be understood and is, is held although it says no-store",
        &[("200 OK\r\nCache-Control: must-understand, no-store, max-age=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §3",
        "an answer of a status that nobody knows is not held without a word",
        &[("299 Whatever\r\nLast-Modified: Sun, 02 Mar 2014 10:00:00 GMT", "a"), ("200 OK", "b")],
        &[get(299, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §5.2.2.7",
        "what is private answers its own user and no other",
        &[
            ("200 OK\r\nCache-Control: private, max-age=600", "a"),
            ("200 OK\r\nCache-Control: private, max-age=600", "b"),
        ],
        &[get(200, "a", Asked), get(200, "a", Idle), get(200, "b", Asked).other(), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §5.2.2.7",
        "a private field is given to no other user, the rest is",
        &[("200 OK\r\nCache-Control: max-age=600, private=\"X-Own\"\r\nX-Own: 1\r\nX-All: 1", "a")],
        &[
            get(200, "a", Asked).has("x-own", "1"),
            get(200, "a", Idle).other().has("x-all", "1"),
            get(200, "a", Idle).other().has("x-own", ""),
        ],
    ),
    it(
        "RFC 9111 §5.2.2.9",
        "what came for credentials and is public answers anybody",
        &[("200 OK\r\nCache-Control: public, max-age=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked).with(&[("authorization", "Basic YTph")]), get(200, "a", Idle).other()],
    ),
    it(
        "RFC 9111 §7.3",
        "what sets a cookie is given to no other user",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nSet-Cookie: a=1", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nSet-Cookie: a=2", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked).other().has("set-cookie", "a=2")],
    ),
    it(
        "RFC 9111 §4.1",
        "what differs in spaces only is the same language",
        &[("200 OK\r\nCache-Control: max-age=600\r\nVary: Accept-Language", "a"), ("200 OK", "b")],
        &[
            get(200, "a", Asked).with(&[("accept-language", "en,de;q=0.5")]),
            get(200, "a", Idle).with(&[("accept-language", "en, de;q=0.5")]),
        ],
    ),
    it(
        "RFC 8246 §2",
        "what is immutable is not asked about for a reload, but for a forced one",
        &[
            ("200 OK\r\nCache-Control: max-age=600, immutable", "a"),
            ("200 OK\r\nCache-Control: max-age=600, immutable", "b"),
        ],
        &[
            get(200, "a", Asked),
            get(200, "a", Idle).with(&[("cache-control", "max-age=0")]),
            get(200, "b", Asked).with(&[("cache-control", "no-cache")]),
        ],
    ),
    it(
        "RFC 9213 §3.1",
        "CDN-Cache-Control is passed on and not obeyed",
        &[
            ("200 OK\r\nCache-Control: no-store\r\nCDN-Cache-Control: max-age=600", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nCDN-Cache-Control: no-store", "b"),
        ],
        &[
            get(200, "a", Asked).has("cdn-cache-control", "max-age=600"),
            get(200, "b", Asked).has("cdn-cache-control", "no-store"),
            get(200, "b", Idle).has("cdn-cache-control", "no-store"),
        ],
    ),
    it(
        "RFC 9213 §2.2",
        "a field that is obeyed goes before Cache-Control, and before Expires, and is passed on",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nExpires: 0\r\nExample-Cache-Control: max-age=600", "a"),
            ("200 OK", "b"),
        ],
        &[
            get(200, "a", Asked).has("example-cache-control", "max-age=600"),
            get(200, "a", Idle).has("example-cache-control", "max-age=600"),
            get(200, "a", Idle).other().has("cache-control", "max-age=0"),
            get(200, "a", Idle).has("farhop-targets", ""),
        ],
    ),
    it(
        "RFC 9213 §2.2",
        "a field that is obeyed lets be held what others may not store",
        &[("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: max-age=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked).has("farhop-targets", ""), get(200, "a", Idle).other()],
    ),
    it(
        "RFC 9213 §2.2",
        "a short life in a field that is obeyed counts, whatever others have",
        &[
            (
                "200 OK\r\nCache-Control: max-age=600\r\nExpires: Sat, 06 Nov 2094 08:49:37 GMT\r\nExample-Cache-Control: max-age=0",
                "a",
            ),
            ("200 OK\r\nCache-Control: max-age=600\r\nExample-Cache-Control: no-cache", "b"),
            ("200 OK\r\nCache-Control: max-age=600\r\nExample-Cache-Control: no-store", "c"),
            ("200 OK\r\nCache-Control: no-store", "d"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked), get(200, "c", Asked), get(200, "d", Asked)],
    ),
    it(
        "RFC 9213 §2.2",
        "what a field that is obeyed calls private answers its own user alone",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nExample-Cache-Control: private, max-age=600", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nExample-Cache-Control: private, max-age=600", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked).other(), get(200, "a", Idle)],
    ),
    it(
        "RFC 9213 §2.3",
        "the age that a response comes with counts against a field that is obeyed",
        &[("200 OK\r\nAge: 700\r\nExample-Cache-Control: max-age=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9213 §2.1",
        "seconds beyond all numbers are very many, extensions and parameters are nothing",
        &[("200 OK\r\nExample-Cache-Control: foobar, max-age=99999999999;p=1", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9213 §2.1",
        "a field that is no dictionary, empty, or of the wrong types is none",
        &[
            ("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: max-age =600", "a"),
            ("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: max-age= 600", "b"),
            ("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: MaX-aGe=600", "c"),
            ("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: max-age=600, &&&&&", "d"),
            ("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: max-age=\"600\"", "e"),
            ("200 OK\r\nCache-Control: no-store\r\nExample-Cache-Control: ", "f"),
            ("200 OK", "g"),
        ],
        &[
            get(200, "a", Asked),
            get(200, "b", Asked),
            get(200, "c", Asked),
            get(200, "d", Asked),
            get(200, "e", Asked),
            get(200, "f", Asked),
            get(200, "g", Asked),
        ],
    ),
    it(
        "RFC 9213 §2.2",
        "a 304 changes what a field that is obeyed says",
        &[
            ("200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=600\r\nExample-Cache-Control: max-age=0", "a"),
            ("304 Not Modified\r\nETag: \"a\"\r\nExample-Cache-Control: max-age=600", ""),
        ],
        &[
            get(200, "a", Asked),
            get(200, "a", AskedWith("if-none-match: \"a\"")),
            get(200, "a", Idle).has("example-cache-control", "max-age=600"),
        ],
    ),
    it(
        "RFC 9111 §5.2.1.2",
        "a client that takes what is stale gets it, unless the origin forbids",
        &[
            ("200 OK\r\nCache-Control: max-age=0", "a"),
            ("200 OK\r\nCache-Control: max-age=0, must-revalidate", "b"),
        ],
        &[
            get(200, "a", Asked),
            get(200, "a", Idle).with(&[("cache-control", "max-stale=600")]),
            get(200, "b", Asked).with(&[("cache-control", "no-cache")]),
            get(200, "b", Asked).with(&[("cache-control", "max-stale=600")]),
        ],
    ),
    it(
        "RFC 9111 §5.2.2.8",
        "what proxies must revalidate is not given stale",
        &[
            ("200 OK\r\nCache-Control: max-age=0, proxy-revalidate", "a"),
            ("200 OK\r\nCache-Control: max-age=0, proxy-revalidate", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked).with(&[("cache-control", "max-stale")])],
    ),
    it(
        "RFC 9111 §5.2.1.3",
        "a client that wants what stays fresh for longer has the origin asked",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK\r\nCache-Control: max-age=6000", "b")],
        &[
            get(200, "a", Asked),
            get(200, "a", Idle).with(&[("cache-control", "min-fresh=60")]),
            get(200, "b", Asked).with(&[("cache-control", "min-fresh=1000")]),
            get(200, "b", Idle).with(&[("cache-control", "min-fresh=1000")]),
        ],
    ),
    it(
        "RFC 9111 §5.4",
        "Pragma: no-cache without Cache-Control has the origin asked",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK\r\nCache-Control: max-age=600", "b")],
        &[
            get(200, "a", Asked),
            get(200, "b", Asked).with(&[("pragma", "no-cache")]),
            get(200, "b", Idle).with(&[("pragma", "no-cache"), ("cache-control", "max-age=600")]),
        ],
    ),
    it(
        "RFC 9111 §5.2.1.7",
        "only-if-cached is 504 where what is held must be asked about",
        &[("200 OK\r\nCache-Control: no-cache\r\nETag: \"a\"", "a")],
        &[get(200, "a", Asked), get(504, "*", Idle).with(&[("cache-control", "only-if-cached")])],
    ),
    it(
        "RFC 5861 §4",
        "a client may take what is held in place of an error",
        &[("200 OK\r\nCache-Control: max-age=0", "a"), ("502 Bad Gateway", "broken")],
        &[
            get(200, "a", Asked),
            get(200, "a", Asked).with(&[("cache-control", "stale-if-error=600")]),
            get(502, "broken", Asked),
        ],
    ),
    it(
        "RFC 9111 §4.3.5",
        "HEAD renews what is held",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "a"),
            ("200 OK", "b"),
        ],
        &[get(200, "a", Asked), get(200, "", Asked).by("HEAD"), get(200, "a", Idle)],
    ),
    it(
        "RFC 9111 §4.3.5",
        "HEAD that tells of something else makes what is held stale",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"", "a"),
            ("200 OK\r\nCache-Control: max-age=600\r\nETag: \"b\"", "b"),
        ],
        &[get(200, "a", Asked), get(200, "", Asked).by("HEAD"), get(200, "b", Asked), get(200, "b", Idle)],
    ),
    it(
        "RFC 9111 §4.4",
        "what is said by a method that nobody knows drops what is held",
        &[
            ("200 OK\r\nCache-Control: max-age=600", "a"),
            ("200 OK\r\nCache-Control: no-store", "done"),
            ("200 OK\r\nCache-Control: max-age=600", "b"),
        ],
        &[get(200, "a", Asked), get(200, "done", Asked).by("FROBNICATE"), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §4.4",
        "an unsafe request drops what any user holds",
        &[
            ("200 OK\r\nCache-Control: private, max-age=600", "a"),
            ("204 No Content", ""),
            ("200 OK\r\nCache-Control: private, max-age=600", "b"),
        ],
        &[get(200, "a", Asked), get(204, "", Asked).by("DELETE").other(), get(200, "b", Asked)],
    ),
    it(
        "RFC 9110 §5.6.7",
        "Expires as RFC 850 writes it is a date, its year less than 50 ahead",
        &[("200 OK\r\nExpires: Saturday, 06-Nov-60 08:49:37 GMT", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle)],
    ),
    it(
        "RFC 9110 §5.6.7",
        "a year of two digits more than 50 ahead is past",
        &[
            ("200 OK\r\nExpires: Sunday, 06-Nov-94 08:49:37 GMT", "a"),
            ("200 OK\r\nExpires: Sunday, 06-Nov-94 08:49:37 GMT", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §3.3",
        "a part is no answer to who wants the whole, nor to who wants more",
        &[
            (
                "206 Partial Content\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nContent-Range: bytes 0-4/10",
                "01234",
            ),
            (
                "206 Partial Content\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nContent-Range: bytes 3-7/10",
                "34567",
            ),
            ("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "0123456789"),
        ],
        &[
            get(206, "01234", Asked).with(&[("range", "bytes=0-4")]).has("content-range", "bytes 0-4/10"),
            get(206, "34567", Asked).with(&[("range", "bytes=3-7")]).has("content-range", "bytes 3-7/10"),
            get(200, "0123456789", Asked),
            get(206, "89", Idle).with(&[("range", "bytes=8-")]).has("content-range", "bytes 8-9/10"),
        ],
    ),
    it(
        "RFC 9111 §4.3.4",
        "a part that is stale is asked about, and a 304 renews it",
        &[
            (
                "206 Partial Content\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\nContent-Range: bytes 2-6/10",
                "23456",
            ),
            ("304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"a\"", ""),
        ],
        &[
            get(206, "23456", Asked).with(&[("range", "bytes=2-6")]),
            get(206, "345", AskedWith("if-none-match: \"a\"")).with(&[("range", "bytes=3-5")]),
            get(206, "56", Idle).with(&[("range", "bytes=5-6")]).has("content-range", "bytes 5-6/10"),
        ],
    ),
    it(
        "RFC 9111 §3.2",
        "a 304 may say anew of what type the body is",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\nContent-Type: text/plain", "a"),
            ("304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nContent-Type: text/css", ""),
        ],
        &[
            get(200, "a", Asked).has("content-type", "text/plain"),
            get(200, "a", Asked).has("content-type", "text/css"),
            get(200, "a", Idle).has("content-type", "text/css"),
        ],
    ),
    it(
        "RFC 9111 §4.1",
        "what fits by its Vary goes before a later answer that has left it out",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nVary: Accept-Language", "de"),
            ("200 OK\r\nCache-Control: max-age=600", "any"),
        ],
        &[
            get(200, "de", Asked).with(&[("accept-language", "de")]),
            get(200, "any", Asked),
            get(200, "de", Idle).with(&[("accept-language", "de")]),
            get(200, "any", Idle).with(&[("accept-language", "fr")]),
        ],
    ),
    it(
        "RFC 9110 §14.4",
        "a range beyond the end of what is held is 416 and says how long it is",
        &[("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "0123456789"), ("200 OK", "b")],
        &[
            get(200, "0123456789", Asked),
            get(416, "", Idle).with(&[("range", "bytes=10-")]).has("content-range", "bytes */10"),
        ],
    ),
    it(
        "RFC 9111 §3.4",
        "parts of two representations are never put together",
        &[
            (
                "206 Partial Content\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nContent-Range: bytes 0-4/10",
                "01234",
            ),
            (
                "206 Partial Content\r\nCache-Control: max-age=600\r\nETag: \"b\"\r\nContent-Range: bytes 5-9/10",
                "fghij",
            ),
            ("200 OK\r\nCache-Control: max-age=600\r\nETag: \"b\"", "abcdefghij"),
        ],
        &[
            get(206, "01234", Asked).with(&[("range", "bytes=0-4")]),
            get(206, "fghij", Asked).with(&[("range", "bytes=5-9")]),
            get(200, "abcdefghij", Asked),
        ],
    ),
    it(
        "RFC 9110 §13.2.2",
        "what only the origin can judge is asked of it although something is fresh",
        &[
            ("200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"", "a"),
            ("412 Precondition Failed", "no"),
            ("200 OK", "b"),
        ],
        &[
            get(200, "a", Asked),
            get(412, "no", AskedWith("if-match: \"b\"")).with(&[("if-match", "\"b\"")]),
            get(200, "a", Idle),
        ],
    ),
    it(
        "RFC 9111 §4.3.2",
        "one question asks for the client's tag and for what is held",
        &[
            ("200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"", "a"),
            ("304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=600", ""),
        ],
        &[
            get(200, "a", Asked),
            get(200, "a", AskedWith("if-none-match: \"x\", \"a\"")).with(&[("if-none-match", "\"x\"")]),
            get(304, "", Idle).with(&[("if-none-match", "\"a\"")]),
        ],
    ),
    it(
        "RFC 9111 §5.2.2.3",
        "what must be understood and is not is not held",
        &[
            ("299 Whatever\r\nCache-Control: must-understand, max-age=600", "a"),
            ("299 Whatever\r\nCache-Control: must-understand, max-age=600", "b"),
        ],
        &[get(299, "a", Asked), get(299, "b", Asked)],
    ),
    it(
        "RFC 9111 §5.2",
        "directives are words whatever their case, also quoted, also among unknown ones",
        &[("200 OK\r\nCache-Control: X-Foo=\"no-store, private\", MAX-AGE=\"600\"", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle).other()],
    ),
    it(
        "RFC 9111 §5.2",
        "directives that nobody knows are passed on both ways",
        &[("200 OK\r\nCache-Control: max-age=600, x-own=\"a, b\"", "a"), ("200 OK", "b")],
        &[
            get(200, "a", AskedWith("cache-control: x-ask=1"))
                .with(&[("cache-control", "x-ask=1")])
                .has("cache-control", "max-age=600, x-own=\"a, b\""),
            get(200, "a", Idle).has("cache-control", "max-age=600, x-own=\"a, b\""),
        ],
    ),
    it(
        "RFC 9111 §4.2.1",
        "a lifetime that is no number makes stale",
        &[("200 OK\r\nCache-Control: max-age=forever", "a"), ("200 OK\r\nCache-Control: max-age=-1", "b")],
        &[get(200, "a", Asked), get(200, "b", Asked), get(200, "b", Asked)],
    ),
    it(
        "RFC 9111 §3.1",
        "fields of the connection are not held",
        &[("200 OK\r\nCache-Control: max-age=600\r\nConnection: x-hop\r\nX-Hop: 1", "a")],
        &[get(200, "a", Any), get(200, "a", Idle).has("x-hop", "")],
    ),
    it(
        "RFC 9110 §15.4.9",
        "a redirect that says for how long is held",
        &[("308 Permanent Redirect\r\nCache-Control: max-age=600\r\nLocation: /b", ""), ("200 OK", "b")],
        &[get(308, "", Asked), get(308, "", Idle).has("location", "/b")],
    ),
];
