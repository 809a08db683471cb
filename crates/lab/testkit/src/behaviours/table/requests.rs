//! What clients ask of caches in their requests (RFC 9111 §5.2.1 and §5.4).

use super::Origin::{Asked, Idle};
use super::{Behaviour, get, it};

pub(super) const ALL: &[Behaviour] = &[
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
];
