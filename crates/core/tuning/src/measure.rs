//! What running totals tell of a path: the empty round trip and how much it varies, the largest recent rate at which
//! bytes arrive, the share of packets lost. It must not decide anything from it.
//!
//! A rate counts over an interval, and two in a row have to show it: an end that was held up for a while gets what
//! waited for it all at once, and no link is as quick as that.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// An interval of arrivals is no shorter than this, nor than half a round trip, …
const SHORTEST_INTERVAL: Duration = Duration::from_millis(250);
/// … and has so many packets, so that one more or less is a few per cent, …
const FEWEST_PACKETS: u64 = 16;
/// … unless they take longer than this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);
/// The largest rate of so much time with traffic counts, and of as much before it. Below an eighth of the largest there
/// is no traffic to speak of, and an idle link does not unlearn what it can do.
const BUSY_PERIOD: Duration = Duration::from_secs(60);
const BUSY: u64 = 8;
/// After so long it counts as over in any case.
const LONGEST_PERIOD: Duration = Duration::from_secs(15 * 60);
/// Round trips of this long, and of as long before, are remembered.
const ROUND_TRIP_PERIOD: Duration = Duration::from_secs(20);
/// The smallest round trip of a connection's life is no longer the path's when all recent ones are twice as long and
/// this much more: it was handed over to another satellite, or to another orbit.
const HANDOVER: Duration = Duration::from_millis(20);
/// Losses of so many packets sent count, and of as many before.
const LOSS_PERIOD: u64 = 2_000;
/// Fewer say nothing.
const FEWEST_SENT: u64 = 100;

/// What an end of a carrier has counted since it began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Bytes received, IP headers among them.
    pub received: Bytes,
    /// The packets that they came in.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Those of them that were found lost.
    pub lost_packets: u64,
    /// The round trip as it is now, smoothed, and the smallest so far; `None` before the first answer.
    pub round_trip: Option<(Duration, Duration)>,
}

/// The round trip of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Of the empty path.
    pub least: Duration,
    /// How much longer it was at most of late.
    pub spread: Duration,
}

/// A share of packets, in packets of ten thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u32);

impl Share {
    /// `part` of `whole`, which is not zero.
    fn of(part: u64, whole: u64) -> Share {
        Share((part.min(whole) * 10_000 / whole) as u32)
    }
}

/// What is known of a path by measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// The round trip.
    pub round_trip: Option<RoundTrip>,
    /// The largest recent rate at which bytes arrived here.
    pub receiving: Option<BitRate>,
    /// The largest recent rate at which what this end sends arrived at the other, by its report.
    pub sending: Option<BitRate>,
    /// How much of what this end sends gets lost.
    pub lost_sending: Option<Share>,
    /// How much of what the other sends gets lost, by its report.
    pub lost_receiving: Option<Share>,
}

/// Measures one end of one carrier.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    last: Totals,
    rate: Rates,
    round_trip: RoundTrips,
    loss: Losses,
}

impl Meter {
    /// Takes the totals as they are at `now`, on any clock that does not go backwards.
    pub fn take(&mut self, now: Duration, totals: &Totals) {
        if let Some((smoothed, least)) = totals.round_trip {
            self.round_trip.take(now, smoothed, least);
        }
        let rtt = totals.round_trip.map_or(Duration::ZERO, |(smoothed, _)| smoothed);
        self.rate.take(now, rtt, totals);
        let sent = totals.sent_packets.saturating_sub(self.last.sent_packets);
        self.loss.take(sent, totals.lost_packets.saturating_sub(self.last.lost_packets));
        self.last = *totals;
    }

    /// What can be said so far; the other end's word is not part of it.
    pub fn measured(&self) -> Measured {
        Measured {
            round_trip: self.round_trip.value(),
            receiving: self.rate.value(),
            lost_sending: self.loss.value(),
            ..Measured::default()
        }
    }
}

/// The largest rate of this period and of the one before.
#[derive(Debug, Clone, Default)]
struct Rates {
    /// Where the interval began; `None` before the first look.
    mark: Option<(Duration, Totals)>,
    /// The rate of the interval before, in bit/s.
    before: u64,
    largest: u64,
    largest_before: u64,
    busy: Duration,
    began: Duration,
}

impl Rates {
    fn take(&mut self, now: Duration, rtt: Duration, totals: &Totals) {
        let Some((at, mark)) = &self.mark else {
            (self.mark, self.began) = (Some((now, *totals)), now);
            return;
        };
        let elapsed = now.saturating_sub(*at);
        let packets = totals.received_packets.saturating_sub(mark.received_packets);
        let is_whole = packets >= FEWEST_PACKETS || elapsed >= LONGEST_INTERVAL;
        if elapsed < SHORTEST_INTERVAL.max(rtt / 2) || !is_whole {
            return;
        }
        let bytes = totals.received.0.saturating_sub(mark.received.0);
        let rate = (bytes as f64 * 8.0 / elapsed.as_secs_f64()) as u64;
        let shown = rate.min(self.before);
        (self.before, self.mark) = (rate, Some((now, *totals)));
        let known = self.largest.max(self.largest_before);
        if shown > 0 && shown >= known / BUSY {
            self.busy += elapsed;
            self.largest = self.largest.max(shown);
        }
        if self.busy >= BUSY_PERIOD || now.saturating_sub(self.began) >= LONGEST_PERIOD {
            // A period without traffic says nothing new.
            if self.largest > 0 {
                self.largest_before = std::mem::take(&mut self.largest);
            }
            (self.busy, self.began) = (Duration::ZERO, now);
        }
    }

    fn value(&self) -> Option<BitRate> {
        let largest = self.largest.max(self.largest_before);
        (largest > 0).then_some(BitRate(largest))
    }
}

/// The shortest and longest smoothed round trip of a period.
#[derive(Debug, Clone, Copy)]
struct Range {
    shortest: Duration,
    longest: Duration,
}

impl Range {
    fn with(self, other: Range) -> Range {
        let shortest = self.shortest.min(other.shortest);
        Range { shortest, longest: self.longest.max(other.longest) }
    }
}

#[derive(Debug, Clone, Default)]
struct RoundTrips {
    began: Duration,
    now: Option<Range>,
    before: Option<Range>,
    /// The smallest of the connection's life.
    least: Duration,
}

impl RoundTrips {
    fn take(&mut self, now: Duration, smoothed: Duration, least: Duration) {
        let sample = Range { shortest: smoothed, longest: smoothed };
        if self.now.is_none() || now.saturating_sub(self.began) >= ROUND_TRIP_PERIOD {
            (self.before, self.now, self.began) = (self.now.or(self.before), None, now);
        }
        self.now = Some(self.now.map_or(sample, |range| range.with(sample)));
        self.least = least;
    }

    fn value(&self) -> Option<RoundTrip> {
        let now = self.now?;
        let recent = self.before.map_or(now, |before| before.with(now));
        let is_elsewhere = recent.shortest > 2 * self.least + HANDOVER;
        let least = if is_elsewhere { recent.shortest } else { self.least };
        Some(RoundTrip { least, spread: recent.longest.saturating_sub(least) })
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    sent: u64,
    lost: u64,
    sent_before: u64,
    lost_before: u64,
}

impl Losses {
    fn take(&mut self, sent: u64, lost: u64) {
        self.sent += sent;
        self.lost += lost;
        if self.sent >= LOSS_PERIOD {
            *self = Losses { sent: 0, lost: 0, sent_before: self.sent, lost_before: self.lost };
        }
    }

    fn value(&self) -> Option<Share> {
        let sent = self.sent + self.sent_before;
        (sent >= FEWEST_SENT).then(|| Share::of(self.lost + self.lost_before, sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1250;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A meter, the time, and what has come so far.
    #[derive(Default)]
    struct Line {
        meter: Meter,
        now: Duration,
        totals: Totals,
    }

    impl Line {
        /// For `time`, `rate` arrives in full packets, and the meter looks at each.
        fn carry(&mut self, rate: BitRate, time: Duration) {
            let (gap, until) = (rate.time_for(Bytes(PACKET)), self.now + time);
            while self.now + gap <= until {
                self.now += gap;
                self.totals.received += Bytes(PACKET);
                self.totals.received_packets += 1;
                self.meter.take(self.now, &self.totals);
            }
        }

        fn seen(&self) -> f64 {
            self.meter.measured().receiving.map_or(0.0, |rate| rate.0 as f64)
        }
    }

    #[test]
    fn the_rate_of_a_busy_link_is_found_from_64_kbit_to_1_gbit() {
        for rate in [BitRate::kbit(64), BitRate::kbit(512), BitRate::mbit(8), BitRate::mbit(1000)] {
            let mut line = Line::default();
            line.carry(rate, Duration::from_secs(20).min(rate.time_for(Bytes(50_000_000))).max(ms(1500)));
            assert!((line.seen() / rate.0 as f64 - 1.0).abs() < 0.05, "{rate}: {}", line.seen());
        }
    }

    #[test]
    fn what_comes_at_once_after_a_standstill_is_no_rate() {
        let mut line = Line::default();
        line.carry(BitRate::mbit(8), Duration::from_secs(3));
        // Half a second's worth waited while this end was held up.
        line.now += ms(500);
        line.totals.received += Bytes(500_000);
        line.totals.received_packets += 400;
        line.meter.take(line.now, &line.totals);
        line.carry(BitRate::mbit(8), Duration::from_secs(3));
        assert!(line.seen() < 8.5e6, "{}", line.seen());
    }

    #[test]
    fn an_idle_link_does_not_unlearn_and_a_slower_one_does() {
        let mut line = Line::default();
        line.carry(BitRate::mbit(8), Duration::from_secs(10));
        line.carry(BitRate::kbit(20), Duration::from_secs(600));
        assert!(line.seen() > 7.5e6, "{}", line.seen());
        line.carry(BitRate::mbit(2), Duration::from_secs(180));
        assert!(line.seen() < 2.2e6, "{}", line.seen());
    }

    #[test]
    fn the_round_trip_follows_a_handover_and_not_a_queue() {
        let mut meter = Meter::default();
        let mut now = Duration::ZERO;
        let mut look = |smoothed, least, times: u32| {
            for _ in 0..times {
                now += Duration::from_secs(1);
                let round_trip = Some((ms(smoothed), ms(least)));
                meter.take(now, &Totals { round_trip, ..Totals::default() });
            }
            meter.measured().round_trip.unwrap()
        };
        assert_eq!(look(45, 40, 10), RoundTrip { least: ms(40), spread: ms(5) });
        assert_eq!(look(70, 40, 300), RoundTrip { least: ms(40), spread: ms(30) });
        assert_eq!(look(620, 40, 130), RoundTrip { least: ms(620), spread: ms(0) });
    }

    #[test]
    fn losses_are_a_share_of_what_was_sent_of_late() {
        let mut meter = Meter::default();
        let mut totals = Totals::default();
        let mut send = |packets: u64, lost: u64| {
            totals.sent_packets += packets;
            totals.lost_packets += lost;
            meter.take(Duration::ZERO, &totals);
            meter.measured().lost_sending
        };
        assert_eq!(send(50, 5), None);
        assert_eq!(send(950, 15), Some(Share(200)));
        for _ in 0..5 {
            send(1_000, 0);
        }
        assert_eq!(send(0, 0), Some(Share(0)));
    }
}
