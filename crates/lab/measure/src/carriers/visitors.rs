//! Users of many remotes, each of whom loads one small page after the other and compares every byte.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhop_compare::Interrupt;
use farhop_lab_transport::{first_line, head};
use farhop_testkit::pattern::bytes_at;
use farhop_testkit::{File, Site};
use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// How many pages there are, and what each needs: pictures, of so many bytes.
const PAGES: u64 = 16;
const PICTURES: u64 = 3;
const PICTURE: usize = 4_000;
/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who visits what, how often and for how long.
pub(super) struct Course {
    /// Where the first remote listens; each that follows has the next port.
    pub(super) first: SocketAddr,
    /// How many there are.
    pub(super) count: u16,
    /// Where the pages are.
    pub(super) origin: SocketAddr,
    /// For how long pages are loaded.
    pub(super) length: Duration,
    /// Between two pages over one carrier, and for so long at first less.
    pub(super) period: Duration,
    pub(super) hurried: Duration,
    pub(super) warm: Duration,
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Pages that came whole and right.
    pub(super) pages: u64,
    /// What went wrong with the others.
    pub(super) errors: Vec<String>,
}

/// The pages: the documents are never held, their pictures for a while.
pub(super) fn site() -> Site {
    (0..PAGES).fold(Site::new(), |site, page| {
        let document = File::new("text/html", document(page)).field("cache-control", "no-store");
        (0..PICTURES).fold(site.file(&format!("/page/{page}"), document), |site, picture| {
            let file =
                File::new("image/gif", picture_bytes(page, picture)).field("cache-control", "max-age=20");
            site.file(&picture_path(page, picture), file)
        })
    })
}

fn document(page: u64) -> String {
    let pictures: String =
        (0..PICTURES).map(|picture| format!("<img src=\"{}\" alt>\n", picture_path(page, picture))).collect();
    format!(
        "<!doctype html>\n<html lang=en>\n<title>Page {page}</title>\n<h1>Page {page}</h1>\n{pictures}</html>\n"
    )
}

fn picture_path(page: u64, picture: u64) -> String {
    format!("/page/{page}/{picture}.gif")
}

fn picture_bytes(page: u64, picture: u64) -> bytes::Bytes {
    bytes_at(1 + page * PICTURES + picture, 0, PICTURE)
}

/// Visits, on this thread, until the time is over or the user wants it to end.
///
/// # Errors
/// No runtime can be made. What goes wrong with a page is counted.
pub(super) fn visit(course: &Course, interrupt: &Interrupt) -> io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let end = start + course.length;
        let interrupt = Arc::new(interrupt.clone());
        let mut users = JoinSet::new();
        for number in 0..course.count {
            let mut proxy = course.first;
            proxy.set_port(course.first.port().saturating_add(number));
            let (origin, interrupt) = (course.origin, Arc::clone(&interrupt));
            let (warm, hurried, usual) = (start + course.warm, course.hurried, course.period);
            // Spread over the period, so that they don't come all at once.
            let begin = start + hurried * u32::from(number) / u32::from(course.count.max(1));
            users.spawn(async move {
                let (mut outcome, mut next, mut page) = (Outcome::default(), begin, u64::from(number));
                while next < end && interrupt.check().is_ok() {
                    sleep_until(next).await;
                    match timeout(PATIENCE, load(proxy, origin, page % PAGES)).await {
                        Ok(Ok(())) => outcome.pages += 1,
                        Ok(Err(error)) => outcome.errors.push(error.to_string()),
                        Err(_) => outcome.errors.push(format!("page {} did not come", page % PAGES)),
                    }
                    let period = if next < warm { hurried } else { usual };
                    next = (next + period).max(Instant::now());
                    page += 1;
                }
                outcome
            });
        }
        let mut all = Outcome::default();
        while let Some(outcome) = users.join_next().await {
            let outcome = outcome.map_err(io::Error::other)?;
            all.pages += outcome.pages;
            all.errors.extend(outcome.errors);
        }
        Ok(all)
    })
}

/// One page: its document, then its pictures at once.
async fn load(proxy: SocketAddr, origin: SocketAddr, page: u64) -> io::Result<()> {
    get(proxy, origin, format!("/page/{page}"), document(page).into()).await?;
    let pictures = (0..PICTURES)
        .map(|picture| get(proxy, origin, picture_path(page, picture), picture_bytes(page, picture)));
    try_join_all(pictures).await.map(drop)
}

async fn get(proxy: SocketAddr, origin: SocketAddr, path: String, wanted: bytes::Bytes) -> io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(proxy).await?);
    let host = origin.ip();
    let ask = format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let head = head(&mut stream).await?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("{path} is answered '{}'", first_line(&head))));
    }
    let mut body = vec![0; wanted.len()];
    stream.read_exact(&mut body).await?;
    if body != wanted {
        return Err(io::Error::other(format!("{path} has other bytes")));
    }
    Ok(())
}
