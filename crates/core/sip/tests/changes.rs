//! What comes late, twice, from another branch, or in place of what was agreed, as RFC 3261 §13, §14 and RFC 3264 §8 have it.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use farhop_diffserv::calls::Hop;
use farhop_sip::{Change, MOST_DIALOGS, Observer};

const START: Duration = Duration::ZERO;

/// Which side sends a request, by its tag.
const ALICE: &str = "alice";
const BOB: &str = "bob";

/// What has passed of one call.
#[derive(Default)]
struct Line {
    observer: Observer,
    now: Duration,
}

impl Line {
    /// A request, or what answers it (then `first` begins with a code): whose request, to whom, of which number.
    fn pass(&mut self, first: &str, [from, to]: [&str; 2], number: u32, sdp: &str) -> Option<String> {
        let (line, method) = match first.split_once(' ') {
            Some((code, method)) => (format!("SIP/2.0 {code} words"), method),
            None => (format!("{first} sip:bob@example.org SIP/2.0"), first),
        };
        let kind = if sdp.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        let length = sdp.len();
        let text = format!(
            "{line}\r\nFrom: <sip:a@x>;tag={from}\r\nTo: <sip:b@x>;tag={to}\r\nCall-ID: a\r\nCSeq: {number} {method}\r\n\
             {kind}Content-Length: {length}\r\n\r\n{sdp}"
        );
        self.observer.handle_bytes(self.now, text.as_bytes()).map(|change| told(&change))
    }

    /// A request of Alice's, or what answers it.
    fn alice(&mut self, first: &str, number: u32, sdp: &str) -> Option<String> {
        self.pass(first, [ALICE, BOB], number, sdp)
    }

    /// A request of Bob's, or what answers it.
    fn bob(&mut self, first: &str, number: u32, sdp: &str) -> Option<String> {
        self.pass(first, [BOB, ALICE], number, sdp)
    }

    /// In a call of G.729.
    fn talking() -> Line {
        let mut line = Line::default();
        line.alice("INVITE", 1, &audio(&[(1, 4000, 18)]));
        let told = line.alice("200 INVITE", 1, &audio(&[(2, 5000, 18)]));
        assert_eq!(told.as_deref(), Some(TALKS));
        line
    }
}

const TALKS: &str = "24 kbit/s 2:5000 1:4000";

fn told(change: &Change) -> String {
    match change {
        Change::Speaks(speech) => {
            let media: Vec<String> =
                speech.media.iter().map(|it| it.to_string().replace("10.0.0.", "")).collect();
            format!("{} {}", speech.rate(&Hop::PLAIN).unwrap(), media.join(" "))
        }
        Change::Over(_) => "over".into(),
        Change::Unplaced(_) => "unplaced".into(),
    }
}

/// Streams by host, port and format; 0 is G.711, 18 G.729.
fn audio(streams: &[(u8, u16, u8)]) -> String {
    let stream = |(host, port, format): &(u8, u16, u8)| {
        format!("m=audio {port} RTP/AVP {format}\r\nc=IN IP4 10.0.0.{host}\r\n")
    };
    format!("v=0\r\n{}", streams.iter().map(stream).collect::<String>())
}

fn says(text: &str) -> Option<String> {
    Some(text.into())
}

#[test]
fn a_refusal_that_is_sent_again_does_not_end_the_next_try() {
    for code in ["407 INVITE", "401 INVITE", "422 INVITE", "302 INVITE"] {
        let mut line = Line::default();
        let offer = audio(&[(1, 4000, 18)]);
        assert_eq!(line.alice("INVITE", 1, &offer), says("24 kbit/s 1:4000"));
        assert_eq!(line.alice(code, 1, ""), says("over"));
        assert_eq!(line.alice("ACK", 1, ""), None);
        assert_eq!(line.alice("INVITE", 2, &offer), says("24 kbit/s 1:4000"));
        // Over a long path the first is refused again, and its INVITE may have been sent again before.
        assert_eq!(line.alice(code, 1, ""), None);
        assert_eq!(line.alice("INVITE", 1, &audio(&[(9, 9000, 0)])), None);
        assert_eq!(line.alice("CANCEL", 1, ""), None);
        assert_eq!(line.alice("180 INVITE", 2, ""), None);
        assert_eq!(line.alice("200 INVITE", 2, &audio(&[(2, 5000, 18)])), says(TALKS));
        assert_eq!((line.alice(code, 1, ""), line.observer.dialogs()), (None, 1));
        assert_eq!(line.alice("BYE", 3, ""), says("over"));
    }
}

#[test]
fn a_call_that_one_branch_refuses_and_another_takes_is_there() {
    let mut line = Line::default();
    line.alice("INVITE", 1, &audio(&[(1, 4000, 18)]));
    line.alice("INVITE", 1, &audio(&[(1, 4000, 18)]));
    assert_eq!(line.pass("486 INVITE", [ALICE, "busy"], 1, ""), says("over"));
    assert_eq!(line.alice("180 INVITE", 1, ""), None);
    line.now = Duration::from_secs(100);
    assert_eq!(line.alice("200 INVITE", 1, &audio(&[(2, 5000, 18)])), says(TALKS));
    assert_eq!(line.pass("486 INVITE", [ALICE, "busy"], 1, ""), None, "sent again");
}

#[test]
fn what_was_refused_is_forgotten_when_nobody_can_answer_any_more() {
    let mut line = Line::default();
    line.alice("INVITE", 1, &audio(&[(1, 4000, 18)]));
    line.alice("486 INVITE", 1, "");
    assert_eq!((line.observer.poll_timeout(Duration::from_secs(180)), line.observer.dialogs()), (None, 1));
    assert_eq!((line.observer.poll_timeout(Duration::from_secs(181)), line.observer.dialogs()), (None, 0));
    assert_eq!(line.alice("200 INVITE", 1, &audio(&[(2, 5000, 18)])), None);
}

#[test]
fn what_was_refused_makes_room_for_others() {
    let mut observer = Observer::default();
    let message = |first: &str, call: usize| {
        format!("{first}\r\nCall-ID: {call}\r\nCSeq: 1 INVITE\r\n\r\n").into_bytes()
    };
    for call in 0..MOST_DIALOGS {
        observer.handle_bytes(START, &message("INVITE sip:b SIP/2.0", call));
    }
    observer.handle_bytes(START, &message("SIP/2.0 486 Busy Here", 7));
    observer.handle_bytes(START, &message("INVITE sip:b SIP/2.0", MOST_DIALOGS));
    assert_eq!(observer.dialogs(), MOST_DIALOGS);
    observer.forget(&MOST_DIALOGS.to_string());
    assert_eq!(observer.dialogs(), MOST_DIALOGS - 1);
}

#[test]
fn the_second_branch_that_answers_is_hung_up_by_itself() {
    let mut line = Line::talking();
    assert_eq!(line.pass("200 INVITE", [ALICE, "carol"], 1, &audio(&[(3, 6000, 0)])), None);
    assert_eq!(line.pass("BYE", [ALICE, "carol"], 2, ""), None);
    assert_eq!(line.bob("BYE", 1, ""), says("over"));
}

#[test]
fn a_change_that_fails_leaves_what_was_agreed() {
    let mut line = Line::talking();
    let both = says("80 kbit/s 2:5000 1:4000 1:4010");
    assert_eq!(line.alice("INVITE", 2, &audio(&[(1, 4010, 0)])), both);
    assert_eq!(line.alice("200 INVITE", 1, &audio(&[(2, 5000, 18)])), None, "sent again");
    assert_eq!(line.alice("488 INVITE", 2, ""), says(TALKS));
    assert_eq!(line.alice("ACK", 2, ""), None);
    // Bob's numbers are his own.
    assert_eq!(line.bob("INVITE", 1, &audio(&[(2, 5010, 0)])), says("80 kbit/s 2:5000 1:4000 2:5010"));
    assert_eq!(line.bob("CANCEL", 1, ""), says(TALKS));
    assert_eq!(line.bob("487 INVITE", 1, ""), None);
    assert_eq!(line.alice("UPDATE", 3, &audio(&[(1, 4010, 0)])), both);
    assert_eq!(line.alice("491 UPDATE", 3, ""), says(TALKS));
}

#[test]
fn a_change_that_is_accepted_takes_the_place_of_what_was_agreed() {
    let mut line = Line::talking();
    line.bob("INVITE", 7, &audio(&[(2, 5010, 0)]));
    assert_eq!(line.bob("200 INVITE", 7, &audio(&[(1, 4010, 0)])), says("80 kbit/s 1:4010 2:5010"));
    assert_eq!(line.bob("200 INVITE", 7, &audio(&[(1, 4010, 0)])), None);
    line.alice("UPDATE", 2, &audio(&[(1, 4000, 18)]));
    assert_eq!(line.alice("200 UPDATE", 2, &audio(&[(2, 5000, 18)])), says(TALKS));
    // Said again to show that it goes on.
    assert_eq!(line.alice("UPDATE", 3, &audio(&[(1, 4000, 18)])), None);
    assert_eq!(line.alice("200 UPDATE", 3, &audio(&[(2, 5000, 18)])), None);
}

#[test]
fn the_offer_of_a_change_may_come_late() {
    let mut line = Line::talking();
    assert_eq!(line.alice("INVITE", 2, ""), None);
    let both = says("80 kbit/s 2:5000 1:4000 2:5010");
    assert_eq!(line.alice("200 INVITE", 2, &audio(&[(2, 5010, 0)])), both);
    assert_eq!(line.alice("ACK", 2, &audio(&[(1, 4010, 0)])), says("80 kbit/s 1:4010 2:5010"));
}

#[test]
fn an_answer_that_crosses_the_cancel_of_a_change_counts() {
    let mut line = Line::talking();
    line.alice("INVITE", 2, &audio(&[(1, 4010, 0)]));
    line.alice("CANCEL", 2, "");
    let changed = line.alice("200 INVITE", 2, &audio(&[(2, 5010, 0)]));
    assert_eq!(changed, says("80 kbit/s 2:5010 1:4010"));
}

#[test]
fn a_change_that_nobody_answers_is_taken_back() {
    let mut line = Line::talking();
    line.alice("INVITE", 2, &audio(&[(1, 4010, 0)]));
    assert_eq!(line.observer.poll_timeout(Duration::from_secs(180)), None);
    let back = line.observer.poll_timeout(Duration::from_secs(181)).unwrap();
    assert_eq!((told(&back), line.observer.dialogs()), (TALKS.to_owned(), 1));
    assert_eq!(line.observer.poll_timeout(Duration::from_secs(181)), None);
}

#[test]
fn before_the_call_is_answered_offers_are_settled_too() {
    let mut line = Line::default();
    line.alice("INVITE", 1, &audio(&[(1, 4000, 18)]));
    assert_eq!(line.alice("183 INVITE", 1, &audio(&[(2, 5000, 18)])), says(TALKS));
    assert_eq!(line.alice("UPDATE", 2, &audio(&[(1, 4010, 0)])), says("80 kbit/s 2:5000 1:4000 1:4010"));
    assert_eq!(line.alice("488 UPDATE", 2, ""), says(TALKS));
    line.bob("UPDATE", 1, &audio(&[(2, 5010, 0)]));
    let changed = says("80 kbit/s 1:4000 2:5010");
    assert_eq!(line.bob("200 UPDATE", 1, &audio(&[(1, 4000, 0)])), changed);
    // What is refused stays so, whatever answers the INVITE.
    line.alice("UPDATE", 3, &audio(&[(1, 4020, 18)]));
    assert_eq!(line.alice("488 UPDATE", 3, ""), changed);
    assert_eq!(line.alice("200 INVITE", 1, &audio(&[(2, 5010, 0)])), None);
    assert_eq!(line.alice("BYE", 4, ""), says("over"));
}

#[test]
fn an_offer_in_a_ringing_answer_may_be_answered_by_prack() {
    let mut line = Line::default();
    assert_eq!(line.alice("INVITE", 1, ""), None);
    assert_eq!(line.alice("183 INVITE", 1, &audio(&[(2, 5000, 18)])), says("24 kbit/s 2:5000"));
    assert_eq!(line.alice("PRACK", 2, &audio(&[(1, 4000, 18)])), says("24 kbit/s 1:4000 2:5000"));
    assert_eq!(line.alice("200 PRACK", 2, ""), None);
    assert_eq!(line.alice("200 INVITE", 1, ""), says("24 kbit/s 1:4000 2:5000"), "agreed");
}

#[test]
fn a_call_on_hold_keeps_what_it_had() {
    let mut line = Line::talking();
    for (number, offer) in [(2, "a=inactive\r\n"), (3, "c=IN IP4 0.0.0.0\r\n")] {
        let rests = format!("v=0\r\nc=IN IP4 10.0.0.1\r\nm=audio 4000 RTP/AVP 18\r\n{offer}");
        assert_eq!(line.alice("INVITE", number, &rests), None);
        assert_eq!(line.alice("200 INVITE", number, &audio(&[(2, 5000, 18)])), None);
    }
    assert_eq!(line.alice("INVITE", 4, &audio(&[(1, 4010, 0)])), says("80 kbit/s 2:5000 1:4000 1:4010"));
    assert_eq!(line.alice("488 INVITE", 4, ""), says(TALKS));
    assert_eq!(line.alice("BYE", 5, ""), says("over"));
}

#[test]
fn every_stream_counts_that_both_sides_have() {
    let mut line = Line::default();
    let offer = [(1, 4000, 18), (1, 4002, 0), (1, 4004, 0)];
    let offered = line.alice("INVITE", 1, &audio(&offer));
    assert_eq!(offered, says("184 kbit/s 1:4000 1:4002 1:4004"));
    // The last is refused.
    let answer = [(2, 5000, 18), (2, 5002, 0), (2, 0, 0)];
    let answered = line.alice("200 INVITE", 1, &audio(&answer));
    assert_eq!(answered, says("104 kbit/s 2:5000 1:4000 2:5002 1:4002"));
    let one = format!("{}a=inactive\r\n", audio(&[(1, 4000, 18), (1, 4002, 0)]));
    line.alice("INVITE", 2, &one);
    assert_eq!(line.alice("200 INVITE", 2, &audio(&answer)), says(TALKS));
}

#[test]
fn what_proves_packets_true_counts_too() {
    for profile in ["RTP/SAVP", "RTP/SAVPF", "UDP/TLS/RTP/SAVPF"] {
        let mut line = Line::default();
        let secured = |host| audio(&[(host, 4000, 18)]).replace("RTP/AVP", profile);
        assert_eq!(line.alice("INVITE", 1, &secured(1)), says("28 kbit/s 1:4000"));
        assert_eq!(line.alice("200 INVITE", 1, &secured(2)), says("28 kbit/s 2:4000 1:4000"));
    }
}

#[test]
fn no_more_streams_are_told_of_than_both_ends_have_a_place_for() {
    let mut line = Line::default();
    let streams = |host| audio(&(0..7).map(|number| (host, 4000 + 2 * number, 18)).collect::<Vec<_>>());
    line.alice("INVITE", 1, &streams(1));
    let answered = line.alice("200 INVITE", 1, &streams(2)).unwrap();
    assert!(answered.starts_with("96 kbit/s 2:4000 1:4000 2:4002"), "{answered}");
    assert_eq!(answered.split(':').count() - 1, 8);
}

#[test]
fn of_a_call_that_an_earlier_observer_knew_only_what_is_settled_is_told() {
    let mut line = Line::default();
    line.observer.take_up("a");
    assert_eq!(line.alice("INVITE", 2, &audio(&[(1, 4010, 0)])), None);
    assert_eq!(line.alice("488 INVITE", 2, ""), None);
    line.alice("INVITE", 3, &audio(&[(1, 4000, 18)]));
    assert_eq!(line.alice("200 INVITE", 3, &audio(&[(2, 5000, 18)])), says(TALKS));
    assert_eq!(line.bob("BYE", 1, ""), says("over"));
}
