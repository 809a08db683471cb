//! How much of a core each end takes for a tunnel at full speed, confined to one: bits carried per second of its processor time, so
//! that client, origin and link, which share the machine, do not count. The rate by the clock, which they do bear on, is printed
//! beside it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use farhop_compare::{Ends, Keys, Stage, Tuning, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use farhop_testkit::pattern::bytes_at;
use serde_json::Value;

use crate::group::Context;
use crate::transfers::compare;
use crate::{MeasureError, Row};

/// What is carried towards the user, in bytes, and in which pieces it is written.
const SIZE: u64 = 500_000_000;
const PIECE: usize = 1 << 20;
/// How long nothing may move.
const STILL: Duration = Duration::from_secs(60);
/// Bits per second of a core, with nothing to repair and with at least so much repair.
const RATE: f64 = 1e9;
const RATE_REPAIRED: f64 = 400e6;
const REPAIR: f64 = 0.10;
/// The loss that ground answers with so much repair (docs/fec.md: p + 4 √(p ÷ 128)).
const LOSS: f64 = 0.04;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let testbed = Testbed::up(&profile, 1)?;
    let keys = Keys::make(folder.path())?;
    let stage = Stage {
        testbed: &testbed,
        folder: folder.path(),
        keys: &keys,
        interception: None,
        interrupt: &context.interrupt,
    };
    let address = SocketAddr::from((testbed.addresses.origin(0), 443));
    let listening = testbed.namespace(Place::Origins).run(|| TcpListener::bind(address));
    let listener = listening.map_err(farhop_testbed::Error::from)?;
    let listener = listener.map_err(MeasureError::system("the origin's port"))?;
    // What repairs cost is asked of QUIC: left to themselves, the ends call TCP where losses keep it from being quick.
    let quic = Tuning { remote: "carrier = \"quic\"\n".into(), ..Tuning::default() };
    let mut ends = Ends::start_tuned(stage, Variant::FarhopTunnel, &quic)?;
    // One each, where there are two.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    ends.confine([0, 1 % cores])?;
    // Ends by itself: when the clients are gone, so is what it reads from.
    std::thread::spawn(move || serve(&listener));
    let mut rows = Vec::new();
    for (loss, bound) in [(0.0, RATE), (LOSS, RATE_REPAIRED)] {
        testbed.link().switch(&profile.clone().with_loss(loss, 0.0));
        let repaired = || ends.ground_status().map(|status| repairs(&status));
        let (before, sent) = (ends.computed(), repaired()?);
        let connecting = testbed.namespace(Place::Client).run(|| TcpStream::connect(ends.proxy));
        let client = connecting.map_err(farhop_testbed::Error::from)?;
        let start = Instant::now();
        carry(context, client.map_err(MeasureError::system("the proxy"))?, address)?;
        let taken = start.elapsed();
        let (after, now) = (ends.computed(), repaired()?);
        ends.check_alive()?;
        let share = (now[1] - sent[1]) / (now[0] - sent[0]).max(1.0);
        for (end, (before, after)) in ["remote", "ground"].into_iter().zip(before.into_iter().zip(after)) {
            let spent = after.unwrap_or_default().saturating_sub(before.unwrap_or_default());
            rows.push(judged(end, Spent { computed: spent, taken }, bound, (loss > 0.0).then_some(share)));
        }
    }
    Ok(rows)
}

/// What a tunnel took.
struct Spent {
    /// Time of an end's core.
    computed: Duration,
    /// Time by the clock.
    taken: Duration,
}

/// A tunnel's bits for each second that an end has computed; where packets got lost, only with enough repair.
fn judged(end: &str, spent: Spent, bound: f64, share: Option<f64>) -> Row {
    let rate = |time: Duration| 8.0 * SIZE as f64 / time.as_secs_f64().max(1e-9);
    let (by_core, by_clock) = (rate(spent.computed), rate(spent.taken));
    let repair = share.map(|share| format!(", {:.1} % repair", share * 100.0));
    let kind = if share.is_some() { "10 % repair" } else { "nothing to repair" };
    Row::judged(
        format!("tunnel, one core of {end}, {kind}"),
        format!(
            "{:.2} Gbit/s of core time ({} MB in {:.2} s of it{}); {:.2} Gbit/s by the clock, all on this machine",
            by_core / 1e9,
            SIZE / 1_000_000,
            spent.computed.as_secs_f64(),
            repair.unwrap_or_default(),
            by_clock / 1e9,
        ),
        format!("≥ {} Mbit/s of core time", bound / 1e6),
        by_core >= bound && share.is_none_or(|share| share >= REPAIR),
    )
}

/// Bytes that ground has sent in packets, and as repairs of them.
fn repairs(status: &Value) -> [f64; 2] {
    let sent = |name: &str| {
        let carriers = status["carriers"].as_array().into_iter().flatten();
        carriers.filter_map(|carrier| carrier["repairs"]["sent"][name].as_f64()).sum()
    };
    [sent("source_bytes"), sent("repair_bytes")]
}

/// Answers the first byte of one connection after the other with the pattern.
fn serve(listener: &TcpListener) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_write_timeout(Some(STILL))?;
        stream.read_exact(&mut [0])?;
        for at in (0..SIZE).step_by(PIECE) {
            stream.write_all(&bytes_at(1, at, PIECE.min((SIZE - at) as usize)))?;
        }
    }
}

/// Opens the tunnel and compares everything that comes out of it.
fn carry(context: &Context, mut stream: TcpStream, to: SocketAddr) -> Result<(), MeasureError> {
    let failed = MeasureError::system("the tunnel");
    stream.set_read_timeout(Some(STILL)).map_err(&failed)?;
    write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").map_err(&failed)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(&failed)?;
        head.extend(byte);
    }
    if !head.starts_with(b"HTTP/1.1 200") {
        let said = String::from_utf8_lossy(&head);
        let first = said.lines().next().unwrap_or_default().to_owned();
        return Err(MeasureError::Unexpected(format!("CONNECT is answered '{first}'")));
    }
    stream.write_all(b"?").map_err(&failed)?;
    compare(context, &mut stream, SIZE, PIECE, failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn the_core_is_judged_and_the_clock_told() {
        let spent = || Spent { computed: Duration::from_secs(2), taken: Duration::from_secs(8) };
        let row = judged("ground", spent(), 1e9, None);
        assert_eq!(row.verdict, Verdict::Pass);
        assert_eq!(
            row.measured,
            "2.00 Gbit/s of core time (500 MB in 2.00 s of it); 0.50 Gbit/s by the clock, all on this machine"
        );
        assert_eq!(judged("ground", spent(), 4e8, Some(0.05)).verdict, Verdict::Miss, "too little repair");
    }
}
