//! What is measured of a load.

use std::time::Duration;

use farhop_loader::Loaded;
use farhop_testbed::LoadRecord;

/// A number of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// From the first connection to the last byte of the last object.
    Load,
    /// First byte of the document.
    FirstByte,
    /// Document, style sheets and blocking scripts complete: the earliest paint that is possible.
    Blocking,
    /// Bytes on the link, both ways, layer 3 up.
    Bytes,
    /// Bytes gateway to terminal.
    BytesDown,
    /// Bytes terminal to gateway.
    BytesUp,
    /// Packets on the link, both ways.
    Packets,
    /// Connections that the loader began.
    Connections,
    /// TCP and QUIC connections on the link itself.
    LinkConnections,
    /// Requests that the loader wrote, those asked again included.
    Requests,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 10] = [
        Measure::Load,
        Measure::FirstByte,
        Measure::Blocking,
        Measure::Bytes,
        Measure::BytesDown,
        Measure::BytesUp,
        Measure::Packets,
        Measure::Connections,
        Measure::LinkConnections,
        Measure::Requests,
    ];

    /// As plans and results have it.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Load => "load",
            Measure::FirstByte => "first-byte",
            Measure::Blocking => "blocking",
            Measure::Bytes => "bytes",
            Measure::BytesDown => "bytes-down",
            Measure::BytesUp => "bytes-up",
            Measure::Packets => "packets",
            Measure::Connections => "connections",
            Measure::LinkConnections => "link-connections",
            Measure::Requests => "requests",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Load | Measure::FirstByte | Measure::Blocking => "s",
            Measure::Bytes | Measure::BytesDown | Measure::BytesUp => "KB",
            Measure::Packets => "packets",
            Measure::Connections | Measure::LinkConnections => "connections",
            Measure::Requests => "requests",
        }
    }

    /// The measure of that name.
    pub fn named(name: &str) -> Option<Measure> {
        Measure::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// Its value in a load; none where the load has none.
    pub(crate) fn of(self, loaded: &Loaded, record: &LoadRecord) -> Option<f64> {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let ways = [record.forward.counters.sent, record.return_.counters.sent];
        let kilobytes = ways.map(|tally| tally.bytes.0 as f64 / 1e3);
        match self {
            Measure::Load => seconds(loaded.time),
            Measure::FirstByte => seconds(loaded.first_byte()),
            Measure::Blocking => seconds(loaded.blocking),
            Measure::Bytes => Some(kilobytes.iter().sum()),
            Measure::BytesDown => Some(kilobytes[0]),
            Measure::BytesUp => Some(kilobytes[1]),
            Measure::Packets => Some(ways.iter().map(|tally| tally.packets as f64).sum()),
            Measure::Connections => Some(loaded.connections.len() as f64),
            Measure::LinkConnections => Some((record.tcp_flows + record.udp_flows) as f64),
            Measure::Requests => Some(f64::from(loaded.requests())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_a_name_of_its_own_by_which_it_is_found() {
        for measure in Measure::ALL {
            assert_eq!(Measure::named(measure.name()), Some(measure));
        }
        assert_eq!(Measure::named("speed"), None);
    }
}
