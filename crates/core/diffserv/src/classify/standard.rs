//! The rules that hold where the operator has written none that decides. They believe no mark: anyone can make one.

use std::time::Duration;

use farhop_consent::Category;
use farhop_units::Bytes;

use super::Rule;
use super::condition::{Behaviour, Condition};
use super::flow::Protocol;
use super::opening::Opening;
use super::ports::Ports;
use crate::class::Service;
use crate::dscp::DropPrecedence;
use crate::patient::Patient;

const UDP: Condition = Condition::Protocol(Protocol::Udp);
/// A flow that has carried so much in large packets is no conversation any more.
const LARGE: Behaviour = Behaviour {
    bytes_at_least: Some(Bytes(8_000_000)),
    packet_at_least: Some(Bytes(800)),
    time_at_least: None,
    packet_at_most: None,
    rate_at_least: None,
    rate_at_most: None,
};
/// No page takes a minute without a pause, unless the link is so slow that it has carried less by then.
const LONG: Behaviour = Behaviour {
    time_at_least: Some(Duration::from_secs(60)),
    bytes_at_least: Some(Bytes(2_000_000)),
    packet_at_least: Some(Bytes(800)),
    packet_at_most: None,
    rate_at_least: None,
    rate_at_most: None,
};
/// Keystrokes and what comes back of them.
const SMALL: Behaviour = Behaviour {
    packet_at_most: Some(Bytes(300)),
    bytes_at_least: None,
    packet_at_least: None,
    time_at_least: None,
    rate_at_least: None,
    rate_at_most: None,
};

/// The standard rules, in their order.
pub fn standard() -> Vec<Rule> {
    use Service::{Background, Bulk, Interactive, Streaming, Web};
    vec![
        nobody_waits("peer to peer", Patient::PeerToPeer, vec![begins(&[Opening::BitTorrent])]),
        nobody_waits("peer to peer ports", Patient::PeerToPeer, vec![ports(&[(6881, 6999)])]),
        nobody_waits("backups", Patient::Backups, vec![ports(&[(873, 873)])]),
        nobody_waits("rsync", Patient::Backups, vec![begins(&[Opening::Rsync])]),
        rule("updates", Background, vec![Condition::Listed(Category::Updates)]),
        rule("app stores", Background, vec![Condition::Listed(Category::AppStores)]),
        rule("signalling of calls", Interactive, vec![ports(&[(5060, 5061)])]),
        rule("set-up of calls", Interactive, vec![UDP, begins(&[Opening::Stun])]),
        rule("names and time", Interactive, vec![ports(&[(53, 53), (123, 123), (853, 853)])]),
        rule("remote shells", Interactive, vec![begins(&[Opening::Ssh]), Condition::Behaves(SMALL)]),
        // Somebody waits for it, until it shows that it carries files.
        rule("shells that begin", Interactive, vec![begins(&[Opening::Ssh]), Condition::Begun]),
        rule("telnet", Interactive, vec![ports(&[(23, 23)])]),
        rule("media", Streaming, vec![ports(&[(554, 554), (1935, 1935), (8554, 8554)])]),
        rule("media by its start", Streaming, vec![begins(&[Opening::Rtsp, Opening::Rtp])]),
        rule("media by what is asked for", Streaming, vec![begins(&[Opening::HttpMedia])]),
        rule(
            "files and mail",
            Bulk,
            vec![ports(&[
                (20, 21),
                (25, 25),
                (110, 110),
                (143, 143),
                (465, 465),
                (587, 587),
                (989, 990),
                (993, 993),
                (995, 995),
            ])],
        ),
        rule("large downloads", Bulk, vec![Condition::Behaves(LARGE)]),
        rule("long downloads", Bulk, vec![Condition::Behaves(LONG)]),
        rule("shells that may carry files", Web, vec![ports(&[(22, 22)])]),
        rule("pages", Web, vec![ports(&[(80, 80), (443, 443), (8080, 8080), (8443, 8443)])]),
        rule("pages by their start", Web, vec![begins(&[Opening::Tls, Opening::Http, Opening::Quic])]),
    ]
}

/// Those that stand beside these rules of the operator's: one of his own that has the name of a standard one stands for it.
pub fn standard_beside(own: &[Rule]) -> Vec<Rule> {
    let is_replaced = |rule: &Rule| own.iter().any(|own| own.name == rule.name);
    standard().into_iter().filter(|rule| !is_replaced(rule)).collect()
}

fn rule(name: &str, service: Service, conditions: Vec<Condition>) -> Rule {
    Rule { name: name.into(), service, precedence: DropPrecedence::Low, kind: None, conditions }
}

fn nobody_waits(name: &str, kind: Patient, conditions: Vec<Condition>) -> Rule {
    Rule { kind: Some(kind), ..rule(name, Service::Background, conditions) }
}

fn ports(ranges: &[(u16, u16)]) -> Condition {
    Condition::Ports(ranges.iter().map(|&(first, last)| Ports { first, last }).collect())
}

fn begins(openings: &[Opening]) -> Condition {
    Condition::Begins(openings.to_vec())
}
