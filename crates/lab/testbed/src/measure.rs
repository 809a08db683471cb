//! The emulator measured from outside, between two kernels: the rows of `./run measure 1` that are about it.
//! Meant for a quiet machine; on a busy one the delay rows tell how busy it is.

use farhop_emulator::LatenessSummary;
use farhop_netdev::precise_timers;
use farhop_orbit::{Leg, Loss, Profile, Way};
use farhop_units::{BitRate, Bytes};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::probe::{HEADERS, Probe, SMALLEST};
use crate::{Error, Place, Testbed, quiet};

/// One measured bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What was measured, on which link.
    pub what: String,
    /// What came out, with its unit.
    pub measured: String,
    /// What it had to be.
    pub bound: String,
    /// Whether it is.
    pub pass: bool,
}

pub use crate::impaired::impaired;
pub use crate::terminals::terminals;

/// One-way delay: at most this wrong at the 99th percentile.
pub(crate) const DELAY_BOUND: Duration = Duration::from_micros(200);

/// Probes of the delay, 5 ms apart.
pub(crate) const PROBES: u64 = 1000;

/// A machine that wakes idle threads later than this at the 99th percentile is not quiet: half the bound.
const QUIET: Duration = Duration::from_micros(100);

/// The delay is measured at most this often, until the machine was quiet.
const ATTEMPTS: usize = 10;

/// Rates: at most this share wrong.
const RATE_BOUND: f64 = 0.005;

/// Half the width, in standard deviations, of a binomial count's 99 % interval.
const DEVIATIONS_99: f64 = 2.576;

/// Segments that one core must carry.
const THROUGHPUT_BOUND: f64 = 1e9;

/// Delay, rate, loss and throughput of the emulator. Takes about a minute and needs root.
///
/// # Errors
/// No testbed can be brought up, or no probe came through.
pub fn emulator() -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let testbed = Testbed::up(&Profile::named("geo-hylas2").map_err(io::Error::other).map_err(probing)?, 1)?;
    for way in Way::BOTH {
        rows.push(delay(&testbed, way)?);
    }
    for name in ["geo-256k", "geo-2m", "geo-hylas2", "geo-20m"] {
        let profile = Profile::named(name).map_err(io::Error::other).map_err(probing)?;
        testbed.link().switch(&profile);
        for way in Way::BOTH {
            rows.push(rate(&testbed, &profile, way)?);
        }
    }
    let lossy = Leg { delay: Duration::from_millis(10), loss: Loss::Independent(0.01), ..Leg::transparent() };
    testbed.link().switch(&Profile { name: "lossy".into(), forward: lossy.clone(), return_: lossy });
    for way in Way::BOTH {
        rows.push(loss(&testbed, way)?);
    }
    let transparent = Leg::transparent();
    testbed.link().switch(&Profile {
        name: "none".into(),
        forward: transparent.clone(),
        return_: transparent,
    });
    rows.push(throughput(&testbed, "segments through the emulator, per core")?);
    Ok(rows)
}

pub(crate) fn probing(source: io::Error) -> Error {
    Error::Probe { what: "measuring", source }
}

/// Sends `count` probes of `payload` bytes, `pause` apart; gives when each was sent and the arrivals. The
/// sender has no priority: traffic that is measured has none either.
pub(crate) fn exchange(
    probe: &Probe,
    count: u64,
    payload: usize,
    pause: Duration,
) -> io::Result<(Vec<Duration>, Vec<crate::probe::Arrival>)> {
    thread::scope(|scope| {
        let sender = scope.spawn(move || -> io::Result<Vec<Duration>> {
            precise_timers();
            let start = Instant::now();
            (0..count)
                .map(|number| {
                    let at = pause * u32::try_from(number).unwrap_or(u32::MAX);
                    // Spins at the end: a core woken from sleep would count its own waking as delay.
                    thread::sleep(at.saturating_sub(start.elapsed() + Duration::from_micros(300)));
                    while start.elapsed() < at {
                        std::hint::spin_loop();
                    }
                    probe.send(number, payload)
                })
                .collect()
        });
        let mut arrivals = Vec::new();
        while arrivals.len() < count as usize
            && let Some(arrival) = probe.receive()?
        {
            arrivals.push(arrival);
        }
        let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender stopped")))?;
        Ok((sent, arrivals))
    })
}

/// One attempt at the delay row.
pub(crate) struct Delays {
    /// Of the probes that arrived as they had to, sorted.
    pub(crate) errors: Vec<Duration>,
    /// How many had to arrive.
    pub(crate) all: usize,
    /// The link's own.
    pub(crate) lateness: LatenessSummary,
    /// The machine's own, at the 99th percentile.
    pub(crate) machine: Duration,
}

/// From a packet's sending to its arrival at the other kernel, against what the profile says.
fn delay(testbed: &Testbed, way: Way) -> Result<Row, Error> {
    let profile = testbed.link().profile();
    delay_row(&profile, way, || attempt(testbed, &profile, way))
}

/// An attempt counts if the machine was quiet meanwhile, whatever came out of it; else it is repeated, and the quietest counts.
pub(crate) fn delay_row(
    profile: &Profile,
    way: Way,
    mut attempt: impl FnMut() -> Result<Delays, Error>,
) -> Result<Row, Error> {
    let mut attempts = vec![attempt()?];
    while attempts.last().is_some_and(|last| last.machine > QUIET) && attempts.len() < ATTEMPTS {
        attempts.push(attempt()?);
    }
    let tried = attempts.len();
    let Some(Delays { errors, all, lateness, machine }) = attempts.into_iter().min_by_key(|one| one.machine)
    else {
        return Err(probing(io::Error::other("no attempt was made")));
    };
    let percentile =
        |percent: usize| errors.get((errors.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    let (p50, p99) = (percentile(50).unwrap_or(Duration::MAX), percentile(99).unwrap_or(Duration::MAX));
    let quiet = if machine <= QUIET { "quiet" } else { "NOT quiet" };
    Ok(Row {
        what: format!("one-way delay error, {} {way}", profile.name),
        measured: format!(
            "p99 {} (p50 {}; the link's own lateness p99 {}; {} of {all} probes; the machine was {quiet}: \
             an idle thread woke {} late at p99; attempt {tried})",
            micros(p99),
            micros(p50),
            micros(lateness.p99),
            errors.len(),
            micros(machine),
        ),
        bound: format!("p99 ≤ {} on a quiet machine", micros(DELAY_BOUND)),
        pass: p99 <= DELAY_BOUND && errors.len() == all,
    })
}

fn attempt(testbed: &Testbed, profile: &Profile, way: Way) -> Result<Delays, Error> {
    let leg = profile.leg(way);
    let size = Bytes((SMALLEST + HEADERS) as u64);
    let expected = leg.delay + leg.rate.map_or(Duration::ZERO, |rate| rate.time_for(size));
    let probe = hop(testbed, way)?;
    testbed.link().take_record();
    let (exchanged, machine) =
        quiet::lateness_during(|| exchange(&probe, PROBES, SMALLEST, Duration::from_millis(5)));
    let (sent, arrivals) = exchanged.map_err(probing)?;
    let error = |arrival: &crate::probe::Arrival| {
        let sent = sent.get(arrival.number as usize)?;
        Some(arrival.at.saturating_sub(*sent).abs_diff(expected))
    };
    let mut errors: Vec<Duration> = arrivals.iter().filter_map(error).collect();
    errors.sort();
    let lateness = testbed.link().take_record().way(way).lateness;
    Ok(Delays { errors, all: PROBES as usize, lateness, machine })
}

fn rate(testbed: &Testbed, profile: &Profile, way: Way) -> Result<Row, Error> {
    let check = testbed.rate(profile, way)?;
    let error = check.map_or(f64::INFINITY, |check| check.error());
    Ok(Row {
        what: format!("rate, {} {way}", profile.name),
        measured: check.map_or("none".into(), |check| {
            format!("{:.2} kbit/s ({:+.3} %)", check.measured.0 as f64 / 1e3, error * 100.0)
        }),
        bound: format!("{} ± 0.5 %", check.map_or(BitRate(0), |check| check.expected)),
        pass: error.abs() <= RATE_BOUND,
    })
}

fn loss(testbed: &Testbed, way: Way) -> Result<Row, Error> {
    const PROBES: u64 = 20_000;
    let p = testbed.link().profile().leg(way).loss.share(Bytes((SMALLEST + HEADERS) as u64));
    let probe = hop(testbed, way)?;
    let (_, arrivals) = exchange(&probe, PROBES, SMALLEST, Duration::from_micros(100)).map_err(probing)?;
    let lost = PROBES.saturating_sub(arrivals.len() as u64);
    let counters = testbed.link().take_record().way(way).counters;
    let (mean, deviation) = (PROBES as f64 * p, (PROBES as f64 * p * (1.0 - p)).sqrt());
    let (low, high) = (mean - DEVIATIONS_99 * deviation, mean + DEVIATIONS_99 * deviation);
    Ok(Row {
        what: format!("loss of {PROBES} packets at {} %, {way}", p * 100.0),
        measured: format!("{lost} lost, {} by the model", counters.loss_drops.packets),
        bound: format!("{:.0} to {:.0} (binomial 99 %), all by the model", low.ceil(), high.floor()),
        pass: (low..=high).contains(&(lost as f64)) && lost == counters.loss_drops.packets,
    })
}

/// TCP segments over a link that does not make them wait, per second of the link's CPU time.
pub(crate) fn throughput(testbed: &Testbed, what: &str) -> Result<Row, Error> {
    const TIME: Duration = Duration::from_secs(3);
    let address = testbed.addresses.ground_satellite;
    let listener =
        testbed.namespace(Place::Ground).run(|| TcpListener::bind((address, 0)))?.map_err(probing)?;
    let target = listener.local_addr().map_err(probing)?;
    let mut near = testbed.namespace(Place::Remote).run(|| TcpStream::connect(target))?.map_err(probing)?;
    let (mut far, _) = listener.accept().map_err(probing)?;
    testbed.link().take_record();
    let transfer = || -> io::Result<()> {
        thread::scope(|scope| {
            let sink = scope.spawn(move || {
                let mut buffer = vec![0; 1 << 20];
                while near.read(&mut buffer)? > 0 {}
                Ok(())
            });
            let (start, block) = (Instant::now(), vec![0; 1 << 20]);
            while start.elapsed() < TIME {
                far.write_all(&block)?;
            }
            drop(far);
            sink.join().unwrap_or_else(|_| Err(io::Error::other("the receiver stopped")))
        })
    };
    transfer().map_err(probing)?;
    let record = testbed.link().take_record();
    let cpu = record.forward.cpu + record.return_.cpu;
    let delivered = record.forward.counters.delivered;
    let bits = delivered.bytes.0 as f64 * 8.0;
    let per_core = bits / cpu.as_secs_f64();
    Ok(Row {
        what: what.into(),
        measured: format!(
            "{:.2} Gbit/s of {} B packets (both threads' CPU time; {:.2} Gbit/s by the clock)",
            per_core / 1e9,
            delivered.bytes.0 / delivered.packets.max(1),
            bits / record.elapsed.as_secs_f64() / 1e9
        ),
        bound: "≥ 1 Gbit/s".into(),
        pass: per_core >= THROUGHPUT_BOUND,
    })
}

/// Sockets on both sides of the hop itself.
pub(crate) fn hop(testbed: &Testbed, way: Way) -> Result<Probe, Error> {
    let remote = (testbed.namespace(Place::Remote), testbed.addresses.remote_satellite);
    let ground = (testbed.namespace(Place::Ground), testbed.addresses.ground_satellite);
    let patience = Duration::from_secs(2);
    match way {
        Way::Forward => Probe::between(ground, remote, patience),
        Way::Return => Probe::between(remote, ground, patience),
    }
}

pub(crate) fn micros(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}
