//! What fields for chosen caches say (RFC 9213).

use super::Origin::{Asked, AskedWith, Idle};
use super::{Behaviour, get, it};

pub(super) const ALL: &[Behaviour] = &[
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
];
