//! Rain and scintillation on the forward link: a recorded attenuation, and what adaptive coding and modulation (EN 302 307-1 §6.4)
//! makes of it. The result are rates that change and outages, so that the link knows nothing of decibels.

use farhop_units::BitRate;
use std::time::Duration;

use crate::{Outage, Steps, StepsError};

/// A recorded attenuation, in decibels. It begins anew when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Fade {
    /// Since when how much; the first since zero, times rise.
    samples: Vec<(Duration, f64)>,
    period: Duration,
}

/// One coding and modulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modcod {
    /// The ratio of signal to noise that it needs (Es/N0), in decibels.
    pub needs: f64,
    /// What it carries.
    pub rate: BitRate,
}

/// How a link adapts.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptation {
    /// The ratio of signal to noise under a clear sky, in decibels.
    pub clear_sky: f64,
    /// What is kept in reserve when a modcod is chosen, in decibels.
    pub margin: f64,
    /// How long it takes until the sender has changed: the terminal measures, tells, and the gateway obeys.
    pub reaction: Duration,
    /// What it can choose from, the most robust first.
    pub modcods: Vec<Modcod>,
}

/// Why a text is no fade, or what was recorded cannot be adapted to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FadeError {
    /// A line is not a time and an attenuation, or not later than the one before.
    #[error(
        "line {0}: write a time in seconds, later than the one before, and an attenuation in dB, like '12.5 3.2'"
    )]
    Line(usize),
    /// There is no time in it.
    #[error(
        "it has no time: write two lines at least, the first at 0, the last one saying when it begins anew"
    )]
    Empty,
    /// There is nothing to choose from.
    #[error(
        "'modcods' lists at least one, the most robust first, each needing more and carrying more than the one before"
    )]
    Modcods,
    /// The rates make no sense.
    #[error(transparent)]
    Steps(#[from] StepsError),
}

impl Fade {
    /// Reads lines of seconds and decibels; the last one's time is when it begins anew.
    ///
    /// # Errors
    /// A line is not what it should be, or there are too few.
    pub fn parse(text: &str) -> Result<Fade, FadeError> {
        let mut samples: Vec<(Duration, f64)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut words =
                line.split_whitespace().map(|word| word.parse::<f64>().ok().filter(|it| it.is_finite()));
            let (Some(Some(at)), Some(Some(attenuation)), None) = (words.next(), words.next(), words.next())
            else {
                return Err(FadeError::Line(number + 1));
            };
            let at = Duration::try_from_secs_f64(at).ok().filter(|at| at.as_secs() < 1 << 32);
            match (at, samples.last()) {
                (Some(at), last) if last.is_none_or(|last| last.0 < at) => samples.push((at, attenuation)),
                _ => return Err(FadeError::Line(number + 1)),
            }
        }
        let period = samples.pop().map_or(Duration::ZERO, |last| last.0);
        match samples.first() {
            Some((Duration::ZERO, _)) => Ok(Fade { samples, period }),
            _ => Err(FadeError::Empty),
        }
    }

    /// The rates and outages of a link that adapts to this fade: it sends at the rate of the best modcod that the signal allowed
    /// a reaction ago, and nothing arrives while the signal is too weak for that.
    ///
    /// # Errors
    /// There are no modcods, or not in order.
    pub fn adapted(&self, how: &Adaptation) -> Result<(Steps, Vec<Outage>), FadeError> {
        let rises = |a: &Modcod, b: &Modcod| a.needs < b.needs && a.rate < b.rate;
        if how.modcods.first().is_none_or(|first| first.rate.0 == 0) || !how.modcods.is_sorted_by(rises) {
            return Err(FadeError::Modcods);
        }
        let signal = |at: Duration| how.clear_sky - self.at(at);
        let late = crate::schedule::modulo(how.reaction, self.period);
        // What is in force at a time was chosen a reaction before it, in the round before where that is needed.
        let in_force = |at: Duration| {
            let chosen = at.checked_sub(late).unwrap_or_else(|| at + self.period - late);
            let allowed = how.modcods.iter().rev().find(|it| it.needs + how.margin <= signal(chosen));
            allowed.or(how.modcods.first()).copied()
        };
        let times = self.samples.iter().map(|sample| sample.0);
        let shifted = times.clone().map(|at| crate::schedule::modulo(at + late, self.period));
        let mut changes: Vec<Duration> = times.chain(shifted).collect();
        changes.sort();
        changes.dedup();
        let (mut steps, mut outages) = (Vec::<(Duration, BitRate)>::new(), Vec::<Outage>::new());
        for (index, at) in changes.iter().enumerate() {
            let Some(modcod) = in_force(*at) else { continue };
            if steps.last().is_none_or(|last| last.1 != modcod.rate) {
                steps.push((*at, modcod.rate));
            }
            if signal(*at) < modcod.needs {
                let lasts = changes.get(index + 1).copied().unwrap_or(self.period) - *at;
                match outages.last_mut().filter(|last| last.at + last.lasts == *at) {
                    Some(last) => last.lasts += lasts,
                    None => outages.push(Outage { at: *at, lasts, every: Some(self.period) }),
                }
            }
        }
        Ok((Steps::new(steps, Some(self.period))?, outages))
    }

    /// The attenuation at a time of the first round.
    fn at(&self, now: Duration) -> f64 {
        let index = self.samples.partition_point(|sample| sample.0 <= now).saturating_sub(1);
        self.samples.get(index).map_or(0.0, |sample| sample.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn adaptation() -> Adaptation {
        let modcod = |needs, mbit| Modcod { needs, rate: BitRate::mbit(mbit) };
        let modcods = vec![modcod(1.0, 2), modcod(6.0, 4), modcod(11.0, 8)];
        Adaptation { clear_sky: 13.0, margin: 1.0, reaction: 2 * S, modcods }
    }

    #[test]
    fn rates_step_down_as_rain_comes_and_what_was_sent_too_fast_meanwhile_is_lost() {
        // 13 dB, 8 dB from 10 s, 2 dB from 20 s, 0 dB from 30 s, 13 dB from 40 s, until 60 s.
        let fade = Fade::parse("0 0\n10 5\n20 11\n30 13\n40 0\n60 0\n").unwrap();
        let (steps, outages) = fade.adapted(&adaptation()).unwrap();
        let expected = [(0, 8), (12, 4), (22, 2), (42, 8)].map(|(at, mbit)| (at * S, BitRate::mbit(mbit)));
        assert_eq!(steps, Steps::new(expected.into(), Some(60 * S)).unwrap());
        // Two seconds too fast after each step down; and nothing is robust enough for 0 dB.
        let expected = [(10, 2), (20, 2), (30, 10)];
        assert_eq!(
            outages,
            expected.map(|(at, lasts)| Outage { at: at * S, lasts: lasts * S, every: Some(60 * S) })
        );
    }

    #[test]
    fn a_reserve_spares_the_losses_of_scintillation() {
        // ±0.5 dB around 11.8 dB, every second.
        let text: String =
            (0..61).map(|at| format!("{at} {}\n", if at % 2 == 0 { 0.7 } else { 1.7 })).collect();
        let fade = Fade::parse(&text).unwrap();
        let lost = |margin| {
            let (_, outages) = fade.adapted(&Adaptation { margin, reaction: S, ..adaptation() }).unwrap();
            outages.iter().map(|outage| outage.lasts).sum::<Duration>()
        };
        assert_eq!(lost(0.0), Duration::ZERO, "11.3 dB is enough");
        let fade = Fade {
            samples: fade.samples.iter().map(|(at, attenuation)| (*at, attenuation + 0.6)).collect(),
            ..fade
        };
        let lost = |margin| {
            let (steps, outages) = fade.adapted(&Adaptation { margin, reaction: S, ..adaptation() }).unwrap();
            (steps.mean(), outages.iter().map(|outage| outage.lasts).sum::<Duration>())
        };
        assert_eq!(lost(0.0), (BitRate::mbit(6), 30 * S), "each weak second is sent too fast for");
        assert_eq!(lost(1.0), (BitRate::mbit(4), Duration::ZERO));
    }

    #[test]
    fn what_is_no_fade_is_refused() {
        let error = |text| Fade::parse(text).unwrap_err().to_string();
        assert!(error("0 0\n1 x\n").starts_with("line 2: ") && error("0 0\n0 1\n").starts_with("line 2: "));
        assert!(error("0 0 0").starts_with("line 1: ") && error("-1 0").starts_with("line 1: "));
        assert!(
            error("0 0").starts_with("it has no time") && error("1 0\n2 0").starts_with("it has no time")
        );
        let fade = Fade::parse("0 0\n1 0\n").unwrap();
        let none = Adaptation { modcods: Vec::new(), ..adaptation() };
        assert_eq!(fade.adapted(&none), Err(FadeError::Modcods));
    }
}
