//! How much of a core each end takes for a tunnel at full speed: bits carried per second of its processor time, so that client,
//! origin and link, which share the machine, do not count.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use farhop_compare::{Ends, Keys, Stage, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use farhop_testkit::pattern::bytes_at;

use crate::group::Context;
use crate::transfers::compare;
use crate::{MeasureError, Row};

/// What is carried towards the user, in bytes, and in which pieces it is written.
const SIZE: u64 = 500_000_000;
const PIECE: usize = 1 << 20;
/// How long nothing may move.
const STILL: Duration = Duration::from_secs(60);
/// Bits per second of a core.
const RATE: f64 = 1e9;

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
    let mut ends = Ends::start(stage, Variant::FarhopTunnel)?;
    let connecting = testbed.namespace(Place::Client).run(|| TcpStream::connect(ends.proxy));
    let client = connecting.map_err(farhop_testbed::Error::from)?;
    let client = client.map_err(MeasureError::system("the proxy"))?;
    let before = ends.computed();
    // Ends by itself: when the client is gone, so is what it reads from.
    std::thread::spawn(move || serve(&listener));
    carry(context, client, address)?;
    ends.check_alive()?;
    let rows = ["remote", "ground"].into_iter().zip(before.into_iter().zip(ends.computed()));
    let mut rows: Vec<_> = rows
        .map(|(end, (before, after))| {
            let spent = after.unwrap_or_default().saturating_sub(before.unwrap_or_default()).as_secs_f64();
            let rate = 8.0 * SIZE as f64 / spent.max(1e-9);
            Row::judged(
                format!("tunnel, one core of {end}, nothing to repair"),
                format!("{:.2} Gbit/s ({} MB in {spent:.2} s of the core)", rate / 1e9, SIZE / 1_000_000),
                "≥ 1 Gbit/s",
                rate >= RATE,
            )
        })
        .collect();
    rows.push(Row::judged(
        "tunnel, one core of each end, 10 % repair",
        "not built: its measurement",
        "≥ 400 Mbit/s",
        false,
    ));
    Ok(rows)
}

/// Answers one connection's first byte with the pattern.
fn serve(listener: &TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_write_timeout(Some(STILL))?;
    stream.read_exact(&mut [0])?;
    for at in (0..SIZE).step_by(PIECE) {
        stream.write_all(&bytes_at(1, at, PIECE.min((SIZE - at) as usize)))?;
    }
    Ok(())
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
