//! 10 MB through split TCP with programs of others, and how soon their connections stand. Each is compared with what it takes by
//! itself: the round trips of its own protocol, as counted directly over the same link with next to nothing to carry, without
//! those of TCP's handshakes, and the transmission of what crossed.

use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use farhop_lab_transport::{Hop, PATIENCE};
use farhop_testbed::{Fitness, Place, fit};
use farhop_testkit::pattern::bytes_at;
use farhop_units::Bytes;

use super::caught;
use super::servers::{Kind, Server};
use crate::group::Context;
use crate::hop::{against, median, runs};
use crate::{MeasureError, Row};

/// What is carried, and next to nothing.
const SIZE: u64 = 10_000_000;
const LITTLE: u64 = 100;
/// How many limits it may take.
const FACTOR: f64 = 1.1;
/// How often the little is carried.
const COUNTED: usize = 3;
/// How soon a connection has to stand, and how often that is tried.
const CONNECT: Duration = Duration::from_millis(5);
const CONNECTS: u16 = 20;

/// One course of a program.
#[derive(Debug, Clone, Copy, Default)]
struct Course {
    time: Duration,
    /// What crossed towards the user.
    wire: Bytes,
    late: bool,
}

/// What a program has taken.
struct Taken {
    kind: Kind,
    /// Over the link without us, for next to nothing.
    little: Duration,
    large: Vec<Course>,
}

pub(super) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut hop = Hop::up(&context.interrupt, "geo-hylas2")?;
    if let Fitness::Unfit(reason) = hop.calibration.fitness() {
        return Err(MeasureError::Unexpected(format!("the link is not what it should be: {reason}")));
    }
    let failed = MeasureError::system("files for the servers");
    // A server that serves as nobody has to get in.
    let folder = tempfile::Builder::new().prefix("farhop-split-").tempdir().map_err(&failed)?;
    for (name, size) in [("large", SIZE), ("little", LITTLE)] {
        std::fs::write(folder.path().join(name), bytes_at(1, 0, size as usize)).map_err(&failed)?;
    }
    let address = hop.testbed.addresses.origin(9).into();
    let present: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.lacking().is_none()).collect();
    let start = |kind: &Kind| Server::start(*kind, &hop.testbed, address, folder.path(), &context.interrupt);
    let servers = present.iter().map(start).collect::<Result<Vec<Server>, MeasureError>>()?;

    let mut taken = Vec::new();
    for (kind, server) in present.iter().zip(&servers) {
        let little = (0..COUNTED).map(|_| run(&hop, server, "little", LITTLE));
        let little = little.collect::<Result<Vec<Course>, MeasureError>>()?;
        let little = median(&mut little.iter().map(|course| course.time).collect::<Vec<_>>());
        taken.push(Taken { kind: *kind, little, large: Vec::new() });
    }
    hop.start("split", &caught("auto"))?;
    // The carrier is warm once something has crossed.
    for server in servers.iter().take(1) {
        run(&hop, server, "large", SIZE)?;
    }
    let mut rows = vec![connects(&hop)?];
    for _ in 0..runs(context) {
        for (taken, server) in taken.iter_mut().zip(&servers) {
            taken.large.push(run(&hop, server, "large", SIZE)?);
        }
    }
    // All carry the same; what one's server sends too much is no reason for it to take longer.
    let wire =
        taken.iter().flat_map(|taken| &taken.large).map(|course| course.wire).min().unwrap_or_default();
    for kind in Kind::ALL {
        let what = format!("10 MB through split TCP, {}", kind.name());
        rows.push(match (taken.iter().find(|taken| taken.kind == kind), kind.lacking()) {
            (Some(taken), _) => judged(what, &hop, taken, wire),
            (None, lacking) => {
                let package = lacking.unwrap_or_default();
                Row::judged(what, format!("not present: install '{package}'"), bound(), false)
            }
        });
    }
    Ok(rows)
}

fn bound() -> String {
    format!("≤ {FACTOR} × limit")
}

fn judged(what: String, hop: &Hop<'_>, taken: &Taken, wire: Bytes) -> Row {
    let middle = median(&mut taken.large.iter().map(|course| course.time).collect::<Vec<_>>());
    let rtt = hop.profile.rtt();
    let talk = taken.little.saturating_sub(taken.kind.connections() * rtt);
    let limit = talk + hop.limit(wire).saturating_sub(rtt);
    let ratio = middle.as_secs_f64() / limit.as_secs_f64().max(1e-9);
    let late = if taken.large.iter().any(|course| course.late) { ", late: indicative" } else { "" };
    let measured = format!(
        "{ratio:.3} × ({}, of it {:.2} s its own round trips{late})",
        against(middle, limit),
        talk.as_secs_f64()
    );
    Row::judged(what, measured, bound(), !taken.large.is_empty() && ratio <= FACTOR)
}

/// Has a program carry a file, and compares what came.
fn run(hop: &Hop<'_>, server: &Server, name: &str, bytes: u64) -> Result<Course, MeasureError> {
    let failed = MeasureError::system("a program's course");
    let to = hop.folder.path().join("carried");
    let _ = std::fs::remove_file(&to); // of the course before, if it kept something
    // What was under way has arrived and was acknowledged.
    hop.interrupt.sleep(hop.profile.rtt() + Duration::from_millis(100))?;
    let mut command = server.client(name, bytes, &to);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let link = hop.testbed.link();
    link.take_record();
    let start = Instant::now();
    let mut running = hop.testbed.spawn_in(Place::Client, command)?;
    let status = loop {
        if let Some(status) = running.try_wait().map_err(&failed)? {
            break status;
        }
        if start.elapsed() > PATIENCE {
            return Err(MeasureError::Unexpected(format!("'{name}' does not come over {}", server.name())));
        }
        hop.interrupt.sleep(Duration::from_millis(5))?;
    };
    let (time, record) = (start.elapsed(), link.record());
    if !status.success() {
        let mut said = String::new();
        if let Some(mut stderr) = running.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut said).map_err(&failed)?;
        }
        return Err(MeasureError::Unexpected(format!("{} ended ({status}): {}", server.name(), said.trim())));
    }
    if to.exists() && std::fs::read(&to).map_err(&failed)? != bytes_at(1, 0, bytes as usize) {
        return Err(MeasureError::Unexpected(format!("{} brought other bytes", server.name())));
    }
    Ok(Course { time, wire: record.forward.counters.delivered.bytes, late: !fit(&record).is_fit() })
}

/// How soon a plain connection stands, to where nobody listens behind the link.
fn connects(hop: &Hop<'_>) -> Result<Row, MeasureError> {
    let times = hop.testbed.namespace(Place::Client).run(|| {
        (0..CONNECTS)
            .map(|number| {
                let to = SocketAddr::from((hop.testbed.addresses.origin(number), 7));
                let start = Instant::now();
                TcpStream::connect_timeout(&to, PATIENCE).map(|_| start.elapsed())
            })
            .collect::<std::io::Result<Vec<Duration>>>()
    });
    let times = times.map_err(farhop_testbed::Error::from)?;
    let mut times = times.map_err(MeasureError::system("a connection"))?;
    let middle = median(&mut times);
    let most = times.last().copied().unwrap_or_default();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Row::judged(
        "connect of a split flow, as the client sees it",
        format!("{:.2} ms, at most {:.2} ms of {CONNECTS}", ms(middle), ms(most)),
        format!("< {} ms", CONNECT.as_millis()),
        middle < CONNECT,
    ))
}
