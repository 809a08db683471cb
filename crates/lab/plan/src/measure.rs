//! What is measured of a load.

use std::time::Duration;

use farhop_loader::Loaded;
use farhop_report::Series;
use farhop_testbed::{Activity, LoadRecord};
use farhop_units::Bytes;
use farhop_workload::browser::{Film, PageLoad};

/// Declares every measure once: what it is, its name, its unit.
macro_rules! measures {
    ($($(#[$doc:meta])* $measure:ident $name:literal $unit:literal,)*) => {
        /// A number of a load.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Measure {
            $($(#[$doc])* $measure,)*
        }

        impl Measure {
            /// All of them.
            pub const ALL: &'static [Measure] = &[$(Measure::$measure,)*];

            /// As plans and results have it.
            pub fn name(self) -> &'static str {
                match self { $(Measure::$measure => $name,)* }
            }

            /// Its unit.
            pub fn unit(self) -> &'static str {
                match self { $(Measure::$measure => $unit,)* }
            }
        }
    };
}

measures! {
    /// From the first connection to the last byte of the last object; in a browser the load event's end.
    Load "load" "s",
    /// The load of the slowest user, where several load at the same time. Of the loader alone.
    LastUser "last-user" "s",
    /// First byte of the document.
    FirstByte "first-byte" "s",
    /// Document, style sheets and blocking scripts complete: the earliest paint that is possible. Of the loader alone.
    Blocking "blocking" "s",
    /// First contentful paint. Of a browser alone, as the next two.
    FirstPaint "first-paint" "s",
    /// Largest contentful paint.
    LargestPaint "largest-paint" "s",
    /// The area above the curve of visual completeness. The load is filmed for it, which costs the browser time.
    SpeedIndex "speed-index" "s",
    /// Bytes on the link, both ways, layer 3 up.
    Bytes "bytes" "KB",
    /// Bytes gateway to terminal.
    BytesDown "bytes-down" "KB",
    /// Bytes terminal to gateway.
    BytesUp "bytes-up" "KB",
    /// Packets on the link, both ways.
    Packets "packets" "packets",
    /// Packets gateway to terminal.
    PacketsDown "packets-down" "packets",
    /// Packets terminal to gateway.
    PacketsUp "packets-up" "packets",
    /// Packets that the link dropped or lost, both ways.
    Drops "drops" "packets",
    /// The longest queue towards the users.
    QueueDown "queue-down" "KB",
    /// The longest queue of the terminal.
    QueueUp "queue-up" "KB",
    /// How long a packet towards the users waited to be sent, and was being sent, on average.
    WaitDown "wait-down" "ms",
    /// The same of the terminal's packets: the wait for capacity where it is granted on demand.
    WaitUp "wait-up" "ms",
    /// Of the return capacity that was granted on demand, the share that was used.
    Utilisation "utilisation" "%",
    /// Connections that the client began, whatever carries them on the link. A browser's over QUIC within a tunnel cannot be told.
    Connections "connections" "connections",
    /// TCP and QUIC connections on the link itself.
    LinkConnections "link-connections" "connections",
    /// Requests that the client wrote, those asked again included.
    Requests "requests" "requests",
    /// Requests that crossed the link: through Farhop those that its remote had to ask, else what the client wrote.
    LinkRequests "link-requests" "requests",
    /// Processor time of Farhop's remote from the start of the load on, or of what others made that stands at the terminal.
    CpuRemote "cpu-remote" "s",
    /// Processor time of Farhop's ground, or of what others made that stands at the gateway.
    CpuGround "cpu-ground" "s",
    /// The most resident memory of Farhop's remote, or of what others made that stands at the terminal.
    MemoryRemote "memory-remote" "MB",
    /// The most resident memory of Farhop's ground, or of what others made that stands at the gateway.
    MemoryGround "memory-ground" "MB",
}

/// What was seen of a load, from all sides.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) load: Option<Duration>,
    pub(crate) last: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) blocking: Option<Duration>,
    pub(crate) first_paint: Option<Duration>,
    pub(crate) largest_paint: Option<Duration>,
    pub(crate) speed_index: Option<Duration>,
    pub(crate) connections: Option<usize>,
    pub(crate) requests: usize,
    /// Those of them that Farhop's remote asked across the link, where it sees them.
    pub(crate) crossed: Option<u64>,
    pub(crate) record: LoadRecord,
    pub(crate) ends: EndsUse,
}

/// What stood at the terminal and at the gateway used for a load.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndsUse {
    cpu: [Option<Duration>; 2],
    memory_mb: [Option<f64>; 2],
}

impl EndsUse {
    /// From what they had computed before to `now`; `peak` is the most memory of each.
    pub(crate) fn between(
        before: [Option<Duration>; 2],
        now: [Option<Duration>; 2],
        peak: [Option<Bytes>; 2],
    ) -> EndsUse {
        let cpu = [0, 1].map(|end| Some(now[end]?.saturating_sub(before[end]?)));
        EndsUse { cpu, memory_mb: peak.map(|peak| peak.map(|bytes| bytes.0 as f64 / 1e6)) }
    }
}

impl Measure {
    /// The measure of that name.
    pub fn named(name: &str) -> Option<Measure> {
        Measure::ALL.iter().copied().find(|measure| measure.name() == name)
    }

    /// Its value in a load; none where the load has none.
    pub(crate) fn of(self, seen: &Seen) -> Option<f64> {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let record = &seen.record;
        let both = [&record.forward.counters, &record.return_.counters];
        let kilobytes = both.map(|counters| counters.sent.bytes.0 as f64 / 1e3);
        let queues = both.map(|counters| counters.queue_peak.0 as f64 / 1e3);
        match self {
            Measure::Load => seconds(seen.load),
            Measure::LastUser => seconds(seen.last),
            Measure::FirstByte => seconds(seen.first_byte),
            Measure::Blocking => seconds(seen.blocking),
            Measure::FirstPaint => seconds(seen.first_paint),
            Measure::LargestPaint => seconds(seen.largest_paint),
            Measure::SpeedIndex => seconds(seen.speed_index),
            Measure::Bytes => Some(kilobytes.iter().sum()),
            Measure::BytesDown => Some(kilobytes[0]),
            Measure::BytesUp => Some(kilobytes[1]),
            Measure::Packets => Some(both.iter().map(|counters| counters.sent.packets as f64).sum()),
            Measure::PacketsDown => Some(both[0].sent.packets as f64),
            Measure::PacketsUp => Some(both[1].sent.packets as f64),
            Measure::Drops => Some(both.iter().map(|counters| counters.drops() as f64).sum()),
            Measure::QueueDown => Some(queues[0]),
            Measure::QueueUp => Some(queues[1]),
            Measure::WaitDown => Some(record.forward.waited.as_secs_f64() * 1e3),
            Measure::WaitUp => Some(record.return_.waited.as_secs_f64() * 1e3),
            Measure::Utilisation => {
                let given = record.return_.counters.given.0 as f64;
                (given > 0.0).then(|| record.return_.counters.sent.bytes.0 as f64 / given * 100.0)
            }
            Measure::Connections => seen.connections.map(|count| count as f64),
            Measure::LinkConnections => Some((record.tcp_flows + record.udp_flows) as f64),
            Measure::Requests => Some(seen.requests as f64),
            Measure::LinkRequests => {
                Some(seen.crossed.map_or(seen.requests as f64, |crossed| crossed as f64))
            }
            Measure::CpuRemote => seconds(seen.ends.cpu[0]),
            Measure::CpuGround => seconds(seen.ends.cpu[1]),
            Measure::MemoryRemote => seen.ends.memory_mb[0],
            Measure::MemoryGround => seen.ends.memory_mb[1],
        }
    }
}

impl Seen {
    /// Of loads by the lab's loader, one of each user at the same time: times are their mean, the rest is of all.
    pub(crate) fn loaded(loads: &[Loaded], record: LoadRecord) -> Seen {
        let mean = |of: &dyn Fn(&Loaded) -> Option<Duration>| {
            let times: Option<Vec<Duration>> = loads.iter().map(of).collect();
            let times = times.filter(|times| !times.is_empty())?;
            Some(times.iter().sum::<Duration>() / times.len() as u32)
        };
        let all: Option<Vec<Duration>> = loads.iter().map(|loaded| loaded.time).collect();
        let slowest = all.and_then(|times| times.into_iter().max());
        Seen {
            load: mean(&|loaded| loaded.time),
            last: slowest.filter(|_| loads.len() > 1),
            first_byte: mean(&Loaded::first_byte),
            blocking: mean(&|loaded| loaded.blocking),
            connections: Some(loads.iter().map(|loaded| loaded.connections.len()).sum()),
            requests: loads.iter().map(|loaded| loaded.requests() as usize).sum(),
            record,
            ..Seen::default()
        }
    }

    /// Of a load in a browser.
    pub(crate) fn browsed(
        load: &PageLoad,
        film: Option<&Film>,
        record: LoadRecord,
        connections: Option<usize>,
    ) -> Seen {
        let time = |ms: Option<f64>| ms.map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
        Seen {
            load: time(load.load_ms),
            first_byte: time(load.first_byte_ms),
            first_paint: time(load.first_paint_ms),
            largest_paint: time(load.largest_paint_ms),
            speed_index: time(film.and_then(Film::speed_index_ms)),
            connections,
            requests: load.resources.len(),
            record,
            ..Seen::default()
        }
    }

    /// Rates and active connections over time, until the load was there; none where they were not watched.
    pub(crate) fn series(&self) -> Option<Series> {
        let [down, up] = self.record.activity.as_ref()?;
        let step = down.step;
        let spans = self.load.map_or(usize::MAX, |load| (load.as_nanos() / step.as_nanos()) as usize + 2);
        let rates = |activity: &Activity| {
            let kbit = |bytes: &u64| (*bytes as f64 * 8.0 / step.as_secs_f64() / 1e3 * 10.0).round() / 10.0;
            activity.bytes.iter().take(spans).map(kbit).collect()
        };
        let mut connections: Vec<(&_, Vec<u32>)> = Vec::new();
        for (key, active) in down.connections.iter().chain(&up.connections) {
            match connections.iter_mut().find(|(known, _)| *known == key) {
                Some((_, spans)) => spans.extend(active),
                None => connections.push((key, active.clone())),
            }
        }
        let stretches = connections.into_iter().map(|(_, mut active)| {
            active.retain(|span| (*span as usize) < spans);
            active.sort_unstable();
            active.dedup();
            Series::stretches(&active)
        });
        let mut connections: Vec<Vec<[u32; 2]>> = stretches.filter(|it| !it.is_empty()).collect();
        connections.sort_by_key(|stretches| stretches[0][0]);
        Some(Series { step_s: step.as_secs_f64(), down: rates(down), up: rates(up), connections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_a_name_of_its_own_by_which_it_is_found() {
        for measure in Measure::ALL {
            assert_eq!(Measure::named(measure.name()), Some(*measure));
        }
        assert_eq!(Measure::named("speed"), None);
    }

    #[test]
    fn of_several_users_times_are_the_mean_and_the_slowest_is_told() {
        let load = |seconds| Loaded { time: Some(Duration::from_secs(seconds)), ..Loaded::default() };
        let seen = Seen::loaded(&[load(4), load(9), load(2)], LoadRecord::default());
        assert_eq!((Measure::Load.of(&seen), Measure::LastUser.of(&seen)), (Some(5.0), Some(9.0)));
        let one_failed = Seen::loaded(&[load(4), Loaded::default()], LoadRecord::default());
        let alone = Seen::loaded(&[load(4)], LoadRecord::default());
        assert_eq!((Measure::Load.of(&alone), Measure::LastUser.of(&alone)), (Some(4.0), None));
        assert_eq!((Measure::Load.of(&one_failed), Measure::LastUser.of(&one_failed)), (None, None));
    }

    #[test]
    fn utilisation_is_what_was_used_of_what_was_granted_and_nothing_where_nothing_was() {
        let mut seen = Seen::default();
        seen.record.return_.counters.sent.bytes = Bytes(30_000);
        assert_eq!(Measure::Utilisation.of(&seen), None);
        seen.record.return_.counters.given = Bytes(120_000);
        assert_eq!(Measure::Utilisation.of(&seen), Some(25.0));
        assert_eq!(Measure::BytesUp.of(&seen), Some(30.0));
        assert_eq!((Measure::CpuRemote.of(&seen), Measure::FirstPaint.of(&seen)), (None, None));
    }

    #[test]
    fn what_farhop_spares_the_link_is_no_request_on_it() {
        let direct = Seen { requests: 31, ..Seen::default() };
        let bundled = Seen { requests: 31, crossed: Some(1), ..Seen::default() };
        assert_eq!([&direct, &bundled].map(|seen| Measure::LinkRequests.of(seen)), [Some(31.0), Some(1.0)]);
        assert_eq!(Measure::Requests.of(&bundled), Some(31.0));
    }
}
