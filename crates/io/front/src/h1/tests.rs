//! Verdicts over malformed and ambiguous messages, and the property that no split of the bytes changes one.

use super::*;
use bytes::BytesMut;
use http::{HeaderMap, Method};
use proptest::prelude::*;

/// What came of a stream of request bytes, as text that two runs can be compared by.
fn read_requests(pieces: &[&[u8]], limits: &HeadLimits) -> Vec<String> {
    let mut events = Vec::new();
    let mut body = Vec::new();
    let mut buffer = BytesMut::new();
    let mut scanner = HeadScanner::new(Section::Request);
    let mut decoder: Option<BodyDecoder> = None;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            if let Some(reader) = &mut decoder {
                match reader.decode(&mut buffer) {
                    Ok(Decoded::Data(data)) => body.extend_from_slice(&data),
                    Ok(Decoded::End(trailers)) => {
                        events.push(format!("body {:?} {trailers:?}", String::from_utf8_lossy(&body)));
                        body.clear();
                        decoder = None;
                    }
                    Ok(Decoded::NeedMore) => break,
                    Err(refusal) => {
                        events.push(format!("partial {:?} {refusal:?}", String::from_utf8_lossy(&body)));
                        return events;
                    }
                }
                continue;
            }
            let head = match scanner.scan(&buffer, limits) {
                Ok(None) => break,
                Ok(Some(range)) => {
                    let head = buffer.split_to(range.end).split_off(range.start);
                    RequestHead::parse(&head, limits)
                }
                Err(refusal) => Err(refusal),
            };
            match head {
                Ok(head) => {
                    events.push(format!("{head:?}"));
                    scanner = HeadScanner::new(Section::Request);
                    decoder = Some(BodyDecoder::new(head.framing, *limits));
                }
                Err(refusal) => {
                    events.push(format!("{refusal:?}"));
                    return events;
                }
            }
        }
    }
    let state = decoder.map_or(if scanner.begun() { "in head" } else { "between" }, |_| "in body");
    events.push(format!("{state} {:?}", String::from_utf8_lossy(&body)));
    events
}

fn parse(text: &str) -> Result<RequestHead, Refusal> {
    let limits = HeadLimits::default();
    let mut scanner = HeadScanner::new(Section::Request);
    let range = scanner.scan(text.as_bytes(), &limits)?.ok_or(Refusal::HeadIncomplete)?;
    RequestHead::parse(&text.as_bytes()[range], &limits)
}

/// `GET` of a plain target with these further field lines.
fn with_fields(lines: &str) -> String {
    format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n")
}

/// Malformed or ambiguous requests and what is said of each.
const REFUSED: &[(&str, Refusal)] = &[
    // First lines.
    ("GET\r\n\r\n", Refusal::RequestLine),
    ("GET /\r\n\r\n", Refusal::RequestLine),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("G\u{e9}T / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET / http/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", Refusal::Version),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Refusal::Version),
    ("GET / HTTP/01.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET / HTTP/1.1x\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::Version),
    ("\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("\x16\x03\x01\x02\x00\x01\x00", Refusal::ControlByte),
    // Lines.
    ("GET / HTTP/1.1\nHost: a\n\n", Refusal::BareLf),
    ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::BareLf),
    ("GET / HTTP/1.1\r\nHost: a\n\r\n", Refusal::BareLf),
    ("GET / HTTP/1.1\r\nHost: a\r\n\n", Refusal::BareLf),
    ("GET / HTTP/1.1\rHost: a\r\n\r\n", Refusal::BareCr),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n", Refusal::BareCr),
    ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", Refusal::BareCr),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", Refusal::ObsFold),
    ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", Refusal::ObsFold),
    ("GET / HTTP/1.1\r\nHost: a\r\n\tX: b\r\n\r\n", Refusal::ObsFold),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", Refusal::ControlByte),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: b\x7fc\r\n\r\n", Refusal::ControlByte),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: b\x0bc\r\n\r\n", Refusal::ControlByte),
    // Fields.
    ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n", Refusal::Field),
    ("GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: b\r\n\r\n", Refusal::Field),
    // Hosts.
    ("GET / HTTP/1.1\r\n\r\n", Refusal::HostMissing),
    ("GET http://a/ HTTP/1.1\r\n\r\n", Refusal::HostMissing),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Refusal::HostRepeated),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Refusal::HostRepeated),
    ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Refusal::HostRepeated),
    ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", Refusal::Authority),
    ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Refusal::Authority),
    ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", Refusal::UserInfo),
    ("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", Refusal::Authority),
    ("GET http://a/ HTTP/1.1\r\nHost: http://a\r\n\r\n", Refusal::Authority),
    // Targets.
    ("GET a/b HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Target),
    ("GET http:/a/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Target),
    ("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://user:pw@a/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::UserInfo),
    ("GET http://a@b:80/ HTTP/1.1\r\nHost: b\r\n\r\n", Refusal::UserInfo),
    ("GET http://a:0/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://a:65536/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://a:+80/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://a:80:80/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://[::1]x/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://::1/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://a%2eb/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://a..b/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://127.1/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://2130706433/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://0x7f.0.0.0x1/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://127.0.0.01/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Scheme),
    ("GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Scheme),
    ("GET /#fragment HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Target),
    ("GET http://m\u{fc}nchen.example/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET http://a{b}/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("GET / HTTP/1.1\u{e9}\r\nHost: a\r\n\r\n", Refusal::RequestLine),
    ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::TargetForm),
    ("GET a.example:80 HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Target),
    // CONNECT.
    ("CONNECT http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("CONNECT u@a:443 HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::UserInfo),
    ("CONNECT a:443/x HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Authority),
    ("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", Refusal::ConnectBody),
    ("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", Refusal::ConnectBody),
    // Semantics.
    ("TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", Refusal::TraceBody),
    ("TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: -1\r\n\r\n", Refusal::MaxForwards),
    ("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 5\r\nMax-Forwards: 0\r\n\r\n", Refusal::MaxForwards),
    ("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: \r\n\r\n", Refusal::MaxForwards),
    ("GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", Refusal::Expectation),
    (
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue, miracles\r\n\r\n",
        Refusal::Expectation,
    ),
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", Refusal::WebSocketKey),
];

/// Field lines that frame the body ambiguously, and what is said of each.
const REFUSED_FRAMING: &[(&str, Refusal)] = &[
    ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Refusal::FramingConflict),
    ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", Refusal::FramingConflict),
    ("Transfer-Encoding: identity\r\nContent-Length: 3\r\n", Refusal::FramingConflict),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", Refusal::ContentLengthRepeated),
    ("Content-Length: 5\r\nContent-Length: 6\r\n", Refusal::ContentLengthRepeated),
    ("Content-Length: 5, 5\r\n", Refusal::ContentLengthRepeated),
    ("Content-Length: +5\r\n", Refusal::ContentLength),
    ("Content-Length: -5\r\n", Refusal::ContentLength),
    ("Content-Length: 5 5\r\n", Refusal::ContentLength),
    ("Content-Length: 0x5\r\n", Refusal::ContentLength),
    ("Content-Length: 5.0\r\n", Refusal::ContentLength),
    ("Content-Length: \r\n", Refusal::ContentLength),
    ("Content-Length: five\r\n", Refusal::ContentLength),
    ("Content-Length: 9223372036854775808\r\n", Refusal::ContentLength),
    ("Content-Length: 99999999999999999999999\r\n", Refusal::ContentLength),
    ("Transfer-Encoding: \r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: identity\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: xchunked\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: chunked, chunked\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: chunked, identity\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: chunked, gzip\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: , chunked\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: \"chunked\"\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: chunked;q=1\r\n", Refusal::TransferEncoding),
    ("Transfer-Encoding: gzip, chunked\r\n", Refusal::TransferCoding),
];

/// Chunked bodies that are refused.
const REFUSED_CHUNKS: &[(&str, Refusal)] = &[
    ("\r\n", Refusal::ChunkSize),
    ("g\r\n", Refusal::ChunkSize),
    ("-1\r\n", Refusal::ChunkSize),
    ("+1\r\na\r\n", Refusal::ChunkSize),
    ("0x1\r\na\r\n", Refusal::ChunkSize),
    (" 1\r\na\r\n", Refusal::ChunkSize),
    ("1 \r\na\r\n", Refusal::ChunkSize),
    ("1 1\r\na\r\n", Refusal::ChunkSize),
    ("1_0\r\na\r\n", Refusal::ChunkSize),
    ("8000000000000000\r\n", Refusal::ChunkSize),
    ("10000000000000001\r\na", Refusal::ChunkSize),
    ("00000000000000001\r\na", Refusal::ChunkSize),
    ("1\na\r\n", Refusal::BareLf),
    ("1;a\nb\r\n", Refusal::BareLf),
    ("1;a\rb\r\n", Refusal::BareCr),
    ("1;\r\na\r\n", Refusal::ChunkExtension),
    ("1;=b\r\na\r\n", Refusal::ChunkExtension),
    ("1;a=\r\na\r\n", Refusal::ChunkExtension),
    ("1;a=\"b\r\na\r\n", Refusal::ChunkExtension),
    ("1;a=\"\0\"\r\na\r\n", Refusal::ChunkExtension),
    ("1;a b\r\na\r\n", Refusal::ChunkSize),
    ("1\r\nab\r\n", Refusal::ChunkEnd),
    ("1\r\na\n0\r\n\r\n", Refusal::ChunkEnd),
    ("1\r\na0\r\n\r\n", Refusal::ChunkEnd),
    ("1\r\na\rb", Refusal::ChunkEnd),
    ("0\r\nX : b\r\n\r\n", Refusal::Field),
    ("0\r\nX: b\n\r\n", Refusal::BareLf),
    ("0\r\n X: b\r\n\r\n", Refusal::ObsFold),
    ("0\r\nContent-Length: 3\r\n\r\n", Refusal::Trailer),
    ("0\r\nTransfer-Encoding: chunked\r\n\r\n", Refusal::Trailer),
    ("0\r\nHost: b\r\n\r\n", Refusal::Trailer),
];

#[test]
fn ambiguous_or_malformed_requests_are_refused_with_their_reason() {
    for (text, refusal) in REFUSED {
        assert_eq!(parse(text).map(|_| ()), Err(*refusal), "{text:?}");
    }
    for (lines, refusal) in REFUSED_FRAMING {
        let text = with_fields(lines);
        assert_eq!(parse(&text).map(|_| ()), Err(*refusal), "{lines:?}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old).map(|_| ()), Err(Refusal::TransferEncoding));
}

#[test]
fn what_a_browser_would_have_encoded_in_a_target_is_encoded() {
    let cases: &[(&[u8], &str)] = &[
        ("/caf\u{e9}?q=\u{20ac}".as_bytes(), "/caf%C3%A9?q=%E2%82%AC"),
        (b"/caf\xe9?q=\xff", "/caf%E9?q=%FF"), // Latin-1
        (b"/a`b{c}\"<d>", "/a%60b%7Bc%7D%22%3Cd%3E"),
        (b"/?a`b{c}\"<d>", "/?a`b{c}%22%3Cd%3E"),
        (b"?{\"a\":[1]}", "/?{%22a%22:[1]}"),
        (b"/a|b^c\\d[e]'f?a|b^c\\d[e]'f", "/a|b^c\\d[e]'f?a|b^c\\d[e]'f"),
        (b"/%e9%zz%", "/%e9%zz%"),
    ];
    for (written, path) in cases {
        let text = [b"GET http://a", *written, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let head = RequestHead::parse(&text, &HeadLimits::default()).unwrap();
        let Target::Absolute { path: read, .. } = head.target else { panic!("{:?}", head.target) };
        assert_eq!(read, *path);
    }
    let text = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "\u{e9}".repeat(8 * 1024));
    assert_eq!(
        parse(&text).map(|_| ()),
        Err(Refusal::TargetTooLong),
        "the bound holds for what is passed on"
    );
}

#[test]
fn every_refusal_of_a_request_has_a_client_error_status_of_its_kind() {
    assert_eq!(Refusal::BareLf.status(), 400);
    assert_eq!(Refusal::FramingConflict.status(), 400);
    assert_eq!(Refusal::TargetTooLong.status(), 414);
    assert_eq!(Refusal::HeadTooLarge.status(), 431);
    assert_eq!(Refusal::TooManyFields.status(), 431);
    assert_eq!(Refusal::TransferCoding.status(), 501);
    assert_eq!(Refusal::Version.status(), 505);
}

#[test]
fn ambiguous_framing_of_responses_is_refused() {
    let framed = |lines: &str| {
        let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        ResponseHead::parse(text.as_bytes(), &Method::GET, &HeadLimits::default()).map(|head| head.framing)
    };
    for (lines, refusal) in REFUSED_FRAMING {
        // Equal lengths are one length, of responses.
        let is_repeated =
            matches!(*lines, "Content-Length: 5\r\nContent-Length: 5\r\n" | "Content-Length: 5, 5\r\n");
        let expected = if is_repeated { Ok(Framing::Length(5)) } else { Err(*refusal) };
        assert_eq!(framed(lines), expected, "{lines:?}");
    }
    assert_eq!(framed("Content-Length: 5,\r\n"), Err(Refusal::ContentLengthRepeated));
    assert_eq!(framed("Content-Length: +5, +5\r\n"), Err(Refusal::ContentLength));
}

fn decode(text: &[u8]) -> Result<(Vec<u8>, HeaderMap, usize), Refusal> {
    let mut buffer = BytesMut::from(text);
    let mut decoder = BodyDecoder::new(Framing::Chunked, HeadLimits::default());
    let mut body = Vec::new();
    loop {
        match decoder.decode(&mut buffer)? {
            Decoded::Data(data) => body.extend_from_slice(&data),
            Decoded::End(trailers) => return Ok((body, trailers, buffer.len())),
            Decoded::NeedMore => {
                decoder.end_of_input()?;
            }
        }
    }
}

#[test]
fn malformed_chunks_are_refused_with_their_reason() {
    for (text, refusal) in REFUSED_CHUNKS {
        assert_eq!(decode(text.as_bytes()).map(|_| ()), Err(*refusal), "{text:?}");
    }
}

#[test]
fn well_formed_chunks_give_body_and_trailers_and_leave_what_follows() {
    let text = b"4\r\nfarh\r\n2;a=b;c=\"d;\\\"\r\" ;e\r\nop\r\n0\r\nX-Sum: 1\r\nCache-Control: no\r\n\r\nGET";
    assert_eq!(decode(text).map(|_| ()), Err(Refusal::BareCr), "a bare CR hides nowhere");
    let text =
        b"4\r\nfarh\r\n2 ;a=b;c=\"d;\\\"\" ; e\r\nop\r\n000\r\nX-Sum: 1\r\nCache-Control: no\r\n\r\nGET";
    let (body, trailers, rest) = decode(text).unwrap();
    assert_eq!(body, b"farhop");
    assert_eq!(trailers.len(), 1, "what may not trail is left out");
    assert_eq!(trailers["x-sum"], "1");
    assert_eq!(rest, 3);
}

#[test]
fn a_body_cut_short_is_incomplete_and_never_complete() {
    let whole = b"4\r\nfarh\r\n2\r\nop\r\n0\r\nX: y\r\n\r\n";
    for cut in 0..whole.len() {
        assert_eq!(decode(&whole[..cut]).map(|_| ()), Err(Refusal::BodyIncomplete), "cut at {cut}");
    }
    let mut sized = BodyDecoder::new(Framing::Length(3), HeadLimits::default());
    assert_eq!(sized.decode(&mut BytesMut::from("ab")), Ok(Decoded::Data("ab".into())));
    assert_eq!(sized.end_of_input(), Err(Refusal::BodyIncomplete));
}

#[test]
fn chunk_extensions_are_bounded_in_each_line_and_in_sum() {
    let one = format!("1;{}\r\na\r\n", "x".repeat(1100));
    assert_eq!(decode(one.as_bytes()).map(|_| ()), Err(Refusal::ChunkExtension));
    let many = format!("1;{}\r\na\r\n", "x".repeat(900)).repeat(20);
    assert_eq!(decode(many.as_bytes()).map(|_| ()), Err(Refusal::ChunkExtension));
    let few = format!("1;{}\r\na\r\n", "x".repeat(900)).repeat(10) + "0\r\n\r\n";
    assert_eq!(decode(few.as_bytes()).unwrap().0, b"aaaaaaaaaa");
}

#[test]
fn heads_beyond_their_bounds_are_refused_before_they_end() {
    let limits = HeadLimits::default();
    let scan = |text: &str| HeadScanner::new(Section::Request).scan(text.as_bytes(), &limits);
    assert_eq!(scan(&format!("GET /{}", "a".repeat(40_000))), Err(Refusal::TargetTooLong));
    assert_eq!(scan(&format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(70_000))), Err(Refusal::HeadTooLarge));
    assert_eq!(scan(&format!("GET / HTTP/1.1\r\n{}", "X: a\r\n".repeat(257))), Err(Refusal::TooManyFields));
    let target = "a".repeat(32 * 1024);
    let text = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(parse(&text).map(|_| ()), Err(Refusal::TargetTooLong), "one byte too many");
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").replacen('a', "/", 1);
    assert!(parse(&text).is_ok(), "the bound itself is allowed");
}

#[test]
fn the_four_target_forms_are_read() {
    let target = |text: &str| parse(text).unwrap().target;
    let absolute = |path: &'static str, host: &str| Target::Absolute {
        scheme: Scheme::Http,
        authority: Authority::parse(host).unwrap(),
        path: http::uri::PathAndQuery::from_static(path),
    };
    let host = "Host: x\r\n\r\n";
    assert_eq!(target(&format!("GET http://A.Example HTTP/1.1\r\n{host}")), absolute("/", "a.example"));
    assert_eq!(target(&format!("GET HTTP://a?q=/ HTTP/1.1\r\n{host}")), absolute("/?q=/", "a"));
    assert_eq!(
        target(&format!("GET http://[::0:1]:8080/x HTTP/1.1\r\n{host}")),
        absolute("/x", "[::1]:8080")
    );
    assert_eq!(target(&format!("OPTIONS http://a:81 HTTP/1.1\r\n{host}")), absolute("*", "a:81"));
    assert_eq!(target(&format!("OPTIONS * HTTP/1.1\r\n{host}")), Target::Asterisk);
    assert_eq!(
        target(&format!("CONNECT [2001:DB8::1]:443 HTTP/1.1\r\n{host}")),
        Target::Authority { host: "[2001:db8::1]".into(), port: 443 }
    );
    assert!(
        matches!(target(&format!("GET /x?y HTTP/1.1\r\n{host}")), Target::Origin(path) if path == "/x?y")
    );
}

#[test]
fn targets_that_browsers_send_unencoded_are_accepted() {
    // The URL standard leaves these as they are.
    for byte in "!$%&'()*+,-./:;=@[]^_{|}~\\\"".chars() {
        let text = format!("GET http://a/x{byte}y HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(parse(&text).is_ok(), "{byte} in a path");
    }
    for byte in "!$%&'()*+,-./:;=?@[]^_`{|}~\\".chars() {
        let text = format!("GET http://a/?x{byte}y HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(parse(&text).is_ok(), "{byte} in a query");
    }
}

#[test]
fn the_target_replaces_a_differing_host() {
    let head = parse("GET http://a.example:8080/ HTTP/1.1\r\nHost: b.example\r\n\r\n").unwrap();
    assert_eq!(head.fields["host"], "a.example:8080");
    let head = parse("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\n").unwrap();
    assert_eq!(head.fields["host"], "a.example:443");
    let head = parse("GET http://a.example/ HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(head.fields["host"], "a.example");
    let head = parse("GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n").unwrap();
    assert_eq!(head.fields["host"], "b.example");
}

#[test]
fn expectations_are_kept_only_where_they_count() {
    let expects = |text: &str| parse(text).unwrap().expects_continue;
    assert!(expects("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"));
    let empty =
        parse("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert!(!empty.expects_continue && !empty.fields.contains_key("expect"));
    assert!(
        parse("GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: one\r\n\r\n").is_ok(),
        "it means nothing there"
    );
    let old =
        parse("PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n").unwrap();
    assert!(!old.expects_continue && !old.fields.contains_key("expect"));
}

#[test]
fn the_transfer_encoding_is_replaced_by_the_framing() {
    let head = parse("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n").unwrap();
    assert_eq!(head.framing, Framing::Chunked);
    assert!(!head.fields.contains_key("transfer-encoding"));
    let head = parse("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n\r\n").unwrap();
    assert_eq!(head.framing, Framing::Length(7));
}

#[test]
fn responses_end_where_their_method_status_and_fields_say() {
    let framing = |method: &Method, text: &str| {
        ResponseHead::parse(text.as_bytes(), method, &HeadLimits::default()).unwrap().framing
    };
    let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(framing(&Method::GET, sized), Framing::Length(5));
    assert_eq!(framing(&Method::HEAD, sized), Framing::None);
    assert_eq!(framing(&Method::CONNECT, sized), Framing::None);
    assert_eq!(framing(&Method::GET, "HTTP/1.1 304 \r\nContent-Length: 5\r\n\r\n"), Framing::None);
    assert_eq!(framing(&Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"), Framing::None);
    assert_eq!(framing(&Method::GET, "HTTP/1.0 200 OK\r\n\r\n"), Framing::UntilClose);
    assert_eq!(
        framing(&Method::GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Framing::Chunked
    );
}

#[test]
fn a_response_says_its_length_in_one_way_and_205_has_none() {
    let settled = |status: u16, length: &'static str| {
        let mut fields = HeaderMap::new();
        fields.insert("content-length", http::HeaderValue::from_static(length));
        let status = http::StatusCode::from_u16(status).unwrap();
        let framing = settle_body(&Method::GET, status, &mut fields).unwrap();
        (framing, fields.get("content-length").map(|value| value.to_str().unwrap().to_owned()))
    };
    assert_eq!(settled(200, "0005"), (Framing::Length(5), Some("5".to_owned())));
    assert_eq!(settled(304, "0005"), (Framing::None, Some("5".to_owned())));
    assert_eq!(settled(204, "5"), (Framing::None, None));
    assert_eq!(settled(205, "5"), (Framing::None, Some("0".to_owned())));
}

/// A stream with every kind of thing in it.
const STREAM: &str = "\r\nPOST http://a/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
    5;x=\"y\"\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 9\r\n\r\n\
    GET /2 HTTP/1.1\r\nHost: b\r\nAccept: */*\r\n\r\nPUT /3 HTTP/1.1\r\nHost: c\r\nContent-Length: 3\r\n\r\nabc\
    OPTIONS * HTTP/1.1\r\nHost: d\r\n\r\n";

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_requests(
        cuts in prop::collection::vec(0..STREAM.len(), 0..40),
        damage in prop::option::of((0..STREAM.len(), any::<u8>())),
    ) {
        let mut stream = STREAM.as_bytes().to_vec();
        if let Some((at, byte)) = damage {
            stream[at] = byte;
        }
        let whole = read_requests(&[&stream], &HeadLimits::default());
        let mut cuts = cuts;
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        prop_assert_eq!(&read_requests(&pieces, &HeadLimits::default()), &whole);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&read_requests(&bytes, &HeadLimits::default()), &whole);
    }

    #[test]
    fn bodies_of_any_chunks_come_back(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..8)) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(&encode_line(chunk.len()));
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", http::HeaderValue::from_static("1"));
        wire.extend_from_slice(&encode_end(Some(&trailers)));
        let (body, read, rest) = decode(&wire).unwrap();
        prop_assert_eq!(body, chunks.concat());
        prop_assert_eq!(read, trailers);
        prop_assert_eq!(rest, 0);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(data in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz_request(&data);
        fuzz_response(&data);
        fuzz_chunked_body(&data);
    }
}
