//! Parts of what is held, and what is held of parts (RFC 9110 §14, RFC 9111 §3.3 and §3.4).

use super::Origin::{Asked, AskedWith, Idle};
use super::{Behaviour, get, it};

pub(super) const ALL: &[Behaviour] = &[
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
];
