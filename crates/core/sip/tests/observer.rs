//! Calls are told from what passes, as RFC 3261 and RFC 3264 have it.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use farhop_diffserv::calls::Codec;
use farhop_sip::{Change, LONGEST_NAME, MOST_DIALOGS, Observer, Speech, Stream};
use proptest::prelude::*;

const START: Duration = Duration::ZERO;

fn message(first: &str, call: &str, sequence: &str, sdp: Option<&str>) -> Vec<u8> {
    let body = sdp.unwrap_or_default();
    let kind = if sdp.is_some() { "Content-Type: application/sdp\r\n" } else { "" };
    format!(
        "{first}\r\nCall-ID: {call}\r\nCSeq: {sequence}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn sdp(host: u8, formats: &str) -> String {
    format!("v=0\r\nc=IN IP4 10.0.0.{host}\r\nm=audio 16384 RTP/AVP {formats}\r\na=ptime:20\r\n")
}

fn invite(call: &str) -> Vec<u8> {
    message("INVITE sip:bob@example.org SIP/2.0", call, "1 INVITE", Some(&sdp(1, "0 18")))
}

fn response(call: &str, code: &str, sequence: &str, sdp: Option<&str>) -> Vec<u8> {
    message(&format!("SIP/2.0 {code}"), call, sequence, sdp)
}

fn streams(codecs: &[Codec]) -> Vec<Stream> {
    let of = |codec| Stream { codec, packet_time: Duration::from_millis(20), is_secured: false };
    codecs.iter().copied().map(of).collect()
}

fn speech(agreed: &[Codec], offered: &[Codec], hosts: &[u8]) -> Option<Change> {
    let media = hosts.iter().map(|host| format!("10.0.0.{host}:16384").parse().unwrap()).collect();
    let (agreed, offered) = (streams(agreed), streams(offered));
    Some(Change::Speaks(Speech { call: "a".into(), agreed, offered, media }))
}

fn offers(codec: Codec, hosts: &[u8]) -> Option<Change> {
    speech(&[], &[codec], hosts)
}

fn talks(codec: Codec, hosts: &[u8]) -> Option<Change> {
    speech(&[codec], &[], hosts)
}

fn over() -> Option<Change> {
    Some(Change::Over("a".into()))
}

#[test]
fn a_call_begins_with_its_offer_takes_its_answer_and_ends_with_bye() {
    let mut observer = Observer::default();
    let mut passes = |bytes: Vec<u8>| observer.handle_bytes(START, &bytes);
    assert_eq!(passes(invite("a")), offers(Codec::G711, &[1]));
    assert_eq!(passes(invite("a")), None, "sent again");
    assert_eq!(passes(response("a", "100 Trying", "1 INVITE", None)), None);
    let ok = || response("a", "200 OK", "1 INVITE", Some(&sdp(2, "18")));
    assert_eq!(passes(ok()), talks(Codec::G729, &[2, 1]));
    assert_eq!(passes(ok()), None);
    assert_eq!(passes(message("ACK sip:bob SIP/2.0", "a", "1 ACK", None)), None);
    assert_eq!(passes(message("BYE sip:bob SIP/2.0", "a", "2 BYE", None)), over());
    assert_eq!(passes(response("a", "200 OK", "2 BYE", None)), None);
    assert_eq!(observer.dialogs(), 0);
}

#[test]
fn a_call_that_is_cancelled_or_refused_is_over() {
    for end in [
        message("CANCEL sip:bob SIP/2.0", "a", "1 CANCEL", None),
        response("a", "486 Busy Here", "1 INVITE", None),
        response("a", "302 Moved", "1 INVITE", None),
    ] {
        let mut observer = Observer::default();
        observer.handle_bytes(START, &invite("a"));
        assert_eq!(observer.handle_bytes(START, &end), over());
        assert_eq!(observer.handle_bytes(START, &end), None);
    }
}

#[test]
fn a_cancel_that_comes_too_late_ends_nothing_for_long() {
    let mut observer = Observer::default();
    let cancel = message("CANCEL sip:bob SIP/2.0", "a", "1 CANCEL", None);
    observer.handle_bytes(START, &invite("a"));
    assert_eq!(observer.handle_bytes(START, &cancel), over());
    assert_eq!(observer.handle_bytes(START, &invite("a")), None, "sent again");
    let answer = response("a", "200 OK", "1 INVITE", Some(&sdp(2, "18")));
    assert_eq!(observer.handle_bytes(START, &answer), talks(Codec::G729, &[2, 1]));
    assert_eq!(observer.handle_bytes(START, &cancel), None, "it talks");
    observer.handle_bytes(START, &invite("b"));
    observer.handle_bytes(START, &message("CANCEL sip:bob SIP/2.0", "b", "1 CANCEL", None));
    assert_eq!((observer.poll_timeout(Duration::from_secs(33)), observer.dialogs()), (None, 1));
}

#[test]
fn an_offer_may_come_late() {
    let mut observer = Observer::default();
    let mut passes = |bytes: Vec<u8>| observer.handle_bytes(START, &bytes);
    assert_eq!(passes(message("INVITE sip:bob SIP/2.0", "a", "1 INVITE", None)), None);
    assert_eq!(passes(response("a", "200 OK", "1 INVITE", Some(&sdp(2, "18 0")))), talks(Codec::G729, &[2]));
    let ack = message("ACK sip:bob SIP/2.0", "a", "1 ACK", Some(&sdp(1, "0")));
    assert_eq!(passes(ack), talks(Codec::G711, &[1, 2]));
}

#[test]
fn what_rings_for_three_minutes_is_over_and_what_talks_is_not() {
    let mut observer = Observer::default();
    observer.handle_bytes(START, &invite("a"));
    observer.handle_bytes(START, &invite("b"));
    observer.handle_bytes(START, &response("b", "200 OK", "1 INVITE", Some(&sdp(2, "0"))));
    assert_eq!(observer.poll_timeout(Duration::from_secs(180)), None);
    assert_eq!(observer.poll_timeout(Duration::from_secs(181)), over());
    assert_eq!((observer.poll_timeout(Duration::from_secs(9999)), observer.dialogs()), (None, 1));
}

#[test]
fn who_says_that_it_goes_on_ringing_is_waited_for() {
    let mut observer = Observer::default();
    let at = Duration::from_secs;
    observer.handle_bytes(START, &invite("a"));
    let ringing = |sequence| response("a", "180 Ringing", sequence, None);
    observer.handle_bytes(at(100), &response("a", "100 Trying", "1 INVITE", None));
    observer.handle_bytes(at(170), &ringing("1 INVITE"));
    observer.handle_bytes(at(300), &ringing("0 INVITE"));
    assert_eq!((observer.poll_timeout(at(350)), observer.poll_timeout(at(351))), (None, over()));
    // So with a change of one that talks.
    observer.handle_bytes(START, &invite("a"));
    observer.handle_bytes(START, &response("a", "200 OK", "1 INVITE", Some(&sdp(2, "0"))));
    observer.handle_bytes(START, &message("INVITE sip:bob SIP/2.0", "a", "2 INVITE", Some(&sdp(3, "18"))));
    observer.handle_bytes(at(170), &ringing("2 INVITE"));
    assert_eq!(observer.poll_timeout(at(350)), None);
    assert_eq!(observer.poll_timeout(at(351)), talks(Codec::G711, &[2, 1]));
}

#[test]
fn no_more_calls_are_followed_than_there_is_room_for() {
    let mut observer = Observer::default();
    for number in 0..MOST_DIALOGS + 10 {
        observer.handle_bytes(START, &invite(&number.to_string()));
    }
    assert_eq!(observer.dialogs(), MOST_DIALOGS);
    assert_eq!(
        observer.handle_bytes(START, &message("BYE sip:b SIP/2.0", "7", "2 BYE", None)),
        Some(Change::Over("7".into()))
    );
    assert!(observer.handle_bytes(START, &invite("a")).is_some());
}

#[test]
fn a_call_that_is_taken_up_or_forgotten_is_told_of_by_what_passes_next() {
    let mut observer = Observer::default();
    observer.take_up("a");
    assert_eq!(observer.handle_bytes(START, &message("BYE sip:bob SIP/2.0", "a", "2 BYE", None)), over());
    observer.handle_bytes(START, &invite("a"));
    observer.forget("a");
    assert_eq!(observer.handle_bytes(START, &message("BYE sip:bob SIP/2.0", "a", "2 BYE", None)), None);
    assert_eq!(observer.handle_bytes(START, &invite("a")), offers(Codec::G711, &[1]), "it begins anew");
}

#[test]
fn a_call_without_speech_is_not_followed_once_it_talks() {
    let mut observer = Observer::default();
    let video = "v=0\r\nc=IN IP4 10.0.0.1\r\nm=video 4000 RTP/AVP 31\r\n";
    observer.handle_bytes(START, &message("INVITE sip:bob SIP/2.0", "a", "1 INVITE", Some(video)));
    assert_eq!(observer.dialogs(), 1);
    assert_eq!(observer.handle_bytes(START, &response("a", "200 OK", "1 INVITE", Some(video))), None);
    assert_eq!(observer.dialogs(), 0);
}

#[test]
fn a_long_call_id_is_shortened_and_known_again() {
    let (long, other) = ("x".repeat(255), format!("{}y", "x".repeat(254)));
    let mut observer = Observer::default();
    let Some(Change::Speaks(speech)) = observer.handle_bytes(START, &invite(&long)) else { unreachable!() };
    assert_eq!(speech.call.len(), LONGEST_NAME);
    // As a later observer does.
    let mut observer = Observer::default();
    observer.take_up(&speech.call);
    assert_eq!(observer.handle_bytes(START, &message("BYE sip:bob SIP/2.0", &other, "2 BYE", None)), None);
    let bye = message("BYE sip:bob SIP/2.0", &long, "2 BYE", None);
    assert_eq!(observer.handle_bytes(START, &bye), Some(Change::Over(speech.call)));
}

#[test]
fn a_name_as_host_is_told_where_no_side_has_an_address() {
    let named = |port: u16| format!("c=IN IP4 phone.example.org\r\nm=audio {port} RTP/AVP 18\r\n");
    let asks = || message("INVITE sip:bob SIP/2.0", "a", "1 INVITE", Some(&named(4000)));
    let mut observer = Observer::default();
    assert_eq!(observer.handle_bytes(START, &asks()), None);
    let answer = response("a", "200 OK", "1 INVITE", Some(&sdp(2, "18")));
    assert_eq!(observer.handle_bytes(START, &answer), talks(Codec::G729, &[2]), "one address is enough");
    let mut observer = Observer::default();
    observer.handle_bytes(START, &asks());
    let answer = response("a", "200 OK", "1 INVITE", Some(&named(5000)));
    assert_eq!(observer.handle_bytes(START, &answer), Some(Change::Unplaced("a".into())));
    assert_eq!((observer.handle_bytes(START, &answer), observer.dialogs()), (None, 0));
}

proptest! {
    #[test]
    fn messages_that_are_spoilt_anywhere_end_in_nothing_worse(place in 0usize..300, byte: u8, cut in 0usize..300) {
        let mut bytes = response("a", "200 OK", "1 INVITE", Some(&sdp(2, "18")));
        let place = place % bytes.len();
        bytes[place] = byte;
        bytes.truncate(bytes.len().saturating_sub(cut));
        let whole = [invite("a"), vec![0], bytes].concat();
        farhop_sip::fuzz(&whole);
    }

    /// Whatever the order in which messages come, a call that is over was there before.
    #[test]
    fn each_end_has_a_beginning(order in proptest::collection::vec(0usize..12, 0..60)) {
        let mut observer = Observer::default();
        let mut speaks = false;
        for it in order {
            let bytes = match it {
                0 => invite("a"),
                1 => response("a", "200 OK", "1 INVITE", Some(&sdp(2, "18"))),
                2 => response("a", "487 Request Terminated", "1 INVITE", None),
                3 => message("BYE sip:b SIP/2.0", "a", "2 BYE", None),
                4 => message("CANCEL sip:b SIP/2.0", "a", "1 CANCEL", None),
                5 => message("INVITE sip:b SIP/2.0", "a", "2 INVITE", Some(&sdp(3, "0"))),
                6 => response("a", "488 Not Acceptable Here", "2 INVITE", None),
                7 => response("a", "200 OK", "2 INVITE", Some(&sdp(4, "0"))),
                8 => message("UPDATE sip:b SIP/2.0", "a", "3 UPDATE", Some(&sdp(5, "0"))),
                9 => message("INVITE sip:b SIP/2.0", "a", "4 INVITE", None),
                10 => response("a", "200 OK", "4 INVITE", Some(&sdp(6, "0"))),
                _ => message("ACK sip:b SIP/2.0", "a", "1 ACK", None),
            };
            match observer.handle_bytes(START, &bytes) {
                Some(Change::Speaks(_)) => speaks = true,
                Some(Change::Over(_)) => {
                    prop_assert!(speaks);
                    speaks = false;
                }
                Some(Change::Unplaced(_)) | None => {}
            }
            // One that has failed may still be answered.
            prop_assert!((usize::from(speaks)..=1).contains(&observer.dialogs()));
        }
    }
}
