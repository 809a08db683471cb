//! Settings that both ends share: the link they size themselves for, how they watch it, what they log.

use std::time::Duration;

use farhop_congestion::Choice;
use farhop_diffserv::{Ceiling, Patient};
use farhop_orbit::{Leg, Profile};
use farhop_units::{BitRate, Bytes};

use crate::choices::{Fec, LogLevel};
use crate::end::End;
use crate::error::SettingsError;
use crate::kinds::{HostPort, Hours, Percent};
use crate::load::conflict;
use crate::section::settings;
use crate::source::Source;

settings! {
    /// Return-link capacity that is asked for before there is something to send. The modem has to understand it (docs/capacity.md).
    pub struct CapacitySettings {
        values {
            /// Where it is asked for (UDP). "auto": nowhere.
            modem: Option<HostPort>, default "auto";
            /// Most bytes asked for ahead at a time; what cannot be sent so soon is taken from others.
            ahead: Bytes, default "32 KB", range "1 KB" to "100 MB", chosen "geo-hylas2: half a second of the return link";
        }
    }
}

settings! {
    /// What some of what can wait never exceeds in the direction that this end sends in, on each carrier, and when.
    pub struct CarrierCeilingSettings {
        values {
            /// Of what: streaming (media with a play rate), bulk (downloads, uploads, mail), updates (and what else nobody waits for),
            /// backups or peer-to-peer.
            of: Patient, live true;
            /// The most that all of it together is sent at within the hours below; auto: whatever the link has left over.
            rate: Option<BitRate>, default "auto", range "1 kbit/s" to "100 Gbit/s", live true;
            /// When that holds; in UTC. auto: all day.
            hours: Option<Hours>, default "auto", live true;
            /// The most at other times. Never nothing, so that connections do not give up.
            outside: BitRate, default "8 kbit/s", range "1 kbit/s" to "100 Gbit/s", live true;
        }
    }
}

impl CarrierCeilingSettings {
    /// The same for who keeps to it.
    pub fn ceiling(&self) -> Ceiling {
        let hours = self.hours.map(|hours| (hours.from, hours.to));
        Ceiling { of: self.of, rate: self.rate, hours, outside: self.outside }
    }
}

/// No two of them are of the same, and each says something.
pub(crate) fn check_ceilings(
    ceilings: &[Ceiling],
    source: &Source,
    prefix: &str,
) -> Result<(), SettingsError> {
    for (at, ceiling) in ceilings.iter().enumerate() {
        let key = format!("{prefix}ceiling.{at}.of");
        if ceilings[..at].iter().any(|other| other.of == ceiling.of) {
            let reason = format!("'{}' has two ceilings; join them", ceiling.of);
            return Err(conflict(source, &key, reason));
        }
        if ceiling.rate.is_none() && ceiling.hours.is_none() {
            let reason = format!("the ceiling of '{}' limits nothing; give it a rate, or hours", ceiling.of);
            return Err(conflict(source, &key, reason));
        }
    }
    Ok(())
}

settings! {
    /// The long hop that windows, limits and timers are sized for.
    pub struct LinkSettings {
        values {
            /// The link to size for. auto says nothing of it: all is measured, and followed when it changes. leo-100m, meo-50m,
            /// geo-256k, geo-500k, geo-2m, geo-isti-128k, geo-isti-1m, geo-hylas2, geo-hylas2-4m, geo-20m and lunar-10m are links
            /// with known rates and round trips, which are kept to whatever is measured. none is a link that limits nothing, as in
            /// a laboratory.
            profile: Option<Profile>, default "auto", chosen "any link: from 5 ms to 2.6 s, from 64 kbit/s to 1 Gbit/s";
            /// Contracted rate from ground to remote; auto takes the profile's, or measures. The sender never exceeds it, so a
            /// value above what the link gives fills its queue and a value below wastes it.
            forward_rate: Option<BitRate>, default "auto", range "1 kbit/s" to "100 Gbit/s";
            /// Contracted rate from remote to ground; auto takes the profile's, or measures.
            return_rate: Option<BitRate>, default "auto", range "1 kbit/s" to "100 Gbit/s";
            /// Round trip of the idle link; auto takes the profile's, or measures.
            round_trip: Option<Duration>, default "auto", range "0 s" to "10 s";
            /// What decides how much of what this end sends is under way: rate (keeps to the rate above, with no search and no
            /// queue), bbr (measures the path and leaves its queues empty), hybla (for long paths), cubic (as most of the
            /// internet does), newreno, westwood, vegas or bic (to compare with). auto takes rate where the rate is known, else
            /// bbr.
            congestion: Option<Choice>, default "auto";
            /// Whether losses are made good without asking for what was lost (forward error correction): auto as measured loss
            /// calls for it, off never. Both ends have to allow it.
            fec: Fec, default "auto", chosen "any satellite link: costs 5 bytes a packet while nothing is lost";
            /// Bytes of repair at most, as a share of the bytes sent.
            fec_most: Percent, default "25 %", range "1 %" to "100 %", chosen "any satellite link: makes good 10 % of random loss, or bursts of 5 packets at 3 %";
        }
    }
}

impl LinkSettings {
    /// What the other end is told of the link; empty where it is measured.
    pub fn told(&self) -> &str {
        self.profile.as_ref().map_or("", |profile| &profile.name)
    }

    /// Rules between these settings of `end`, which stand in the table `prefix`.
    ///
    /// # Errors
    /// The controller keeps to a rate that nobody knows.
    pub(crate) fn check(&self, source: &Source, prefix: &str, end: End) -> Result<(), SettingsError> {
        let profile = self.profile.as_ref();
        let (rate, leg, name) = match end {
            End::Ground => (self.forward_rate, profile.map(|it| &it.forward), "forward_rate"),
            _ => (self.return_rate, profile.map(|it| &it.return_), "return_rate"),
        };
        if self.congestion == Some(Choice::Rate) && rate.or(leg.and_then(Leg::contract)).is_none() {
            let reason = format!(
                "congestion control 'rate' needs the rate of what this end sends, and the profile names none; \
                 set it ('{prefix}{name}'), or choose another controller or 'auto'"
            );
            return Err(conflict(source, &format!("{prefix}congestion"), reason));
        }
        Ok(())
    }

    /// Most bytes of repair for each hundred bytes sent; zero where nothing is repaired.
    pub fn repair(&self) -> u32 {
        if self.fec == Fec::Auto { self.fec_most.0 } else { 0 }
    }
}

settings! {
    /// How an end finds out that the other is gone, and how it comes back.
    pub struct ProbeSettings {
        values {
            /// Time between probes while exchanges wait for an answer.
            active: Duration, default "1 s", range "100 ms" to "1 min", chosen "geo-hylas2: a silent ground is noticed within 3 s";
            /// Time between probes while nothing is under way.
            idle: Duration, default "15 s", range "1 s" to "10 min", chosen "geo-hylas2: about 40 bit/s, and short enough for most NAT bindings";
            /// How long the other end may stay silent after a probe, beyond one round trip, before the link counts as cut.
            patience: Duration, default "1 s", range "100 ms" to "1 min", chosen "geo-hylas2: probe interval + round trip + patience stay below 3 s";
            /// How long the remote holds on to a silent carrier, with all that is under way, before it gives it up. It probes every round trip meanwhile, four times a second at the least.
            hold: Duration, default "150 s", range "0 s" to "170 s", chosen "any satellite link: rides out a cut of 2 min";
            /// Longest pause between two attempts to reconnect; the first comes at once.
            reconnect_max: Duration, default "5 s", range "100 ms" to "10 min", chosen "geo-hylas2: after an outage the carrier is back within 5 s and a handshake";
        }
    }
}

settings! {
    /// What is written to standard error.
    pub struct LogSettings {
        values {
            /// How much: error, warn, info (one line for each exchange), debug or trace.
            level: LogLevel, default "info", live true;
            /// Names only the host of each URL in logs and events, not its path or query.
            host_only: bool, default "false", live true;
        }
    }
}
