//! One direction as its receiver has it: what is missing is counted, told to the sender, and brought back.

use std::time::Duration;

use crate::decoder::{Decoder, REACH};
use crate::estimate::Estimate;
use crate::loss::Losses;
use crate::wire::{Repair, Report, Source};

/// A number may be ahead of the newest by so much. Whoever forges one has to hit a window of these in 2³².
const AHEAD: u32 = 1 << 16;
/// So many packets in succession with numbers out of reach, and the newest is no longer believed.
const ASTRAY: u32 = 64;
/// Silence of so many round trips, half a second at least, in which so many packets went missing is an outage: QUIC would
/// have been heard probing within two (RFC 9002 §6.2.1), unless the path carried nothing.
const OUTAGE_ROUND_TRIPS: u32 = 2;
const OUTAGE_LEAST: Duration = Duration::from_millis(500);
const OUTAGE_PACKETS: u32 = 3;
/// Reports follow each other no closer.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);

/// Counters of one direction at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Received {
    /// QUIC packets received in this layer.
    pub sources: u64,
    /// Repairs received.
    pub repairs: u64,
    /// Packets brought back.
    pub recovered: u64,
    /// Packets that did not arrive by themselves.
    pub lost: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Receiver {
    decoder: Decoder,
    losses: Losses,
    estimate: Estimate,
    astray: u32,
    rtt: Duration,
    /// The last report, and when it was made.
    told: (Report, Duration),
    /// Kept packets have come since.
    in_use: bool,
    /// So was the last one.
    kept: bool,
    last: Duration,
    counters: Received,
}

impl Receiver {
    /// A receiver of packets from number `first` on.
    pub(crate) fn new(now: Duration, first: u32, rtt: Duration) -> Self {
        let newest = first.wrapping_sub(1);
        Receiver {
            decoder: Decoder::new(newest),
            losses: Losses::new(newest),
            estimate: Estimate::new(newest),
            astray: 0,
            rtt,
            told: (Report { newest, ..Report::default() }, now),
            in_use: false,
            kept: false,
            last: now,
            counters: Received::default(),
        }
    }

    /// Makes `sequence` known to have been used; false if it cannot be believed.
    fn reach(&mut self, now: Duration, sequence: u32) -> bool {
        let ahead = sequence.wrapping_sub(self.losses.newest());
        let behind = self.losses.newest().wrapping_sub(sequence);
        if ahead > AHEAD && behind >= REACH {
            self.astray += 1;
            if self.astray < ASTRAY {
                return false;
            }
            // The sender has gone on without us, or something forged led astray: begin anew here.
            self.losses.restart(sequence.wrapping_sub(1));
            self.decoder = Decoder::new(sequence.wrapping_sub(1));
        }
        self.astray = 0;
        let step = sequence.wrapping_sub(self.losses.newest());
        if step <= AHEAD {
            if step > OUTAGE_PACKETS && self.was_silent(now) {
                self.losses.resume(sequence);
            } else {
                self.losses.advance(sequence);
            }
            self.decoder.advance(sequence);
        }
        true
    }

    fn was_silent(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) > (OUTAGE_ROUND_TRIPS * self.rtt).max(OUTAGE_LEAST)
    }

    /// A QUIC packet has arrived. It goes to QUIC whatever becomes of it here.
    pub(crate) fn handle_source(&mut self, now: Duration, source: &Source<'_>) {
        self.counters.sources += 1;
        if !self.reach(now, source.sequence) {
            return;
        }
        self.last = now;
        self.losses.arrived(source.sequence);
        self.kept = source.kept;
        if source.kept {
            self.in_use = true;
            self.decoder.insert(source.sequence, source.packet);
        }
    }

    /// A repair has arrived.
    pub(crate) fn handle_repair(&mut self, now: Duration, repair: &Repair<'_>) {
        self.counters.repairs += 1;
        let last = repair.first.wrapping_add(u32::from(repair.count) - 1);
        if self.reach(now, last) {
            self.last = now;
            self.decoder.repair(repair);
        }
    }

    /// The next packet brought back.
    pub(crate) fn poll_recovered(&mut self) -> Option<Vec<u8>> {
        let (_, packet) = self.decoder.poll_recovered()?;
        self.counters.recovered += 1;
        Some(packet)
    }

    /// When there is something to report: a loss soon, and that all is well once in a round trip while repairs are in use.
    fn report_due(&self) -> Option<Duration> {
        let (told, at) = self.told;
        let (lost, _) = self.losses.counts();
        if lost != told.lost {
            Some(at + (self.rtt / 4).max(SHORTEST_PAUSE))
        } else if self.in_use && self.losses.newest() != told.newest {
            Some(at + self.rtt.max(SHORTEST_PAUSE))
        } else {
            None
        }
    }

    /// The report to be made now; also lets go of what is of no more use.
    pub(crate) fn poll_report(&mut self, now: Duration) -> Option<Report> {
        if self.stale().is_some_and(|at| at <= now) {
            self.decoder.clear();
        }
        self.report_due().filter(|due| *due <= now)?;
        let (lost, runs) = self.losses.counts();
        let recovered = self.counters.recovered as u32; // wraps, as the layout has it
        let report = Report { newest: self.losses.newest(), lost, runs, recovered };
        self.estimate.update(&report, report.newest);
        self.told = (report, now);
        self.in_use = false;
        Some(report)
    }

    /// Share of packets that get lost on their way here, as far as was reported and the other end repairs: it knows better whether
    /// they get lost in a queue of its own.
    pub(crate) fn loss(&self) -> f64 {
        if self.kept { self.estimate.loss() } else { 0.0 }
    }

    /// When what is held can bring back nothing that QUIC has not sent again.
    fn stale(&self) -> Option<Duration> {
        (!self.decoder.is_empty()).then(|| self.last + 2 * self.rtt.max(SHORTEST_PAUSE))
    }

    /// When [`Receiver::poll_report`] has to be called though nothing arrives.
    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        [self.report_due(), self.stale()].into_iter().flatten().min()
    }

    /// Counters.
    pub(crate) fn counters(&self) -> Received {
        Received { lost: u64::from(self.losses.counts().0), ..self.counters }
    }
}
