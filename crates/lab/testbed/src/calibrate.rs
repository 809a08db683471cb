//! The link measured over the real kernels and compared with its profile, once per set-up.

use farhop_orbit::{Profile, Way};
use farhop_units::{BitRate, Bytes};
use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use crate::probe::{HEADERS, Probe, SMALLEST};
use crate::{Error, Fitness, Place, Testbed};

/// How far a calibrated value may be off.
const TOLERANCE: f64 = 0.02;

/// Round trips may be off by this much in any case: on `none` two per cent of nothing is nothing.
const RTT_FLOOR: Duration = Duration::from_millis(1);

/// Probes of the round trip, and the pause between them: longer than the slowest named link needs for one,
/// so that none waits for another.
const PINGS: u64 = 9;
const PING_PAUSE: Duration = Duration::from_millis(10);

/// Payload of a rate probe; with its headers it fits the link's MTU.
const TRAIN_PAYLOAD: usize = 1400;

/// A train is no longer than this: enough for an error below a thousandth, and short of the kernels' own
/// queues.
const TRAIN_LONGEST: u64 = 400;

/// The rate of one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateCheck {
    /// The profile's.
    pub expected: BitRate,
    /// The one measured, in bits of IP packets.
    pub measured: BitRate,
}

impl RateCheck {
    /// Measured ÷ expected − 1.
    pub fn error(&self) -> f64 {
        self.measured.0 as f64 / self.expected.0 as f64 - 1.0
    }
}

/// What the link does, beside what its profile says.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The profile's name.
    pub profile: String,
    /// The profile's round trip with the time that the probe takes to send.
    pub rtt_expected: Duration,
    /// Median round trip between client and origins.
    pub rtt: Duration,
    /// Gateway → terminal; `None` where the profile sets no rate.
    pub forward: Option<RateCheck>,
    /// Terminal → gateway.
    pub return_: Option<RateCheck>,
}

impl Calibration {
    /// Unfit if anything is off by more than 2 %.
    pub fn fitness(&self) -> Fitness {
        let mut reasons = Vec::new();
        let allowed = self.rtt_expected.mul_f64(TOLERANCE).max(RTT_FLOOR);
        if self.rtt.abs_diff(self.rtt_expected) > allowed {
            reasons.push(format!("round trip is {}, not {}", ms(self.rtt), ms(self.rtt_expected)));
        }
        for (name, check) in [("forward", self.forward), ("return", self.return_)] {
            if let Some(check) = check.filter(|check| check.error().abs() > TOLERANCE) {
                reasons.push(format!("{name} rate is {}, not {}", kbit(check.measured), check.expected));
            }
        }
        Fitness::of(&reasons)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}: round trip {} (set {})", self.profile, ms(self.rtt), ms(self.rtt_expected))?;
        for (name, check) in [("forward", self.forward), ("return", self.return_)] {
            match check {
                Some(check) => write!(f, ", {name} {} (set {})", kbit(check.measured), check.expected)?,
                None => write!(f, ", {name} unlimited")?,
            }
        }
        Ok(())
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn kbit(rate: BitRate) -> String {
    format!("{:.1} kbit/s", rate.0 as f64 / 1e3)
}

impl Testbed {
    /// Measures round trip and rates between client and origins over an idle link. Takes a round trip and
    /// at most two seconds per way; resets the link's record.
    ///
    /// # Errors
    /// No probe came through: the link is cut, or loses everything.
    pub fn calibrate(&self) -> Result<Calibration, Error> {
        let profile = self.link().profile();
        let (rtt_expected, rtt) = self.round_trip(&profile)?;
        let forward = self.rate(&profile, Way::Forward)?;
        let return_ = self.rate(&profile, Way::Return)?;
        self.link().take_record();
        Ok(Calibration { profile: profile.name, rtt_expected, rtt, forward, return_ })
    }

    /// From the way's sender to its receiver, at the far ends of the testbed.
    pub(crate) fn probe(&self, way: Way, patience: Duration) -> Result<Probe, Error> {
        let client = (self.namespace(Place::Client), self.addresses.client);
        let origins = (self.namespace(Place::Origins), self.addresses.origins);
        match way {
            Way::Forward => Probe::between(origins, client, patience),
            Way::Return => Probe::between(client, origins, patience),
        }
    }

    /// Expected and median measured round trip.
    fn round_trip(&self, profile: &Profile) -> Result<(Duration, Duration), Error> {
        let probe = self.probe(Way::Return, patience(profile))?;
        let size = Bytes((SMALLEST + HEADERS) as u64);
        let serialised: Duration =
            Way::BOTH.iter().filter_map(|way| profile.leg(*way).rate).map(|rate| rate.time_for(size)).sum();
        let measure = || -> io::Result<Vec<Duration>> {
            thread::scope(|scope| {
                let echo = scope.spawn(|| probe.echo(PINGS));
                let mut sent = Vec::new();
                for number in 0..PINGS {
                    sent.push(probe.send(number, SMALLEST)?);
                    thread::sleep(PING_PAUSE);
                }
                let mut trips = Vec::new();
                while trips.len() < sent.len()
                    && let Some(arrival) = probe.receive_echo()?
                {
                    let sent = sent.get(arrival.number as usize).copied().unwrap_or_default();
                    trips.push(arrival.at.saturating_sub(sent));
                }
                echo.join().unwrap_or_else(|_| Err(io::Error::other("the echo stopped")))?;
                Ok(trips)
            })
        };
        let mut trips = measure().map_err(|source| Error::Probe { what: "round trip", source })?;
        trips.sort();
        let median = trips.get(trips.len() / 2).copied();
        let silent = || Error::Probe { what: "round trip", source: io::ErrorKind::TimedOut.into() };
        Ok((profile.rtt() + serialised, median.ok_or_else(silent)?))
    }

    /// The rate of one way, from the spacing of packets that were sent at once; `None` where none is set.
    pub(crate) fn rate(&self, profile: &Profile, way: Way) -> Result<Option<RateCheck>, Error> {
        let leg = profile.leg(way);
        let Some(expected) = leg.contract() else {
            return Ok(None);
        };
        let size = (TRAIN_PAYLOAD + HEADERS) as u64;
        // A tenth of the queue stays free for what else may cross.
        let count = (leg.queue.0 * 9 / 10 / size).clamp(2, TRAIN_LONGEST);
        let probe = self.probe(way, patience(profile))?;
        let measure = || -> io::Result<Option<BitRate>> {
            for number in 0..count {
                probe.send(number, TRAIN_PAYLOAD)?;
            }
            let Some(first) = probe.receive()? else {
                return Ok(None);
            };
            let mut last = first;
            while last.number + 1 < count
                && let Some(arrival) = probe.receive()?
            {
                last = arrival;
            }
            // Lost packets took their time on the link, so numbers count, not arrivals.
            let bits = (last.number - first.number) * size * 8;
            let time = last.at.saturating_sub(first.at).as_secs_f64();
            Ok((bits > 0 && time > 0.0).then(|| BitRate((bits as f64 / time).round() as u64)))
        };
        let measured = measure().map_err(|source| Error::Probe { what: "rate", source })?;
        let silent = || Error::Probe { what: "rate", source: io::ErrorKind::TimedOut.into() };
        Ok(Some(RateCheck { expected, measured: measured.ok_or_else(silent)? }))
    }
}

/// How long to wait for one more probe: the link's own time, and a second for a busy machine.
fn patience(profile: &Profile) -> Duration {
    profile.rtt() + Duration::from_secs(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(rtt_ms: u64, forward: u64, return_: u64) -> Calibration {
        let check = |expected, measured| {
            Some(RateCheck { expected: BitRate::kbit(expected), measured: BitRate::kbit(measured) })
        };
        Calibration {
            profile: "geo-hylas2".into(),
            rtt_expected: Duration::from_millis(650),
            rtt: Duration::from_millis(rtt_ms),
            forward: check(8000, forward),
            return_: check(512, return_),
        }
    }

    #[test]
    fn a_link_within_two_per_cent_is_fit_and_prints_what_it_measured() {
        let calibration = calibration(651, 7999, 511);
        assert_eq!(calibration.fitness(), Fitness::Fit);
        assert_eq!(
            calibration.to_string(),
            "link geo-hylas2: round trip 651.0 ms (set 650.0 ms), \
             forward 7999.0 kbit/s (set 8 Mbit/s), return 511.0 kbit/s (set 512 kbit/s)"
        );
    }

    #[test]
    fn each_value_that_is_off_is_named() {
        let Fitness::Unfit(reason) = calibration(700, 7000, 600).fitness() else {
            panic!("all three are off");
        };
        assert_eq!(
            reason,
            "round trip is 700.0 ms, not 650.0 ms; forward rate is 7000.0 kbit/s, not 8 Mbit/s; \
             return rate is 600.0 kbit/s, not 512 kbit/s"
        );
    }
}
