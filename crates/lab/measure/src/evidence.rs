//! A site whose pages what is fetched unasked makes slower: an origin that answers one request after the other, and a page that
//! names much that its visitors do not want before what they do. On `geo-hylas2`, within the program itself. The remote has to
//! find that out and to give it up, and visits after that must not be slower than with nothing fetched unasked at all.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use farhop_control::Client;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::group::Context;
use crate::local::Local;
use crate::visits::middle;
use crate::{MeasureError, Row};

/// How long the origin takes for each request, one after the other.
const TURN: Duration = Duration::from_millis(300);
/// What the page names and nobody wants.
const NAMED: usize = 12;
/// One load in three is done another way, so that little time is needed to find out.
const HOLDOUTS: &str = "remote.evidence.holdouts=\"33 %\"";
/// Loads within which it has to be found out.
const MOST: usize = 90;
/// Loads after that, and of a program that fetches nothing unasked.
const LATER: usize = 15;
/// No load takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// DESIGN.md, "never slower than direct".
const SLOWER: f64 = 1.03;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let runtime = Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let site = runtime.block_on(Site::start()).map_err(MeasureError::system("an origin"))?;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let without = {
        let local = start(&["--set", "ground.bundle.enabled=false"])?;
        loads(context, &runtime, &site, &local, LATER)?
    };
    let control = folder.path().join("control");
    let local = start(&["--set", HOLDOUTS, "--control", &control.to_string_lossy()])?;
    let (mut before, mut way) = (Vec::new(), None);
    while way.is_none() && before.len() < MOST {
        before.extend(loads(context, &runtime, &site, &local, 1)?);
        way = runtime.block_on(given_up(&control))?;
    }
    let after = if way.is_some() { loads(context, &runtime, &site, &local, LATER)? } else { Vec::new() };
    Ok(judged(before, way.as_deref(), after, without))
}

fn judged(mut before: Vec<f64>, way: Option<&str>, mut after: Vec<f64>, mut without: Vec<f64>) -> Vec<Row> {
    let count = before.len();
    let found = match (way, middle(&mut before)) {
        (Some(way), Some(before)) => format!("{way} fetched unasked after {count} loads of {before:.2} s"),
        _ => format!("not found out in {count} loads"),
    };
    let what = "a site that unasked fetches slow down";
    let bound = format!("less is fetched unasked, within {MOST} loads");
    let judged = Row::judged(format!("{what}, judged"), found, bound, way.is_some());
    let bound = format!("≤ {SLOWER} × loads with nothing fetched unasked");
    let later = match (middle(&mut after), middle(&mut without)) {
        (Some(after), Some(without)) => Row::judged(
            format!("{what}, later visits"),
            format!("{:.2} × ({after:.2} s of {without:.2} s)", after / without),
            bound,
            after <= without * SLOWER,
        ),
        _ => Row::judged(format!("{what}, later visits"), "none", bound, false),
    };
    vec![judged, later]
}

fn start(more: &[&str]) -> Result<Local, MeasureError> {
    let options = ["--allow", "127.0.0.0/8", "--link", "geo-hylas2", "--set", "remote.log.level=error"];
    let ports = ["--set", "remote.connect_ports=1-65535"];
    Local::start(&[&options[..], &ports[..], more].concat())
}

/// So many loads, each of another user; how many seconds each took.
fn loads(
    context: &Context,
    runtime: &Runtime,
    site: &Site,
    local: &Local,
    count: usize,
) -> Result<Vec<f64>, MeasureError> {
    let mut seconds = Vec::new();
    for number in 0..count {
        context.interrupt.check()?;
        let took = runtime.block_on(async {
            let load = tokio::time::timeout(PATIENCE, site.load(local.proxy())).await;
            load.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
        });
        let took = took.map_err(MeasureError::system("a load"))?;
        eprintln!("load {number}: {:.2} s", took.as_secs_f64());
        seconds.push(took.as_secs_f64());
    }
    Ok(seconds)
}

/// In which way the loads of a site are done for which less is fetched unasked; nothing while there is none.
async fn given_up(control: &Path) -> Result<Option<String>, MeasureError> {
    let failed = |error: &dyn std::fmt::Display| MeasureError::Unexpected(format!("status: {error}"));
    let mut client = Client::connect(control).await.map_err(|error| failed(&error))?;
    let status = client.call("status", Value::Null).await.map_err(|error| failed(&error))?;
    let mut ways =
        status["evidence"].as_array().into_iter().flatten().filter_map(|site| site["unasked"].as_str());
    Ok(ways.find(|way| *way != "all").map(str::to_owned))
}

/// The site. It ends when this is dropped.
struct Site {
    address: SocketAddr,
    users: AtomicU8,
    _serving: JoinSet<()>,
}

impl Site {
    async fn start() -> std::io::Result<Site> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let (turn, mut connections) = (Arc::new(Mutex::new(())), JoinSet::new());
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&turn)));
            }
        });
        Ok(Site { address, users: AtomicU8::new(1), _serving: serving })
    }

    /// The page, and then what its visitor wants; how long both took.
    async fn load(&self, proxy: SocketAddr) -> std::io::Result<Duration> {
        let user = self.users.fetch_add(1, Ordering::Relaxed).max(1);
        let begun = Instant::now();
        let document = "Accept: text/html,*/*;q=0.8\r\nUpgrade-Insecure-Requests: 1\r\n";
        self.ask(proxy, user, "/", document).await?;
        let referer = format!("Accept: */*\r\nReferer: http://{}/\r\n", self.address);
        self.ask(proxy, user, "/wanted", &referer).await?;
        Ok(begun.elapsed())
    }

    async fn ask(&self, proxy: SocketAddr, user: u8, path: &str, fields: &str) -> std::io::Result<()> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 34, 0, user), 0).into())?;
        let mut stream = socket.connect(proxy).await?;
        let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0";
        let site = self.address;
        let request = format!(
            "GET http://{site}{path} HTTP/1.1\r\nHost: {site}\r\nUser-Agent: {agent}\r\n{fields}Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        match answer.starts_with(b"HTTP/1.1 200 ") {
            true => Ok(()),
            false => Err(std::io::Error::other(format!("{path} is not answered"))),
        }
    }
}

/// Answers what comes on a connection, each in its turn among all of them.
async fn serve(mut stream: TcpStream, turn: Arc<Mutex<()>>) {
    let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let Some(end) = got.windows(4).position(|part| part == b"\r\n\r\n") else {
            match stream.read(&mut buffer).await {
                Ok(count @ 1..) => got.extend_from_slice(&buffer[..count]),
                _ => return,
            }
            continue;
        };
        let head: Vec<u8> = got.drain(..end + 4).collect();
        {
            let _turn = turn.lock().await;
            tokio::time::sleep(TURN).await;
        }
        let answer = if head.starts_with(b"GET / ") { page() } else { told("image/png", "picture") };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn page() -> String {
    let named: String = (0..NAMED).map(|number| format!("<img src=/{number}.png>\n")).collect();
    told("text/html", &format!("<!doctype html><title>t</title>\n{named}"))
}

fn told(media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nCache-Control: no-store\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn what_is_not_found_out_or_stays_slower_misses() {
        let verdicts = |way, after: f64| {
            let rows = judged(vec![4.0; 40], way, vec![after; 15], vec![2.0; 15]);
            [rows[0].verdict, rows[1].verdict]
        };
        assert_eq!(verdicts(Some("nothing"), 2.0), [Verdict::Pass, Verdict::Pass]);
        assert_eq!(verdicts(Some("named"), 2.2), [Verdict::Pass, Verdict::Miss]);
        assert_eq!(judged(vec![4.0; 90], None, Vec::new(), vec![2.0; 15]).len(), 2);
        assert_eq!(judged(vec![4.0; 90], None, Vec::new(), vec![2.0; 15])[0].verdict, Verdict::Miss);
    }

    #[test]
    fn the_page_names_what_nobody_wants() {
        assert!(page().contains("<img src=/11.png>") && !page().contains("wanted"));
    }
}
