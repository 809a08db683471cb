//! The link measured over the real kernels and compared with its profile, once per set-up.

use farhop_orbit::{Profile, Way};
use farhop_units::{BitRate, Bytes};
use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use crate::granted::{self, on_demand};
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
    /// The profile's; on demand what its slots carry of packets.
    pub expected: BitRate,
    /// The one measured, in bits of IP packets.
    pub measured: BitRate,
    /// By which share the two may differ.
    pub tolerance: f64,
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
    /// The profile's round trip with the time that the probe takes to send, and on demand with the wait for a grant.
    pub rtt_expected: Duration,
    /// For how long capacity is given at a time where it is on demand, else nothing: when in it a probe comes nobody knows.
    pub superframe: Duration,
    /// Median round trip between client and origins.
    pub rtt: Duration,
    /// Gateway → terminal; `None` where the profile sets no rate.
    pub forward: Option<RateCheck>,
    /// Terminal → gateway.
    pub return_: Option<RateCheck>,
}

impl Calibration {
    /// Unfit if anything is off by more than 2 %, or on demand by more than a superframe makes of it.
    pub fn fitness(&self) -> Fitness {
        let mut reasons = Vec::new();
        let allowed = self.rtt_expected.mul_f64(TOLERANCE).max(RTT_FLOOR).max(self.superframe);
        if self.rtt.abs_diff(self.rtt_expected) > allowed {
            reasons.push(format!("round trip is {}, not {}", ms(self.rtt), ms(self.rtt_expected)));
        }
        for (name, check) in [("forward", self.forward), ("return", self.return_)] {
            if let Some(check) = check.filter(|check| check.error().abs() > check.tolerance) {
                reasons.push(format!("{name} rate is {}, not {}", kbit(check.measured), check.expected));
            }
        }
        Fitness::of(&reasons)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let granted = if self.superframe.is_zero() { "" } else { " with grants" };
        let (rtt, expected) = (ms(self.rtt), ms(self.rtt_expected));
        write!(f, "link {}: round trip {rtt} (set {expected}{granted})", self.profile)?;
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
        let demand = on_demand(&profile, Way::Return);
        // What was asked for before is no part of what the probes ask for.
        thread::sleep(demand.map_or(Duration::ZERO, granted::rest));
        let superframe = demand.map_or(Duration::ZERO, |demand| demand.superframe);
        let (rtt_expected, rtt) = self.round_trip(&profile)?;
        thread::sleep(demand.map_or(Duration::ZERO, granted::rest));
        let forward = self.rate(&profile, Way::Forward)?;
        let return_ = self.rate(&profile, Way::Return)?;
        self.link().take_record();
        Ok(Calibration { profile: profile.name, rtt_expected, superframe, rtt, forward, return_ })
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
        let expected = match on_demand(profile, Way::Return) {
            Some(_) => granted::round_trip(profile, PINGS as u32, PING_PAUSE, size).ok_or_else(silent)?,
            None => profile.rtt() + serialised,
        };
        Ok((expected, median.ok_or_else(silent)?))
    }

    /// The rate of one way, from the spacing of packets that were sent at once; `None` where none is set.
    pub(crate) fn rate(&self, profile: &Profile, way: Way) -> Result<Option<RateCheck>, Error> {
        let leg = profile.leg(way);
        let size = (TRAIN_PAYLOAD + HEADERS) as u64;
        // A tenth of the queue stays free for what else may cross.
        let count = (leg.queue.0 * 9 / 10 / size).clamp(2, TRAIN_LONGEST);
        let on_demand = on_demand(profile, way).and_then(|demand| {
            let (rate, takes) = granted::rate(profile, count as u32, Bytes(size))?;
            Some((rate, TOLERANCE + demand.superframe.as_secs_f64() / takes.as_secs_f64().max(1e-6)))
        });
        let steady = leg.contract().map(|rate| (rate, TOLERANCE));
        let Some((expected, tolerance)) = steady.or(on_demand) else {
            return Ok(None);
        };
        let telling = if steady.is_some() { count } else { granted::telling(count as u32).into() };
        let probe = self.probe(way, patience(profile))?;
        let measure = || -> io::Result<Option<BitRate>> {
            for number in 0..count {
                probe.send(number, TRAIN_PAYLOAD)?;
            }
            let Some(first) = probe.receive()? else {
                return Ok(None);
            };
            let (mut last, mut newest) = (first, first.number);
            while newest + 1 < count
                && let Some(arrival) = probe.receive()?
            {
                newest = arrival.number;
                if newest < telling {
                    last = arrival;
                }
            }
            // Lost packets took their time on the link, so numbers count, not arrivals.
            let bits = (last.number - first.number) * size * 8;
            let time = last.at.saturating_sub(first.at).as_secs_f64();
            Ok((bits > 0 && time > 0.0).then(|| BitRate((bits as f64 / time).round() as u64)))
        };
        let measured = measure().map_err(|source| Error::Probe { what: "rate", source })?;
        let silent = || Error::Probe { what: "rate", source: io::ErrorKind::TimedOut.into() };
        Ok(Some(RateCheck { expected, measured: measured.ok_or_else(silent)?, tolerance }))
    }
}

/// How long to wait for one more probe: the link's own time, what grants take, and a second for a busy machine.
fn patience(profile: &Profile) -> Duration {
    let grants = on_demand(profile, Way::Return).map_or(Duration::ZERO, granted::rest);
    profile.rtt() + grants + Duration::from_secs(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(rtt_ms: u64, forward: u64, return_: u64) -> Calibration {
        let check = |expected, measured| {
            Some(RateCheck {
                expected: BitRate::kbit(expected),
                measured: BitRate::kbit(measured),
                tolerance: TOLERANCE,
            })
        };
        Calibration {
            profile: "geo-hylas2".into(),
            rtt_expected: Duration::from_millis(650),
            superframe: Duration::ZERO,
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
    fn on_demand_a_superframe_more_or_less_is_when_the_probe_came() {
        let granted = Calibration { superframe: Duration::from_millis(27), ..calibration(675, 7999, 511) };
        assert_eq!(granted.fitness(), Fitness::Fit);
        assert!(granted.to_string().contains("675.0 ms (set 650.0 ms with grants)"), "{granted}");
        let late = Calibration { rtt: Duration::from_millis(690), ..granted };
        assert!(!late.fitness().is_fit());
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
