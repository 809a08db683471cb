//! One user's page while somebody downloads without end: another user in pieces that count as pages, another user in one go, and
//! the same user in a tunnel. Chromium, cold, through both ends over the link; beside it the page without anybody.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use farhop_compare::{Besides, Browsed, Browsing, Ends, Plan, Scene, Variant, Wanted};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};
use farhop_units::Bytes;
use farhop_workload::browser::Engine;
use farhop_workload::npm;
use farhop_workload::pages::{self, Page};

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};

const LINK: &str = "geo-hylas2";
const PAGE: &str = "photos";
const RUNS: u32 = 3;
/// "Must hold" of part 7: what two users who share alike may lose, and what someone may lose to a lower class.
const UNEVEN: f64 = 1.15;
const SLOWER: f64 = 1.2;
/// Until a download has shown what it is.
const WARM: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(300);
/// Less than what counts as a download whatever it says of itself.
const PIECE: u64 = 4_000_000;
/// Where the downloads come from: an address that no site has.
const ORIGIN: u16 = 2_000;
const PORT: u16 = 8080;

/// Who downloads meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greedy {
    /// Another user, one piece after the other: none of them ever counts as a download.
    Pieces,
    /// Another user, in one go.
    Endless,
    /// The same user, through a tunnel.
    Tunnel,
}

impl Greedy {
    const ALL: [Greedy; 3] = [Greedy::Pieces, Greedy::Endless, Greedy::Tunnel];

    fn as_str(self) -> &'static str {
        match self {
            Greedy::Pieces => "while another user downloads files of 4 MB",
            Greedy::Endless => "while another user downloads without end",
            Greedy::Tunnel => "while a tunnel of the same user downloads without end",
        }
    }
}

/// What a load took.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Took {
    seconds: f64,
    /// Of the forward link, everybody's.
    bytes: u64,
    /// Bytes that the greedy one had meanwhile.
    other: u64,
}

/// What the page takes at the least.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Least {
    /// The browser's part: over link `none`, without Farhop.
    browser: f64,
    /// Bytes of its files in their smallest known encodings: what Farhop sends besides raises no bound.
    bytes: u64,
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let named =
        |name: &str| Profile::named(name).map_err(|error| MeasureError::Unexpected(error.to_string()));
    let (none, link) = (named("none")?, named(LINK)?);
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let page = pages::build(PAGE, folder.path(), &npm::cache_folder());
    let page = page.map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let runs = context.runs.unwrap_or(RUNS);
    let plan = Plan {
        pages: vec![page.clone()],
        variants: vec![Variant::DirectH2, Variant::Farhop],
        runs,
        timeout: TIMEOUT,
        tls: false,
    };
    let up = |profile: &Profile| Scene::up(profile, 1, &plan, Besides::default(), context.interrupt.clone());
    let least = {
        let scene = up(&none)?;
        let browsing = Browsing::of(&scene, Engine::Chromium)?;
        let loads = (0..runs).map(|_| load(&scene, &browsing, &page, Variant::DirectH2, None));
        let loads: Vec<Browsed> = loads.collect::<Result<_, _>>()?;
        Least {
            browser: middle(loads.iter().map(took).collect()).seconds,
            bytes: Browsed::least_bytes(&loads),
        }
    };
    let scene = up(&link)?;
    serve(&scene.testbed)?;
    let browsing = Browsing::of(&scene, Engine::Chromium)?;
    let through = |greedy: Option<Greedy>| -> Result<Took, MeasureError> {
        let loads = (0..runs).map(|_| beside(&scene, &browsing, &page, greedy));
        Ok(middle(loads.collect::<Result<_, _>>()?))
    };
    let alone = through(None)?;
    let mut rows = vec![Row {
        what: format!("{PAGE} through Farhop, nobody else there"),
        measured: format!("{:.2} s, {} KB", alone.seconds, alone.bytes / 1000),
        bound: format!(
            "none; the browser alone takes {:.2} s, and the page's files are {} KB at the least",
            least.browser,
            least.bytes / 1000
        ),
        verdict: Verdict::Told,
    }];
    for greedy in Greedy::ALL {
        rows.push(judged(greedy, &link, least, alone, through(Some(greedy))?));
    }
    Ok(rows)
}

fn judged(greedy: Greedy, link: &Profile, least: Least, alone: Took, took: Took) -> Row {
    let what = format!("{PAGE} {}", greedy.as_str());
    let Least { browser, bytes } = least;
    let share = 2.0 * UNEVEN * time_for(link, bytes);
    let (most, bound) = match greedy {
        Greedy::Pieces => {
            let most = browser + link.rtt().as_secs_f64() + share;
            (most, format!("≤ {most:.2} s: browser {browser:.2}, RTT, {UNEVEN} × 2 × bytes ÷ rate"))
        }
        Greedy::Endless | Greedy::Tunnel => {
            let most = SLOWER * alone.seconds;
            (most, format!("≤ {most:.2} s: {SLOWER} × {:.2} alone", alone.seconds))
        }
    };
    let measured = format!("{:.2} s, the other had {} KB", took.seconds, took.other / 1000);
    // A download that stood still was none.
    Row::judged(what, measured, bound, took.seconds <= most && took.other > 0)
}

fn time_for(link: &Profile, bytes: u64) -> f64 {
    link.forward.rate.map_or(0.0, |rate| rate.time_for(Bytes(bytes)).as_secs_f64())
}

/// The load in the middle by its time, with what the others had in it.
fn middle(mut loads: Vec<Took>) -> Took {
    loads.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    loads.get(loads.len() / 2).copied().unwrap_or(Took { seconds: f64::INFINITY, bytes: 0, other: 0 })
}

/// One load through ends that are new, while somebody downloads.
fn beside(
    scene: &Scene,
    browsing: &Browsing,
    page: &Page,
    greedy: Option<Greedy>,
) -> Result<Took, MeasureError> {
    let mut ends = Ends::start(scene.stage(), Variant::Farhop)?;
    let download = greedy.map(|greedy| Download::begin(&scene.testbed, ends.proxy, greedy)).transpose()?;
    let mut before = 0;
    if let Some(download) = &download {
        scene.interrupt.sleep(WARM)?;
        before = download.bytes();
    }
    let mut took = took(&load(scene, browsing, page, Variant::Farhop, Some(ends.proxy))?);
    took.other = download.as_ref().map_or(0, |download| download.bytes().saturating_sub(before));
    ends.check_alive()?;
    Ok(took)
}

fn load(
    scene: &Scene,
    browsing: &Browsing,
    page: &Page,
    variant: Variant,
    proxy: Option<SocketAddr>,
) -> Result<Browsed, MeasureError> {
    let secure = variant == Variant::DirectH2;
    let wanted = Wanted { page, variant, secure, proxy, timeout: TIMEOUT, filmed: false };
    let browsed = browsing.load(scene, &wanted)?;
    if let Some(fault) = browsed.faults.first() {
        return Err(MeasureError::Unexpected(format!("{PAGE} did not load: {fault}")));
    }
    Ok(browsed)
}

fn took(browsed: &Browsed) -> Took {
    let seconds = browsed.load.load_ms.map_or(f64::INFINITY, |ms| ms / 1e3);
    Took { seconds, bytes: browsed.record.forward.counters.sent.bytes.0, other: 0 }
}

/// Somebody who downloads until this is dropped.
struct Download {
    over: Arc<AtomicBool>,
    bytes: Arc<AtomicU64>,
    connection: TcpStream,
}

impl Download {
    fn begin(testbed: &Testbed, proxy: SocketAddr, greedy: Greedy) -> Result<Download, MeasureError> {
        let failed = MeasureError::system("a download");
        let (over, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let server = server_of(testbed);
        let place = if greedy == Greedy::Tunnel { Place::Client } else { Place::Neighbour };
        let connect = || TcpStream::connect(proxy);
        let stream = testbed.namespace(place).run(connect).map_err(farhop_testbed::Error::from)?;
        let stream = stream.map_err(&failed)?;
        let connection = stream.try_clone().map_err(&failed)?;
        let (until, count) = (Arc::clone(&over), Arc::clone(&bytes));
        thread::spawn(move || take(stream, server, greedy, &until, &count));
        Ok(Download { over, bytes, connection })
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // One that has ended by itself is as good.
        let _ = self.connection.shutdown(Shutdown::Both);
    }
}

pub(crate) fn server_of(testbed: &Testbed) -> SocketAddr {
    SocketAddr::from((testbed.addresses.origin(ORIGIN), PORT))
}

/// Serves downloads until the process ends; the namespace goes with the testbed.
pub(crate) fn serve(testbed: &Testbed) -> Result<(), MeasureError> {
    let listen = || TcpListener::bind(server_of(testbed));
    let listener = testbed.namespace(Place::Origins).run(listen).map_err(farhop_testbed::Error::from)?;
    let listener = listener.map_err(MeasureError::system("a server of downloads"))?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(())
}

/// Answers `/SIZE` with so many bytes, and anything else without end.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut asked = Vec::new();
    let mut byte = [0; 1024];
    while let Some(head) = head_of(&mut stream, &mut asked, &mut byte)? {
        let size = head.split_whitespace().nth(1).and_then(|path| path.trim_start_matches('/').parse().ok());
        let length = size.map_or(String::new(), |size: u64| format!("Content-Length: {size}\r\n"));
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n{length}\r\n")?;
        let mut left = size.unwrap_or(u64::MAX);
        while left > 0 {
            let piece = left.min(64 * 1024) as usize;
            stream.write_all(&vec![7; piece])?;
            left -= piece as u64;
        }
    }
    Ok(())
}

/// The next request head; none once the connection has ended.
fn head_of(
    stream: &mut TcpStream,
    asked: &mut Vec<u8>,
    buffer: &mut [u8],
) -> std::io::Result<Option<String>> {
    loop {
        if let Some(end) = asked.windows(4).position(|it| it == b"\r\n\r\n") {
            let head: Vec<u8> = asked.drain(..end + 4).collect();
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        match stream.read(buffer)? {
            0 => return Ok(None),
            count => asked.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Asks on and on, and counts what comes.
fn take(
    mut stream: TcpStream,
    server: SocketAddr,
    greedy: Greedy,
    over: &AtomicBool,
    bytes: &AtomicU64,
) -> std::io::Result<()> {
    let ask = |path: &str| format!("GET http://{server}{path} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    if greedy == Greedy::Tunnel {
        write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n")?;
        write!(stream, "GET / HTTP/1.1\r\nHost: {server}\r\n\r\n")?;
    }
    let mut buffer = vec![0; 64 * 1024];
    while !over.load(Relaxed) {
        match greedy {
            Greedy::Pieces => stream.write_all(ask(&format!("/{PIECE}")).as_bytes())?,
            Greedy::Endless => stream.write_all(ask("/").as_bytes())?,
            Greedy::Tunnel => {}
        }
        let mut left = if greedy == Greedy::Pieces { PIECE } else { u64::MAX };
        while left > 0 {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            bytes.fetch_add(count as u64, Relaxed);
            left = left.saturating_sub(count as u64);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_greedy_one_has_a_bound_of_its_own_and_one_who_stands_still_proves_nothing() {
        let link = Profile::named(LINK).unwrap();
        // What Farhop sent beyond the page's own bytes raises no bound.
        let least = Least { browser: 0.5, bytes: 1_000_000 };
        let alone = Took { seconds: 2.0, bytes: 1_500_000, other: 0 };
        let verdict = |greedy, seconds, other| {
            judged(greedy, &link, least, alone, Took { seconds, bytes: 0, other }).verdict
        };
        // 0.5 s of browser, 0.65 of round trip, 1.15 × 2 × 1 s.
        assert_eq!(verdict(Greedy::Pieces, 3.4, 1), Verdict::Pass);
        assert_eq!(verdict(Greedy::Pieces, 3.5, 1), Verdict::Miss);
        for greedy in [Greedy::Endless, Greedy::Tunnel] {
            assert_eq!(verdict(greedy, 2.4, 1), Verdict::Pass);
            assert_eq!(verdict(greedy, 2.41, 1), Verdict::Miss);
            assert_eq!(verdict(greedy, 2.0, 0), Verdict::Miss);
        }
        let took = |seconds| Took { seconds, bytes: 0, other: 0 };
        assert_eq!(middle(vec![took(3.0), took(1.0), took(2.0)]).seconds, 2.0);
        assert_eq!(middle(Vec::new()).seconds, f64::INFINITY);
    }
}
