//! The sizes that fit a path. Every number that is not an RFC's has its reason beside it; [`crate::Decision`] tells the
//! reason to people. Pure arithmetic, without memory: hysteresis is the tuner's.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::{ASSUMED_ROUND_TRIP, End, Fact, Path, Room, Set, Source};

/// No window of a carrier is larger, whatever is set or measured: 1 Gbit/s over 2.6 s, to the moon and back, are 325 MB.
pub const MOST: Bytes = Bytes(512 << 20);
/// What one stream may hold unread at the least, which costs nothing on slow links, …
const SMALLEST_STREAM: Bytes = Bytes(1 << 20);
/// … and up to where there is room for a lost packet's round trip; beyond, and where the rate is only assumed, for a
/// quarter above what fills the path.
const ROOMY_STREAM: Bytes = Bytes(32 << 20);
/// A quarter more than fills a path keeps it full through jitter and while a loss is noticed.
const FULL: (u64, u64) = (5, 4);
/// What all streams of a carrier may hold unread. A stream that nobody reads, a video that is paused, keeps its own window
/// full and must not take that of the others: there is room for so many, up to so many bytes, and for more where nobody
/// knows how large streams have to be.
const UNREAD_STREAMS: u64 = 64;
const CARRIER: (Bytes, Bytes) = (Bytes(64 << 20), Bytes(128 << 20));
const UNKNOWN_CARRIER: Bytes = Bytes(256 << 20);
/// Writes wait in the carrier for at most this much link time, so that what is urgent overtakes.
pub const WRITE_AHEAD: Duration = Duration::from_millis(50);
/// What may be written and not acknowledged, at the least, and what it may be on a path of which nothing is known.
const SMALLEST_SEND: Bytes = Bytes(64 << 10);
const UNKNOWN_SEND: Bytes = Bytes(8 << 20);
/// Its first value there is twice what the assumed rate carries in this: a controller begins with a few packets, and while
/// it searches, what is urgent must find room.
const FIRST_SEND_TIME: Duration = Duration::from_millis(100);
/// What may be sent and not be taken by clients or origins beyond the hop, of all streams together: six times what fills the
/// path, so that a stream alone, which may have a third, is held up by its window and not by this.
const UNREAD: Bytes = Bytes(32 << 20);
const UNREAD_PATHS: u64 = 6;
/// Streams that the peer may open at a time: one for each so many bytes on the way, the size of a small object. QUIC's
/// default of 100 alone cost a second on pages of 200 objects over 600 ms.
const OBJECT: u64 = 4 << 10;
/// So many at the least. Each that may be opened takes half a kilobyte from when another of that number was: of ground, which
/// has carriers by the thousand, a page of as many requests gets room with them, as twice of what is open.
pub(crate) const REMOTE_STREAMS: u64 = 1 << 10;
pub(crate) const GROUND_STREAMS: u64 = 1 << 8;
/// No more streams may be open, whatever is.
pub const MOST_STREAMS: u64 = 1 << 16;
/// Acknowledgements go back for each so many packets at the least, and at the most. By default every second packet is
/// acknowledged: at 8 Mbit/s this alone fills a third of a 512 kbit/s return link.
const ACK_PACKETS: (u64, u64) = (9, 64);
/// … or after so much time, …
pub(crate) const ACK_DELAY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(25));
/// … for which a sixty-fourth of a round trip's packets, or a sixteenth of its time, is enough, and a sixteenth of both the most
/// that a sender does without.
const ACK_EVERY: (u32, u32) = (64, 16);
/// An acknowledgement with its headers, and the share of the other direction, one tenth, that they may take.
const ACK: Bytes = Bytes(80);
const ACK_SHARE: u64 = 10;
/// A full packet with its headers.
const PACKET: Bytes = Bytes(1480);
/// UDP payload of one that fits an Ethernet with room for a tunnel header over IPv6.
const PAYLOAD: Bytes = Bytes(1452);
/// RFC 9002 §6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 §6.2.2: the round trip until one is known.
const INITIAL_ROUND_TRIP: Duration = Duration::from_millis(333);
/// Silence that a connection survives: longer than the session holds on to a silent peer, which it probes at a steady pace.
const IDLE: Duration = Duration::from_secs(180);
/// Silence after which a connection says something of itself: NATs forget bindings of UDP after half a minute.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));
/// How long a call is waited for at the least, and on a path of which nothing is known: three round trips to the moon.
const HANDSHAKE: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(8));
/// A cut that every request outlasts, with the calls that may be lost after it; and what each outlasts at the least.
const OUTAGE: (Duration, Duration) = (Duration::from_secs(150), Duration::from_secs(120));
const CALLS: u32 = 5;
/// What a browser takes from a page's bytes to a tunnel to the hosts that they name, besides the hop's round trip. Servers that
/// wait for a client's first word give up after ten seconds and more.
const AHEAD: Duration = Duration::from_secs(6);
/// Socket buffers take what may arrive while the process is busy elsewhere: two round trips' worth of a path whose rate is known,
/// within these bounds, of which the second is a quarter of a second at 1 Gbit/s; else those of the path that is assumed.
const SOCKET: (Bytes, Bytes) = (Bytes(1 << 20), Bytes(32 << 20));
/// What is decided for one end of a carrier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// What the peer may send on one stream before it is read.
    pub stream_window: Bytes,
    /// The same on all streams together.
    pub carrier_window: Bytes,
    /// What may be written and not acknowledged, at first; then it follows the controller, …
    pub send_window: Bytes,
    /// … up to this.
    pub send_most: Bytes,
    /// What may be sent and not be taken yet by who reads it at the other end, of all streams together.
    pub unread: Bytes,
    /// Streams that the peer may have open at a time.
    pub streams: u64,
    /// The peer acknowledges each so many packets, …
    pub ack_packets: u64,
    /// … or after this.
    pub ack_delay: Duration,
    /// Packets by which another may be overtaken before it counts as lost.
    pub packet_threshold: u64,
    /// The part of a round trip, in thousandths, after which a packet counts as lost.
    pub time_threshold: u64,
    /// The round trip taken for true until one is measured.
    pub initial_round_trip: Duration,
    /// Silence after which the remote says something so that it is not forgotten on the way.
    pub keep_alive: Duration,
    /// Silence after which a carrier is given up.
    pub idle: Duration,
    /// How long a call is waited for.
    pub handshake: Duration,
    /// Buffers of the UDP socket.
    pub socket_buffer: Bytes,
    /// The rate to be ready for of what this end sends.
    pub sending: BitRate,
    /// What a browser (at the remote) may send ahead over HTTP/2, or (at ground) an origin to which the round trip is not known.
    pub neighbours: Room,
    /// Remote: how long a request waits for a lost carrier to come back.
    pub outage: Duration,
    /// Ground: how long a connection that was made ahead to an origin waits for its tunnel.
    pub ahead: Duration,
}

impl Parameters {
    /// Those that fit `path`, at the end for which `set` was made.
    pub fn new(set: &Set, path: &Path) -> Parameters {
        let rtt = path.round_trip.value;
        let (sent, received) = (path.sending.value.bytes_in(rtt), path.receiving.value.bytes_in(rtt));
        let is_assumed = path.receiving.source == Source::Assumed;
        let stream_window = stream_window(received, is_assumed);
        let carrier_most = if is_assumed { UNKNOWN_CARRIER } else { CARRIER.1 };
        let carrier = Bytes(UNREAD_STREAMS * stream_window.0).clamp(CARRIER.0, carrier_most);
        let send_most = Bytes(2 * sent.0).max(UNKNOWN_SEND).min(MOST);
        // Of a path whose length nobody knows nothing can be said in packets but what the RFC says.
        let known_rtt = if path.round_trip.source == Source::Assumed { Duration::ZERO } else { rtt };
        let tolerance = 30_000 / known_rtt.as_millis().max(60) as u64;
        let acknowledged = Acknowledged::on(path, known_rtt);
        let handshake = match path.round_trip.source {
            Source::Assumed => HANDSHAKE.1,
            // Short, since a fresh call sends at once while QUIC doubles its pauses: after an outage the carrier is back
            // sooner.
            _ => HANDSHAKE.0.max(6 * rtt),
        };
        Parameters {
            stream_window,
            carrier_window: carrier.max(stream_window),
            send_window: send_window(path).min(send_most),
            send_most,
            unread: Bytes(UNREAD_PATHS * sent.0).max(UNREAD),
            streams: streams(set.end, path),
            ack_packets: acknowledged.packets,
            ack_delay: acknowledged.within.unwrap_or((rtt / ACK_EVERY.1).clamp(ACK_DELAY.0, ACK_DELAY.1)),
            packet_threshold: packet_threshold(path.sending.value, known_rtt, set.repairs),
            time_threshold: 1000 + tolerance.max(125), // RFC 9002 §6.1.2: 9/8, but 30 ms at the least
            initial_round_trip: match path.round_trip.source {
                Source::Assumed => INITIAL_ROUND_TRIP,
                // Too small a value resends the handshake over a link that still carries it.
                _ => rtt.max(Duration::from_millis(50)) * 11 / 10,
            },
            keep_alive: (6 * rtt).clamp(KEEP_ALIVE.0, KEEP_ALIVE.1),
            idle: IDLE,
            handshake,
            socket_buffer: socket_buffer(path),
            sending: path.sending.value,
            neighbours: match set.end {
                End::Remote => Room::for_browser(path.sending.value, rtt),
                End::Ground => Room::for_origin(path.sending.value, None),
            },
            outage: OUTAGE.0.max(OUTAGE.1 + CALLS * handshake),
            ahead: AHEAD + 2 * rtt,
        }
    }

    /// What the peer may send, never less than `offered` let it: whoever resumes a session goes by what it was told before,
    /// and may do so until it has the answer (RFC 9000 §7.4.1).
    #[must_use]
    pub fn offering(self, offered: &Parameters) -> Parameters {
        Parameters {
            stream_window: self.stream_window.max(offered.stream_window),
            carrier_window: self.carrier_window.max(offered.carrier_window),
            streams: self.streams.max(offered.streams),
            ..self
        }
    }

    /// With room for the peer to open as many streams again as it has open.
    #[must_use]
    pub fn with_open(self, open: u64) -> Parameters {
        Parameters { streams: self.streams.max(2 * open).min(MOST_STREAMS), ..self }
    }
}

/// Streams that the peer of `end` may open.
fn streams(end: End, path: &Path) -> u64 {
    let objects = |rate: Fact<BitRate>| rate.value.bytes_in(path.round_trip.value).0 / OBJECT;
    match end {
        End::Remote => objects(path.sending).max(objects(path.receiving)).max(REMOTE_STREAMS),
        // What is only assumed takes no memory.
        End::Ground => [path.sending, path.receiving]
            .into_iter()
            .filter(|rate| rate.source != Source::Assumed)
            .map(objects)
            .fold(GROUND_STREAMS, u64::max),
    }
    .min(MOST_STREAMS)
}

/// Twice what fills the path, so that a lost packet's round trip does not stall a stream, as far as memory allows.
fn stream_window(bdp: Bytes, is_assumed: bool) -> Bytes {
    let full = Bytes(bdp.0 * FULL.0 / FULL.1);
    let roomy = if is_assumed { full } else { Bytes(2 * bdp.0) };
    roomy.clamp(SMALLEST_STREAM, ROOMY_STREAM).max(full).min(MOST)
}

/// What the congestion window can use and [`WRITE_AHEAD`] of it.
fn send_window(path: &Path) -> Bytes {
    let (rate, rtt) = (path.sending.value, path.round_trip);
    let wanted = if path.sending.source == Source::Assumed {
        let time =
            if rtt.source == Source::Assumed { FIRST_SEND_TIME } else { rtt.value.max(FIRST_SEND_TIME) };
        Bytes(2 * rate.bytes_in(time).0).min(UNKNOWN_SEND)
    } else {
        Bytes(rate.bytes_in(rtt.value).0 * FULL.0 / FULL.1) + rate.bytes_in(WRITE_AHEAD)
    };
    wanted.max(SMALLEST_SEND)
}

/// It is the larger direction's; what is seen of a rate that may be more says nothing.
fn socket_buffer(path: &Path) -> Bytes {
    let quicker = path.quicker();
    let round_trip =
        if quicker.source == Source::Assumed { ASSUMED_ROUND_TRIP } else { path.round_trip.value };
    Bytes(2 * quicker.value.bytes_in(round_trip).0).clamp(SOCKET.0, SOCKET.1)
}

/// How what an end sends is to be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// After so many packets.
    packets: u64,
    /// Or after this, where that has to be longer than usual.
    within: Option<Duration>,
    /// The other direction is why it is not more often.
    pub(crate) is_spared: bool,
}

impl Acknowledged {
    /// A sixty-fourth of a round trip's packets; more where acknowledgements would take more than their share of a
    /// direction whose rate is set, up to a sixteenth.
    pub(crate) fn on(path: &Path, rtt: Duration) -> Acknowledged {
        let packets_in = |time: Duration| path.reached.value.bytes_in(time).0 / PACKET.0;
        let (often, seldom) = (rtt / ACK_EVERY.0, rtt / ACK_EVERY.1);
        let enough = path.sending.value.bytes_in(often).0 / PACKET.0;
        let per_second = packets_in(Duration::from_secs(1));
        let affordable = path.answered.map(|rate| affordable(rate.value));
        let by_share = affordable.map_or(0, |affordable| per_second.div_ceil(affordable));
        let packets = enough.max(by_share.min(packets_in(seldom))).clamp(ACK_PACKETS.0, ACK_PACKETS.1);
        // Where packets are further apart than that, each is acknowledged however long that may wait.
        let within = affordable
            .filter(|affordable| *affordable < per_second && packets_in(seldom) > 1)
            .map(|affordable| {
                (Duration::from_secs(1) / u32::try_from(affordable).unwrap_or(u32::MAX)).min(seldom)
            })
            .filter(|within| *within > ACK_DELAY.1);
        Acknowledged { packets, within, is_spared: within.is_some() || packets > enough.max(ACK_PACKETS.0) }
    }
}

/// Acknowledgements a second that a direction of this rate affords.
fn affordable(rate: BitRate) -> u64 {
    (rate.bytes_in(Duration::from_secs(1)).0 / ACK_SHARE / ACK.0).max(1)
}

/// 1/32 of a round trip's packets, since satellite modems reorder by a frame or two and a false alarm costs a round trip.
/// 1/8 where a repair may bring a packet back meanwhile, as long as the time threshold waits too.
fn packet_threshold(rate: BitRate, rtt: Duration, repairs: bool) -> u64 {
    let (wait, most) = if repairs { (rtt / 8, 128) } else { (rtt / 32, 64) };
    (rate.bytes_in(wait).0 / PAYLOAD.0).clamp(PACKET_THRESHOLD, most)
}
