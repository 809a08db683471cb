//! What the remote holds, as clients get it: RFC 9111 through the whole remote, with ground played by the test.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::Coding;
use http::StatusCode;
use support::{BROWSER, World, answer, failure, head, send, until, world_with};

const TAGGED: &[(&str, &str)] = &[("cache-control", "max-age=600"), ("etag", "\"1\"")];
const STALE: &[(&str, &str)] = &[("cache-control", "max-age=0"), ("etag", "\"1\"")];

/// Asks for `/a` with these fields.
async fn ask(world: &World, fields: &str) -> tokio::net::TcpStream {
    world.get("/a", &format!("{BROWSER}{fields}")).await
}

/// A world that holds `/a` so.
async fn holding(settings: &[&str], fields: &[(&'static str, &'static str)]) -> World {
    let world = world_with(settings).await;
    let client = ask(&world, "").await;
    world.give(200, fields, "0123456789").await;
    assert!(answer(client).await.contains("0123456789"));
    world
}

#[tokio::test]
async fn a_part_of_what_is_held_is_given_without_crossing() {
    let world = holding(&[], TAGGED).await;
    for (asked, status, range, body) in [
        ("range: bytes=2-4\r\n", "206", "bytes 2-4/10", "234"),
        ("range: bytes=-3\r\n", "206", "bytes 7-9/10", "789"),
        ("range: bytes=2-4\r\nif-range: \"1\"\r\n", "206", "bytes 2-4/10", "234"),
        ("range: bytes=10-\r\n", "416", "bytes */10", ""),
    ] {
        let got = answer(ask(&world, asked).await).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{asked}: {got}");
        assert!(got.contains(&format!("Content-Range: {range}\r\n")), "{asked}: {got}");
        assert!(got.ends_with(&format!("\r\n\r\n{body}")), "{asked}: {got}");
    }
    let whole = answer(ask(&world, "range: bytes=2-4\r\nif-range: \"2\"\r\n").await).await;
    assert!(whole.starts_with("HTTP/1.1 200 ") && whole.contains("0123456789"), "{whole}");
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn one_answer_for_all_origins_answers_pages_of_any_and_requests_without() {
    const ANYONES: &[(&str, &str)] =
        &[("cache-control", "max-age=600"), ("access-control-allow-origin", "*")];
    const ASKING: [&str; 3] = ["", "origin: http://one.test\r\n", "origin: http://other.test\r\n"];
    for first in ASKING {
        let world = world_with(&[]).await;
        let client = ask(&world, first).await;
        world.give(200, ANYONES, "0123456789").await;
        answer(client).await;
        for other in ASKING {
            let got = answer(ask(&world, other).await).await;
            assert!(
                got.contains("Access-Control-Allow-Origin: *\r\n") && got.contains("0123456789"),
                "{got}"
            );
        }
        assert_eq!(world.crossed(), 1, "{first}");
    }
    // What came without that word answers no page that may need it.
    let world = holding(&[], TAGGED).await;
    let client = ask(&world, ASKING[1]).await;
    world.give(200, TAGGED, "for one").await;
    assert!(answer(client).await.contains("for one"));
}

#[tokio::test]
async fn a_part_of_what_is_stale_is_given_once_the_origin_has_confirmed_it() {
    let world = holding(&[], STALE).await;
    let client = ask(&world, "range: bytes=2-4\r\n").await;
    let asked = world.give(304, TAGGED, "").await;
    assert_eq!(asked.head.fields["if-none-match"], "\"1\"");
    assert_eq!(asked.head.fields["range"], "bytes=2-4");
    let got = answer(client).await;
    assert!(got.starts_with("HTTP/1.1 206 ") && got.ends_with("\r\n\r\n234"), "{got}");
}

#[tokio::test]
async fn conditions_of_clients_are_answered_from_what_is_held() {
    let world = holding(&[], TAGGED).await;
    let got = answer(ask(&world, "if-none-match: \"0\", W/\"1\"\r\n").await).await;
    assert!(got.starts_with("HTTP/1.1 304 ") && got.contains("Etag: \"1\""), "{got}");
    let got = answer(ask(&world, "if-none-match: \"0\"\r\n").await).await;
    assert!(got.starts_with("HTTP/1.1 200 ") && got.contains("0123456789"), "{got}");
    assert_eq!(world.crossed(), 1);
    let client = ask(&world, "if-match: \"1\"\r\n").await;
    assert_eq!(world.give(412, &[], "").await.head.fields["if-match"], "\"1\"");
    assert!(answer(client).await.starts_with("HTTP/1.1 412 "), "it is the origin's to evaluate");
}

#[tokio::test]
async fn a_clients_condition_and_the_one_of_what_is_held_are_asked_together() {
    for (confirmed, status, body) in [("\"1\"", "200", "0123456789"), ("\"c\"", "304", "")] {
        let world = holding(&[], STALE).await;
        let client = ask(&world, "if-none-match: \"c\"\r\n").await;
        let asked = world.give(304, &[("etag", confirmed)], "").await;
        let tags: Vec<_> = asked.head.fields.get_all("if-none-match").iter().collect();
        assert_eq!(tags, ["\"c\", \"1\""]);
        let got = answer(client).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")) && got.contains(body), "{confirmed}: {got}");
    }
}

#[tokio::test]
async fn a_304_that_is_about_neither_is_followed_by_the_request_as_it_came() {
    let world = holding(&[], STALE).await;
    let client = ask(&world, "").await;
    world.give(304, &[("etag", "\"other\"")], "").await;
    let asked = world.give(200, TAGGED, "anew").await;
    assert!(!asked.head.fields.contains_key("if-none-match"));
    assert!(answer(client).await.contains("anew"));
}

#[tokio::test]
async fn a_304_that_forbids_to_keep_it_answers_once() {
    let world = holding(&[], STALE).await;
    let client = ask(&world, "").await;
    world.give(304, &[("etag", "\"1\""), ("cache-control", "no-store")], "").await;
    assert!(answer(client).await.contains("0123456789"));
    let client = ask(&world, "").await;
    assert!(!world.give(200, TAGGED, "anew").await.head.fields.contains_key("if-none-match"));
    assert!(answer(client).await.contains("anew"));
}

#[tokio::test]
async fn an_answer_to_head_renews_what_is_held_or_drops_it() {
    for (tag, crossed) in [("\"1\"", 2), ("\"2\"", 3)] {
        let world = holding(&[], STALE).await;
        let mut client = world.client().await;
        send(&mut client, "HEAD", "/a", BROWSER).await;
        world.give(200, &[("cache-control", "max-age=600"), ("etag", tag)], "").await;
        assert!(answer(client).await.starts_with("HTTP/1.1 200 "));
        let client = ask(&world, "").await;
        if crossed == 3 {
            assert!(!world.give(200, TAGGED, "anew").await.head.fields.contains_key("if-none-match"));
        }
        assert!(answer(client).await.starts_with("HTTP/1.1 200 "), "{tag}");
        assert_eq!(world.crossed(), crossed, "{tag}");
    }
}

#[tokio::test]
async fn only_if_cached_is_answered_from_what_is_held_or_not_at_all() {
    const ONLY: &str = "cache-control: only-if-cached\r\n";
    let world = holding(&[], TAGGED).await;
    assert!(answer(ask(&world, ONLY).await).await.contains("0123456789"));
    let other = answer(world.get("/b", &format!("{BROWSER}{ONLY}")).await).await;
    assert!(other.starts_with("HTTP/1.1 504 "), "{other}");
    let stale = holding(&[], STALE).await;
    assert!(answer(ask(&stale, ONLY).await).await.starts_with("HTTP/1.1 504 "));
    assert_eq!((world.crossed(), stale.crossed()), (1, 1));
}

#[tokio::test]
async fn a_failing_origin_is_stood_in_for_where_it_has_allowed_that() {
    let allowed = [("cache-control", "max-age=0, stale-if-error=600"), ("etag", "\"1\"")];
    let world = holding(&[], &allowed).await;
    for _ in 0..2 {
        let client = ask(&world, "").await;
        world.give(503, &[("cache-control", "max-age=60")], "broken").await;
        let got = answer(client).await;
        assert!(got.starts_with("HTTP/1.1 200 ") && got.contains("0123456789"), "{got}");
    }
    let client = ask(&world, "").await;
    world.asked().await.sender.fail(failure());
    assert!(answer(client).await.contains("0123456789"), "nor can it be reached");
    let client = ask(&world, "").await;
    world.give(404, &[], "gone").await;
    assert!(answer(client).await.starts_with("HTTP/1.1 404 "), "that is an answer");
    let unsaid = holding(&[], STALE).await;
    let client = ask(&unsaid, "").await;
    unsaid.give(503, &[], "broken").await;
    assert!(answer(client).await.starts_with("HTTP/1.1 503 "));
}

#[tokio::test]
async fn while_the_link_is_down_what_is_held_answers_though_it_is_stale() {
    for (patience, said) in
        [("timeouts.stale=\"0 s\"", "max-age=0"), ("timeouts.stale=\"1 h\"", "max-age=0, stale-if-error=600")]
    {
        let world = holding(&[patience], &[("cache-control", said)]).await;
        world.hop.close();
        let got = answer(ask(&world, "").await).await;
        assert!(got.starts_with("HTTP/1.1 200 ") && got.contains("0123456789"), "{said}: {got}");
    }
}

#[tokio::test]
async fn what_must_not_be_stale_waits_for_the_link() {
    let said = [("cache-control", "max-age=0, must-revalidate, stale-if-error=600")];
    let mut world = holding(&["timeouts.stale=\"0 s\""], &said).await;
    world.hop.close();
    let client = ask(&world, "").await;
    world.hop = world.listener.carrier().await;
    world.give(200, TAGGED, "anew").await;
    assert!(answer(client).await.contains("anew"));
}

#[tokio::test]
async fn what_may_be_stale_while_it_is_validated_is_given_at_once_and_asked_about_once() {
    let said = [("cache-control", "max-age=0, stale-while-revalidate=600"), ("etag", "\"1\"")];
    let world = holding(&[], &said).await;
    for _ in 0..2 {
        assert!(answer(ask(&world, "if-none-match: \"c\"\r\n").await).await.contains("0123456789"));
    }
    let asked = world.give(304, TAGGED, "").await;
    assert_eq!(asked.head.fields["if-none-match"], "\"1\"");
    renewed(&world, "max-age=600").await;
    assert_eq!(world.crossed(), 2, "once for both");
}

#[tokio::test]
async fn what_has_changed_behind_a_stale_answer_takes_its_place() {
    let said = [("cache-control", "max-age=0, stale-while-revalidate=600"), ("etag", "\"1\"")];
    let world = holding(&[], &said).await;
    assert!(answer(ask(&world, "range: bytes=0-1\r\n").await).await.ends_with("\r\n\r\n01"));
    let asked = world.give(200, TAGGED, "all anew").await;
    assert!(!asked.head.fields.contains_key("range"), "nobody else wants a part");
    renewed(&world, "all anew").await;
    assert_eq!(world.crossed(), 2);
}

const PART: &[(&str, &str)] = &[("cache-control", "max-age=600"), ("etag", "\"1\"")];

/// Lets ground answer a request for these bytes of ten; they are kept when this is over.
async fn give_part(world: &World, first: usize, last: usize) -> support::Asked {
    give_part_as(world, PART, first, last).await
}

/// The same with these fields.
async fn give_part_as(
    world: &World,
    fields: &[(&'static str, &'static str)],
    first: usize,
    last: usize,
) -> support::Asked {
    let mut events = world.bus.subscribe();
    let mut asked = world.asked().await;
    let mut head = head(fields);
    head.status = StatusCode::PARTIAL_CONTENT;
    head.fields.insert("content-range", format!("bytes {first}-{last}/10").parse().unwrap());
    asked.sender.answer(&head, Coding::Identity, None);
    asked.sender.write(Bytes::from_static(&b"0123456789"[first..=last])).await.unwrap();
    asked.sender.finish(None);
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    asked
}

#[tokio::test]
async fn parts_answer_what_lies_within_them_and_are_put_together_to_the_whole() {
    let world = world_with(&[]).await;
    let client = ask(&world, "range: bytes=2-5\r\n").await;
    give_part(&world, 2, 5).await;
    assert!(answer(client).await.ends_with("2345\r\n0\r\n\r\n"));
    let got = answer(ask(&world, "range: bytes=3-4\r\n").await).await;
    assert!(got.starts_with("HTTP/1.1 206 ") && got.contains("Content-Range: bytes 3-4/10\r\n"), "{got}");
    assert!(got.ends_with("\r\n\r\n34"), "{got}");
    let client = ask(&world, "range: bytes=4-9\r\n").await;
    give_part(&world, 4, 9).await;
    let beyond = answer(client).await;
    assert!(beyond.contains("456789"), "of which only a part is held");
    assert!(beyond.contains("Cache-Status: farhop-remote; fwd=partial"), "{beyond}");
    let across = answer(ask(&world, "range: bytes=3-8\r\n").await).await;
    assert!(across.ends_with("\r\n\r\n345678"), "{across}");
    let client = ask(&world, "range: bytes=0-1\r\n").await;
    give_part(&world, 0, 1).await;
    assert!(answer(client).await.contains("01"));
    let whole = answer(ask(&world, "").await).await;
    assert!(whole.starts_with("HTTP/1.1 200 ") && whole.ends_with("\r\n\r\n0123456789"), "{whole}");
    assert_eq!(world.crossed(), 3);
}

#[tokio::test]
async fn parts_go_with_an_unsafe_request() {
    let world = world_with(&[]).await;
    let client = ask(&world, "range: bytes=2-5\r\n").await;
    give_part(&world, 2, 5).await;
    assert!(answer(client).await.contains("2345"));
    let mut client = world.client().await;
    send(&mut client, "POST", "/a", "content-length: 0\r\n").await;
    world.give(200, &[], "done").await;
    assert!(answer(client).await.contains("done"));
    let client = ask(&world, "range: bytes=2-5\r\n").await;
    give_part(&world, 2, 5).await;
    assert!(answer(client).await.contains("2345"));
    assert_eq!(world.crossed(), 3);
}

/// Asks until what is held has been renewed, of which nobody is told.
async fn renewed(world: &World, sign: &str) {
    let renewed = async { while !answer(ask(world, "").await).await.contains(sign) {} };
    tokio::time::timeout(support::PATIENCE, renewed).await.expect("it is renewed");
}

#[tokio::test]
async fn clients_are_told_what_the_cache_did() {
    let world = holding(&[], STALE).await;
    let told = |got: String| {
        let line = got.lines().find_map(|line| line.strip_prefix("Cache-Status: ").map(str::to_owned));
        line.unwrap_or_else(|| panic!("{got}"))
    };
    let client = world.get("/new", BROWSER).await;
    world.give(200, TAGGED, "new").await;
    assert_eq!(told(answer(client).await), "farhop-remote; fwd=uri-miss; stored");
    assert!(told(answer(world.get("/new", BROWSER).await).await).starts_with("farhop-remote; hit; ttl="));
    let client = ask(&world, "cache-control: no-cache\r\n").await;
    world.give(304, &[], "").await;
    assert_eq!(told(answer(client).await), "farhop-remote; fwd=request; fwd-status=304");
    let client = ask(&world, "").await;
    world.give(200, &[("cache-control", "no-store")], "once").await;
    assert_eq!(told(answer(client).await), "farhop-remote; fwd=stale");
    let mut client = world.client().await;
    send(&mut client, "POST", "/new", "content-length: 0\r\n").await;
    world.give(200, &[], "done").await;
    assert_eq!(told(answer(client).await), "farhop-remote; fwd=method");
    let client = world.get("/parts", &format!("{BROWSER}range: bytes=2-5\r\n")).await;
    give_part(&world, 2, 5).await;
    assert!(told(answer(client).await).starts_with("farhop-remote; fwd=uri-miss"));
    let client = world.get("/parts", BROWSER).await;
    world.give(200, TAGGED, "0123456789").await;
    assert_eq!(told(answer(client).await), "farhop-remote; fwd=partial; stored");
}

#[tokio::test]
async fn a_304_renews_all_that_has_its_strong_validator_whichever_was_asked_about() {
    let varies = [("cache-control", "max-age=0"), ("etag", "\"1\""), ("vary", "accept-language")];
    for (tag, crossed) in [("\"1\"", 3), ("W/\"1\"", 4)] {
        let world = world_with(&[]).await;
        let client = ask(&world, "accept-language: en\r\n").await;
        world.give(200, &varies, "0123456789").await;
        answer(client).await;
        // The same for all, by a date of long ago: where both fit the other is asked about.
        let client = ask(&world, "accept-language: de\r\n").await;
        world.give(200, &[STALE, &[("date", "Sun, 02 Mar 2014 10:00:00 GMT")]].concat(), "0123456789").await;
        answer(client).await;
        let client = ask(&world, "accept-language: en\r\n").await;
        world.give(304, &[("cache-control", "max-age=600"), ("etag", tag)], "").await;
        assert!(answer(client).await.contains("0123456789"));
        let client = ask(&world, "accept-language: fr\r\n").await;
        if crossed == 4 {
            world.give(304, &[("cache-control", "max-age=600"), ("etag", "\"1\"")], "").await;
        }
        assert!(answer(client).await.contains("0123456789"));
        assert_eq!(world.crossed(), crossed, "{tag}");
    }
}

#[tokio::test]
async fn trailers_never_become_fields_of_what_is_held() {
    let world = world_with(&[]).await;
    let client = ask(&world, "te: trailers\r\n").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&head(TAGGED), Coding::Identity, None);
    asked.sender.write(Bytes::from_static(b"0123456789")).await.unwrap();
    asked.sender.finish(Some(&head(&[("x-after", "1"), ("age", "700"), ("etag", "\"2\"")]).fields));
    assert!(answer(client).await.contains("0123456789"));
    let got = answer(ask(&world, "").await).await;
    let (fields, _) = got.split_once("\r\n\r\n").unwrap();
    assert!(!fields.contains("X-After") && fields.contains("Etag: \"1\""), "{got}");
    assert!(
        fields.contains("Cache-Status: farhop-remote; hit"),
        "nor does an Age of them make it old: {got}"
    );
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn an_unsafe_request_is_answered_by_the_origin_alone_whatever_is_held() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "PURGE"] {
        let world = holding(&[], TAGGED).await;
        let mut client = world.client().await;
        send(&mut client, method, "/a", &format!("{BROWSER}content-length: 0\r\n")).await;
        let asked = world.give(200, &[], "the origin's word").await;
        assert_eq!(asked.head.method, method);
        assert!(answer(client).await.contains("the origin's word"), "{method}");
    }
}

#[tokio::test]
async fn what_must_not_be_stale_is_504_while_nobody_can_be_asked() {
    let said = [("cache-control", "max-age=0, must-revalidate, stale-if-error=600")];
    let world = holding(&["timeouts.stale=\"0 s\"", "timeouts.outage=\"0 s\""], &said).await;
    world.hop.close();
    assert!(answer(ask(&world, "").await).await.starts_with("HTTP/1.1 504 "));
}

#[tokio::test]
async fn a_part_that_is_stale_is_asked_about_and_a_304_renews_it() {
    const RANGE: &str = "range: bytes=3-4\r\n";
    for renewed in [TAGGED, &[("cache-control", "max-age=600")]] {
        let world = world_with(&[]).await;
        let client = ask(&world, "range: bytes=2-5\r\n").await;
        give_part_as(&world, STALE, 2, 5).await;
        assert!(answer(client).await.contains("2345"));
        let client = ask(&world, RANGE).await;
        let asked = world.give(304, renewed, "").await;
        assert_eq!(
            [&asked.head.fields["if-none-match"], &asked.head.fields["range"]],
            ["\"1\"", "bytes=3-4"]
        );
        let got = answer(client).await;
        assert!(got.starts_with("HTTP/1.1 206 ") && got.ends_with("\r\n\r\n34"), "{got}");
        assert!(got.contains("Cache-Status: farhop-remote; fwd=stale; fwd-status=304"), "{got}");
        let again = answer(ask(&world, RANGE).await).await;
        assert!(again.contains("farhop-remote; hit; ttl=") && again.ends_with("\r\n\r\n34"), "{again}");
        assert_eq!(world.crossed(), 2);
    }
}

#[tokio::test]
async fn a_part_that_has_changed_goes_and_what_lies_beyond_one_is_not_asked_about() {
    let world = world_with(&[]).await;
    let client = ask(&world, "range: bytes=2-5\r\n").await;
    give_part_as(&world, STALE, 2, 5).await;
    answer(client).await;
    let client = ask(&world, "range: bytes=4-7\r\n").await;
    let asked = give_part_as(&world, STALE, 4, 7).await;
    assert!(!asked.head.fields.contains_key("if-none-match"), "RFC 9111 §4.3.1");
    answer(client).await;
    let client = ask(&world, "range: bytes=2-7\r\n").await;
    let asked = give_part_as(&world, &[("cache-control", "max-age=600"), ("etag", "\"2\"")], 2, 7).await;
    assert_eq!(asked.head.fields["if-none-match"], "\"1\"", "both are one part");
    assert!(answer(client).await.contains("234567"));
    let other = answer(ask(&world, "range: bytes=2-3\r\n").await).await;
    assert!(other.contains("Etag: \"2\"") && other.ends_with("\r\n\r\n23"), "{other}");
    assert_eq!(world.crossed(), 3);
}

#[tokio::test]
async fn a_part_answers_though_it_is_stale_while_nobody_can_be_asked() {
    let world = world_with(&["timeouts.stale=\"0 s\""]).await;
    let client = ask(&world, "range: bytes=2-5\r\n").await;
    give_part_as(&world, STALE, 2, 5).await;
    answer(client).await;
    world.hop.close();
    let got = answer(ask(&world, "range: bytes=2-3\r\n").await).await;
    assert!(got.starts_with("HTTP/1.1 206 ") && got.ends_with("\r\n\r\n23"), "{got}");
}

/// A body of which most is worth not to be sent again.
const LONG: usize = 200_000;
/// As far as it came.
const CAME: usize = 150_000;

fn long() -> Vec<u8> {
    (0..LONG).map(|at| b'a' + (at % 23) as u8).collect()
}

fn head_of(fields: &[(&'static str, &'static str)], length: usize) -> farhop_htotp::ResponseHead {
    let mut head = head(fields);
    head.fields.insert("content-length", length.into());
    head
}

/// A world that has been given the beginning of `/a`, whose origin broke off.
async fn broken_off(fields: &[(&'static str, &'static str)]) -> World {
    let world = world_with(&[]).await;
    let mut events = world.bus.subscribe();
    let client = ask(&world, "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&head_of(fields, LONG), Coding::Identity, None);
    asked.sender.write(long()[..CAME].to_vec().into()).await.unwrap();
    asked.sender.fail(failure());
    assert!(answer(client).await.len() < LONG);
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    world
}

/// Lets ground answer the next request with what is behind what came; gives the request.
async fn give_rest(world: &World, tag: &'static str, last: usize) -> support::Asked {
    let mut asked = world.asked().await;
    let mut head = head_of(&[("cache-control", "max-age=600"), ("etag", tag)], last + 1 - CAME);
    head.status = StatusCode::PARTIAL_CONTENT;
    head.fields.insert("content-range", format!("bytes {CAME}-{last}/{LONG}").parse().unwrap());
    asked.sender.answer(&head, Coding::Identity, None);
    asked.sender.write(long()[CAME..=last].to_vec().into()).await.unwrap();
    asked.sender.finish(None);
    asked
}

/// The body of an answer that tells its length.
fn body_of(got: &str) -> &str {
    got.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn what_broke_off_answers_the_ranges_that_came_and_its_rest_alone_is_asked_for() {
    let all = String::from_utf8(long()).unwrap();
    let world =
        broken_off(&[("content-type", "text/plain"), ("cache-control", "max-age=600"), ("etag", "\"1\"")])
            .await;
    let got = answer(ask(&world, "range: bytes=5-9\r\n").await).await;
    assert!(got.starts_with("HTTP/1.1 206 ") && body_of(&got) == &all[5..10], "{got}");
    assert_eq!(world.crossed(), 1);
    let mut events = world.bus.subscribe();
    let client = ask(&world, "").await;
    let asked = give_rest(&world, "\"1\"", LONG - 1).await;
    let said = ["range", "if-range"].map(|name| asked.head.fields[name].to_str().unwrap());
    assert_eq!(said, [&*format!("bytes={CAME}-{}", LONG - 1), "\"1\""]);
    let got = answer(client).await;
    assert!(got.starts_with("HTTP/1.1 200 ") && body_of(&got) == all, "{}", &got[..400]);
    assert!(got.contains("Content-Type: text/plain\r\n"), "as the first part said: {}", &got[..400]);
    assert!(got.contains("farhop-remote; fwd=partial; fwd-status=206; stored"), "{}", &got[..400]);
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    let whole = answer(ask(&world, "").await).await;
    assert!(body_of(&whole) == all && whole.contains("Content-Type: text/plain\r\n"));
    assert_eq!(world.crossed(), 2);
}

#[tokio::test]
async fn who_wants_a_range_that_goes_on_beyond_what_came_is_given_both_in_one() {
    let all = String::from_utf8(long()).unwrap();
    let world = broken_off(STALE).await;
    let client = ask(&world, &format!("range: bytes=1000-{}\r\n", CAME + 99)).await;
    let asked = give_rest(&world, "\"1\"", CAME + 99).await;
    assert_eq!(asked.head.fields["range"], format!("bytes={CAME}-{}", CAME + 99));
    assert!(!asked.head.fields.contains_key("if-range"), "all of what has changed is not wanted");
    let got = answer(client).await;
    assert!(got.starts_with("HTTP/1.1 206 "), "{}", &got[..400]);
    assert!(got.contains(&format!("Content-Range: bytes 1000-{}/{LONG}\r\n", CAME + 99)), "{}", &got[..400]);
    assert_eq!(body_of(&got), &all[1000..CAME + 100]);
}

#[tokio::test]
async fn what_has_changed_since_it_broke_off_is_not_mixed_with_it() {
    // Who wants all of it is given all of it anew.
    let world = broken_off(TAGGED).await;
    let client = ask(&world, "").await;
    let asked = world.give(200, &[("cache-control", "max-age=600"), ("etag", "\"2\"")], "all anew").await;
    assert_eq!(asked.head.fields["if-range"], "\"1\"");
    assert!(answer(client).await.contains("all anew"));
    // Who wants a part, or meets an origin that does not heed the condition, is answered as it came.
    for range in [true, false] {
        let world = broken_off(TAGGED).await;
        let own = format!("range: bytes=1000-{}\r\n", LONG - 1);
        let client = ask(&world, if range { &own } else { "" }).await;
        give_rest(&world, "\"2\"", LONG - 1).await;
        let asked = world.give(404, &[("cache-control", "no-store")], "gone").await;
        let told = asked.head.fields.get("range").map(|told| told.to_str().unwrap().to_owned());
        assert_eq!(told, range.then(|| format!("bytes=1000-{}", LONG - 1)));
        assert!(answer(client).await.starts_with("HTTP/1.1 404 "));
    }
}

#[tokio::test]
async fn what_broke_off_without_a_strong_validator_is_no_part() {
    let world = world_with(&[]).await;
    let client = ask(&world, "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(
        &head_of(&[("cache-control", "max-age=600"), ("etag", "W/\"1\"")], LONG),
        Coding::Identity,
        None,
    );
    asked.sender.write(long()[..CAME].to_vec().into()).await.unwrap();
    asked.sender.fail(failure());
    answer(client).await;
    let client = ask(&world, "range: bytes=5-9\r\n").await;
    world.give(404, &[], "gone").await;
    assert!(answer(client).await.contains("gone"));
}
