//! What the operator knows of the long hop, and the QUIC parameters that follow: windows, limits,
//! timers. Every number that is not the RFC's has its reason beside it. It must not open sockets.

use std::time::Duration;

use farhop_congestion::{CAP, Choice, Contract};
use farhop_fec::wire::ROOM;
use farhop_htotp::mux::Windows;
use farhop_orbit::Profile;
use farhop_units::{BitRate, Bytes};
use quinn::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::memory::Recall;
use crate::{congestion, wake};

/// Which end of the long hop this is; it decides which direction is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Sends on the forward link.
    Ground,
    /// Sends on the return link.
    Remote,
}

impl End {
    /// What an operator calls the rate of what this end sends.
    fn rate_setting(self) -> &'static str {
        match self {
            End::Ground => "link.forward_rate",
            End::Remote => "link.return_rate",
        }
    }

    /// The other one.
    pub(crate) fn opposite(self) -> End {
        match self {
            End::Ground => End::Remote,
            End::Remote => End::Ground,
        }
    }
}

/// The long hop as settings describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathPlan {
    /// Round-trip time of the empty path; zero where nothing is known.
    pub rtt: Duration,
    /// Rate of ground → remote, `None` where it is not contracted.
    pub forward: Option<BitRate>,
    /// Rate of remote → ground.
    pub return_: Option<BitRate>,
    /// Most bytes of repair for each hundred bytes sent, where packets get lost; zero where none is repaired.
    pub repair: u32,
    /// The controller that settings name for what this end sends.
    pub congestion: Option<Choice>,
}

/// The controller that settings name keeps to a rate that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("congestion control '{chosen}' needs the rate of what this end sends, and the profile names none; set it ('{setting}'), or choose another controller or 'auto'", chosen = Choice::Rate, setting = .0.rate_setting())]
pub struct NoRate(End);

/// A rate to size windows for when none is contracted: what GEO services sell today.
const ASSUMED_RATE: BitRate = BitRate::mbit(50);
/// What one stream may hold unread at the least and the most. The least costs nothing on slow links; the most carries
/// 100 Mbit/s over 640 ms on one stream.
const STREAM_WINDOW: (Bytes, Bytes) = (Bytes(1 << 20), Bytes(8 << 20));
/// What all streams of a carrier may hold unread. A stream that nobody reads, a video that is paused, keeps its own window
/// full and must not take that of the others: there is room for so many, up to so many bytes.
const UNREAD_STREAMS: u64 = 64;
const CARRIER_WINDOW: (Bytes, Bytes) = (Bytes(64 << 20), Bytes(128 << 20));
/// Writes wait in the carrier for at most this much link time, so that what is urgent overtakes.
pub(crate) const WRITE_AHEAD: Duration = Duration::from_millis(50);
pub(crate) const SMALLEST_SEND_WINDOW: Bytes = Bytes(64 << 10);
pub(crate) const LARGEST_SEND_WINDOW: Bytes = Bytes(8 << 20);
/// QUIC's default of 100 streams alone cost a second on pages of 200 objects over 600 ms.
const STREAMS: u32 = 4096;
/// UDP payload that fits an Ethernet with room for one tunnel header over IPv6.
const LARGEST_PACKET: u16 = 1452;
/// Bytes of repair for each hundred that loss may call for: what makes good 10 % of random loss.
const DEFAULT_REPAIR: u32 = 25;
/// Each probe costs a round trip, so the search stops at steps of about 4 %.
const SMALLEST_MTU_STEP: u16 = 60;
/// Silence that a connection survives: longer than the session holds on to a silent peer, which it probes at a steady pace.
const IDLE: Duration = Duration::from_secs(180);
/// Silence after which a connection says something of itself: NATs forget bindings of UDP after half a minute.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));

impl PathPlan {
    /// Nothing known: loopback, tests, or an uncontracted path.
    pub const UNKNOWN: PathPlan = PathPlan {
        rtt: Duration::ZERO,
        forward: None,
        return_: None,
        repair: DEFAULT_REPAIR,
        congestion: None,
    };

    /// The plan that fits a named link profile.
    pub fn for_profile(profile: &Profile) -> Self {
        let (forward, return_) = (profile.forward.rate, profile.return_.rate);
        PathPlan { rtt: profile.rtt(), forward, return_, ..PathPlan::UNKNOWN }
    }

    /// This plan, with what an operator knows better than its profile.
    #[must_use]
    pub fn refined(self, rtt: Option<Duration>, forward: Option<BitRate>, return_: Option<BitRate>) -> Self {
        PathPlan {
            rtt: rtt.unwrap_or(self.rtt),
            forward: forward.or(self.forward),
            return_: return_.or(self.return_),
            ..self
        }
    }

    /// This plan with at most so many bytes of repair for each hundred bytes sent.
    #[must_use]
    pub fn with_repair(self, repair: u32) -> Self {
        PathPlan { repair, ..self }
    }

    /// This plan at `end`, whose settings name a controller or leave it open.
    ///
    /// # Errors
    /// It is [`Choice::Rate`], and the rate is not known.
    pub fn driven_by(self, choice: Option<Choice>, end: End) -> Result<Self, NoRate> {
        if choice == Some(Choice::Rate) && self.sending_rate(end).is_none() {
            return Err(NoRate(end));
        }
        Ok(PathPlan { congestion: choice, ..self })
    }

    /// The rate at which `end` may send.
    pub fn sending_rate(&self, end: End) -> Option<BitRate> {
        match end {
            End::Ground => self.forward,
            End::Remote => self.return_,
        }
    }

    /// The contract of the direction that `end` sends, if its rate is known.
    pub fn contract(&self, end: End) -> Option<Contract> {
        self.sending_rate(end).map(|rate| Contract { rate, rtt: self.rtt })
    }

    /// Bytes in flight that fill the direction that `end` sends; assumed where no rate is known.
    fn bdp(&self, end: End) -> Bytes {
        let assumed_rtt = self.rtt.max(Duration::from_millis(100));
        match self.sending_rate(end) {
            Some(rate) => rate.bytes_in(self.rtt),
            None => ASSUMED_RATE.bytes_in(assumed_rtt),
        }
    }

    /// Receive windows (one stream, whole carrier) of the end opposite to `sender`: a stream's is twice the BDP, so that
    /// a lost packet's round trip does not stall it.
    pub fn receive_windows(&self, sender: End) -> (Bytes, Bytes) {
        let stream = Bytes(2 * self.bdp(sender).0).clamp(STREAM_WINDOW.0, STREAM_WINDOW.1);
        let carrier = Bytes(UNREAD_STREAMS * stream.0).clamp(CARRIER_WINDOW.0, CARRIER_WINDOW.1);
        (stream, carrier)
    }

    /// What `end` takes unread from its peer on a carrier over TCP.
    pub fn mux_windows(&self, end: End) -> Windows {
        let (stream, carrier) = self.receive_windows(end.opposite());
        let streams = u64::from(STREAMS);
        Windows { stream: stream.0, total: carrier.0, both: streams, one: streams }
    }

    /// Bytes that `end` may hold written and unacknowledged: what its congestion window can use and
    /// 50 ms of link time.
    pub fn send_window(&self, end: End) -> Bytes {
        let wanted = match self.sending_rate(end) {
            Some(rate) => (self.bdp(end).0 as f64 * CAP) as u64 + rate.bytes_in(WRITE_AHEAD).0,
            None => 2 * self.bdp(end).0,
        };
        Bytes(wanted).clamp(SMALLEST_SEND_WINDOW, LARGEST_SEND_WINDOW)
    }

    /// Socket buffers that take what may arrive while the process is busy elsewhere.
    pub fn socket_buffer(&self) -> Bytes {
        let bdp = self.bdp(End::Ground).max(self.bdp(End::Remote));
        Bytes(2 * bdp.0).clamp(Bytes(1 << 20), Bytes(8 << 20))
    }

    /// Silence after which a carrier is given up.
    pub fn idle_timeout(&self) -> Duration {
        IDLE
    }

    /// How long the remote waits for a handshake before it calls afresh. Short, since a fresh call
    /// sends at once while QUIC doubles its pauses: after an outage the carrier is back sooner.
    pub fn handshake_timeout(&self) -> Duration {
        Duration::from_secs(3).max(6 * self.rtt)
    }

    /// Packets by which another may be overtaken before it counts as lost: 1/32 RTT of the sending
    /// rate, since satellite modems reorder by a frame or two and a false alarm costs a round trip. 1/8 where a repair may
    /// bring it back meanwhile, as long as [`PathPlan::time_threshold`] waits too.
    fn packet_threshold(&self, end: End) -> u32 {
        let rate = self.sending_rate(end).unwrap_or(ASSUMED_RATE);
        let (wait, most) = if self.repair > 0 { (self.rtt / 8, 128) } else { (self.rtt / 32, 64) };
        let packets = rate.bytes_in(wait).0 / u64::from(LARGEST_PACKET);
        packets.clamp(3, most) as u32 // RFC 9002 §6.1.1: not below 3
    }

    /// The largest packet that QUIC is to try: below one that fits any path, by what is put around it for repairs.
    fn largest_packet(&self) -> u16 {
        if self.repair > 0 { LARGEST_PACKET - ROOM as u16 } else { LARGEST_PACKET }
    }

    /// The factor on the RTT after which a packet counts as lost: RFC 9002 §6.1.2's 9/8, but never
    /// less than 30 ms of tolerance.
    fn time_threshold(&self) -> f32 {
        let tolerance = 0.030 / self.rtt.as_secs_f32().max(0.060);
        1.0 + tolerance.max(0.125)
    }

    /// How `end` asks to be acknowledged. By default every second packet is: at 8 Mbit/s this alone
    /// fills a third of a 512 kbit/s return link.
    fn ack_frequency(&self, end: End) -> AckFrequencyConfig {
        let longest = (self.rtt / 16).clamp(Duration::from_millis(2), Duration::from_millis(25));
        let mut config = AckFrequencyConfig::default();
        config
            .ack_eliciting_threshold(VarInt::from_u32(9))
            .max_ack_delay(Some(longest))
            .reordering_threshold(VarInt::from_u32(self.packet_threshold(end) - 1));
        config
    }

    /// The controller that drives `end`'s direction: what its settings name, else the sensible one.
    pub fn default_choice(&self, end: End) -> Choice {
        self.congestion.unwrap_or_else(|| Choice::for_rate(self.sending_rate(end)))
    }

    /// QUIC parameters of `end` for one connection on this path, driven by `choice`, with what is known of the path from
    /// earlier ones.
    pub fn transport_config(&self, end: End, choice: Choice, recall: Recall) -> TransportConfig {
        let (stream, carrier) = self.receive_windows(end.opposite());
        let datagrams = self.send_window(end).0 / 4;
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(self.largest_packet()).minimum_change(SMALLEST_MTU_STEP);
        let mut config = TransportConfig::default();
        config
            .stream_receive_window(varint(stream))
            .receive_window(varint(carrier))
            .send_window(self.send_window(end).0)
            .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
            .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
            // Too small an initial RTT resends the handshake over a link that still carries it.
            .initial_rtt(self.rtt.max(Duration::from_millis(50)) * 11 / 10)
            .max_idle_timeout(idle(self.idle_timeout()))
            // One end's pings suffice, and NATs stand on the remote's side.
            .keep_alive_interval(
                (end == End::Remote).then(|| (6 * self.rtt).clamp(KEEP_ALIVE.0, KEEP_ALIVE.1)),
            )
            .packet_threshold(self.packet_threshold(end))
            .time_threshold(self.time_threshold())
            .ack_frequency_config(Some(self.ack_frequency(end)))
            .mtu_discovery_config(Some(mtu))
            .datagram_receive_buffer_size(Some(stream.0 as usize / 2))
            .datagram_send_buffer_size(datagrams as usize)
            .congestion_controller_factory(wake::wakeable(congestion::factory(
                choice,
                self.contract(end),
                recall,
            )));
        config
    }
}

fn varint(bytes: Bytes) -> VarInt {
    VarInt::from_u64(bytes.0).unwrap_or(VarInt::MAX)
}

fn idle(time: Duration) -> Option<IdleTimeout> {
    IdleTimeout::try_from(time).ok() // fails above 146 million years: then there is no timeout
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str) -> PathPlan {
        PathPlan::for_profile(&Profile::named(name).unwrap())
    }

    /// Windows in KB of 1000 bytes per profile, so that a reviewer sees a change.
    #[test]
    fn windows_follow_the_bandwidth_delay_product_within_bounds() {
        let kb = |bytes: Bytes| bytes.0 / 1000;
        let row = |name: &str| {
            let plan = plan(name);
            let (stream, carrier) = plan.receive_windows(End::Ground);
            let sends = (plan.send_window(End::Ground), plan.send_window(End::Remote));
            [kb(stream), kb(carrier), kb(sends.0), kb(sends.1), kb(plan.socket_buffer())]
        };
        //                              stream carrier send→ send← socket
        assert_eq!(row("geo-256k"), [1048, 67108, 65, 65, 1048]);
        assert_eq!(row("geo-2m"), [1048, 67108, 200, 200, 1048]);
        assert_eq!(row("geo-hylas2"), [1300, 83200, 862, 65, 1300]);
        assert_eq!(row("geo-20m"), [3000, 134217, 2000, 500, 3000]);
        assert_eq!(row("none"), [1250, 80000, 1250, 1250, 1250]);
    }

    #[test]
    fn a_fast_uncontracted_satellite_stays_within_the_memory_bound() {
        let fast = PathPlan {
            rtt: Duration::from_millis(600),
            forward: Some(BitRate::mbit(1000)),
            ..PathPlan::UNKNOWN
        };
        assert_eq!(fast.receive_windows(End::Ground), (STREAM_WINDOW.1, CARRIER_WINDOW.1));
        assert_eq!(fast.send_window(End::Ground), LARGEST_SEND_WINDOW);
    }

    #[test]
    fn the_controller_is_what_settings_name_and_else_what_the_rate_calls_for() {
        let unnamed = |name| plan(name).default_choice(End::Ground);
        assert_eq!([unnamed("geo-hylas2"), unnamed("none")], [Choice::Rate, Choice::Bbr]);
        let named = plan("geo-hylas2").driven_by(Some(Choice::Cubic), End::Ground).unwrap();
        assert_eq!(named.default_choice(End::Ground), Choice::Cubic);
        let error = plan("none").driven_by(Some(Choice::Rate), End::Remote).unwrap_err().to_string();
        assert_eq!(
            error,
            "congestion control 'rate' needs the rate of what this end sends, and the profile names none; \
             set it ('link.return_rate'), or choose another controller or 'auto'"
        );
    }

    #[test]
    fn loss_is_called_later_where_packets_may_overtake_each_other() {
        assert_eq!(plan("geo-hylas2").packet_threshold(End::Ground), 55);
        assert_eq!(plan("geo-hylas2").with_repair(0).packet_threshold(End::Ground), 13);
        assert_eq!(plan("geo-256k").packet_threshold(End::Ground), 3);
        assert_eq!(plan("none").packet_threshold(End::Ground), 3);
        assert!((plan("geo-hylas2").time_threshold() - 1.125).abs() < 1e-6);
        assert!((plan("none").time_threshold() - 1.5).abs() < 1e-6);
    }

    #[test]
    fn silence_is_bridged_and_only_the_remote_pings() {
        let slow = PathPlan { rtt: Duration::from_secs(2), ..PathPlan::UNKNOWN };
        let shown = |end| format!("{:?}", slow.transport_config(end, Choice::Cubic, Recall::nothing()));
        assert!(shown(End::Ground).contains("keep_alive_interval: None"));
        assert!(shown(End::Remote).contains("keep_alive_interval: Some(12s)"));
    }
}
