//! Keeps a QUIC carrier fitting its path: tells the tuner what the connection has counted, and the connection what the tuner
//! decides, as far as quinn lets it be changed under way. Decisions are `core/tuning`'s.

use std::net::IpAddr;
use std::time::Duration;

use farhop_htotp::frame::PathReport;
use farhop_tuning::{End, MOST_STREAMS, Report, Share, Totals};
use farhop_units::{BitRate, Bytes};
use quinn::Connection;

use super::State;
use crate::learned::Learned;
use crate::path::{stream_limits, varint};

/// How often the path is looked at, when something happens anyway.
const LOOK: Duration = Duration::from_millis(100);
/// How often what was measured is kept for the next carrier.
const KEEP: Duration = Duration::from_secs(1);
/// Headers of IPv4 and UDP, which a link carries too.
const HEADERS: u64 = 28;

/// Where what a carrier measures is kept.
#[derive(Debug)]
pub(super) struct Lesson {
    pub(super) learned: Learned,
    pub(super) peer: IpAddr,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Attune {
    end: End,
    next_look: Duration,
    next_keep: Duration,
    /// Streams that the peer may open, as it was told last; none before the first look.
    streams: u64,
    /// What the empty path took at the last look.
    round_trip: Duration,
}

impl Attune {
    pub(super) fn new(end: End) -> Attune {
        Attune {
            end,
            next_look: Duration::ZERO,
            next_keep: Duration::ZERO,
            streams: 0,
            round_trip: Duration::ZERO,
        }
    }

    /// Call whenever the driver is awake anyway, with its clock and the streams that are open.
    pub(super) fn look(&mut self, now: Duration, connection: &Connection, open: usize, state: &mut State) {
        // Who opens many at once waits for room, and nothing else may happen meanwhile.
        let is_crowded = 3 * open as u64 > 2 * self.streams && self.streams < MOST_STREAMS;
        if now < self.next_look && !is_crowded {
            return;
        }
        self.next_look = now + LOOK;
        if observe(now, &totals(connection), open, state) {
            let sizes = state.tuner.parameters();
            let (both, one) = stream_limits(self.end, sizes.streams);
            connection.set_receive_window(varint(sizes.carrier_window.0));
            connection.set_max_concurrent_bi_streams(both);
            connection.set_max_concurrent_uni_streams(one);
        }
        self.streams = state.tuner.parameters().streams;
        if let Some(trip) = state.tuner.measured().round_trip {
            state.session.handle_round_trip(trip.least);
            if std::mem::replace(&mut self.round_trip, trip.least) != trip.least {
                crate::wake::fit(connection, trip.least);
            }
        }
        report(now, state);
        if now >= self.next_keep {
            self.next_keep = now + KEEP;
            keep(state);
        }
    }
}

/// Has the tuner decide by the totals as they are, and whoever asked for it told what is decided differently.
pub(super) fn observe(now: Duration, totals: &Totals, open: usize, state: &mut State) -> bool {
    let changed = state.tuner.observe(now, totals, open as u64);
    if changed {
        state.sizes.send_replace(*state.tuner.parameters());
    }
    changed
}

/// Tells the peer what it should know.
pub(super) fn report(now: Duration, state: &mut State) {
    if let Some(Report { arriving, lost }) = state.tuner.poll_report(now) {
        state.session.report_path(PathReport { arriving: arriving.0, lost: lost.0.into() });
    }
}

/// The peer's word.
pub(super) fn heard(report: PathReport) -> Report {
    let lost = u32::try_from(report.lost).unwrap_or(u32::MAX).min(10_000);
    Report { arriving: BitRate(report.arriving), lost: Share(lost) }
}

/// Keeps what is measured for the next carrier.
pub(super) fn keep(state: &State) {
    if let Some(Lesson { learned, peer }) = &state.lesson {
        learned.note(*peer, state.tuner.measured());
    }
}

fn totals(connection: &Connection) -> Totals {
    let stats = connection.stats();
    let received = stats.udp_rx;
    // Before the first acknowledgement quinn's round trip is what it was told.
    let is_measured = stats.frame_rx.acks > 0;
    Totals {
        received: Bytes(received.bytes + HEADERS * received.datagrams),
        received_packets: received.datagrams,
        sent_packets: stats.path.sent_packets,
        lost_packets: stats.path.lost_packets,
        round_trip: is_measured.then_some((stats.path.rtt, stats.path.min_rtt)),
    }
}
