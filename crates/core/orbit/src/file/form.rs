//! The tables and keys of a satellite's file, as docs/satellite.md describes them. Unknown ones are refused.

use farhop_units::{BitRate, Bytes};
use serde::Deserialize;
use serde_spanned::Spanned;
use std::time::Duration;

use super::demand;
use super::quantity::{Count, Said, Share};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Satellite {
    pub(super) name: Option<String>,
    pub(super) like: Option<Spanned<String>>,
    pub(super) forward: Option<Spanned<Leg>>,
    #[serde(rename = "return")]
    pub(super) return_: Option<Spanned<Leg>>,
    #[serde(default)]
    pub(super) outage: Vec<Spanned<Outage>>,
    pub(super) handover: Option<Spanned<Handover>>,
}

/// `[forward]` or `[return]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Leg {
    pub(super) delay: Option<Said<Duration>>,
    pub(super) rate: Option<Spanned<Said<BitRate>>>,
    pub(super) trace: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) steps: Vec<Spanned<Step>>,
    pub(super) on_demand: Option<Spanned<demand::Form>>,
    pub(super) fade: Option<Spanned<FadeForm>>,
    pub(super) again_after: Option<Said<Duration>>,
    pub(super) queue: Option<Spanned<Said<Bytes>>>,
    pub(super) mark: Option<Spanned<Said<Bytes>>>,
    pub(super) codel: Option<Spanned<CoDel>>,
    pub(super) policer: Option<Spanned<Policer>>,
    pub(super) loss: Option<Said<Share>>,
    pub(super) bursts: Option<Bursts>,
    pub(super) bit_errors: Option<f64>,
    pub(super) jitter: Option<Said<Duration>>,
    pub(super) reordering: Option<Reordering>,
    pub(super) access: Option<Spanned<Segment>>,
    pub(super) terrestrial: Option<Spanned<Segment>>,
}

/// A recorded fade, and how the link adapts to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FadeForm {
    pub(super) trace: Spanned<String>,
    pub(super) clear_sky: f64,
    #[serde(default)]
    pub(super) margin: f64,
    pub(super) reaction: Option<Said<Duration>>,
    pub(super) modcods: Vec<ModcodForm>,
}

/// One coding and modulation.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModcodForm {
    pub(super) needs: f64,
    pub(super) rate: Said<BitRate>,
}

/// A rate from a time on.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) at: Said<Duration>,
    pub(super) rate: Said<BitRate>,
}

/// Gilbert's and Elliott's channel; the loss of its states may be left out.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bursts {
    pub(super) enter: Said<Share>,
    pub(super) leave: Said<Share>,
    pub(super) good: Option<Said<Share>>,
    pub(super) bad: Option<Said<Share>>,
}

/// Controlled delay; both times may be left out.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoDel {
    pub(super) target: Option<Said<Duration>>,
    pub(super) interval: Option<Said<Duration>>,
    #[serde(default)]
    pub(super) ecn: bool,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policer {
    pub(super) rate: Said<BitRate>,
    pub(super) burst: Said<Bytes>,
}

/// Packets that others overtake.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reordering {
    pub(super) share: Said<Share>,
    pub(super) by: Said<Duration>,
}

/// A stretch on the ground.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Segment {
    pub(super) delay: Option<Said<Duration>>,
    pub(super) jitter: Option<Said<Duration>>,
    pub(super) loss: Option<Said<Share>>,
    pub(super) bursts: Option<Bursts>,
    pub(super) bit_errors: Option<f64>,
    pub(super) wifi: Option<Spanned<WifiForm>>,
}

/// A wireless LAN; only its rate has to be said.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WifiForm {
    pub(super) rate: Said<BitRate>,
    pub(super) loss: Option<Said<Share>>,
    pub(super) retries: Option<Count<255>>,
    pub(super) contention: Option<Said<Duration>>,
    pub(super) queue: Option<Said<Bytes>>,
}

/// Which directions an outage strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ways {
    Forward,
    Return,
    #[default]
    Both,
}

/// `[[outage]]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outage {
    pub(super) at: Said<Duration>,
    pub(super) lasts: Said<Duration>,
    pub(super) every: Option<Said<Duration>>,
    #[serde(default)]
    pub(super) way: Ways,
}

/// `[handover]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Handover {
    pub(super) every: Said<Duration>,
    pub(super) gap: Option<Said<Duration>>,
    #[serde(default)]
    pub(super) delays: Vec<Said<Duration>>,
}
