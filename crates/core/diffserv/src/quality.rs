//! How good a call sounds: the E-model of ITU-T G.107 (06/2015), from delay, loss and codec to the rating R and the mean
//! opinion score. All that a network does not change stands at the default of the recommendation's table 2.

use std::time::Duration;

use crate::calls::Codec;

/// What a call went through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// From mouth to ear, one way: propagation, queues, codec and the jitter buffer.
    pub delay: Duration,
    /// Share of packets that were lost or came too late, from 0 to 1.
    pub loss: f64,
    /// How much more losses come together than at random: 1 for random ones (G.107 §7.3, BurstR).
    pub burst_ratio: f64,
}

/// The verdict of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// The transmission rating factor R, at most 100; 93.2 with no impairment at all.
    pub r: f64,
    /// The mean opinion score that goes with it (G.107 Annex B), from 1 to 4.5.
    pub mos: f64,
}

// G.107 table 2, in dB or as said there.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const STMR: f64 = 15.0;
const LSTR: f64 = 18.0;
const DS: f64 = 3.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
const QDU: f64 = 1.0;
const NC: f64 = -70.0;
const NFOR: f64 = -64.0;
const PS: f64 = 35.0;
const PR: f64 = 35.0;
/// Sensitivity to delay, and the least delay that is noticed, in ms.
const ST: f64 = 1.0;
const MT: f64 = 100.0;

/// Rates a call; `None` where the codec's factors are not published for this scale.
pub fn quality(codec: Codec, conditions: &Conditions) -> Option<Quality> {
    let (ie, bpl) = codec.impairment()?;
    let ms = conditions.delay.as_secs_f64() * 1e3;
    let no = noise();
    let ro = 15.0 - 1.5 * (SLR + no); // (7-2)
    let loss = conditions.loss.clamp(0.0, 1.0) * 100.0;
    // (7-29)
    let ie_eff = if loss > 0.0 {
        ie + (95.0 - ie) * loss / (loss / conditions.burst_ratio.max(1.0) + bpl)
    } else {
        ie
    };
    let r = ro - simultaneous(ro, no, ms) - delayed(ro, no, ms) - ie_eff; // (7-1), with an advantage factor of 0
    Some(Quality { r, mos: mos(r) })
}

/// The mean opinion score of a rating (G.107 Annex B, B-4).
pub fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        // The polynomial dips below 1 near 0.
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

/// No, all noise at the 0 dBr point (7-3 to 7-7).
fn noise() -> f64 {
    let olr = SLR + RLR;
    let nos = PS - SLR - DS - 100.0 + 0.004 * (PS - olr - DS - 14.0).powi(2);
    let pre = PR + 10.0 * (1.0 + 10f64.powf((10.0 - LSTR) / 10.0)).log10();
    let nor = RLR - 121.0 + pre + 0.008 * (pre - 35.0).powi(2);
    let power = [NC, nos, nor, NFOR + RLR].map(|level| 10f64.powf(level / 10.0)).iter().sum::<f64>();
    10.0 * power.log10()
}

/// Is, what is there together with the voice (7-8 to 7-17).
fn simultaneous(ro: f64, no: f64, ms: f64) -> f64 {
    let xolr = SLR + RLR + 0.2 * (64.0 + no - RLR);
    let iolr = 20.0 * ((1.0 + (xolr / 8.0).powi(8)).powf(1.0 / 8.0) - xolr / 8.0);
    let stmro = -10.0 * (10f64.powf(-STMR / 10.0) + (-ms / 4.0).exp() * 10f64.powf(-TELR / 10.0)).log10();
    let ist = 12.0 * (1.0 + ((stmro - 13.0) / 6.0).powi(8)).powf(1.0 / 8.0)
        - 28.0 * (1.0 + ((stmro + 1.0) / 19.4).powi(35)).powf(1.0 / 35.0)
        - 13.0 * (1.0 + ((stmro - 3.0) / 33.0).powi(13)).powf(1.0 / 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * QDU.log10();
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let iq = 15.0 * (1.0 + 10f64.powf(y) + 10f64.powf(z)).log10();
    iolr + ist + iq
}

/// Id, what delay does: the talker's echo, the listener's, and the delay itself (7-18 to 7-28).
fn delayed(ro: f64, no: f64, ms: f64) -> f64 {
    let terv = TELR - 40.0 * ((1.0 + ms / 10.0) / (1.0 + ms / 150.0)).log10() + 6.0 * (-0.3 * ms * ms).exp();
    let roe = -1.5 * (no - RLR);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (roe - re) / 2.0;
    // Below a few milliseconds the formula would reward an echo.
    let idte = ((half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-ms).exp())).max(0.0);
    let round_trip = 2.0 * ms;
    let rle = 10.5 * (WEPL + 7.0) * (round_trip + 1.0).powf(-0.25);
    let half = (ro - rle) / 2.0;
    let idle = half + (half * half + 169.0).sqrt();
    let idd = if ms <= MT {
        0.0
    } else {
        let x = (ms / MT).log2();
        let power = 6.0 * ST;
        25.0 * ((1.0 + x.powf(power)).powf(1.0 / power)
            - 3.0 * (1.0 + (x / 3.0).powf(power)).powf(1.0 / power)
            + 2.0)
    };
    idte + idle + idd
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rated(codec: Codec, ms: u64, loss: f64) -> Quality {
        let conditions = Conditions { delay: Duration::from_millis(ms), loss, burst_ratio: 1.0 };
        quality(codec, &conditions).unwrap()
    }

    #[test]
    fn with_no_impairment_the_rating_is_that_of_the_recommendation() {
        // G.107 §7.7: the defaults give R = 93.2, which is a score of 4.41.
        let best = rated(Codec::G711, 0, 0.0);
        assert!((best.r - 93.2).abs() < 0.05, "{best:?}");
        assert!((best.mos - 4.41).abs() < 0.005, "{best:?}");
        assert!((rated(Codec::G729, 0, 0.0).r - 82.2).abs() < 0.05, "less the codec's own 11");
    }

    #[test]
    fn a_geostationary_hop_is_heard_and_loss_more_so() {
        let (near, far) = (rated(Codec::G729, 60, 0.0), rated(Codec::G729, 400, 0.0));
        assert!(near.r - far.r > 20.0, "{near:?} and {far:?}");
        assert!((2.3..3.3).contains(&far.mos), "many users dissatisfied: {far:?}");
        assert!(rated(Codec::G729, 400, 0.02).mos < far.mos - 0.2);
    }

    #[test]
    fn scores_are_those_of_annex_b() {
        // G.107 table B.1: the limits of what users are said to be.
        for (r, score) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mos(r) - score).abs() < 0.01, "R {r} is {}", mos(r));
        }
        assert_eq!((mos(-5.0), mos(0.5), mos(100.0)), (1.0, 1.0, 4.5));
    }

    #[test]
    fn codecs_of_other_scales_are_not_rated() {
        let conditions = Conditions { delay: Duration::ZERO, loss: 0.0, burst_ratio: 1.0 };
        assert_eq!(quality(Codec::OPUS, &conditions), None);
    }

    proptest! {
        #[test]
        fn more_delay_and_more_loss_never_sound_better(ms in 0u64..2000, more in 1u64..500, loss in 0.0f64..0.5, worse in 0.001f64..0.5) {
            for codec in [Codec::G711, Codec::G723, Codec::G729] {
                let here = rated(codec, ms, loss);
                prop_assert!(here.r.is_finite() && (1.0..=4.5).contains(&here.mos));
                prop_assert!(rated(codec, ms + more, loss).r <= here.r + 1e-9, "{codec} {ms} ms");
                prop_assert!(rated(codec, ms, loss + worse).r < here.r);
            }
        }
    }
}
