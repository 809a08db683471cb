//! 200 MB down and 200 MB up at the same time through the two ends as processes: every byte checked, and the most memory
//! that each process has held.

use std::io::{BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use farhop_compare::{Ends, Keys, Stage, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use farhop_testkit::pattern::{Checker, bytes_at};
use farhop_testkit::{File, Site};
use farhop_units::Bytes;

use crate::group::Context;
use crate::{MeasureError, Row};

/// What is carried each way, in bytes.
const SIZE: u64 = 200_000_000;
const PIECE: u64 = 64 * 1024;
/// Resident memory that neither end may exceed, in bytes.
const MEMORY: u64 = 100_000_000;
/// How long nothing may move. An upload's bytes wait for the slowest link.
const STILL: Duration = Duration::from_secs(120);

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = Vec::new();
    for name in ["none", "geo-20m"] {
        let profile = Profile::named(name).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        rows.extend(over(context, &profile)?);
    }
    Ok(rows)
}

fn over(context: &Context, profile: &Profile) -> Result<Vec<Row>, MeasureError> {
    let name = &profile.name;
    eprintln!("200 MB each way over {name}");
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let testbed = Testbed::up(profile, 1)?;
    let keys = Keys::make(folder.path())?;
    let stage = Stage {
        testbed: &testbed,
        folder: folder.path(),
        keys: &keys,
        interception: None,
        interrupt: &context.interrupt,
    };
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let address = SocketAddr::from((testbed.addresses.origin(0), 80));
    let listener = testbed
        .namespace(Place::Origins)
        .run(|| TcpListener::bind(address))
        .map_err(farhop_testbed::Error::from)?;
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let listener = listener.map_err(MeasureError::system("the origin's port"))?;
    let _origin = {
        let _inside = runtime.enter();
        let listener =
            tokio::net::TcpListener::from_std(listener).map_err(MeasureError::system("the origin"))?;
        Site::new().file("/down", File::pattern(1, SIZE)).serve_on(listener)
    };
    let mut ends = Ends::start(stage, Variant::Farhop)?;
    let connect = || -> Result<TcpStream, MeasureError> {
        let stream = testbed.namespace(Place::Client).run(|| TcpStream::connect(ends.proxy));
        let stream = stream.map_err(farhop_testbed::Error::from)?;
        let stream = stream.map_err(MeasureError::system("the proxy"))?;
        let still = Some(STILL);
        stream
            .set_read_timeout(still)
            .and_then(|()| stream.set_write_timeout(still))
            .map_err(MeasureError::system("a socket"))?;
        Ok(stream)
    };
    let (for_down, for_up) = (connect()?, connect()?);
    let (down, up) = std::thread::scope(|scope| {
        let down = scope.spawn(|| download(context, for_down, address));
        let up = upload(context, for_up, address);
        (down.join().unwrap_or_else(|_| Err(MeasureError::Unexpected("the download stopped".into()))), up)
    });
    context.interrupt.check()?;
    ends.check_alive()?;
    let memory = ends.peak_memory();
    let transfer = |way: &str, taken: Result<Duration, MeasureError>| {
        let (measured, pass) = match taken {
            Ok(time) => (format!("every byte right, {:.1} s", time.as_secs_f64()), true),
            Err(error) => (error.to_string(), false),
        };
        Row::judged(format!("200 MB {way} over {name}"), measured, "every byte right", pass)
    };
    let resident = |end: &str, peak: Option<Bytes>| {
        let measured = peak.map_or("gone".into(), |peak| format!("{:.1} MB at most", peak.0 as f64 / 1e6));
        Row::judged(
            format!("resident memory of {end}, {name}"),
            measured,
            "< 100 MB",
            peak.is_some_and(|peak| peak.0 < MEMORY),
        )
    };
    let [remote, ground] = memory;
    Ok(vec![
        transfer("down", down),
        transfer("up", up),
        resident("remote", remote),
        resident("ground", ground),
    ])
}

/// Downloads and compares every byte.
fn download(context: &Context, mut stream: TcpStream, origin: SocketAddr) -> Result<Duration, MeasureError> {
    let failed = MeasureError::system("the download");
    let start = Instant::now();
    write!(
        stream,
        "GET http://{}/down HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        origin.ip(),
        origin.ip()
    )
    .map_err(&failed)?;
    let mut stream = BufReader::with_capacity(PIECE as usize, stream);
    let length = head(&mut stream)?;
    if length != Some(SIZE) {
        return Err(MeasureError::Unexpected(format!("the download announces {length:?} bytes")));
    }
    compare(context, &mut stream, SIZE, PIECE as usize, failed)?;
    Ok(start.elapsed())
}

/// Reads the first `size` bytes of what seed 1 names, `piece` at a time, and compares each of them.
pub(crate) fn compare(
    context: &Context,
    stream: &mut impl Read,
    size: u64,
    piece: usize,
    failed: impl Fn(std::io::Error) -> MeasureError,
) -> Result<(), MeasureError> {
    let (mut checker, mut buffer) = (Checker::new(1), vec![0; piece]);
    while checker.checked() < size {
        context.interrupt.check()?;
        let count = stream.read(&mut buffer).map_err(&failed)?;
        if count == 0 {
            return Err(MeasureError::Unexpected(format!("cut off after {} bytes", checker.checked())));
        }
        let wrong = |at| MeasureError::Unexpected(format!("byte {at} is wrong"));
        checker.check(&buffer[..count]).map_err(wrong)?;
    }
    Ok(())
}

/// Uploads, and compares the receipt: length and hash as the origin saw them.
fn upload(context: &Context, mut stream: TcpStream, origin: SocketAddr) -> Result<Duration, MeasureError> {
    let failed = MeasureError::system("the upload");
    let start = Instant::now();
    write!(
        stream,
        "PUT http://{}/up HTTP/1.1\r\nHost: {}\r\nContent-Length: {SIZE}\r\nConnection: close\r\n\r\n",
        origin.ip(),
        origin.ip()
    )
    .map_err(&failed)?;
    let mut hasher = blake3::Hasher::new();
    for at in (0..SIZE).step_by(PIECE as usize) {
        context.interrupt.check()?;
        let piece = bytes_at(2, at, PIECE.min(SIZE - at) as usize);
        hasher.update(&piece);
        stream.write_all(&piece).map_err(&failed)?;
    }
    let mut stream = BufReader::new(stream);
    head(&mut stream)?;
    let mut receipt = String::new();
    stream.read_to_string(&mut receipt).map_err(&failed)?;
    let right = format!("{SIZE} bytes, {}", hasher.finalize().to_hex());
    if receipt != right {
        return Err(MeasureError::Unexpected(format!("the origin got other bytes: {receipt}")));
    }
    Ok(start.elapsed())
}

/// Reads a response head, which has to be a 200; gives its `Content-Length`.
fn head(stream: &mut impl std::io::BufRead) -> Result<Option<u64>, MeasureError> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).map_err(MeasureError::system("the response"))?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_ascii_lowercase());
    }
    let first = lines.first().cloned().unwrap_or_default();
    if !first.starts_with("http/1.1 200 ") {
        return Err(MeasureError::Unexpected(format!("the answer is '{first}'")));
    }
    Ok(lines.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()))
}
