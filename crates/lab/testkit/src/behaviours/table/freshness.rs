//! How long an answer may be given without asking, and when one that is stale may (RFC 9111 §4.2, RFC 5861, RFC 8246).

use super::Origin::{Any, Asked, AskedWith, Idle};
use super::{Behaviour, get, it};

pub(super) const ALL: &[Behaviour] = &[
    it(
        "RFC 9111 §4.2",
        "what is fresh answers without asking",
        &[("200 OK\r\nCache-Control: max-age=600", "a"), ("200 OK", "b")],
        &[get(200, "a", Asked), get(200, "a", Idle).has("cache-status", "hit"), get(200, "a", Idle)],
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
        "RFC 9111 §5.2.2.8",
        "what proxies must revalidate is not given stale",
        &[
            ("200 OK\r\nCache-Control: max-age=0, proxy-revalidate", "a"),
            ("200 OK\r\nCache-Control: max-age=0, proxy-revalidate", "b"),
        ],
        &[get(200, "a", Asked), get(200, "b", Asked).with(&[("cache-control", "max-stale")])],
    ),
];
