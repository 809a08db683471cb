//! Notices that datagrams are held to far less than the path carries, as by networks that police UDP, and judges whether
//! another kind of carrier does better. It sees what arrives alone, and does not change carriers itself.
//!
//! A policer drops what is too much and delays nothing: much is lost at once, and the rate stays low afterwards although
//! more is wanted. So does a link that has really become bad, and what is wanted may be what its origin sends slowly.
//! Only trying tells these apart, therefore a [`Watch`] suspects and a [`Trial`] decides.

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
    /// Bits a second since `earlier`; `None` if no time has passed.
    fn rate_since(&self, earlier: &Arrived) -> Option<f64> {
        let elapsed = self.now.checked_sub(earlier.now).filter(|elapsed| !elapsed.is_zero())?;
        Some(8.0 * self.bytes.0.saturating_sub(earlier.bytes.0) as f64 / elapsed.as_secs_f64())
    }
}

/// A rate below this share of what the path is known to carry is low.
const LOW: f64 = 0.25;
/// So many packets missing among those of one look, at least so many: no weather that repairs could make good.
const HEAVY_LOSS: f64 = 0.20;
const ENOUGH_LOST: u64 = 20;
/// How long after that a low rate is laid to it.
const STRUCK: Duration = Duration::from_secs(15);
/// Who fills so many packets, each this large on the mean, had more to say than would go into them. Fewer may be QUIC's own, that
/// looks for the largest.
const FULL: (u64, Bytes) = (4, Bytes(600));
/// How long, while something is wanted, the rate has to be low.
const PATIENCE: Duration = Duration::from_secs(4);

/// Looks for signs that datagrams are held back. See the module.
#[derive(Debug, Clone)]
pub struct Watch {
    /// Bits a second that the path is known to carry.
    known: f64,
    last: Option<Arrived>,
    struck: Option<Duration>,
    /// How long the rate has been low, and what came in that time.
    low: Duration,
    bytes: u64,
}

impl Watch {
    /// For a path that is `known` to carry so much; else the best that was seen counts.
    pub fn new(known: Option<BitRate>) -> Self {
        let known = known.map_or(0.0, |rate| rate.0 as f64);
        Watch { known, last: None, struck: None, low: Duration::ZERO, bytes: 0 }
    }

    /// Takes a look, best one a second; gives the rate to which datagrams seem to be held when they do.
    pub fn look(&mut self, arrived: Arrived) -> Option<BitRate> {
        let last = self.last.replace(arrived)?;
        let rate = arrived.rate_since(&last)?;
        self.known = self.known.max(rate);
        if rate >= LOW * self.known {
            self.clear();
            return None;
        }
        // Counters begin anew with another layer that counts.
        let packets = arrived.packets.saturating_sub(last.packets);
        let lost = arrived.lost.saturating_sub(last.lost);
        if lost >= ENOUGH_LOST && lost as f64 >= HEAVY_LOSS * (packets + lost) as f64 {
            self.struck = Some(arrived.now);
        }
        let is_struck = self.struck.is_some_and(|at| arrived.now.saturating_sub(at) <= STRUCK);
        if !is_struck {
            self.clear();
            return None;
        }
        let bytes = arrived.bytes.0.saturating_sub(last.bytes.0);
        let is_full = packets >= FULL.0 && bytes >= packets * FULL.1.0;
        if arrived.wanted == Wanted::Certainly || (arrived.wanted == Wanted::Perhaps && is_full) {
            self.low += arrived.now.saturating_sub(last.now);
            self.bytes += bytes;
        }
        if self.low < PATIENCE {
            return None;
        }
        let held = BitRate((8.0 * self.bytes as f64 / self.low.as_secs_f64()) as u64);
        self.clear();
        Some(held)
    }

    fn clear(&mut self) {
        (self.struck, self.low, self.bytes) = (None, Duration::ZERO, 0);
    }
}

/// How long a trial takes while something is wanted.
const TRIAL: Duration = Duration::from_secs(5);
/// So much better has the other kind to be: changing costs, and it may have met a better moment.
const BETTER: f64 = 2.0;

/// Whether another carrier does better than datagrams did. See the module.
#[derive(Debug, Clone)]
pub struct Trial {
    held: f64,
    last: Option<Arrived>,
    busy: Duration,
    bytes: u64,
}

impl Trial {
    /// Against datagrams that were `held` to this rate.
    pub fn new(held: BitRate) -> Self {
        Trial { held: held.0 as f64, last: None, busy: Duration::ZERO, bytes: 0 }
    }

    /// Takes a look at what arrives on the other carrier; gives whether it is better once that is clear.
    pub fn look(&mut self, arrived: Arrived) -> Option<bool> {
        let last = self.last.replace(arrived)?;
        let came = arrived.bytes.0.saturating_sub(last.bytes.0);
        if arrived.wanted != Wanted::Nothing || came > 0 {
            self.busy += arrived.now.saturating_sub(last.now);
            self.bytes += came;
        }
        let enough = BETTER * self.held * TRIAL.as_secs_f64() / 8.0;
        if self.bytes > 0 && self.bytes as f64 >= enough {
            Some(true) // whatever the rest of its time brings
        } else {
            (self.busy >= TRIAL).then_some(false)
        }
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
        assert_eq!(tried(200, |_| (300, true)), Some((5, false)));
        assert_eq!(tried(0, |_| (0, true)), Some((5, false)), "nothing came on either");
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
