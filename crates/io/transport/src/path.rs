//! What the operator knows of the long hop, and the QUIC parameters that follow from that and from what was measured. The
//! sizes are decided by `core/tuning`; here they are put into quinn's words. It must not open sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhop_congestion::{Choice, Contract};
use farhop_fec::wire::ROOM;
use farhop_htotp::mux::Windows;
use farhop_orbit::Profile;
pub use farhop_tuning::End;
use farhop_tuning::{MOST_STREAMS, Measured, Parameters, Path, Set};
use farhop_units::{BitRate, Bytes};
use quinn::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::connection::Connection;
use crate::hop::datagrams;
use crate::memory::Recall;
use crate::socket::udp::{BindError, UdpSocket};
use crate::{congestion, wake};

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

/// Streams that a peer may open in the direction in which it needs one or two that last.
const FEW_STREAMS: u64 = 16;
/// UDP payload that fits an Ethernet with room for one tunnel header over IPv6.
const LARGEST_PACKET: u16 = 1452;
/// Bytes of repair for each hundred that loss may call for: what makes good 10 % of random loss.
const DEFAULT_REPAIR: u32 = 25;
/// Each probe costs a round trip, so the search stops at steps of about 4 %.
const SMALLEST_MTU_STEP: u16 = 60;

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
        let (forward, return_) = (profile.forward.contract(), profile.return_.contract());
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

    /// This plan with the controller that settings name, or leave open.
    #[must_use]
    pub fn driven_by(self, congestion: Option<Choice>) -> Self {
        PathPlan { congestion, ..self }
    }

    /// Round-trip time: what settings say, else what `connection` shows.
    pub fn round_trip(&self, connection: &Connection) -> Duration {
        if self.rtt.is_zero() { connection.rtt() } else { self.rtt }
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

    /// What settings say, as `end` is tuned by it.
    pub fn set(&self, end: End) -> Set {
        Set {
            end,
            round_trip: (!self.rtt.is_zero()).then_some(self.rtt),
            forward: self.forward,
            return_: self.return_,
            repairs: self.repair > 0,
        }
    }

    /// The sizes for `end` where so much was measured.
    pub fn parameters(&self, end: End, measured: &Measured) -> Parameters {
        let set = self.set(end);
        Parameters::new(&set, &Path::new(&set, measured))
    }

    /// Those by which a fresh process begins.
    pub(crate) fn first(&self, end: End) -> Parameters {
        self.parameters(end, &Measured::default())
    }

    /// What `end` takes unread from its peer on a carrier over TCP.
    pub fn mux_windows(&self, end: End) -> Windows {
        let first = self.first(end);
        Windows {
            stream: first.stream_window.0,
            total: first.carrier_window.0,
            // One that may be opened costs nothing here before it is: there is nothing to grow into, as QUIC has to.
            both: MOST_STREAMS,
            one: MOST_STREAMS,
        }
    }

    /// Bytes that `end` may hold written and unacknowledged at first: what its congestion window can use and 50 ms of
    /// link time.
    pub fn send_window(&self, end: End) -> Bytes {
        self.first(end).send_window
    }

    /// Socket buffers that take what may arrive while the process is busy elsewhere.
    pub fn socket_buffer(&self) -> Bytes {
        self.first(End::Ground).socket_buffer
    }

    /// A UDP socket at `addr` with such buffers. The log says so where the kernel grants less than a link needs whose rate is
    /// known; what an unmeasured one needs is a guess.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub fn socket(&self, addr: SocketAddr) -> Result<Arc<UdpSocket>, BindError> {
        let socket = UdpSocket::bind(addr, self.socket_buffer())?;
        if self.forward.is_some() || self.return_.is_some() {
            socket.tell_shortfall();
        }
        Ok(socket)
    }

    /// Silence after which a carrier is given up.
    pub fn idle_timeout(&self) -> Duration {
        self.first(End::Remote).idle
    }

    /// How long the remote waits for a handshake before it calls afresh.
    pub fn handshake_timeout(&self) -> Duration {
        self.first(End::Remote).handshake
    }

    /// The largest packet that QUIC is to try: below one that fits any path, by what is put around it for repairs.
    fn largest_packet(&self) -> u16 {
        if self.repair > 0 { LARGEST_PACKET - ROOM as u16 } else { LARGEST_PACKET }
    }

    /// The controller that drives `end`'s direction: what its settings name, else the sensible one.
    pub fn default_choice(&self, end: End) -> Choice {
        self.congestion.unwrap_or_else(|| Choice::for_rate(self.sending_rate(end)))
    }

    /// QUIC parameters of `end` for one connection of these sizes on this path, driven by `choice`, with what is known of the
    /// path from earlier ones.
    pub fn transport_config(
        &self,
        end: End,
        choice: Choice,
        recall: Recall,
        sizes: &Parameters,
    ) -> TransportConfig {
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(self.largest_packet()).minimum_change(SMALLEST_MTU_STEP);
        let (both, one) = stream_limits(end, sizes.streams);
        let mut config = TransportConfig::default();
        config
            .stream_receive_window(varint(sizes.stream_window.0))
            .receive_window(varint(sizes.carrier_window.0))
            .send_window(sizes.send_window.0)
            .max_concurrent_bidi_streams(both)
            .max_concurrent_uni_streams(one)
            .initial_rtt(sizes.initial_round_trip)
            .max_idle_timeout(idle(sizes.idle))
            // One end's pings suffice, and NATs stand on the remote's side.
            .keep_alive_interval((end == End::Remote).then_some(sizes.keep_alive))
            .packet_threshold(sizes.packet_threshold as u32)
            .time_threshold(sizes.time_threshold as f32 / 1e3)
            .ack_frequency_config(Some(ack_frequency(sizes)))
            .mtu_discovery_config(Some(mtu))
            .datagram_receive_buffer_size(Some(sizes.stream_window.0 as usize / 2))
            .datagram_send_buffer_size(datagrams::BUFFER)
            .congestion_controller_factory(wake::wakeable(congestion::factory(
                choice,
                self.contract(end),
                recall,
            )));
        config
    }
}

/// How an end asks to be acknowledged.
fn ack_frequency(sizes: &Parameters) -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config
        .ack_eliciting_threshold(varint(sizes.ack_packets))
        .max_ack_delay(Some(sizes.ack_delay))
        .reordering_threshold(varint(sizes.packet_threshold - 1));
    config
}

/// Streams (both ways, one way) that the peer of `end` may have open, of which only one kind comes in numbers: the remote
/// opens exchanges and tunnels, ground pushes. quinn keeps a place for each that may be opened.
pub(crate) fn stream_limits(end: End, streams: u64) -> (VarInt, VarInt) {
    match end {
        End::Ground => (varint(streams), varint(FEW_STREAMS)),
        End::Remote => (varint(FEW_STREAMS), varint(streams)),
    }
}

pub(crate) fn varint(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
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
            let remote = plan.first(End::Remote);
            let sends = (plan.send_window(End::Ground), plan.send_window(End::Remote));
            let (stream, carrier) = (remote.stream_window, remote.carrier_window);
            [kb(stream), kb(carrier), kb(sends.0), kb(sends.1), kb(plan.socket_buffer())]
        };
        //                              stream carrier send→ send← socket
        assert_eq!(row("geo-256k"), [1048, 67108, 65, 65, 1048]);
        assert_eq!(row("geo-2m"), [1048, 67108, 200, 200, 1048]);
        assert_eq!(row("geo-hylas2"), [1300, 83200, 862, 65, 1300]);
        assert_eq!(row("geo-20m"), [3000, 134217, 2000, 500, 3000]);
        assert_eq!(row("none"), [4687, 268435, 1250, 1250, 7500]);
    }

    #[test]
    fn pushes_have_room_at_the_remote_and_exchanges_at_ground() {
        let few = varint(FEW_STREAMS);
        assert_eq!(stream_limits(End::Ground, 1024), (varint(1024), few));
        assert_eq!(stream_limits(End::Remote, 1024), (few, varint(1024)));
    }

    #[test]
    fn the_controller_is_what_settings_name_and_else_what_the_rate_calls_for() {
        let unnamed = |name| plan(name).default_choice(End::Ground);
        assert_eq!([unnamed("geo-hylas2"), unnamed("none")], [Choice::Rate, Choice::Bbr]);
        let named = plan("geo-hylas2").driven_by(Some(Choice::Cubic));
        assert_eq!(named.default_choice(End::Ground), Choice::Cubic);
    }

    #[test]
    fn loss_is_called_later_where_packets_may_overtake_each_other() {
        let sizes = |plan: PathPlan| {
            let first = plan.first(End::Ground);
            (first.packet_threshold, first.time_threshold)
        };
        assert_eq!(sizes(plan("geo-hylas2")), (55, 1125));
        assert_eq!(sizes(plan("geo-hylas2").with_repair(0)), (13, 1125));
        assert_eq!(sizes(plan("geo-256k")), (3, 1125));
        assert_eq!(sizes(plan("none")), (3, 1500));
    }

    #[test]
    fn silence_is_bridged_and_only_the_remote_pings() {
        let slow = PathPlan { rtt: Duration::from_secs(2), ..PathPlan::UNKNOWN };
        let shown = |end| {
            let config = slow.transport_config(end, Choice::Cubic, Recall::nothing(), &slow.first(end));
            format!("{config:?}")
        };
        assert!(shown(End::Ground).contains("keep_alive_interval: None"));
        assert!(shown(End::Remote).contains("keep_alive_interval: Some(12s)"));
    }
}
