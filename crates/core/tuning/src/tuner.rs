//! One end of one carrier, tuned while it runs: measures, decides again when the path has changed enough to matter, and says
//! what the other end should know.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::decision::{Applies, Decision, Figures, Sending, Told};
use crate::measure::{Measured, Meter, Share, Totals};
use crate::reasons::{beyond, decisions, unread, windows};
use crate::{Parameters, Path, Room, Set};

/// A size grows when more than a quarter is missing, which leaves every window above what fills the path, …
const GROW: (u64, u64) = (5, 4);
/// … and shrinks when half would do.
const SHRINK: u64 = 2;
/// A carrier is outgrown when its streams could use half as much again.
const OUTGROWN: (u64, u64) = (3, 2);
/// … and, where the round trip is more than twice what it once was, they have used half of what they have.
const GROWN: u32 = 2;
const USED: u64 = 2;
/// Reports to the peer: not more often than this, nor than once a round trip, …
const REPORT_EVERY: Duration = Duration::from_secs(2);
/// … and only when the rate has changed by an eighth, or the loss by a quarter and half a per cent.
const REPORT_RATE: u64 = 8;
const REPORT_LOSS: u32 = 50;

/// What an end tells the other of its side of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The largest recent rate at which what the other sent has arrived here.
    pub arriving: BitRate,
    /// How much of what this end sent got lost.
    pub lost: Share,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Tuner {
    set: Set,
    /// What earlier carriers over the path had measured.
    learned: Measured,
    meter: Meter,
    heard: Option<Report>,
    said: Option<Report>,
    next_report: Duration,
    /// The shortest round trip so far.
    shortest: Option<Duration>,
    /// What the carrier began with.
    first: Parameters,
    now: Parameters,
}

impl Tuner {
    /// For a carrier whose first parameters followed from `set` and `learned`.
    pub fn new(set: Set, learned: Measured) -> Tuner {
        let first = Parameters::new(&set, &Path::new(&set, &learned));
        Tuner {
            set,
            learned,
            meter: Meter::default(),
            heard: None,
            said: None,
            next_report: Duration::ZERO,
            shortest: None,
            first,
            now: first,
        }
    }

    /// What settings say.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Earlier carriers over the same path had measured this, and so the carrier began with `first`.
    pub fn learn(&mut self, learned: Measured, first: Parameters) {
        *self = Tuner { heard: self.heard, first, now: first, ..Tuner::new(self.set, learned) };
    }

    /// Takes the totals as they are at `now`, with `open` streams that the peer has open. Says whether anything is decided
    /// differently from now on.
    pub fn observe(&mut self, now: Duration, totals: &Totals, open: u64) -> bool {
        self.meter.take(now, totals);
        let least = self.meter.measured().round_trip.map(|round_trip| round_trip.least);
        self.shortest = self.shortest.into_iter().chain(least).min();
        let path = Path::new(&self.set, &self.measured());
        let before = self.now;
        let fit = Parameters::new(&self.set, &path).with_open(open);
        // Streams keep the windows with which the carrier began, and need the room that goes with them.
        let carrier_window = fit.carrier_window.max(self.first.carrier_window);
        self.now = before.settled(Parameters { carrier_window, ..fit });
        self.now != before
    }

    /// What the peer has reported.
    pub fn hear(&mut self, report: Report) {
        self.heard = Some(report);
    }

    /// What the peer should be told now, if anything.
    pub fn poll_report(&mut self, now: Duration) -> Option<Report> {
        let own = self.meter.measured();
        let report = Report { arriving: own.receiving?, lost: own.lost_sending.unwrap_or(Share(0)) };
        if now < self.next_report || self.said.is_some_and(|said| !differ(said, report)) {
            return None;
        }
        let pause = own.round_trip.map_or(REPORT_EVERY, |round_trip| round_trip.least.max(REPORT_EVERY));
        (self.said, self.next_report) = (Some(report), now + pause);
        Some(report)
    }

    /// What is known by measurement, here, at the peer, and on earlier carriers.
    pub fn measured(&self) -> Measured {
        let own = self.meter.measured();
        Measured {
            round_trip: own.round_trip.or(self.learned.round_trip),
            // This carrier may have had nothing to carry so far.
            receiving: own.receiving.max(self.learned.receiving),
            sending: self.heard.map(|report| report.arriving).max(self.learned.sending),
            lost_sending: own.lost_sending.or(self.learned.lost_sending),
            lost_receiving: self.heard.map(|report| report.lost).or(self.learned.lost_receiving),
        }
    }

    /// What is decided now.
    pub fn parameters(&self) -> &Parameters {
        &self.now
    }

    /// What the carrier began with: in force where it cannot be changed while it lasts.
    pub fn first(&self) -> &Parameters {
        &self.first
    }

    /// What the peer may send on one stream is so much less than fits the path that another carrier is worth its handshake: this
    /// one keeps what it began with. Where only the round trip has grown since, it has to be made use of first: processors that are
    /// busy look like a long way, hold up nothing that is small, and a thousand new carriers would keep them busy for good.
    pub fn has_outgrown(&self) -> bool {
        let own = self.meter.measured();
        let Some(round_trip) = own.round_trip.map(|round_trip| round_trip.least) else { return false };
        let has_grown = self.shortest.is_some_and(|shortest| round_trip > GROWN * shortest);
        let filled = own.receiving.map_or(Bytes(0), |rate| rate.bytes_in(round_trip));
        self.now.stream_window.0 * OUTGROWN.1 > self.first.stream_window.0 * OUTGROWN.0
            && (!has_grown || USED * filled.0 >= self.first.stream_window.0)
    }

    /// All of it for people and programs, of a carrier over QUIC, what is sent on which is driven like this.
    pub fn told(&self, sending: Option<&Sending>) -> Told {
        self.tell(|path| {
            let mut rows = decisions(&self.set, path, &self.now, &self.first, sending);
            rows.extend(beyond(&self.set, path, &self.now));
            rows
        })
    }

    /// The same of a carrier over TCP, whose connections are the kernel's affair, and on which a stream and all of them may hold
    /// so much unread.
    pub fn told_over_tcp(&self, stream: Bytes, all: Bytes) -> Told {
        self.tell(|path| {
            let mut rows = windows(path, &self.now, (stream, Applies::Now), all);
            rows.push(unread(path, &self.now));
            rows.extend(beyond(&self.set, path, &self.now));
            rows
        })
    }

    fn tell(&self, decided: impl FnOnce(&Path) -> Vec<Decision>) -> Told {
        let measured = self.measured();
        Told {
            set: Figures::set(&self.set),
            measured: Figures::measured(self.set.end, &measured),
            decided: decided(&Path::new(&self.set, &measured)),
        }
    }
}

fn differ(said: Report, now: Report) -> bool {
    let rates = said.arriving.0.abs_diff(now.arriving.0) > said.arriving.0 / REPORT_RATE;
    let losses = said.lost.0.abs_diff(now.lost.0);
    rates || losses > REPORT_LOSS.max(said.lost.0 / 4)
}

impl Parameters {
    /// `wanted`, where it differs enough from what is in force.
    fn settled(self, wanted: Parameters) -> Parameters {
        let size = |now: Bytes, wanted: Bytes| Bytes(settle(now.0, wanted.0));
        let time = |now: Duration, wanted: Duration| {
            Duration::from_micros(settle(now.as_micros() as u64, wanted.as_micros() as u64))
        };
        Parameters {
            stream_window: size(self.stream_window, wanted.stream_window),
            carrier_window: size(self.carrier_window, wanted.carrier_window),
            send_window: size(self.send_window, wanted.send_window),
            send_most: size(self.send_most, wanted.send_most),
            unread: size(self.unread, wanted.unread),
            streams: settle(self.streams, wanted.streams),
            ack_packets: settle(self.ack_packets, wanted.ack_packets),
            ack_delay: time(self.ack_delay, wanted.ack_delay),
            packet_threshold: settle(self.packet_threshold, wanted.packet_threshold),
            time_threshold: wanted.time_threshold,
            initial_round_trip: time(self.initial_round_trip, wanted.initial_round_trip),
            keep_alive: time(self.keep_alive, wanted.keep_alive),
            idle: wanted.idle,
            handshake: time(self.handshake, wanted.handshake),
            socket_buffer: size(self.socket_buffer, wanted.socket_buffer),
            sending: BitRate(settle(self.sending.0, wanted.sending.0)),
            outage: time(self.outage, wanted.outage),
            ahead: time(self.ahead, wanted.ahead),
            neighbours: Room {
                stream: size(self.neighbours.stream, wanted.neighbours.stream),
                connection: size(self.neighbours.connection, wanted.neighbours.connection),
            },
        }
    }
}

/// `wanted`, where it is far enough from `now`.
fn settle(now: u64, wanted: u64) -> u64 {
    let grows = u128::from(wanted) * u128::from(GROW.1) > u128::from(now) * u128::from(GROW.0);
    if grows || wanted < now / SHRINK { wanted } else { now }
}
