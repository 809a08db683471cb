//! What is asked of origins about what is held, what answers change of it, and what ends it (RFC 9111 §4.3 and §4.4).

use super::Origin::{Asked, AskedWith, Idle};
use super::{Behaviour, get, it};

pub(super) const ALL: &[Behaviour] = &[
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
        "RFC 9110 §9.3.2",
        "HEAD is answered from what is held of a GET",
        &[("200 OK\r\nCache-Control: max-age=600", "abc"), ("200 OK", "b")],
        &[get(200, "abc", Asked), get(200, "", Idle).by("HEAD").has("content-length", "3")],
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
];
