//! Packets of speech as they leave one end and arrive at the other, and what that makes of a call.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farhop_diffserv::calls::Codec;
use farhop_diffserv::quality::{Conditions, quality};
use farhop_netdev::Overheard;
use farhop_sip::Datagram;
use farhop_testbed::{Place, Testbed};

use crate::MeasureError;

/// What passes is looked at so often at the least.
const LOOK: Duration = Duration::from_millis(100);
/// G.729 looks ahead for 5 ms, and speech waits until its packet is full.
const CODEC: Duration = Duration::from_millis(25);

/// Which packet, and when it passed.
pub(super) type Passed = HashMap<(SocketAddr, SocketAddr, u16), Instant>;

/// Hears speech at the clients' network of one end.
pub(super) struct Ear {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    heard: std::sync::mpsc::Receiver<Result<Passed, String>>,
}

/// How the packets of one direction fared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fate {
    pub(super) sent: usize,
    /// From 0 to 1.
    pub(super) loss: f64,
    pub(super) middle: Duration,
    pub(super) p99: Duration,
    /// By how much a packet's delay differs from the one's before it in its stream (RFC 3550 §6.4.1, unsmoothed).
    pub(super) jitter_p99: Duration,
    pub(super) mos: f64,
}

impl Ear {
    pub(super) fn at(testbed: &Testbed, place: Place, ports: (u16, u16)) -> Result<Ear, MeasureError> {
        let over = Arc::new(AtomicBool::new(false));
        let (tell, heard) = std::sync::mpsc::channel();
        let until = Arc::clone(&over);
        let hear = move || {
            let _ = tell.send(listen(ports, &until));
        };
        let thread = testbed.namespace(place).thread("hears", hear).map_err(farhop_testbed::Error::from)?;
        Ok(Ear { over, thread, heard })
    }

    /// What has passed.
    pub(super) fn end(self) -> Result<Passed, MeasureError> {
        self.over.store(true, Relaxed);
        let passed = self.heard.recv().map_err(|error| error.to_string()).and_then(|passed| passed);
        let _ = self.thread.join();
        passed.map_err(MeasureError::Unexpected)
    }
}

fn listen(ports: (u16, u16), over: &AtomicBool) -> Result<Passed, String> {
    let overheard = Overheard::open("lan0", &[ports]).map_err(|error| error.to_string())?;
    let (mut passed, mut buffer) = (Passed::new(), vec![0; 2048]);
    while !over.load(Relaxed) {
        let packet = overheard.receive(&mut buffer, LOOK).map_err(|error| error.to_string())?;
        let now = Instant::now();
        if let Some(datagram) = packet.and_then(Datagram::read)
            && let [0x80..=0xff, _, high, low, ..] = datagram.content
        {
            let sequence = u16::from_be_bytes([*high, *low]);
            passed.entry((datagram.from, datagram.to, sequence)).or_insert(now);
        }
    }
    Ok(passed)
}

/// A packet by its number, and how long it was under way; none where it did not arrive.
type Sighting = (u16, Option<Duration>);

/// What became of the packets that `is_counted` among those sent.
pub(super) fn fate(
    sent: &Passed,
    arrived: &Passed,
    until: Instant,
    is_counted: impl Fn(&SocketAddr) -> bool,
) -> Fate {
    let mut streams: HashMap<(SocketAddr, SocketAddr), Vec<Sighting>> = HashMap::new();
    for (packet, at) in sent.iter().filter(|((from, ..), at)| is_counted(from) && **at < until) {
        let delay = arrived.get(packet).map(|then| then.saturating_duration_since(*at));
        streams.entry((packet.0, packet.1)).or_default().push((packet.2, delay));
    }
    let (mut delays, mut jitters, mut all) = (Vec::new(), Vec::new(), 0);
    for stream in streams.values_mut() {
        stream.sort_unstable_by_key(|(sequence, _)| *sequence);
        all += stream.len();
        let there: Vec<Duration> = stream.iter().filter_map(|(_, delay)| *delay).collect();
        jitters.extend(there.windows(2).map(|pair| pair[0].abs_diff(pair[1])));
        delays.extend(there);
    }
    delays.sort_unstable();
    jitters.sort_unstable();
    let at = |times: &[Duration], share: f64| {
        times.get((times.len() as f64 * share) as usize).or(times.last()).copied().unwrap_or_default()
    };
    let loss = if all == 0 { 1.0 } else { 1.0 - delays.len() as f64 / all as f64 };
    let (middle, p99, jitter_p99) = (at(&delays, 0.5), at(&delays, 0.99), at(&jitters, 0.99));
    // A buffer at the ear that holds for the 99th of a hundred packets.
    let conditions = Conditions { delay: p99 + CODEC, loss, burst_ratio: 1.0 };
    let mos = quality(Codec::G729, &conditions).map_or(1.0, |quality| quality.mos);
    Fate { sent: all, loss, middle, p99, jitter_p99, mos }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_late_or_not_at_all_is_seen_stream_by_stream() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (near, far) = (address("10.0.0.1:21000"), address("10.0.0.2:20000"));
        let (mut sent, mut arrived) = (Passed::new(), Passed::new());
        for number in 0..200u16 {
            let at = start + ms(20 * u64::from(number));
            sent.insert((near, far, number), at);
            sent.insert((far, near, number), at);
            // One in ten is lost, and every second one is 8 ms later.
            if number % 10 != 0 {
                arrived.insert((near, far, number), at + ms(300 + 8 * u64::from(number % 2)));
            }
        }
        let fate = fate(&sent, &arrived, start + ms(100_000), |from| *from == near);
        assert_eq!((fate.sent, fate.p99, fate.jitter_p99), (200, ms(308), ms(8)));
        assert!((fate.loss - 0.1).abs() < 1e-9 && (1.0..4.0).contains(&fate.mos), "{fate:?}");
        let none = super::fate(&sent, &arrived, start, |_| true);
        assert_eq!((none.sent, none.loss), (0, 1.0));
    }
}
