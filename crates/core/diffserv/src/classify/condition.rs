//! What a rule asks of a flow.

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use farhop_consent::{Category, Form, Host, HostPattern, builtin};
use farhop_units::{BitRate, Bytes};

use super::flow::{Flow, Protocol};
use super::opening::Opening;
use super::ports::{Net, Ports};
use crate::dscp::Codepoint;

/// One thing that a rule asks of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// It is of this protocol.
    Protocol(Protocol),
    /// One of its two ports is one of these.
    Ports(Vec<Ports>),
    /// One of its two addresses is one of these.
    Addresses(Vec<Net>),
    /// Its packets are marked with one of these.
    Marked(Vec<Codepoint>),
    /// The name in its hello, or one that a DNS answer seen had for its destination, is one of these.
    Hosts(Vec<HostPattern>),
    /// That name is on this list.
    Listed(Category),
    /// Its hello offers one of these protocols.
    Alpn(Vec<String>),
    /// It begins like one of these.
    Begins(Vec<Opening>),
    /// It behaves like this.
    Behaves(Behaviour),
    /// It has not been seen for long enough to say how it behaves.
    Begun,
}

/// Bounds of how a flow behaves; what is `None` does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behaviour {
    /// It has been seen for this long at least.
    pub time_at_least: Option<Duration>,
    /// It has carried so much at least.
    pub bytes_at_least: Option<Bytes>,
    /// Mean size of its packets, at least.
    pub packet_at_least: Option<Bytes>,
    /// Mean size of its packets, at most.
    pub packet_at_most: Option<Bytes>,
    /// Mean rate, at least.
    pub rate_at_least: Option<BitRate>,
    /// Mean rate, at most.
    pub rate_at_most: Option<BitRate>,
}

impl Condition {
    /// Why it holds, or why it does not, in a clause.
    ///
    /// # Errors
    /// It does not hold.
    pub fn holds(&self, flow: &Flow) -> Result<String, String> {
        match self {
            Condition::Protocol(protocol) if *protocol == flow.protocol => Ok(format!("it is {protocol}")),
            Condition::Protocol(protocol) => Err(format!("it is {}, not {protocol}", flow.protocol)),
            Condition::Ports(ranges) => {
                let ports = [flow.to.port(), flow.from.port()];
                first(ranges, ports, |range, port| range.contains(port))
                    .map(|(range, port)| format!("port {port} is in {range}"))
                    .ok_or_else(|| {
                        format!("neither port {} nor {} is in {}", ports[0], ports[1], list(ranges))
                    })
            }
            Condition::Addresses(nets) => {
                let addresses: [IpAddr; 2] = [flow.to.ip(), flow.from.ip()];
                first(nets, addresses, Net::contains)
                    .map(|(net, address)| format!("{address} is in {net}"))
                    .ok_or_else(|| {
                        format!("neither {} nor {} is in {}", addresses[0], addresses[1], list(nets))
                    })
            }
            Condition::Marked(marks) => match flow.dscp {
                Some(dscp) if marks.contains(&dscp) => Ok(format!("it is marked {dscp}")),
                Some(dscp) => Err(format!("it is marked {dscp}, not {}", list(marks))),
                None => Err("how it is marked is not known".into()),
            },
            Condition::Hosts(patterns) => named(flow, |host| {
                patterns
                    .iter()
                    .find(|pattern| matches(pattern, host))
                    .map(|pattern| format!("matches {pattern}"))
            })
            .ok_or_else(|| not_named(flow, &list(patterns))),
            Condition::Listed(category) => named(flow, |host| {
                (builtin(host) == Some(*category)).then(|| format!("is one of {category}"))
            })
            .ok_or_else(|| not_named(flow, &format!("the list of {category}"))),
            Condition::Alpn(protocols) => {
                let offered = flow.alpn.iter().find(|offered| protocols.contains(offered));
                offered.map(|it| format!("it offers {it}")).ok_or_else(|| match &*flow.alpn {
                    [] => "it offers no protocol by ALPN, as far as is known".into(),
                    offered => format!("it offers {}, not {}", list(offered), list(protocols)),
                })
            }
            Condition::Begins(openings) => match Opening::of(flow.protocol, &flow.first_bytes) {
                Some(opening) if openings.iter().any(|it| it.takes_in(opening)) => {
                    Ok(format!("it begins like {opening}"))
                }
                Some(opening) => Err(format!("it begins like {opening}, not {}", list(openings))),
                None if flow.first_bytes.is_empty() => Err("its first bytes are not known".into()),
                None => Err(format!("it does not begin like {}", list(openings))),
            },
            Condition::Behaves(behaviour) => behaviour.holds(flow),
            Condition::Begun if flow.seen.is_none() => Ok("it has just begun".into()),
            Condition::Begun => Err("how it behaves is known".into()),
        }
    }
}

impl Behaviour {
    fn holds(&self, flow: &Flow) -> Result<String, String> {
        let seen = flow.seen.ok_or("how it behaves is not known")?;
        let (packet, rate) = (seen.mean_packet(), seen.rate());
        let mut held = Vec::new();
        let mut ask = |good: bool, is: String, bound: String| {
            if good {
                held.push(is);
                Ok(())
            } else {
                Err(format!("{is}, not {bound}"))
            }
        };
        if let Some(least) = self.time_at_least {
            let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
            ask(
                seen.over >= least,
                format!("seen for {}", seconds(seen.over)),
                format!("{} or more", seconds(least)),
            )?;
        }
        if let Some(least) = self.bytes_at_least {
            ask(seen.bytes >= least, format!("it has carried {}", seen.bytes), format!("{least} or more"))?;
        }
        let size = || format!("its packets have {packet} in the mean");
        if let Some(least) = self.packet_at_least {
            ask(packet >= least, size(), format!("{least} or more"))?;
        }
        if let Some(most) = self.packet_at_most {
            ask(packet <= most, size(), format!("{most} or less"))?;
        }
        let speed =
            || rate.map_or_else(|| "its rate is not known".into(), |rate| format!("its rate is {rate}"));
        if let Some(least) = self.rate_at_least {
            ask(rate.is_some_and(|rate| rate >= least), speed(), format!("{least} or more"))?;
        }
        if let Some(most) = self.rate_at_most {
            ask(rate.is_some_and(|rate| rate <= most), speed(), format!("{most} or less"))?;
        }
        held.dedup();
        Ok(held.join(", "))
    }
}

/// The first of `of` that one of `ranges` has.
fn first<R, T: Copy>(ranges: &[R], of: [T; 2], has: impl Fn(&R, T) -> bool) -> Option<(&R, T)> {
    of.into_iter().find_map(|it| ranges.iter().find(|range| has(range, it)).map(|range| (range, it)))
}

/// The first name of a flow's for which `what` has a word, with that word.
fn named(flow: &Flow, what: impl Fn(&Host) -> Option<String>) -> Option<String> {
    let by_hello = flow.sni.iter().map(|host| ("its hello names", host));
    let by_dns = flow.names.iter().map(|host| ("a DNS answer had its address for", host));
    by_hello.chain(by_dns).find_map(|(how, host)| what(host).map(|why| format!("{how} {host}, which {why}")))
}

fn not_named(flow: &Flow, wanted: &str) -> String {
    match (&flow.sni, &*flow.names) {
        (None, []) => "no name of its destination is known".into(),
        (sni, names) => {
            let known: Vec<&Host> = sni.iter().chain(names).collect();
            format!("{} matches none of {wanted}", list(&known))
        }
    }
}

fn matches(pattern: &HostPattern, host: &Host) -> bool {
    let below = |of: &Host| host.suffixes().skip(1).any(|suffix| *of.to_string() == *suffix);
    let is = match &pattern.form {
        Form::All => true,
        Form::Exactly(it) => it == host,
        Form::AndBelow(it) => it == host || below(it),
        Form::Below(it) => below(it),
    };
    is && !pattern.is_exception
}

fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
