//! From the table `[return.on_demand]` to the shared link.

use farhop_units::{BitRate, Bytes};
use serde::Deserialize;
use std::time::Duration;

use super::quantity::{Count, Said, Share};
use crate::{DemandError, Entitlement, OnDemand, Others, Profile, Signalling, Volume};

/// The table.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    capacity: Said<BitRate>,
    superframe: Said<Duration>,
    slot: Said<Bytes>,
    header: Option<Said<Bytes>>,
    control_round: Option<Said<Duration>>,
    cra: Option<Said<BitRate>>,
    rbdc: Option<Said<BitRate>>,
    rbdc_timeout: Option<Count<{ u16::MAX }>>,
    volume: Option<VolumeForm>,
    #[serde(default)]
    fca: bool,
    request_loss: Option<Said<Share>>,
    contention: Option<Count<{ u16::MAX }>>,
    request: Option<Said<Bytes>>,
    terminals: Option<Count<{ u16::MAX }>>,
    others: Option<OthersForm>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VolumeForm {
    Vbdc,
    Avbdc,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct OthersForm {
    terminals: Count<{ u16::MAX }>,
    rate: Said<BitRate>,
}

/// Superframes for which a rate stands unless a file says otherwise: some of its refreshments may get lost.
const RBDC_TIMEOUT: u16 = 8;

impl Form {
    /// All that the link's terminals may send together.
    pub(super) fn capacity(&self) -> BitRate {
        self.capacity.0
    }

    /// The shared link, once the ways of `profile` are known.
    pub(super) fn build(&self, profile: &Profile) -> Result<OnDemand, DemandError> {
        // To the centre and back by satellite, and one superframe for the centre to make its table.
        let round = profile.return_.delay + profile.forward.delay + self.superframe.0;
        let link = OnDemand {
            superframe: self.superframe.0,
            capacity: self.capacity.0,
            slot: self.slot.0,
            header: self.header.map_or(Bytes(0), |header| header.0),
            control_round: self.control_round.map_or(round, |round| round.0),
            entitlement: Entitlement {
                cra: self.cra.map_or(BitRate(0), |rate| rate.0),
                rbdc: self.rbdc.map_or(BitRate(0), |rate| rate.0),
                volume: match self.volume {
                    None => Volume::None,
                    Some(VolumeForm::Vbdc) => Volume::Added,
                    Some(VolumeForm::Avbdc) => Volume::Absolute,
                },
                fca: self.fca,
            },
            rbdc_timeout: self.rbdc_timeout.map_or(RBDC_TIMEOUT, |count| count.0).into(),
            signalling: Signalling {
                loss: self.request_loss.map_or(0.0, |share| share.0.0),
                contention: self.contention.map(|count| count.0.into()),
                size: self.request.map_or(Bytes(0), |request| request.0),
            },
            terminals: self.terminals.map_or(1, |count| count.0).max(1),
            others: self.others.map(|others| Others { terminals: others.terminals.0, rate: others.rate.0 }),
        };
        link.check().map(|()| link)
    }
}
