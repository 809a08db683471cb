//! Two sessions joined by a carrier in virtual time: latency and rate per direction, time jumps to the
//! next thing that happens. The carrier is ideal but for what its fields say.

#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::RequestHead;
use farhop_htotp::scheduler::{Pace, StreamId};
use farhop_htotp::session::{Config, Direction, Event, Role, Session, Transmit};
use farhop_units::{BitRate, Bytes as ByteCount};
use http::{HeaderMap, HeaderValue, Method};

enum Parcel {
    Opened(u64, Direction),
    Data(u64, Bytes),
    End(u64),
    Reset(u64, u64),
    Stop(u64, u64),
    Probe,
    /// The carrier's own answer to a probe.
    Acknowledgement,
}

/// One end: its session, and what the carrier knows of its streams.
struct End {
    session: Session,
    /// Carrier stream number of each id, and back.
    numbers: HashMap<StreamId, u64>,
    ids: HashMap<u64, StreamId>,
    busy_until: Duration,
    sent: usize,
    events: Vec<(Duration, Event)>,
    /// Probes that have come.
    probed: Vec<Duration>,
}

/// Remote and ground over one carrier.
pub(crate) struct Pair {
    pub(crate) now: Duration,
    pub(crate) latency: Duration,
    pub(crate) rate: Option<BitRate>,
    /// While set nothing crosses.
    pub(crate) cut: bool,
    /// Pieces into which the carrier breaks what it delivers.
    pub(crate) piece: usize,
    ends: [End; 2],
    /// (arrival, sequence) → (to, parcel)
    flight: BTreeMap<(Duration, u64), (usize, Parcel)>,
    sequence: u64,
    next_number: u64,
}

pub(crate) const REMOTE: usize = 0;
pub(crate) const GROUND: usize = 1;

impl Pair {
    pub(crate) fn new(latency: Duration, rate: Option<BitRate>, config: Config) -> Self {
        let end = |role| End {
            session: Session::new(role, config.clone(), Duration::ZERO),
            numbers: HashMap::new(),
            ids: HashMap::new(),
            busy_until: Duration::ZERO,
            sent: 0,
            events: Vec::new(),
            probed: Vec::new(),
        };
        Pair {
            now: Duration::ZERO,
            latency,
            rate,
            cut: false,
            piece: usize::MAX,
            ends: [end(Role::Remote), end(Role::Ground)],
            flight: BTreeMap::new(),
            sequence: 0,
            next_number: 0,
        }
    }

    pub(crate) fn remote(&mut self) -> &mut Session {
        &mut self.ends[REMOTE].session
    }

    pub(crate) fn ground(&mut self) -> &mut Session {
        &mut self.ends[GROUND].session
    }

    /// Bytes that an end has put on the carrier.
    pub(crate) fn sent(&self, end: usize) -> usize {
        self.ends[end].sent
    }

    /// Takes the events of an end, with their times.
    pub(crate) fn events(&mut self, end: usize) -> Vec<(Duration, Event)> {
        self.settle();
        std::mem::take(&mut self.ends[end].events)
    }

    /// Takes the times at which probes have come to an end.
    pub(crate) fn probed(&mut self, end: usize) -> Vec<Duration> {
        std::mem::take(&mut self.ends[end].probed)
    }

    fn launch(&mut self, from: usize, size: usize, parcel: Parcel) {
        if self.cut {
            return;
        }
        let end = &mut self.ends[from];
        let start = end.busy_until.max(self.now);
        end.busy_until =
            start + self.rate.map_or(Duration::ZERO, |rate| rate.time_for(ByteCount(size as u64)));
        end.sent += size;
        self.sequence += 1;
        self.flight.insert((end.busy_until + self.latency, self.sequence), (1 - from, parcel));
    }

    /// Moves everything that is due now.
    fn settle(&mut self) {
        for from in [REMOTE, GROUND] {
            while let Some(transmit) = self.ends[from].session.poll_transmit(self.now) {
                self.transmit(from, transmit);
            }
            while let Some(event) = self.ends[from].session.poll_event() {
                self.ends[from].events.push((self.now, event));
            }
        }
    }

    fn transmit(&mut self, from: usize, transmit: Transmit) {
        let number = |pair: &Pair, id: StreamId| pair.ends[from].numbers[&id];
        match transmit {
            Transmit::Open(id, direction) => {
                let number = self.next_number;
                self.next_number += 1;
                self.ends[from].numbers.insert(id, number);
                self.ends[from].ids.insert(number, id);
                self.launch(from, 0, Parcel::Opened(number, direction));
            }
            Transmit::Write { stream, segments, end, .. } => {
                let number = number(self, stream);
                for segment in segments {
                    for piece in segment.chunks(self.piece) {
                        self.launch(from, piece.len(), Parcel::Data(number, Bytes::copy_from_slice(piece)));
                    }
                }
                if end {
                    self.launch(from, 0, Parcel::End(number));
                }
                self.ends[from].session.handle_written(stream);
            }
            Transmit::Reset(id, code) => self.launch(from, 4, Parcel::Reset(number(self, id), code)),
            Transmit::Stop(id, code) => self.launch(from, 4, Parcel::Stop(number(self, id), code)),
            Transmit::Probe => self.launch(from, 1, Parcel::Probe),
            Transmit::Datagram(_) => panic!("nobody has sent one"),
        }
    }

    /// Jumps to the next thing that happens, if it happens before `until`.
    pub(crate) fn step(&mut self, until: Duration) -> bool {
        self.settle();
        let arrival = self.flight.keys().next().map(|(at, _)| *at);
        let wakeup = self.ends.iter().filter_map(|end| end.session.next_wakeup(self.now)).min();
        let Some(next) = [arrival, wakeup].into_iter().flatten().min() else { return false };
        if next > until {
            return false;
        }
        // A wake-up that is due now but moves nothing would stand still: time passes by the least step.
        self.now = next.max(self.now + Duration::from_micros(u64::from(arrival.is_none_or(|at| at > next))));
        while let Some(entry) = self.flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, parcel) = entry.remove();
            self.deliver(to, parcel);
        }
        self.settle();
        true
    }

    fn deliver(&mut self, to: usize, parcel: Parcel) {
        let now = self.now;
        let end = &mut self.ends[to];
        end.session.handle_activity(now);
        match parcel {
            Parcel::Opened(number, direction) => {
                let id = end.session.handle_opened(direction);
                end.numbers.insert(id, number);
                end.ids.insert(number, id);
            }
            Parcel::Data(number, bytes) => end.session.handle_data(now, end.ids[&number], bytes),
            Parcel::End(number) => end.session.handle_end(end.ids[&number]),
            Parcel::Reset(number, code) => end.session.handle_reset(end.ids[&number], code),
            Parcel::Stop(number, code) => end.session.handle_stopped(end.ids[&number], code),
            Parcel::Probe => {
                end.probed.push(now);
                end.session.handle_probe();
                self.launch(to, 1, Parcel::Acknowledgement);
            }
            Parcel::Acknowledgement => {}
        }
    }

    /// Runs until nothing happens before `until`.
    pub(crate) fn run(&mut self, until: Duration) {
        while self.step(until) {}
        self.now = self.now.max(until);
        self.settle();
    }
}

/// The way of a geostationary link at 8 Mbit/s.
pub(crate) const HALF: Duration = Duration::from_millis(325);

/// Both ends over such a link, the carrier paced to its rate.
pub(crate) fn geo() -> Pair {
    let pace = Pace { rate: Some(BitRate::mbit(8)), ..Pace::default() };
    Pair::new(HALF, Some(BitRate::mbit(8)), Config { pace, ..Config::default() })
}

/// A request for a path of one site.
pub(crate) fn get(path: &str) -> RequestHead {
    let mut fields = HeaderMap::new();
    fields.insert("accept", HeaderValue::from_static("*/*"));
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "site.test".into(),
        path: path.into(),
        fields,
    }
}
