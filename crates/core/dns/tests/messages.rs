//! Questions and answers against another implementation of DNS: what is refused, what crosses, what comes back.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_dns::{Answer, Query, code};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::opt::{ClientSubnet, EdnsOption};
use hickory_proto::rr::{RData, Record, RecordType};
use proptest::prelude::*;
use support::{address, answered, message, question, read, signature, soa, with_edns};

/// What a client reads of the answer to its question.
fn reply(asked: &Message, answer: &Answer, age_s: u32, most: usize) -> Message {
    Message::from_vec(&answer.reply(&read(asked), age_s, most)).unwrap()
}

fn ttls(message: &Message) -> Vec<u32> {
    message.answers.iter().chain(&message.authorities).map(|record| record.ttl).collect()
}

#[test]
fn an_answer_says_what_the_server_said_with_less_time_left() {
    let mut asked = question("WwW.example.TEST.", RecordType::A);
    asked.metadata.id = 4711;
    let wanted = read(&asked).wanted;
    let answer = answered(&wanted, ResponseCode::NoError, |reply| {
        reply.metadata.authoritative = true;
        reply.add_answer(address("www.example.test.", 300, 1)).add_answer(address(
            "www.example.test.",
            60,
            2,
        ));
    });
    let answer = answer.unwrap();
    assert_eq!(answer.lifetime, Some(60));
    let reply = reply(&asked, &answer, 45, 512);
    assert_eq!((reply.metadata.id, ttls(&reply)), (4711, vec![255, 15]));
    assert_eq!(reply.queries[0].name().to_ascii(), "WwW.example.TEST.", "as the client wrote it");
    assert_eq!(reply.answers[1].data, RData::A("192.0.2.2".parse().unwrap()));
    assert!(reply.metadata.recursion_available && !reply.metadata.authoritative);
    assert!(reply.edns.is_none(), "RFC 6891 §7: who does not speak EDNS is not spoken to in it");
}

#[test]
fn nothing_of_the_client_but_its_question_crosses() {
    let mut asked = with_edns(question("a.test.", RecordType::AAAA), 4096, true);
    asked.metadata.id = 1;
    asked.metadata.checking_disabled = true;
    let subnet = ClientSubnet::new("203.0.113.0".parse().unwrap(), 24, 0);
    asked.edns.as_mut().unwrap().options_mut().insert(EdnsOption::Subnet(subnet));
    let crossed = Message::from_vec(&read(&asked).wanted.to_message(9)).unwrap();
    let edns = crossed.edns.as_ref().unwrap();
    assert!(edns.options().options.is_empty());
    assert!(
        edns.flags().dnssec_ok && crossed.metadata.checking_disabled && crossed.metadata.recursion_desired
    );
    assert_eq!(crossed.queries[0].query_type(), RecordType::AAAA);
    let plain = read(&question("A.TEST.", RecordType::AAAA)).wanted;
    assert_ne!(plain, read(&asked).wanted, "signatures are another answer");
    assert_eq!(plain, read(&question("a.test.", RecordType::AAAA)).wanted);
}

#[test]
fn signatures_pass_byte_for_byte_and_their_verdict_to_who_asks_for_it() {
    let asked = with_edns(question("s.test.", RecordType::A), 1232, true);
    let answer = answered(&read(&asked).wanted, ResponseCode::NoError, |reply| {
        reply.metadata.authentic_data = true;
        reply.add_answer(address("s.test.", 90, 1)).add_answer(signature("s.test.", 90));
    });
    let answer = answer.unwrap();
    let signed = reply(&asked, &answer, 30, 1232);
    let RData::Unknown { rdata, .. } = &signed.answers[1].data else { panic!("{signed:?}") };
    assert_eq!(rdata.anything, (0..96).collect::<Vec<u8>>());
    assert!(signed.metadata.authentic_data && signed.edns.as_ref().unwrap().flags().dnssec_ok);
    let plain = reply(&question("s.test.", RecordType::A), &answer, 30, 512);
    assert!(!plain.metadata.authentic_data, "RFC 6840 §5.8");
}

#[test]
fn what_does_not_exist_is_kept_as_long_as_its_zone_says() {
    let wanted = read(&question("no.test.", RecordType::A)).wanted;
    let denied = |code, soa: Option<Record>| {
        let answer = answered(&wanted, code, |reply| {
            reply.add_authorities(soa);
        });
        answer.unwrap().lifetime
    };
    for code in [ResponseCode::NXDomain, ResponseCode::NoError] {
        assert_eq!(denied(code, Some(soa(900, 60))), Some(60), "RFC 2308 §5: the lesser");
        assert_eq!(denied(code, Some(soa(30, 600))), Some(30));
        assert_eq!(denied(code, Some(soa(900_000, 900_000))), Some(3 * 3600));
        assert_eq!(denied(code, None), None, "nobody knows for how long");
    }
    assert_eq!(denied(ResponseCode::ServFail, Some(soa(900, 60))), None);
    assert_eq!(denied(ResponseCode::NXDomain, Some(soa(0, 60))), None);
}

#[test]
fn what_does_not_fit_is_to_be_asked_for_over_tcp() {
    let asked = question("big.test.", RecordType::A);
    let answer = answered(&read(&asked).wanted, ResponseCode::NoError, |reply| {
        reply.add_answers((0..60).map(|last| address("big.test.", 60, last)));
    });
    let answer = answer.unwrap();
    let short = answer.reply(&read(&asked), 0, 512);
    assert!(short.len() <= 512);
    let short = Message::from_vec(&short).unwrap();
    assert!(short.metadata.truncation && short.answers.is_empty());
    let whole = reply(&asked, &answer, 0, 65535);
    assert!(!whole.metadata.truncation && whole.answers.len() == 60);
    let with_edns = with_edns(question("big.test.", RecordType::A), 1232, false);
    assert_eq!(reply(&with_edns, &answer, 0, read(&with_edns).most_udp()).answers.len(), 60);
}

#[test]
fn an_answer_to_something_else_is_none() {
    let wanted = read(&question("a.test.", RecordType::A)).wanted;
    let other = read(&question("b.test.", RecordType::A)).wanted;
    let bytes = message(&wanted, ResponseCode::NoError, |reply| {
        reply.add_answer(address("a.test.", 60, 1));
    });
    assert!(Answer::read(&bytes, 9, &wanted).is_some());
    assert!(Answer::read(&bytes, 8, &wanted).is_none(), "another number");
    assert!(Answer::read(&bytes, 9, &other).is_none(), "another name");
    assert!(Answer::read(&wanted.to_message(9), 9, &wanted).is_none(), "a question");
    for cut in 0..bytes.len() {
        assert!(Answer::read(&bytes[..cut], 9, &wanted).is_none(), "{cut} bytes of it");
    }
    assert!(Answer::read(&[&bytes[..], &[0]].concat(), 9, &wanted).is_none(), "a byte too many");
}

/// What is refused, and with what.
fn refused(message: &[u8]) -> Option<u16> {
    let refusal = Query::read(message).map(|query| panic!("{query:?}")).unwrap_err()?;
    let refusal = Message::from_vec(&refusal).unwrap();
    assert_eq!(refusal.metadata.id.to_be_bytes(), message[..2]);
    Some(refusal.metadata.response_code.into())
}

#[test]
fn what_is_no_good_question_is_refused_with_its_reason() {
    let good = question("a.test.", RecordType::A).to_vec().unwrap();
    let with = |at: usize, byte: u8| {
        let mut message = good.clone();
        message[at] = byte;
        message
    };
    assert_eq!(refused(&good[..11]), None, "no header");
    assert_eq!(refused(&with(2, 0x81)), None, "an answer");
    assert_eq!(refused(&with(2, 0x29)), Some(code::NOT_IMPLEMENTED), "an update");
    assert_eq!(refused(&with(2, 0x00)), Some(code::REFUSED), "without recursion");
    assert_eq!(refused(&with(5, 2)), Some(code::FORMAT_ERROR), "two questions said, one there");
    assert_eq!(refused(&with(7, 1)), Some(code::FORMAT_ERROR), "an answer in a question");
    assert_eq!(refused(&with(12, 0xc0)), Some(code::FORMAT_ERROR), "a name that points elsewhere");
    assert_eq!(refused(&good[..good.len() - 1]), Some(code::FORMAT_ERROR));
    assert_eq!(refused(&[&good[..], &[0]].concat()), Some(code::FORMAT_ERROR));
    let class = good.len() - 1;
    assert_eq!(refused(&with(class, 3)), Some(code::NOT_IMPLEMENTED), "another network than the internet");
    assert_eq!(
        refused(&question("a.test.", RecordType::AXFR).to_vec().unwrap()),
        Some(code::NOT_IMPLEMENTED)
    );
    let mut version = with_edns(question("a.test.", RecordType::A), 1232, false);
    version.edns.as_mut().unwrap().set_version(1);
    let refusal = Query::read(&version.to_vec().unwrap()).unwrap_err().unwrap();
    let refusal = Message::from_vec(&refusal).unwrap();
    assert_eq!(u16::from(refusal.metadata.response_code), code::BAD_VERSION);
}

#[test]
fn names_are_written_as_people_write_them() {
    let written = |name: &str| read(&question(name, RecordType::A)).wanted.name();
    assert_eq!(written("Www.Example.TEST."), "www.example.test");
    assert_eq!(written("_dmarc.a-b.test."), "_dmarc.a-b.test");
    assert_eq!(written("."), "");
}

proptest! {
    #[test]
    fn no_input_is_too_much(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        farhop_dns::fuzz(&data);
    }

    #[test]
    fn nor_is_a_question_with_something_wrong(at in 0usize..60, byte: u8) {
        let mut message = with_edns(question("www.example.test.", RecordType::A), 1232, true).to_vec().unwrap();
        let at = at % message.len();
        message[at] = byte;
        farhop_dns::fuzz(&message);
    }
}
