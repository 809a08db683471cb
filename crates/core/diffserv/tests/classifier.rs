//! The first rule that holds decides, and what decided is said.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use farhop_diffserv::classify::{
    Behaviour, Condition, Flow, Opening, Ports, Protocol, Rule, Seen, classify, standard,
};
use farhop_diffserv::{DropPrecedence, Service};
use farhop_units::{BitRate, Bytes};
use proptest::prelude::*;

fn flow(protocol: Protocol, port: u16) -> Flow {
    let to = std::net::SocketAddr::new("192.0.2.1".parse().unwrap(), port);
    Flow::new(protocol, "10.0.0.2:40000".parse().unwrap(), to)
}

fn rule(name: &str, service: Service, conditions: Vec<Condition>) -> Rule {
    Rule { name: name.into(), service, precedence: DropPrecedence::Low, kind: None, conditions }
}

fn ports(first: u16, last: u16) -> Condition {
    Condition::Ports(vec![Ports { first, last }])
}

#[test]
fn the_first_rule_that_holds_decides_and_says_why() {
    let rules = [
        rule("marked", Service::Voice, vec![Condition::Marked(vec!["EF".parse().unwrap()])]),
        rule("media", Service::Voice, vec![Condition::Protocol(Protocol::Udp), ports(16384, 32767)]),
        rule("all", Service::Bulk, vec![]),
    ];
    let verdict = classify(&rules, &flow(Protocol::Udp, 16400));
    assert_eq!((verdict.service, verdict.by), (Service::Voice, Some((1, "media".into()))));
    assert_eq!(verdict.because, ["it is udp", "port 16400 is in 16384-32767"]);
    assert_eq!(verdict.passed, [("marked".into(), "how it is marked is not known".into())]);
    let verdict = classify(&rules, &flow(Protocol::Tcp, 16400));
    assert_eq!((verdict.service, verdict.because.len()), (Service::Bulk, 0));
    assert_eq!(verdict.passed[1], ("media".into(), "it is tcp, not udp".into()));
    assert_eq!(classify(&[], &flow(Protocol::Tcp, 1)).service, Service::Other);
}

#[test]
fn a_rule_may_name_a_drop_precedence_and_a_mark_of_the_class_may_raise_it() {
    let clips =
        Rule { precedence: DropPrecedence::Medium, ..rule("clips", Service::Streaming, vec![ports(80, 80)]) };
    for (came, leaves) in
        [(None, "AF22"), (Some("AF21"), "AF22"), (Some("AF23"), "AF23"), (Some("AF13"), "AF22")]
    {
        let mut it = flow(Protocol::Tcp, 80);
        it.dscp = came.map(|mark| mark.parse().unwrap());
        assert_eq!(classify(std::slice::from_ref(&clips), &it).phb.to_string(), leaves, "{came:?}");
    }
}

#[test]
fn either_end_of_a_flow_may_have_the_port_or_the_address() {
    let mut back = flow(Protocol::Tcp, 80);
    std::mem::swap(&mut back.from, &mut back.to);
    assert!(ports(80, 80).holds(&back).is_ok());
    let home = Condition::Addresses(vec!["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(home.holds(&back).unwrap(), "10.0.0.2 is in 10.0.0.0/8");
    assert!(Condition::Addresses(vec!["10.9.0.0/16".parse().unwrap()]).holds(&back).is_err());
}

#[test]
fn names_are_those_of_the_hello_and_those_that_dns_answers_had() {
    let wanted = Condition::Hosts(vec![".video.example".parse().unwrap()]);
    let mut it = flow(Protocol::Tcp, 443);
    assert_eq!(wanted.holds(&it).unwrap_err(), "no name of its destination is known");
    it.names = vec!["cdn.video.example".parse().unwrap()];
    assert_eq!(
        wanted.holds(&it).unwrap(),
        "a DNS answer had its address for cdn.video.example, which matches .video.example"
    );
    it.names.clear();
    it.sni = Some("video.example".parse().unwrap());
    assert_eq!(wanted.holds(&it).unwrap(), "its hello names video.example, which matches .video.example");
    it.sni = Some("notvideo.example".parse().unwrap());
    assert!(wanted.holds(&it).is_err());
    let exact = Condition::Hosts(vec!["*.example".parse().unwrap()]);
    assert!(exact.holds(&it).is_ok());
    it.sni = Some("example".parse().unwrap());
    assert!(exact.holds(&it).is_err(), "'*.' is what is below alone");
}

#[test]
fn behaviour_is_judged_by_sizes_and_rates() {
    let steady = Condition::Behaves(Behaviour {
        time_at_least: Some(Duration::from_secs(1)),
        packet_at_most: Some(Bytes(300)),
        rate_at_least: Some(BitRate::kbit(10)),
        rate_at_most: Some(BitRate::kbit(200)),
        ..Behaviour::default()
    });
    let mut it = flow(Protocol::Udp, 9);
    assert_eq!(steady.holds(&it).unwrap_err(), "how it behaves is not known");
    let seen = |packets, bytes, ms| Seen { packets, bytes: Bytes(bytes), over: Duration::from_millis(ms) };
    it.seen = Some(seen(100, 6_000, 2_000));
    assert_eq!(
        steady.holds(&it).unwrap(),
        "seen for 2 s, its packets have 60 B in the mean, its rate is 24 kbit/s"
    );
    it.seen = Some(seen(100, 140_000, 2_000));
    assert_eq!(steady.holds(&it).unwrap_err(), "its packets have 1.4 KB in the mean, not 300 B or less");
    it.seen = Some(seen(0, 0, 0));
    assert!(steady.holds(&it).is_err());
}

#[test]
fn standard_rules_know_what_is_usual() {
    let rules = standard();
    let judged = |flow: &Flow| classify(&rules, flow).service;
    for (protocol, port, service) in [
        (Protocol::Tcp, 443, Service::Web),
        (Protocol::Udp, 443, Service::Web),
        (Protocol::Udp, 53, Service::Interactive),
        (Protocol::Tcp, 5060, Service::Interactive),
        (Protocol::Tcp, 1935, Service::Streaming),
        (Protocol::Tcp, 993, Service::Bulk),
        (Protocol::Tcp, 6881, Service::Background),
        (Protocol::Udp, 40_001, Service::Other),
    ] {
        assert_eq!(judged(&flow(protocol, port)), service, "{protocol} {port}");
    }
    let mut shell = flow(Protocol::Tcp, 22);
    shell.first_bytes = b"SSH-2.0-OpenSSH_9.2\r\n".to_vec();
    let seen = |packets, bytes| Some(Seen { packets, bytes: Bytes(bytes), over: Duration::from_secs(9) });
    shell.seen = seen(100, 9_000);
    assert_eq!(judged(&shell), Service::Interactive);
    shell.seen = seen(10_000, 13_000_000);
    assert_eq!(judged(&shell), Service::Bulk, "a file that is copied");
    shell.seen = None;
    assert_eq!(judged(&shell), Service::Interactive, "somebody waits for it to begin");
    let mut film = flow(Protocol::Tcp, 80);
    film.first_bytes = b"GET /a/seg-1.ts HTTP/1.1\r\n".to_vec();
    assert_eq!(judged(&film), Service::Streaming);
    let mut long = flow(Protocol::Tcp, 443);
    let seen = |packets, bytes, s| Some(Seen { packets, bytes: Bytes(bytes), over: Duration::from_secs(s) });
    long.seen = seen(3_000, 3_900_000, 61);
    assert_eq!(judged(&long), Service::Bulk, "a download over a slow link");
    long.seen = seen(3_000, 3_900_000, 30);
    assert_eq!(judged(&long), Service::Web, "a large page over a slow link");
    long.seen = seen(1_000, 1_300_000, 90);
    assert_eq!(judged(&long), Service::Web, "a page over a very slow one");
    let mut peer = flow(Protocol::Tcp, 51_413);
    peer.first_bytes = b"\x13BitTorrent protocol\0\0\0".to_vec();
    assert_eq!(judged(&peer), Service::Background);
    let mut marked = flow(Protocol::Udp, 40_001);
    marked.dscp = Some("EF".parse().unwrap());
    assert_eq!(judged(&marked), Service::Other, "a mark alone is not believed");
}

#[test]
fn updates_are_known_by_their_hosts() {
    let mut it = flow(Protocol::Tcp, 443);
    it.sni = Some("download.windowsupdate.com".parse().unwrap());
    let verdict = classify(&standard(), &it);
    assert_eq!((verdict.service, verdict.by.map(|it| it.1)), (Service::Background, Some("updates".into())));
}

proptest! {
    #[test]
    fn whatever_a_flow_begins_with_it_gets_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..64), port in 1u16.., udp: bool) {
        let mut it = flow(if udp { Protocol::Udp } else { Protocol::Tcp }, port);
        it.first_bytes = bytes;
        let verdict = classify(&standard(), &it);
        prop_assert_eq!(verdict.by.is_none(), verdict.service == Service::Other);
        prop_assert!(verdict.by.is_none() || !verdict.because.is_empty());
        let opening = Opening::of(it.protocol, &it.first_bytes);
        prop_assert!(opening.is_none() || !it.first_bytes.is_empty());
    }

    #[test]
    fn rules_after_the_one_that_decides_change_nothing(port in 1u16.., cut in 0usize..18) {
        let it = flow(Protocol::Tcp, port);
        let rules = standard();
        let all = classify(&rules, &it);
        let some = classify(&rules[..cut.min(rules.len())], &it);
        match all.by.clone() {
            Some((place, _)) if place < cut => prop_assert_eq!(some, all),
            _ => prop_assert_eq!(some.by, None),
        }
    }
}
