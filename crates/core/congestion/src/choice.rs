//! The controllers by name, as settings and reports spell them, and how one is built.

use std::fmt;
use std::str::FromStr;

use farhop_units::{BitRate, Bytes};

use crate::{Bbr, Bic, Contract, Controller, Cubic, Hybla, NewReno, Paced, Vegas, Westwood};

/// Which controller drives a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// [`Paced`], for a link whose rate is contracted.
    Rate,
    /// [`Hybla`], for long paths.
    Hybla,
    /// [`Bbr`], which measures the path and leaves queues empty.
    Bbr,
    /// [`Cubic`] (RFC 9438), for paths shared with others.
    Cubic,
    /// [`NewReno`] (RFC 9002 §7), to compare with.
    NewReno,
    /// [`Westwood`], to compare with.
    Westwood,
    /// [`Vegas`], to compare with.
    Vegas,
    /// [`Bic`], to compare with.
    Bic,
}

impl Choice {
    /// Every controller there is.
    pub const ALL: [Choice; 8] = [
        Choice::Rate,
        Choice::Hybla,
        Choice::Bbr,
        Choice::Cubic,
        Choice::NewReno,
        Choice::Westwood,
        Choice::Vegas,
        Choice::Bic,
    ];

    /// The sensible controller: [`Choice::Rate`] where the rate is known, else [`Choice::Bbr`].
    pub fn for_rate(rate: Option<BitRate>) -> Choice {
        if rate.is_some() { Choice::Rate } else { Choice::Bbr }
    }

    /// The name used in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Rate => "rate",
            Choice::Hybla => "hybla",
            Choice::Bbr => "bbr",
            Choice::Cubic => "cubic",
            Choice::NewReno => "newreno",
            Choice::Westwood => "westwood",
            Choice::Vegas => "vegas",
            Choice::Bic => "bic",
        }
    }

    /// The controller for a direction of which `contract` is known, on a path that carries packets of
    /// `mtu` bytes of UDP payload. `None`: it needs a contract and there is none.
    pub fn build(self, contract: Option<Contract>, mtu: Bytes) -> Option<Box<dyn Controller>> {
        let inner: Box<dyn Controller> = match (self, contract) {
            (Choice::Rate, contract) => return Some(Box::new(Paced::new(contract?, mtu))),
            (Choice::Hybla, contract) => Box::new(Hybla::new(contract, mtu)),
            (Choice::Bbr, _) => Box::new(Bbr::new(mtu)),
            (Choice::Cubic, _) => Box::new(Cubic::new(mtu)),
            (Choice::NewReno, _) => Box::new(NewReno::new(mtu)),
            (Choice::Westwood, _) => Box::new(Westwood::new(mtu)),
            (Choice::Vegas, _) => Box::new(Vegas::new(mtu)),
            (Choice::Bic, _) => Box::new(Bic::new(mtu)),
        };
        Some(inner)
    }

    /// Whether it has to search for the rate, so that what an earlier connection measured helps it
    /// ([`crate::Resume`]).
    pub fn searches(self) -> bool {
        self != Choice::Rate
    }

    /// Whether it takes every loss for congestion and has no other sign of it: it must go on to hear of what was lost and
    /// made good without asking.
    pub fn goes_by_loss_alone(self) -> bool {
        matches!(self, Choice::Cubic | Choice::NewReno | Choice::Westwood | Choice::Bic)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no controller bears.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no congestion controller is called '{0}', use one of: {known}", known = Choice::ALL.map(Choice::name).join(", "))]
pub struct UnknownChoice(String);

impl FromStr for Choice {
    type Err = UnknownChoice;
    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        let known = Choice::ALL.into_iter().find(|choice| choice.name() == name);
        known.ok_or_else(|| UnknownChoice(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_is_found_by_its_name_and_others_are_refused_with_the_list() {
        for choice in Choice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let error = "reno".parse::<Choice>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no congestion controller is called 'reno', use one of: rate, hybla, bbr, cubic, newreno, westwood, vegas, \
             bic"
        );
    }

    #[test]
    fn a_known_rate_is_kept_to_and_an_unknown_one_measured() {
        assert_eq!(Choice::for_rate(Some(BitRate::mbit(8))), Choice::Rate);
        assert_eq!(Choice::for_rate(None), Choice::Bbr);
    }

    #[test]
    fn only_a_rate_that_is_known_can_be_kept_to() {
        let built = Choice::ALL.map(|choice| choice.build(None, Bytes(1200)).is_some());
        assert_eq!(built, [false, true, true, true, true, true, true, true]);
    }
}
