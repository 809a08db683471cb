//! How much may be written into a carrier before it is acknowledged, and in what pieces. On a clean link: what the
//! congestion window can use and 50 ms, two packets at the least, so that later and more urgent writes are not stuck behind
//! earlier ones. For some round trips after a loss: twice that, since a stream's bytes behind a hole
//! stay counted until the hole is filled; without the room 1 % of random loss takes a third of the
//! rate. It must not write anything itself.

use std::time::Duration;

use farhop_htotp::scheduler::{CALM, PAYLOAD_SHARE, Pace};
use farhop_tuning::{Measured, Sending, WRITE_AHEAD};
use farhop_units::{BitRate, Bytes};
use quinn::Connection;

use crate::congestion::{self, Driven};
use crate::path::{End, PathPlan};

/// A hole is noticed after one round trip and filled after two; one more for the acknowledgement.
const ROUND_TRIPS: u32 = 3;
/// Losses matter by the round trip, so looking more often than this is a waste.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(25);

/// On quick paths less is no use, since a window may double more often than this is looked at; but nowhere is it more than
/// so much link time, since what is urgent waits for room in it.
const SMALLEST: Bytes = Bytes(64 << 10);
const LONGEST: Duration = Duration::from_millis(500);
/// So that the next packet is always there and full, on the slowest path too.
const TWO_PACKETS: Bytes = Bytes(2 * 1452);
/// A full packet with its headers, the headers of IPv4 and UDP, and the largest piece that the scheduler hands out.
const PACKET: Bytes = Bytes(1480);
/// The same while little goes ahead, when packets are short.
const SHORT_PACKET: Bytes = Bytes(580);
const HEADERS: u64 = 28;
const LARGEST_GRANT: u64 = 16 << 10;
/// No more than this share is taken off a rate for what left beyond it, and with what leaves beside.
const MOST_RELIEF: f64 = 0.25;
const MOST_BESIDE: f64 = 0.75;
/// What leaves beside is the mean over so long.
const BESIDE: Duration = Duration::from_secs(1);
/// What may be written beyond the window when it is urgent and whole: about a packet. On a slow link the next room is as far
/// away as that packet is long.
const LOAN: u64 = 1_400;
/// What is shorter is the hosts' own.
const SHORTEST_RTT: Duration = Duration::from_millis(1);
/// A window is set anew when it has changed by more than this part of it.
const STEP: u64 = 16;

/// Sets the send window of one connection as its congestion window and its losses change, and says how fast it may be
/// written to.
#[derive(Debug)]
pub struct WriteAhead {
    clean: Bytes,
    /// It is never more than this.
    most: Bytes,
    /// What the connection was last told.
    set: Bytes,
    hold: Duration,
    interval: Duration,
    next_look: Duration,
    lost: u64,
    room: Option<Room>,
    pace: Option<Pace>,
    driven: Option<Driven>,
    surplus: Surplus,
    /// Bytes around each of QUIC's packets: headers of IP and UDP, and those of the layer that repairs.
    around: u64,
}

/// What the scheduler has given out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given {
    /// All of it so far.
    pub handed: Bytes,
    /// Little is to go ahead.
    pub is_calm: bool,
}

/// Room beside what is lost and still counts.
#[derive(Debug, Clone, Copy)]
struct Room {
    until: Duration,
    /// How often the clean window.
    times: u64,
}

impl WriteAhead {
    /// For the connection of `end` on a path like `plan`, made with that plan's parameters.
    pub fn new(plan: &PathPlan, end: End) -> Self {
        let clean = plan.send_window(end);
        WriteAhead {
            clean,
            most: plan.parameters(end, &Measured::default()).send_most,
            set: clean,
            hold: (ROUND_TRIPS * plan.rtt).max(4 * SHORTEST_INTERVAL),
            interval: (plan.rtt / 8).max(SHORTEST_INTERVAL),
            next_look: Duration::ZERO,
            lost: 0,
            room: None,
            pace: None,
            driven: None,
            surplus: Surplus::default(),
            around: HEADERS + if plan.repair > 0 { farhop_fec::wire::HEADER as u64 } else { 0 },
        }
    }

    /// Call whenever the driver is awake anyway, with its clock; gives the pace of writes when it changes.
    pub fn adapt(&mut self, now: Duration, connection: &Connection, given: Given) -> Option<Pace> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + self.interval;
        let (path, udp) = (connection.stats().path, connection.stats().udp_tx);
        let driven = congestion::driven(connection)?;
        self.clean = clean(&driven, path.rtt).min(self.most);
        // The first time the connection may have another than this end believes: it began with what was learned.
        let changed = self.change(now, path.lost_packets).or(self.driven.is_none().then_some(self.set));
        if let Some(window) = changed {
            connection.set_send_window(window.0);
        }
        let about = rate(&driven, path.rtt);
        self.driven = Some(driven);
        let sent = Bytes(udp.bytes + self.around * udp.datagrams);
        let ahead = if given.is_calm { CALM } else { WRITE_AHEAD };
        let rate = driven.pacing.map(|rate| self.surplus.relieve(now, (sent, given.handed), rate, ahead));
        let pace = Pace { rate, about: Some(about), ..Pace::default() };
        (self.pace.replace(pace) != Some(pace)).then_some(pace)
    }

    /// From now on it is never more than `most`.
    pub fn set_most(&mut self, most: Bytes) {
        self.most = most;
    }

    /// About what the path takes, as it was when it was last looked at.
    pub fn about(&self) -> Option<BitRate> {
        self.pace.and_then(|pace| pace.about)
    }

    /// How it is driven, as it was when it was last looked at.
    pub fn sending(&self) -> Option<Sending> {
        self.driven.map(|driven| Sending {
            controller: driven.choice.name(),
            kept: driven.pacing,
            window: driven.window,
            send_window: self.set,
        })
    }

    /// What was written before an outage counts until it is acknowledged, twice the clean window at the most: makes room
    /// beside it.
    pub fn wake(&mut self, now: Duration, connection: &Connection) {
        self.room = Some(Room { until: now + self.hold, times: 3 });
        self.set = Bytes(3 * self.clean.0);
        connection.set_send_window(self.set.0);
    }

    /// Makes room for `bytes` that are urgent and all that there is of something, if they are few: these do not wait for
    /// what was written before them to be acknowledged. True if [`WriteAhead::take_back`] is to follow once they are written.
    pub fn lend(&self, bytes: u64, connection: &Connection) -> bool {
        let lends = bytes <= LOAN;
        if lends {
            connection.set_send_window(self.set.0 + bytes);
        }
        lends
    }

    /// The room is as large as it was.
    pub fn take_back(&self, connection: &Connection) {
        connection.set_send_window(self.set.0);
    }

    /// The new window when it changes, given how many packets were lost so far.
    fn change(&mut self, now: Duration, lost: u64) -> Option<Bytes> {
        if lost > self.lost {
            self.lost = lost;
            let times = self.room.map_or(2, |room| room.times);
            self.room = Some(Room { until: now + self.hold, times });
        } else {
            self.room.take_if(|room| room.until <= now);
        }
        let wanted = Bytes(self.room.map_or(1, |room| room.times) * self.clean.0);
        (wanted.0.abs_diff(self.set.0) > self.set.0 / STEP).then(|| {
            self.set = wanted;
            wanted
        })
    }
}

/// What leaves beside what the scheduler counts: headers of packets that are not full, acknowledgements, and what is sent again. A
/// rate that is kept to is less by that; what has left beyond it all the same stands in the link's queue.
#[derive(Debug, Default)]
struct Surplus {
    bytes: f64,
    /// Bytes in a second.
    beside: f64,
    sent: Bytes,
    handed: Bytes,
    at: Duration,
}

impl Surplus {
    /// The rate for what is handed out now, so that a surplus is gone after a second, given all that was `sent` and handed out so
    /// far. So much of link time may be written `ahead`.
    fn relieve(
        &mut self,
        now: Duration,
        (sent, handed): (Bytes, Bytes),
        rate: BitRate,
        ahead: Duration,
    ) -> BitRate {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        let full = rate.0.max(1) as f64 / 8.0;
        let left = sent.0.saturating_sub(self.sent.0) as f64;
        let counted = handed.0.saturating_sub(self.handed.0) as f64 / PAYLOAD_SHARE;
        // What is handed out leaves a little later: only the mean says something.
        let kept = BESIDE.as_secs_f64() / (BESIDE.as_secs_f64() + passed);
        self.beside = self.beside * kept + (left - counted) * (1.0 - kept) / passed.max(0.001);
        self.bytes = (self.bytes + left - full * passed).max(0.0);
        (self.sent, self.handed, self.at) = (sent, handed, now);
        // What is written ahead is meant to stand there, and so is the packet on its way.
        let packet = if ahead > CALM { PACKET } else { SHORT_PACKET };
        let ahead = rate.bytes_in(ahead);
        let meant = ahead + Bytes(LARGEST_GRANT.min(ahead.0)).max(packet);
        let beyond = ((self.bytes - meant.0 as f64).max(0.0) / full).min(MOST_RELIEF);
        let beside = self.beside.max(0.0) / full;
        BitRate((rate.0 as f64 * (1.0 - (beyond + beside).min(MOST_BESIDE))) as u64)
    }
}

/// What the congestion window can use, before it has grown again, and 50 ms of it.
fn clean(driven: &Driven, rtt: Duration) -> Bytes {
    let usable = if driven.is_searching { 2 * driven.window.0 } else { driven.window.0 };
    let rate = rate(driven, rtt);
    // On a short path a window is measured with what acknowledgements hold back: no more than another.
    let most = if driven.pacing.is_some() { Bytes(u64::MAX) } else { driven.window };
    let ahead = rate.bytes_in(WRITE_AHEAD).min(most).max(TWO_PACKETS);
    Bytes(usable.max(driven.prospect.0) + ahead.0).max(rate.bytes_in(LONGEST).min(SMALLEST))
}

/// About what the path takes: what is kept to, else a window in each round trip.
fn rate(driven: &Driven, rtt: Duration) -> BitRate {
    let measured = || BitRate((8.0 * driven.window.0 as f64 / rtt.max(SHORTEST_RTT).as_secs_f64()) as u64);
    driven.pacing.unwrap_or_else(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_congestion::{Choice, Phase};
    use farhop_orbit::Profile;
    use farhop_units::BitRate;

    #[test]
    fn room_is_made_at_the_first_loss_and_taken_back_after_three_clean_round_trips() {
        let plan = PathPlan::for_profile(&Profile::named("geo-hylas2").unwrap());
        let mut ahead = WriteAhead::new(&plan, End::Ground);
        let clean = plan.send_window(End::Ground);
        let at = |ms| Duration::from_millis(ms);
        assert_eq!(ahead.change(at(0), 0), None);
        assert_eq!(ahead.change(at(100), 2), Some(Bytes(2 * clean.0)));
        assert_eq!(ahead.change(at(1000), 3), None, "already roomy, held longer");
        assert_eq!(ahead.change(at(2900), 3), None);
        assert_eq!(ahead.change(at(2950), 3), Some(clean));
        assert_eq!(ahead.change(at(3000), 3), None);
        assert_eq!(ahead.change(at(3100), 4), Some(Bytes(2 * clean.0)));
    }

    #[test]
    fn a_window_that_may_double_is_kept_fed_and_one_that_stands_is_not_flooded() {
        let rtt = Duration::from_millis(500);
        let standing = Driven {
            choice: Choice::Bbr,
            phase: Phase::Normal,
            window: Bytes(500_000),
            prospect: Bytes(500_000),
            pacing: None,
            is_searching: false,
        };
        assert_eq!(clean(&standing, rtt), Bytes(550_000));
        assert_eq!(clean(&Driven { is_searching: true, ..standing }, rtt), Bytes(1_050_000));
        let paced = Driven { pacing: Some(BitRate::mbit(8)), ..standing };
        assert_eq!(clean(&paced, rtt), Bytes(550_000));
    }

    #[test]
    fn what_left_beyond_the_rate_is_taken_off_it_until_it_is_gone_from_the_queue() {
        let rate = BitRate::kbit(64);
        let relieve = |surplus: &mut Surplus, ms, sent: Bytes| {
            let handed = Bytes((sent.0 as f64 * PAYLOAD_SHARE).round() as u64);
            surplus.relieve(Duration::from_millis(ms), (sent, handed), rate, WRITE_AHEAD)
        };
        let mut surplus = Surplus::default();
        let mut sent = Bytes(1_880);
        assert_eq!(relieve(&mut surplus, 0, sent), rate, "a packet, and what is written ahead");
        sent.0 += 800;
        assert_eq!(relieve(&mut surplus, 0, sent), BitRate(57_600), "a tenth of a second too much");
        sent.0 += 8_000;
        assert_eq!(
            relieve(&mut surplus, 1_000, sent),
            BitRate(57_600),
            "it stays as long as the rate is used up"
        );
        sent.0 += 8_000;
        assert_eq!(relieve(&mut surplus, 2_100, sent), rate);
        sent.0 += 80_000;
        assert_eq!(relieve(&mut surplus, 2_100, sent), BitRate(48_000), "a quarter at the most");
        assert_eq!(relieve(&mut surplus, 60_000, sent), rate, "who pauses owes nothing");
    }

    #[test]
    fn what_leaves_beside_is_taken_off_before_it_makes_a_queue() {
        let rate = BitRate::kbit(512);
        let (mut surplus, mut sent, mut handed) = (Surplus::default(), Bytes(0), Bytes(0));
        let mut last = rate;
        for look in 1..200 {
            // A fifth of the link is acknowledgements, and all that may be handed out is.
            let payload = last.0 as f64 / 8.0 / 20.0;
            sent.0 += (payload + rate.0 as f64 / 8.0 / 20.0 / 5.0) as u64;
            handed.0 += (payload * PAYLOAD_SHARE) as u64;
            last = surplus.relieve(Duration::from_millis(50 * look), (sent, handed), rate, CALM);
        }
        assert!((400_000..=412_000).contains(&last.0), "{last:?}");
        assert!(surplus.bytes < 3_000.0, "{}", surplus.bytes);
    }

    #[test]
    fn no_more_than_half_a_second_and_the_window_waits_on_a_slow_path_and_a_jump_finds_its_bytes_there() {
        let rtt = Duration::from_millis(600);
        let slow = Driven {
            choice: Choice::Bbr,
            phase: Phase::Normal,
            window: Bytes(4_800), // 64 kbit/s
            prospect: Bytes(4_800),
            pacing: None,
            is_searching: false,
        };
        assert_eq!(rate(&slow, rtt), BitRate::kbit(64));
        assert_eq!(clean(&slow, rtt), Bytes(4_800 + TWO_PACKETS.0));
        let jumping = Driven { phase: Phase::Reconnaissance, prospect: Bytes(300_000), ..slow };
        assert_eq!(clean(&jumping, rtt), Bytes(300_000 + TWO_PACKETS.0));
        let quick = Driven { window: Bytes(12_000), ..slow };
        assert_eq!(clean(&quick, Duration::from_millis(2)), SMALLEST, "it may double before the next look");
    }
}
