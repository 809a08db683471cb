//! What a flow is for: rules in order, of which the first that holds decides, and says why. BACOPT's traffic classifier
//! (Davern, Nashid Islam, Sreenan, 2012, §3 and §4) goes by ports; most of what crosses today is told by other signs.

mod condition;
mod flow;
mod opening;
mod ports;
mod standard;

pub use condition::{Behaviour, Condition};
pub use farhop_consent::Host;
pub use flow::{Flow, Protocol, Seen};
pub use opening::Opening;
pub use ports::{Net, Ports};
pub use standard::{standard, standard_beside};

use crate::class::Service;
use crate::dscp::{DropPrecedence, Phb};
use crate::patient::Patient;

/// A rule: what all of its conditions hold for is of its service.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What explanations call it.
    pub name: String,
    /// What the flow is for then.
    pub service: Service,
    /// How readily its packets are dropped at the least, where its class has drop precedences.
    pub precedence: DropPrecedence,
    /// Of what nobody waits for: updates, backups or peer to peer. None counts as updates.
    pub kind: Option<Patient>,
    /// All of them have to hold; a rule without any holds for every flow.
    pub conditions: Vec<Condition>,
}

impl Rule {
    /// What its flows are of what can wait, if they are.
    pub fn patient(&self) -> Option<Patient> {
        match self.service {
            Service::Streaming => Some(Patient::Streaming),
            Service::Bulk => Some(Patient::Bulk),
            Service::Background => Some(self.kind.unwrap_or(Patient::Updates)),
            Service::Voice | Service::Interactive | Service::Web | Service::Other => None,
        }
    }
}

/// What a flow is for, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it is for.
    pub service: Service,
    /// What its packets are marked with from there on.
    pub phb: Phb,
    /// What it is of what can wait, if it is.
    pub patient: Option<Patient>,
    /// The rule that decided, by its place from 0 and its name; none where no rule held.
    pub by: Option<(usize, String)>,
    /// What held, one clause for each condition of that rule.
    pub because: Vec<String>,
    /// The rules before it, each with the first of its conditions that did not hold.
    pub passed: Vec<(String, String)>,
}

/// Judges a flow by what is known of it so far; more may change the verdict.
pub fn classify(rules: &[Rule], flow: &Flow) -> Verdict {
    let mut passed = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        match rule.conditions.iter().map(|condition| condition.holds(flow)).collect::<Result<_, _>>() {
            Ok(because) => {
                return Verdict {
                    service: rule.service,
                    patient: rule.patient(),
                    phb: rule.service.queue().marked(rule.precedence, flow.dscp),
                    by: Some((place, rule.name.clone())),
                    because,
                    passed,
                };
            }
            Err(why_not) => passed.push((rule.name.clone(), why_not)),
        }
    }
    let service = Service::Other;
    Verdict { service, phb: service.queue().phb(), patient: None, by: None, because: Vec::new(), passed }
}
