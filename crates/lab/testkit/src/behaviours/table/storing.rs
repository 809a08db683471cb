//! What is held, for whom, and as the answer to which requests (RFC 9111 §3 and §4.1).

use super::Origin::{Any, Asked, AskedWith, Idle};
use super::{Behaviour, get, it};

pub(super) const ALL: &[Behaviour] = &[
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
        "RFC 9111 §5.2.2.3",
        "what must be understood and is not is not held",
        &[
            ("299 Whatever\r\nCache-Control: must-understand, max-age=600", "a"),
            ("299 Whatever\r\nCache-Control: must-understand, max-age=600", "b"),
        ],
        &[get(299, "a", Asked), get(299, "b", Asked)],
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
