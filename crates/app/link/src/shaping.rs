//! From the operator's word to what the kernel is given.

use std::time::Duration;

use farhop_diffserv::calls::{self, Call, Codec, Meter, Offer};
use farhop_diffserv::classify::{Condition, Rule};
use farhop_diffserv::{DropPrecedence, Patient, Plan, PlanError, Queue, Queued};
use farhop_netdev::{Group, Leaf, MarkRule, Metered, Network, Shaping};
use farhop_units::BitRate;

use crate::config::{CallTerms, Config, Hour};

/// Up to here a segment of 64 KB takes long enough for splitting it to be worth its price: as `cake` has it in the kernel
/// (`CAKE_SPLIT_GSO_THRESHOLD`). Beyond, it takes half a millisecond.
const SPLIT_UP_TO: BitRate = BitRate(1_000_000_000);

/// How long the largest packet of a connection may take to leave, since speech may have to wait for it: with its share of the packets of
/// other calls that makes less than 20 ms of jitter.
const LONGEST_WAIT: Duration = Duration::from_millis(18);
/// Besides an IP packet, what a device counts of it (IEEE 802.3).
const FRAME: u64 = 14;
/// No link has longer packets, usually; none is asked for shorter ones than RFC 9293 §3.7.1 has by default.
const USUAL: u16 = 1500;
const LEAST: u16 = 576;

/// What the kernel is given, and what it is not.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaped {
    /// What each class has.
    pub plan: Plan,
    /// The same for the kernel.
    pub shaping: Shaping,
    /// Rules that the kernel cannot follow, since it does not look into flows.
    pub left: Vec<Left>,
    /// Rules in force that lead to EF whatever they hold for, by their names: nothing admits that.
    pub unadmitted: Vec<String>,
}

/// A rule that the kernel is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its name.
    pub rule: String,
    /// What of it the kernel does not see.
    pub why: &'static str,
}

/// What `config` makes of its device while calls have these media.
///
/// # Errors
/// The rates contradict each other.
pub fn plan(config: &Config, media: Vec<Metered>) -> Result<Shaped, PlanError> {
    plan_at(config, &config.within_hours(), None, media)
}

/// The same, with what classes have at this hour, and what is sent at now where that is followed.
pub(crate) fn plan_at(
    config: &Config,
    hour: &Hour,
    sent_at: Option<BitRate>,
    media: Vec<Metered>,
) -> Result<Shaped, PlanError> {
    let plan = match sent_at {
        Some(rate) => Plan::new(rate, 0, &hour.shares)?,
        None => Plan::new(config.rate, config.margin, &hour.shares)?,
    };
    let plan = plan.with_ceilings(&hour.ceilings);
    let mut left = Vec::new();
    let rules = config.rules.iter().filter_map(|rule| match mark_rule(rule) {
        Ok(rule) => Some(rule),
        Err(why) => {
            left.push(Left { rule: rule.name.clone(), why });
            None
        }
    });
    let shaping = Shaping {
        interface: config.interface.clone(),
        rate: plan.shaped.0,
        burst: plan.burst.0,
        groups: vec![group(plan.of(Queue::Le))],
        leaves: leaves(&plan),
        round_trip: config.round_trip,
        rules: rules.collect(),
        media_leaf: minor(Queue::Ef),
        media,
        otherwise: minor(Queue::De),
        neighbours: minor(Queue::Af4),
        echo: config.follow.map(|follow| (follow.echo, minor(Queue::Af4))),
        splits: config.rate <= SPLIT_UP_TO,
        longest: longest(plan.shaped),
    };
    let to_ef = |rule: &&Rule| rule.service.queue() == Queue::Ef && mark_rule(rule).is_ok();
    let unadmitted = config.rules.iter().filter(to_ef).map(|rule| rule.name.clone()).collect();
    Ok(Shaped { plan, shaping, left, unadmitted })
}

/// The media of calls, and how many of their packets go first.
pub(crate) fn media<'a>(calls: impl Iterator<Item = &'a Call>, terms: &CallTerms) -> Vec<Metered> {
    let calls = calls.map(|call| (call.offer.media.as_slice(), meter(&call.offer, terms)));
    let metered = calls::metered(calls).into_iter().map(|calls::Metered { media, meter }| Metered {
        media,
        packets: meter.packets,
        packets_at_once: meter.packets_at_once,
        bytes: meter.bytes.0,
        bytes_at_once: meter.bytes_at_once.0,
    });
    metered.collect()
}

fn meter(offer: &Offer, terms: &CallTerms) -> Meter {
    // A plain figure says nothing of what comes. Whose codec is not known counts as G.711, which none of the usual ones exceeds.
    let is_plain = offer.codec.is_none() && terms.plain == Some(offer.rate);
    let usual = (Codec::G711, Codec::G711.usual_packet_time());
    let hop = terms.hop.of_media(&offer.media);
    let rate = calls::rate(usual.0, usual.1, &hop).ok().filter(|_| is_plain);
    let rate = rate.map_or(offer.rate, |rate| rate.max(offer.rate));
    Meter::of(&Offer { rate, ..offer.clone() }, &terms.hop)
}

/// Bytes of the largest IP packet that leaves a device of this rate soon enough; nothing where the usual ones do.
fn longest(rate: BitRate) -> Option<u16> {
    let bytes = rate.bytes_in(LONGEST_WAIT).0.saturating_sub(FRAME);
    u16::try_from(bytes).ok().filter(|bytes| *bytes < USUAL).map(|bytes| bytes.max(LEAST))
}

/// The number of a queue's leaf: 0x10, 0x20, ….
pub(crate) fn minor(queue: Queue) -> u16 {
    (u16::from(queue.priority()) + 1) << 4
}

/// The number of a kind's leaf within LE: 0x71, 0x72, …; that of its queue where it has one of its own.
pub(crate) fn minor_of(kind: Patient) -> Option<u16> {
    let place = Patient::BACKGROUND.iter().position(|it| *it == kind)?;
    Some(minor(Queue::Le) + 1 + u16::try_from(place).ok()?)
}

/// A leaf for each queue, and in the place of LE's one for each kind of what waits there.
fn leaves(plan: &Plan) -> Vec<Leaf> {
    let queues = plan.queues.iter().filter(|queued| queued.queue != Queue::Le);
    let queues = queues.map(|queued| leaf(queued, minor(queued.queue), None));
    let kinds = Patient::BACKGROUND.into_iter().zip(&plan.kinds);
    let kinds =
        kinds.filter_map(|(kind, queued)| Some(leaf(queued, minor_of(kind)?, Some(minor(Queue::Le)))));
    queues.chain(kinds).collect()
}

fn group(queued: &Queued) -> Group {
    Group {
        minor: minor(queued.queue),
        rate: queued.guaranteed.0,
        ceiling: queued.ceiling.0,
        burst: queued.burst.0,
        quantum: queued.quantum.0,
    }
}

fn leaf(queued: &Queued, minor: u16, within: Option<u16>) -> Leaf {
    let queue = queued.queue;
    Leaf {
        minor,
        within,
        priority: queue.priority(),
        rate: queued.guaranteed.0,
        ceiling: queued.ceiling.0,
        burst: queued.burst.0,
        quantum: queued.quantum.0,
        room: queued.room.0,
        fair: queue != Queue::Ef,
        codepoint: queue.phb().codepoint().number(),
        higher: higher(queue),
    }
}

/// The higher drop precedences of an assured class.
fn higher(queue: Queue) -> Option<[u8; 2]> {
    let of = |drop| queue.marked(drop, None).codepoint().number();
    queue.is_assured().then(|| [DropPrecedence::Medium, DropPrecedence::High].map(of))
}

/// Those of `rules` that the kernel is given; what it does not see of the others, with their names.
pub fn in_kernel(rules: &[Rule]) -> (Vec<Rule>, Vec<Left>) {
    let (mut given, mut left) = (Vec::new(), Vec::new());
    for rule in rules {
        match mark_rule(rule) {
            Ok(_) => given.push(rule.clone()),
            Err(why) => left.push(Left { rule: rule.name.clone(), why }),
        }
    }
    (given, left)
}

/// What of a rule the kernel does not see, where that is so.
fn mark_rule(rule: &Rule) -> Result<MarkRule, &'static str> {
    let mut mark = MarkRule {
        minor: rule.patient().and_then(minor_of).unwrap_or_else(|| minor(rule.service.queue())),
        precedence: rule.precedence as u8 - DropPrecedence::Low as u8,
        ..MarkRule::default()
    };
    let twice = "it asks for the same thing twice";
    for condition in &rule.conditions {
        match condition {
            Condition::Protocol(protocol) => mark.protocol = Some(protocol.as_str()),
            Condition::Ports(ports) if mark.ports.is_empty() => {
                mark.ports = ports.iter().map(|it| (it.first, it.last)).collect();
            }
            Condition::Addresses(nets) if mark.networks.is_empty() => {
                mark.networks =
                    nets.iter().map(|it| Network { address: it.address, prefix: it.prefix }).collect();
            }
            Condition::Marked(marks) if mark.codepoints.is_empty() => {
                mark.codepoints = marks.iter().map(|it| it.number()).collect();
            }
            Condition::Ports(_) | Condition::Addresses(_) | Condition::Marked(_) => return Err(twice),
            Condition::Hosts(_) | Condition::Listed(_) => return Err("names"),
            Condition::Alpn(_) => return Err("ALPN"),
            Condition::Begins(_) => return Err("first bytes"),
            Condition::Behaves(_) | Condition::Begun => return Err("sizes and rates"),
        }
    }
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_diffserv::classify::standard;

    #[test]
    fn the_kernel_is_given_what_it_sees_and_the_rest_is_named() {
        let (marks, left): (Vec<_>, Vec<_>) = standard().iter().map(mark_rule).partition(Result::is_ok);
        assert!(marks.len() >= 8, "{}", marks.len());
        assert!(left.contains(&Err("first bytes")) && left.contains(&Err("names")));
        let mail = standard().into_iter().find(|rule| rule.name == "files and mail").unwrap();
        let mark = mark_rule(&mail).unwrap();
        assert_eq!((mark.minor, mark.protocol), (0x50, None));
        assert!(mark.ports.contains(&(993, 993)));
    }

    #[test]
    fn where_a_usual_packet_takes_too_long_shorter_ones_are_asked_for() {
        for (kbit, bytes) in
            [(7_600, None), (700, None), (486, Some(1_079)), (243, Some(LEAST)), (64, Some(LEAST))]
        {
            assert_eq!(longest(BitRate::kbit(kbit)), bytes, "{kbit} kbit/s");
        }
    }

    #[test]
    fn a_device_marks_as_the_classifier_says() {
        use farhop_diffserv::Codepoint;
        use farhop_diffserv::classify::{Flow, Protocol, classify};
        let ends = ["10.0.0.2:40000", "192.0.2.1:443"].map(|it| it.parse().unwrap());
        for queue in Queue::ALL {
            for precedence in DropPrecedence::ALL {
                let rule = Rule {
                    name: "it".into(),
                    service: queue.service(),
                    precedence,
                    kind: None,
                    conditions: Vec::new(),
                };
                let mark = mark_rule(&rule).unwrap();
                let (leaf, at) = (higher(queue), usize::from(mark.precedence));
                for came in (0..64).filter_map(Codepoint::new) {
                    // As the chains of the table have it: what came with a higher one of the leaf's keeps it.
                    let kept = leaf.and_then(|of| of.iter().position(|it| *it == came.number()));
                    let place = at.max(kept.map_or(0, |place| place + 1));
                    let device = match (leaf, place) {
                        (Some(of), 1..) => of[place - 1],
                        _ => queue.phb().codepoint().number(),
                    };
                    let mut flow = Flow::new(Protocol::Tcp, ends[0], ends[1]);
                    flow.dscp = Some(came);
                    let said = classify(std::slice::from_ref(&rule), &flow).phb;
                    assert_eq!(said.codepoint().number(), device, "{queue} {precedence}, came as {came}");
                }
            }
        }
    }

    #[test]
    fn a_call_has_the_packets_that_it_was_admitted_with() {
        use farhop_diffserv::calls::{Calls, Hop};
        let terms = |plain| CallTerms { hop: Hop::PLAIN, plain, lease: Duration::from_secs(60) };
        let packets = |kbit, codec: Option<Codec>, plain: Option<u64>| {
            let codec = codec.map(|codec| (codec, Duration::from_millis(20)));
            let (id, media) = ("a".parse().unwrap(), vec!["10.0.0.1:4000".parse().unwrap()]);
            let mut calls = Calls::new(BitRate::mbit(1), Duration::from_secs(60));
            let _ = calls.admit(Duration::ZERO, Offer { id, rate: BitRate::kbit(kbit), codec, media });
            let [ref metered] = media_of(&calls, &terms(plain.map(BitRate::kbit)))[..] else {
                panic!("one call")
            };
            (metered.packets, metered.bytes)
        };
        assert_eq!(packets(24, Some(Codec::G729), None), (53, 3_150));
        assert_eq!(packets(8, Some(Codec::G729), Some(8)), (53, 3_150), "a plain figure is not what comes");
        let (plain, bytes) = packets(8, None, Some(8));
        assert!(plain >= 105 && bytes >= 10_500, "whatever its codec: {plain} {bytes}");
        assert_eq!(packets(8, None, None).1, 1_050, "what was said holds");
    }

    fn media_of(calls: &farhop_diffserv::calls::Calls, terms: &CallTerms) -> Vec<Metered> {
        media(calls.iter(), terms)
    }

    #[test]
    fn leaves_have_numbers_of_their_own() {
        let numbers: Vec<_> = Queue::ALL.map(minor).to_vec();
        assert_eq!(numbers, [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70]);
        assert_eq!(Patient::BACKGROUND.map(minor_of), [Some(0x71), Some(0x72), Some(0x73)]);
        let of = |name: &str| {
            standard().iter().find(|rule| rule.name == name).map(|rule| mark_rule(rule).unwrap().minor)
        };
        assert_eq!(
            (of("backups"), of("peer to peer ports"), of("telnet")),
            (Some(0x72), Some(0x73), Some(0x20))
        );
    }
}
