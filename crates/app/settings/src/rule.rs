//! Settings of a rule of the classifier (`core/diffserv`), as the link manager and the remote have it.

use std::time::Duration;

use farhop_consent::{Category, HostPattern};
use farhop_diffserv::classify::{Behaviour, Condition, Opening, Ports, Protocol, Rule};
use farhop_diffserv::{Codepoint, DropPrecedence, Patient, Service};
use farhop_units::{BitRate, Bytes};

use crate::error::SettingsError;
use crate::kinds::{Cidr, PortRange, RuleName};
use crate::load::conflict;
use crate::section::settings;
use crate::source::Source;

settings! {
    /// A rule of the classifier.
    pub struct RuleSettings {
        values {
            /// What explanations call it. That of a rule that Farhop comes with ("large downloads") puts it in the place of that one.
            name: RuleName;
            /// What the flow is for: voice, interactive, web, streaming, bulk, other or background.
            service: Service;
            /// How readily its packets are dropped where its class is overloaded (RFC 2597): low, medium (AFx2) or high (AFx3). What comes marked
            /// with a higher one of its class keeps that. For interactive, web, streaming and bulk.
            precedence: DropPrecedence, default "low";
            /// Of background: updates, backups or peer-to-peer, which may have ceilings of their own; auto: updates.
            kind: Option<Patient>, default "auto";
            /// Its protocol; auto: either.
            protocol: Option<Protocol>, default "auto";
            /// One of its two ports is one of these.
            ports: Vec<PortRange>, default "";
            /// One of its two addresses is one of these.
            addresses: Vec<Cidr>, default "";
            /// Its packets come marked with one of these: EF, AF11 to AF43, CS1 to CS7, DE, LE or a number.
            dscp: Vec<Codepoint>, default "";
            /// The name that it asks for (CONNECT, a hello of TLS or QUIC, a URL), or else one that an answer to users' questions for names had for its
            /// destination lately, is one of these. The remote knows its own answers (`[dns] listen`), and those that pass it over UDP.
            hosts: Vec<HostPattern>, default "";
            /// That name is on this list of Farhop's.
            listed: Option<Category>, default "auto";
            /// Its hello (TLS, QUIC) offers one of these protocols.
            alpn: Vec<String>, default "";
            /// It begins like one of these: tls, http, http-media (HTTP that asks for what is played, as its name ends; http takes it in), ssh, sip,
            /// rtsp, rtp, stun, quic, bittorrent, rsync.
            begins: Vec<Opening>, default "";
            /// It has carried so much at least. Inside the carrier: without a pause of two seconds, as the other measures of how it behaves.
            bytes_at_least: Option<Bytes>, default "auto";
            /// It has been seen for so long at least.
            time_at_least: Option<Duration>, default "auto";
            /// Mean size of its packets, at least.
            packet_at_least: Option<Bytes>, default "auto";
            /// Mean size of its packets, at most.
            packet_at_most: Option<Bytes>, default "auto";
            /// Mean rate, at least.
            rate_at_least: Option<BitRate>, default "auto";
            /// Mean rate, at most.
            rate_at_most: Option<BitRate>, default "auto";
        }
    }
}

impl RuleSettings {
    /// The rule that they describe.
    pub fn rule(&self) -> Rule {
        let mut conditions = Vec::new();
        let mut add = |is_given: bool, condition: Condition| {
            if is_given {
                conditions.push(condition);
            }
        };
        if let Some(protocol) = self.protocol {
            add(true, Condition::Protocol(protocol));
        }
        let ports = self.ports.iter().map(|it| Ports { first: it.first, last: it.last }).collect();
        add(!self.ports.is_empty(), Condition::Ports(ports));
        add(!self.addresses.is_empty(), Condition::Addresses(self.addresses.iter().map(Cidr::net).collect()));
        add(!self.dscp.is_empty(), Condition::Marked(self.dscp.clone()));
        add(!self.hosts.is_empty(), Condition::Hosts(self.hosts.clone()));
        if let Some(category) = self.listed {
            add(true, Condition::Listed(category));
        }
        add(!self.alpn.is_empty(), Condition::Alpn(self.alpn.clone()));
        add(!self.begins.is_empty(), Condition::Begins(self.begins.clone()));
        add(self.behaviour() != Behaviour::default(), Condition::Behaves(self.behaviour()));
        Rule {
            name: self.name.to_string(),
            service: self.service,
            precedence: self.precedence,
            kind: self.kind,
            conditions,
        }
    }

    fn behaviour(&self) -> Behaviour {
        Behaviour {
            time_at_least: self.time_at_least,
            bytes_at_least: self.bytes_at_least,
            packet_at_least: self.packet_at_least,
            packet_at_most: self.packet_at_most,
            rate_at_least: self.rate_at_least,
            rate_at_most: self.rate_at_most,
        }
    }
}

/// Each has a name of its own. Voice, what no rule knows and what nobody waits for have no drop precedences, and only the last has kinds.
pub(crate) fn check(rules: &[RuleSettings], source: &Source, prefix: &str) -> Result<(), SettingsError> {
    for (at, rule) in rules.iter().enumerate() {
        if let Some(first) = rules[..at].iter().position(|other| other.name == rule.name) {
            let reason = format!(
                "[[rule]] number {} and {} are both named '{}', and explanations could not tell them apart; rename one",
                first + 1,
                at + 1,
                rule.name
            );
            return Err(conflict(source, &format!("{prefix}rule.{at}.name"), reason));
        }
        let is_kind = |kind| Patient::BACKGROUND.contains(&kind) && rule.service == Service::Background;
        if rule.kind.is_some_and(|kind| !is_kind(kind)) {
            let reason = format!(
                "the rule '{}' names a kind; background alone has them: updates, backups and peer-to-peer",
                rule.name
            );
            return Err(conflict(source, &format!("{prefix}rule.{at}.kind"), reason));
        }
        if rule.precedence != DropPrecedence::Low && !rule.service.queue().is_assured() {
            let reason = format!(
                "the rule '{}' names a drop precedence, which '{}' has none of; interactive, web, streaming and bulk have",
                rule.name, rule.service
            );
            return Err(conflict(source, &format!("{prefix}rule.{at}.precedence"), reason));
        }
    }
    Ok(())
}

/// Inside the carrier nobody knows how packets came marked: a rule that goes by that would hold for nothing there.
pub(crate) fn check_within(
    rules: &[RuleSettings],
    source: &Source,
    prefix: &str,
) -> Result<(), SettingsError> {
    check(rules, source, prefix)?;
    for (at, rule) in rules.iter().enumerate() {
        if rule.precedence != DropPrecedence::Low {
            let reason = format!(
                "the rule '{}' names a drop precedence, which there is none of inside the carrier; write the rule for `farhop link`",
                rule.name
            );
            return Err(conflict(source, &format!("{prefix}rule.{at}.precedence"), reason));
        }
        if !rule.dscp.is_empty() {
            let reason = format!(
                "the rule '{}' goes by 'dscp', which is not known of what is caught; leave it out, or write the rule for `farhop link`",
                rule.name
            );
            return Err(conflict(source, &format!("{prefix}rule.{at}.dscp"), reason));
        }
    }
    Ok(())
}
