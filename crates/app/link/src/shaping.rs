//! From the operator's word to what the kernel is given.

use std::net::SocketAddr;
use std::time::Duration;

use farhop_diffserv::classify::{Condition, Rule};
use farhop_diffserv::{AfClass, DropPrecedence, Phb, Plan, PlanError, Queue, Queued, Shares};
use farhop_netdev::{Leaf, MarkRule, Network, Shaping};
use farhop_units::BitRate;

use crate::config::Config;

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
pub fn plan(config: &Config, media: Vec<SocketAddr>) -> Result<Shaped, PlanError> {
    plan_at(config, &config.shares, None, media)
}

/// The same, with what classes have at this hour, and what is sent at now where that is followed.
pub(crate) fn plan_at(
    config: &Config,
    shares: &Shares,
    sent_at: Option<BitRate>,
    media: Vec<SocketAddr>,
) -> Result<Shaped, PlanError> {
    let plan = match sent_at {
        Some(rate) => Plan::new(rate, 0, shares)?,
        None => Plan::new(config.rate, config.margin, shares)?,
    };
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
        leaves: plan.queues.iter().map(leaf).collect(),
        round_trip: config.round_trip,
        rules: rules.collect(),
        media_leaf: minor(Queue::Ef),
        media,
        otherwise: minor(Queue::De),
        echo: config.follow.map(|follow| (follow.echo, minor(Queue::Af4))),
        splits: config.rate <= SPLIT_UP_TO,
        longest: longest(plan.shaped),
    };
    let to_ef = |rule: &&Rule| rule.service.queue() == Queue::Ef && mark_rule(rule).is_ok();
    let unadmitted = config.rules.iter().filter(to_ef).map(|rule| rule.name.clone()).collect();
    Ok(Shaped { plan, shaping, left, unadmitted })
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

fn leaf(queued: &Queued) -> Leaf {
    let queue = queued.queue;
    Leaf {
        minor: minor(queue),
        priority: queue.priority(),
        rate: queued.guaranteed.0,
        ceiling: queued.ceiling.0,
        burst: queued.burst.0,
        quantum: queued.quantum.0,
        room: queued.room.0,
        fair: queue != Queue::Ef,
        codepoint: queue.phb().codepoint().number(),
        keeps: keeps(queue),
    }
}

/// The other drop precedences of an assured class: a packet that came with one keeps it (RFC 2597 §2).
fn keeps(queue: Queue) -> [Option<u8>; 2] {
    let of = |class: AfClass| {
        [DropPrecedence::Medium, DropPrecedence::High]
            .map(|drop| Some(Phb::Af(class, drop).codepoint().number()))
    };
    match queue.phb() {
        Phb::Af(class, _) => of(class),
        Phb::Ef | Phb::De | Phb::Le => [None, None],
    }
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
    let mut mark = MarkRule { minor: minor(rule.service.queue()), ..MarkRule::default() };
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
            Condition::Behaves(_) => return Err("sizes and rates"),
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
    fn assured_packets_keep_their_drop_precedence() {
        assert_eq!(keeps(Queue::Af1), [Some(12), Some(14)]);
        assert_eq!(keeps(Queue::De), [None, None]);
        let numbers: Vec<_> = Queue::ALL.map(minor).to_vec();
        assert_eq!(numbers, [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70]);
    }
}
