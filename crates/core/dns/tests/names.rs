//! Names by the addresses that they were answered with, in virtual time.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::IpAddr;
use std::time::Duration;

use farhop_dns::Names;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{AAAA, CNAME};
use hickory_proto::rr::{RData, Record, RecordType};
use support::{address, answered, held, name, question, read};

fn of(names: &Names, now: u64, address: &str) -> Vec<String> {
    names.of(Duration::from_secs(now), None, address.parse().unwrap()).map(str::to_owned).collect()
}

#[test]
fn an_address_has_the_names_that_it_was_told_for_and_not_for_ever() {
    let mut names = Names::default();
    let tell = |names: &mut Names, now: u64, of: &str, ttl| {
        names.tell(Duration::from_secs(now), None, of, &held(&format!("{of}."), ttl).1);
    };
    tell(&mut names, 0, "a.test", 60);
    tell(&mut names, 10, "b.test", 86_400);
    assert_eq!(of(&names, 20, "192.0.2.7"), ["b.test", "a.test"]);
    assert_eq!(of(&names, 20, "::ffff:192.0.2.7"), ["b.test", "a.test"]);
    assert!(of(&names, 20, "192.0.2.8").is_empty());
    tell(&mut names, 3_000, "a.test", 60);
    assert_eq!(of(&names, 6_000, "192.0.2.7"), ["a.test", "b.test"]);
    assert_eq!(of(&names, 6_600, "192.0.2.7"), ["b.test"]);
    assert!(of(&names, 90_000, "192.0.2.7").is_empty());
}

#[test]
fn what_is_answered_behind_another_name_counts_and_what_is_no_answer_does_not() {
    let wanted = read(&question("www.test.", RecordType::AAAA)).wanted;
    let answer = answered(&wanted, ResponseCode::NoError, |reply| {
        reply.add_answer(Record::from_rdata(name("www.test."), 60, RData::CNAME(CNAME(name("cdn.test.")))));
        let six = AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        reply.add_answer(Record::from_rdata(name("cdn.test."), 60, RData::AAAA(six)));
        reply.add_additional(address("ns.test.", 60, 9));
    });
    let mut names = Names::default();
    names.tell(Duration::ZERO, None, &wanted.name(), &answer.unwrap());
    assert_eq!(of(&names, 0, "2001:db8::1"), ["www.test"]);
    assert!(of(&names, 0, "192.0.2.9").is_empty());
}

#[test]
fn they_are_bounded_and_what_was_told_longest_ago_goes_first() {
    let mut names = Names::default();
    for number in 0..20 {
        names.tell(Duration::from_secs(number), None, &format!("n{number}.test"), &held("n.test.", 60).1);
    }
    let known = of(&names, 20, "192.0.2.7");
    assert_eq!((known.len(), known[0].as_str()), (8, "n19.test"));
    let wanted = read(&question("a.test.", RecordType::AAAA)).wanted;
    for number in 0..5_000u16 {
        let answer = answered(&wanted, ResponseCode::NoError, |reply| {
            let six = AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number);
            reply.add_answer(Record::from_rdata(name("a.test."), 60, RData::AAAA(six)));
        });
        names.tell(Duration::from_secs(30), None, "a.test", &answer.unwrap());
    }
    let is_known = |number: u16| {
        let address = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, number]);
        names.of(Duration::from_secs(30), None, address).next().is_some()
    };
    assert!(is_known(4_999) && is_known(1_000) && !is_known(0) && of(&names, 30, "192.0.2.7").is_empty());
}

#[test]
fn what_one_client_was_told_is_known_for_it_alone() {
    let mut names = Names::default();
    let clients: [Option<IpAddr>; 2] = ["10.0.0.1", "10.0.0.2"].map(|at| at.parse().ok());
    names.tell(Duration::ZERO, clients[0], "a.test", &held("a.test.", 60).1);
    let of = |client| names.of(Duration::ZERO, client, "192.0.2.7".parse().unwrap()).count();
    assert_eq!((of(clients[0]), of(clients[1]), of(None)), (1, 0, 0));
}
