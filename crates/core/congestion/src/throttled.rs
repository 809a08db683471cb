//! Notices that datagrams are held to far less than the path carries, as by networks that police UDP, and judges whether
//! another kind of carrier does better. It sees what arrives alone, and does not change carriers itself.
//!
//! A policer drops what is too much and delays nothing: much is lost at once, and the rate stays low afterwards although
//! more is wanted. So does a link that has really become bad, and what is wanted may be what its origin sends slowly.
//! Only trying tells these apart, therefore a [`Watch`] suspects and a [`Trial`] decides.
//!
//! There are three signs. After heavy loss a rate far below what the path is known to carry is one, whatever else is seen. The second
//! needs no knowledge of the path: a link that is too slow lets packets wait before it drops them, so where much was dropped and none
//! had waited, something else dropped them. That is suspected unless nearly all that is known of arrives, or what was lost comes again.
//! The third is a shaper's, which has a queue of its own: a sender that gives way to it loses little, and once. Where packets were
//! dropped and then wait for a good while, though far less arrives than the path is known to carry, it is the path that holds them.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// What has arrived on a carrier so far, at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrived {
    /// The moment, on any clock.
    pub now: Duration,
    /// Bytes received.
    pub bytes: Bytes,
    /// Packets received that were numbered, so that those missing can be told.
    pub packets: u64,
    /// Packets missing among them.
    pub lost: u64,
    /// Whether more is to come.
    pub wanted: Wanted,
    /// The round trip at present, and the shortest: more than that is a queue's. Nothing where it is not known.
    pub round_trip: Option<(Duration, Duration)>,
}

/// Whether more is to come on a carrier than has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Nothing is asked for.
    #[default]
    Nothing,
    /// Something is open that may have nothing to say, as a tunnel or an endless answer: full packets tell that it has.
    Perhaps,
    /// What is to come waits already.
    Certainly,
}

impl Arrived {
    /// Whether packets wait on their way; `None` where nobody knows.
    fn is_queued(&self) -> Option<bool> {
        self.round_trip.map(|(now, least)| now > least.mul_f64(QUEUED) + JITTER)
    }

    /// Bits a second since `earlier`; `None` if no time has passed.
    fn rate_since(&self, earlier: &Arrived) -> Option<f64> {
        let elapsed = self.now.checked_sub(earlier.now).filter(|elapsed| !elapsed.is_zero())?;
        Some(8.0 * self.bytes.0.saturating_sub(earlier.bytes.0) as f64 / elapsed.as_secs_f64())
    }
}

/// A rate below this share of what the path is known to carry is low.
const LOW: f64 = 0.25;
/// What is dropped without a queue makes a rate suspicious that is below this share of it, …
const SHORT: f64 = 0.75;
/// … and by so much it exceeds the one at which much was dropped if that has passed.
const RECOVERED: f64 = 1.25;
/// A round trip longer by so much, and by what frames and busy hosts add, has met a queue.
const QUEUED: f64 = 1.125;
const JITTER: Duration = Duration::from_millis(10);
/// So many packets missing among those of one look, at least so many: no weather that repairs could make good. Where a look brings
/// fewer, several count as one.
const HEAVY_LOSS: f64 = 0.20;
const ENOUGH_LOST: u64 = 20;
/// How long after that a low rate is laid to it.
const STRUCK: Duration = Duration::from_secs(15);
/// Who fills so many packets, each this large on the mean, had more to say than would go into them. Fewer may be QUIC's own, that
/// looks for the largest.
const FULL: (u64, Bytes) = (4, Bytes(600));
/// How long, while something is wanted, the rate has to be low.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long where packets have waited lately (a sender that gives way does not meet a queue in each look), …
const LONG_PATIENCE: Duration = Duration::from_secs(10);
const LATELY: Duration = Duration::from_secs(6);
/// … and this share of a look's packets was missing not too long ago: it has been found that no more goes.
const SOME_LOSS: f64 = 0.02;
const FOUND: Duration = Duration::from_secs(30);

/// Looks for signs that datagrams are held back. See the module.
#[derive(Debug, Clone)]
pub struct Watch {
    /// Bits a second that the path is known to carry, from elsewhere, and by what was seen as well.
    told: f64,
    known: f64,
    last: Option<Arrived>,
    /// The look from which on losses are counted together.
    batch: Option<Arrived>,
    struck: Option<Strike>,
    /// Low after much was missing.
    low: Low,
    /// When packets had waited last, when some were missing, and low for that.
    waited: Option<Duration>,
    dropped: Option<Duration>,
    narrow: Low,
}

/// How long the rate has been low though more was wanted, and what came in that time.
#[derive(Debug, Clone, Copy, Default)]
struct Low {
    time: Duration,
    bytes: u64,
}

impl Low {
    fn add(&mut self, time: Duration, bytes: u64) {
        self.time += time;
        self.bytes += bytes;
    }

    fn rate(&self) -> BitRate {
        BitRate((8.0 * self.bytes as f64 / self.time.as_secs_f64()) as u64)
    }
}

/// Much was missing.
#[derive(Debug, Clone, Copy)]
struct Strike {
    at: Duration,
    /// What arrived all the same, in bits a second, if nothing had waited then.
    unqueued: Option<f64>,
}

impl Watch {
    /// For a path that is `known` to carry so much; else the best that was seen counts.
    pub fn new(known: Option<BitRate>) -> Self {
        let known = known.map_or(0.0, |rate| rate.0 as f64);
        Watch {
            told: known,
            known,
            last: None,
            batch: None,
            struck: None,
            low: Low::default(),
            waited: None,
            dropped: None,
            narrow: Low::default(),
        }
    }

    /// Takes a look, best one a second; gives the rate to which datagrams seem to be held when they do.
    pub fn look(&mut self, arrived: Arrived) -> Option<BitRate> {
        let last = self.last.replace(arrived)?;
        let rate = arrived.rate_since(&last)?;
        self.known = self.known.max(rate);
        self.judge_loss(&arrived, last);
        let (after_loss, is_narrow) =
            (self.is_suspicious(arrived.now, rate), self.is_narrow(&arrived, &last, rate));
        if !after_loss {
            (self.struck, self.low) = (None, Low::default());
        }
        if !is_narrow {
            self.narrow = Low::default();
        }
        let packets = arrived.packets.saturating_sub(last.packets);
        let bytes = arrived.bytes.0.saturating_sub(last.bytes.0);
        let is_full = packets >= FULL.0 && bytes >= packets * FULL.1.0;
        if arrived.wanted == Wanted::Certainly || (arrived.wanted == Wanted::Perhaps && is_full) {
            let time = arrived.now.saturating_sub(last.now);
            for (holds, low) in [(after_loss, &mut self.low), (is_narrow, &mut self.narrow)] {
                if holds {
                    low.add(time, bytes);
                }
            }
        }
        let held = match (self.low.time >= PATIENCE, self.narrow.time >= LONG_PATIENCE) {
            (true, _) => self.low.rate(),
            (false, true) => self.narrow.rate(),
            (false, false) => return None,
        };
        (self.struck, self.low, self.narrow) = (None, Low::default(), Low::default());
        Some(held)
    }

    /// Whether far less arrives than the path is known to carry, while packets wait on it and are dropped.
    fn is_narrow(&mut self, arrived: &Arrived, last: &Arrived, rate: f64) -> bool {
        let (now, packets) = (arrived.now, arrived.packets.saturating_sub(last.packets));
        let lost = arrived.lost.saturating_sub(last.lost);
        if arrived.is_queued() == Some(true) {
            self.waited = Some(now);
        }
        let within = |time, at: Option<Duration>| at.is_some_and(|at| now.saturating_sub(at) <= time);
        let waits = within(LATELY, self.waited);
        // What is lost without a queue is weather's.
        if waits && lost > 0 && lost as f64 >= SOME_LOSS * (packets + lost) as f64 {
            self.dropped = Some(now);
        }
        rate < LOW * self.known && waits && within(FOUND, self.dropped)
    }

    /// Notes when much is missing.
    fn judge_loss(&mut self, arrived: &Arrived, last: Arrived) {
        let batch = *self.batch.get_or_insert(last);
        // Counters begin anew with another layer that counts.
        let packets = arrived.packets.saturating_sub(batch.packets);
        let lost = arrived.lost.saturating_sub(batch.lost);
        if lost >= ENOUGH_LOST && lost as f64 >= HEAVY_LOSS * (packets + lost) as f64 {
            // A sender that gives way to it is slower for a moment.
            let before = self.struck.and_then(|strike| strike.unqueued);
            let rate = arrived.rate_since(&batch).unwrap_or_default().max(before.unwrap_or_default());
            self.struck = Some(Strike {
                at: arrived.now,
                unqueued: (arrived.is_queued() == Some(false)).then_some(rate),
            });
            self.batch = None;
        } else if lost as f64 + packets as f64 >= ENOUGH_LOST as f64 / HEAVY_LOSS
            || arrived.now.saturating_sub(batch.now) >= STRUCK
        {
            self.batch = None;
        }
    }

    /// Whether a rate is low for what was dropped a while ago.
    fn is_suspicious(&self, now: Duration, rate: f64) -> bool {
        let Some(strike) = self.struck.filter(|strike| now.saturating_sub(strike.at) <= STRUCK) else {
            return false;
        };
        let is_short =
            |unqueued: f64| (self.told == 0.0 || rate < SHORT * self.told) && rate <= RECOVERED * unqueued;
        rate < LOW * self.known || strike.unqueued.is_some_and(is_short)
    }
}

/// How long a trial takes while something is wanted, whatever comes: a slow start over a long way is over by then. After it …
const START: Duration = Duration::from_secs(5);
/// … the other kind may show for so long what it brings, …
const TRIAL: Duration = Duration::from_secs(10);
/// … unless it was clearly better before, or brought next to nothing.
const CLEARLY: f64 = 2.0;
const HOPELESS: f64 = 0.25;
/// So much better has it to be in the end: changing costs, and it may have met a better moment.
const BETTER: f64 = 1.4;

/// Whether another carrier does better than datagrams did. See the module.
#[derive(Debug, Clone)]
pub struct Trial {
    held: f64,
    last: Option<Arrived>,
    busy: Duration,
    bytes: u64,
    /// What had come, and when, once the start was over.
    started: Option<(Duration, u64)>,
}

impl Trial {
    /// Against datagrams that were `held` to this rate.
    pub fn new(held: BitRate) -> Self {
        Trial { held: held.0 as f64, last: None, busy: Duration::ZERO, bytes: 0, started: None }
    }

    /// Takes a look at what arrives on the other carrier; gives whether it is better once that is clear.
    pub fn look(&mut self, arrived: Arrived) -> Option<bool> {
        let last = self.last.replace(arrived)?;
        let came = arrived.bytes.0.saturating_sub(last.bytes.0);
        if arrived.wanted != Wanted::Nothing || came > 0 {
            self.busy += arrived.now.saturating_sub(last.now);
            self.bytes += came;
        }
        if self.started.is_none() {
            if self.bytes > 0 && self.bytes as f64 >= self.share(CLEARLY, START) {
                return Some(true); // whatever the rest of its time brings
            }
            if self.busy < START {
                return None;
            }
            self.started = Some((self.busy, self.bytes));
            let hopeless = self.bytes == 0 || (self.bytes as f64) < self.share(HOPELESS, START);
            return hopeless.then_some(false);
        }
        let (busy, bytes) = self.started?;
        // What waited for a packet that was lost comes all at once: nothing is certain before the end.
        let time = self.busy - busy;
        (time >= TRIAL).then(|| (self.bytes - bytes) as f64 >= self.share(BETTER, time))
    }

    /// So many bytes are so many times what came of datagrams in this time.
    fn share(&self, times: f64, time: Duration) -> f64 {
        times * self.held * time.as_secs_f64() / 8.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a carrier once a second.
    struct Link {
        arrived: Arrived,
        packet: u64,
    }

    impl Link {
        fn new() -> Link {
            Link { arrived: Arrived::default(), packet: 1250 }
        }

        /// A second in which so many kbit/s arrive and a share of all packets does not.
        fn second(&mut self, kbit: u64, lost: f64, wanted: bool) -> Arrived {
            let packets = kbit * 125 / self.packet;
            self.arrived.now += Duration::from_secs(1);
            self.arrived.bytes.0 += kbit * 125;
            self.arrived.packets += packets;
            self.arrived.lost += (packets as f64 * lost / (1.0 - lost)) as u64;
            self.arrived.wanted = if wanted { Wanted::Perhaps } else { Wanted::Nothing };
            self.arrived
        }
    }

    /// After how many seconds of the same a watch suspects, within a minute.
    fn suspects(known: Option<u64>, course: impl Fn(u32) -> (u64, f64, bool)) -> Option<(u32, u64)> {
        let mut watch = Watch::new(known.map(BitRate::mbit));
        let mut link = Link::new();
        watch.look(link.arrived);
        (0..60).find_map(|second| {
            let (kbit, lost, wanted) = course(second);
            watch.look(link.second(kbit, lost, wanted)).map(|held| (second + 1, held.0 / 1000))
        })
    }

    #[test]
    fn what_is_policed_is_noticed_within_seconds() {
        // The sender learns soon what comes through, and then loses little.
        let policed = |second| (200, if second < 3 { 0.97 } else { 0.02 }, true);
        assert_eq!(suspects(Some(8), policed), Some((4, 200)));
        // Known from what came before.
        let later = |second| if second < 5 { (8_000, 0.0, true) } else { policed(second - 5) };
        assert_eq!(suspects(None, later), Some((9, 200)));
    }

    #[test]
    fn weather_slow_origins_pauses_and_cuts_are_no_policers() {
        assert_eq!(suspects(Some(8), |_| (6_000, 0.10, true)), None, "rain");
        assert_eq!(suspects(Some(8), |_| (200, 0.01, true)), None, "a slow origin");
        assert_eq!(suspects(Some(8), |_| (200, 0.97, false)), None, "nothing is wanted");
        assert_eq!(
            suspects(Some(8), |second| (if second < 20 { 0 } else { 8_000 }, 0.0, true)),
            None,
            "a cut"
        );
        let fade = |second: u32| if second % 20 < 3 { (400, 0.9, true) } else { (8_000, 0.0, true) };
        assert_eq!(suspects(Some(8), fade), None, "short fades");
        assert_eq!(suspects(None, |_| (200, 0.5, true)), None, "nobody knows of more");
    }

    #[test]
    fn a_queue_in_which_some_was_dropped_is_noticed_where_the_path_is_known_to_carry_far_more() {
        // A second in ten packets are dropped, and the round trip is longer or is not.
        let suspects = |known, lost, is_queued, wanted| {
            let mut watch = Watch::new(known);
            let mut link = Link::new();
            watch.look(link.arrived);
            let trip = Duration::from_millis(if is_queued { 740 } else { 640 });
            (0..60).find_map(|second| {
                let seen = link.second(800, if second % 10 == 5 { lost } else { 0.0 }, wanted);
                let seen = Arrived { round_trip: Some((trip, Duration::from_millis(620))), ..seen };
                watch.look(seen).map(|held| (second + 1, held.0 / 1000))
            })
        };
        let known = Some(BitRate::mbit(8));
        assert_eq!(suspects(known, 0.05, true, true), Some((15, 800)));
        assert_eq!(suspects(known, 0.05, false, true), None, "a slow origin, and weather");
        assert_eq!(suspects(known, 0.0, true, true), None, "a slow origin, and a way that varies");
        assert_eq!(suspects(known, 0.05, true, false), None, "nothing is wanted");
        assert_eq!(suspects(Some(BitRate::mbit(3)), 0.05, true, true), None, "others have a part of it");
        assert_eq!(suspects(None, 0.05, true, true), None, "nobody knows of more");
    }

    #[test]
    fn an_idle_tunnel_and_one_with_little_to_say_want_no_more() {
        for (packet, kbit) in [(80, 1), (80, 30), (1400, 0), (1400, 12)] {
            let mut watch = Watch::new(Some(BitRate::mbit(8)));
            let mut link = Link::new();
            watch.look(link.second(6_000, 0.0, true));
            // An address was changed: much of what was under way is missing.
            watch.look(link.second(500, 0.6, true));
            link.packet = packet;
            let held = (0..60).find_map(|_| watch.look(link.second(kbit, 0.0, true)));
            assert_eq!(held, None, "{kbit} kbit/s in packets of {packet} bytes");
        }
    }

    #[test]
    fn what_waits_already_needs_no_full_packets() {
        let mut watch = Watch::new(Some(BitRate::mbit(8)));
        let mut link = Link::new();
        watch.look(link.second(6_000, 0.0, true));
        watch.look(link.second(500, 0.6, true));
        let held = (0..5).find_map(|_| {
            let seen = link.second(0, 0.0, true);
            watch.look(Arrived { wanted: Wanted::Certainly, ..seen })
        });
        assert!(held.is_some());
    }

    #[test]
    fn a_low_rate_long_after_a_fade_is_not_laid_to_it() {
        let course = |second| if second < 3 { (200, 0.9, second == 0) } else { (100, 0.0, second > 20) };
        assert_eq!(suspects(Some(8), course), None);
    }

    #[test]
    fn counters_that_begin_anew_say_nothing() {
        let mut watch = Watch::new(Some(BitRate::mbit(8)));
        let mut link = Link::new();
        watch.look(link.second(6_000, 0.2, true));
        link.arrived = Arrived { now: link.arrived.now, ..Arrived::default() };
        assert_eq!(watch.look(link.second(1_000, 0.0, true)), None);
    }

    fn tried(held: u64, course: impl Fn(u32) -> (u64, bool)) -> Option<(u32, bool)> {
        let mut trial = Trial::new(BitRate::kbit(held));
        let mut link = Link::new();
        trial.look(link.arrived);
        (0..60).find_map(|second| {
            let (kbit, wanted) = course(second);
            trial.look(link.second(kbit, 0.0, wanted)).map(|better| (second + 1, better))
        })
    }

    #[test]
    fn what_is_clearly_better_is_kept_and_what_is_not_is_left() {
        assert_eq!(tried(200, |_| (8_000, true)), Some((1, true)));
        assert_eq!(tried(200, |_| (500, true)), Some((4, true)));
        assert_eq!(tried(200, |_| (300, true)), Some((15, true)));
        assert_eq!(tried(200, |_| (250, true)), Some((15, false)));
        assert_eq!(tried(200, |_| (40, true)), Some((5, false)), "nobody waits for more of that");
        assert_eq!(tried(0, |_| (0, true)), Some((5, false)), "nothing came on either");
    }

    #[test]
    fn a_start_of_another_kind_that_is_slow_is_not_held_against_it() {
        // TCP over 650 ms, against datagrams that are held to 60 % and to 90 %.
        let slow_start =
            |second: u32| ([170, 480, 1_400, 3_900].get(second as usize).copied().unwrap_or(8_000), true);
        assert_eq!(tried(4_800, slow_start), Some((15, true)));
        assert_eq!(tried(7_200, slow_start), Some((15, false)));
    }

    #[test]
    fn a_trial_waits_until_something_is_wanted() {
        assert_eq!(
            tried(200, |second| if second < 30 { (0, false) } else { (8_000, true) }),
            Some((31, true))
        );
        assert_eq!(tried(200, |_| (0, false)), None);
    }
}
