//! What is known and decided, as people and other programs are told: the names and units of `farhop path`. Its sentences are
//! `reasons`'.

use std::fmt;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

use crate::measure::Share;
use crate::reasons::{short, time_in_words};
use crate::{End, Measured, Set, Source, Trips};

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "unit", content = "value")]
pub enum Value {
    /// A size.
    Bytes(u64),
    /// A time, in milliseconds.
    Ms(f64),
    /// Packets.
    Packets(u64),
    /// Streams.
    Streams(u64),
    /// Round trips.
    RoundTrips(f64),
    /// Of a hundred.
    Percent(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Value::Bytes(bytes) => short(Bytes(bytes)),
            Value::Ms(ms) => time_in_words(Duration::from_micros((ms * 1e3) as u64)),
            Value::Packets(packets) => format!("{packets} packets"),
            Value::Streams(streams) => format!("{streams} streams"),
            Value::RoundTrips(times) => format!("{times} RTT"),
            Value::Percent(share) => format!("{share} %"),
        };
        f.pad(&text)
    }
}

/// When what is decided is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Applies {
    /// At once.
    Now,
    /// From the next carrier on: QUIC fixes it when a connection begins.
    NextCarrier,
}

impl fmt::Display for Applies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Applies::Now => "at once",
            Applies::NextCarrier => "next carrier",
        })
    }
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Its name.
    pub parameter: String,
    /// What fits the path.
    #[serde(flatten)]
    pub value: Value,
    /// What this carrier has, in the same unit.
    pub in_use: Value,
    /// What it follows from.
    pub from: Source,
    /// When a change of it is in force.
    pub applies: Applies,
    /// Why, in a sentence.
    pub because: String,
}

/// What is known of the path, as far as it is; shares are of packets, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Figures {
    pub round_trip_ms: Option<f64>,
    pub variation_ms: Option<f64>,
    pub forward_bps: Option<u64>,
    pub return_bps: Option<u64>,
    pub forward_lost: Option<f64>,
    pub return_lost: Option<f64>,
    /// Ground: of the ways to origins, smoothed.
    pub origin_round_trip_ms: Option<f64>,
    pub origin_variation_ms: Option<f64>,
    /// Remote: of the ways to its clients, smoothed.
    pub browser_round_trip_ms: Option<f64>,
    pub browser_variation_ms: Option<f64>,
}

impl Figures {
    /// What settings say.
    pub fn set(set: &Set) -> Figures {
        Figures {
            round_trip_ms: set.round_trip.map(ms),
            forward_bps: set.forward.map(|rate| rate.0),
            return_bps: set.return_.map(|rate| rate.0),
            ..Figures::default()
        }
    }

    /// What `end` has measured or was told.
    pub fn measured(end: End, measured: &Measured) -> Figures {
        let sent = (measured.sending.map(|rate| rate.0), measured.lost_sending.map(share));
        let received = (measured.receiving.map(|rate| rate.0), measured.lost_receiving.map(share));
        let (forward, return_) = if end == End::Ground { (sent, received) } else { (received, sent) };
        Figures {
            round_trip_ms: measured.round_trip.map(|it| ms(it.least)),
            variation_ms: measured.round_trip.map(|it| ms(it.spread)),
            forward_bps: forward.0,
            return_bps: return_.0,
            forward_lost: forward.1,
            return_lost: return_.1,
            ..Figures::default()
        }
    }

    /// With what ground has measured of the ways to origins.
    #[must_use]
    pub fn with_origins(self, trips: &Trips) -> Figures {
        let (trip, variation) = trips.measured().unzip();
        Figures { origin_round_trip_ms: trip.map(ms), origin_variation_ms: variation.map(ms), ..self }
    }

    /// With what the remote has measured of the ways to its clients.
    #[must_use]
    pub fn with_browsers(self, trips: &Trips) -> Figures {
        let (trip, variation) = trips.measured().unzip();
        Figures { browser_round_trip_ms: trip.map(ms), browser_variation_ms: variation.map(ms), ..self }
    }
}

/// How what this end sends on a carrier is driven at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The controller's name, as `[link] congestion` has it.
    pub controller: &'static str,
    /// The rate that it keeps to, if it does.
    pub kept: Option<BitRate>,
    /// What may be in flight.
    pub window: Bytes,
    /// What may be written and not acknowledged.
    pub send_window: Bytes,
}

/// The whole of a carrier.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Told {
    /// What settings say of the path; it wins.
    pub set: Figures,
    /// What was measured.
    pub measured: Figures,
    /// What follows.
    pub decided: Vec<Decision>,
}

pub(crate) fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

fn share(share: Share) -> f64 {
    f64::from(share.0) / 10_000.0
}
