//! Server-sent events and long polls: how long after the origin wrote them they are at the user's end. Both tell the clock of
//! this machine, which is the clock of both ends.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use farhop_workload::origins::live::{EVENTS, POLL, clock};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use super::{ALLOWED, HOST, Ways, median, ms};
use crate::visitor::Visitor;
use crate::{Row, Verdict};

/// Events that are timed, and milliseconds between them: rarely two in one round trip, so that nothing carries another along.
const EVENTS_TIMED: usize = 20;
const EVERY_MS: u64 = 350;
/// What a long poll waits for, and how much longer each does than the one before, in milliseconds: what is timed is one answer, not
/// several that come out of one machine at once.
const AFTER_MS: u64 = 1500;
const APART_MS: u64 = 100;
/// Polls that are timed.
const POLLS: u64 = 5;

/// Events and polls through Farhop, over a path that takes `half` from the origin to the user.
pub(super) async fn rows(ways: &Ways, half: Duration) -> io::Result<Vec<Row>> {
    let bound = half + ALLOWED;
    let judged = |what: &str, mut times: Vec<Duration>| {
        let worst = times.iter().max().copied().unwrap_or(Duration::MAX);
        let measured =
            format!("{} at most, {} in the median of {}", ms(worst), ms(median(&mut times)), times.len());
        Row::judged(what, measured, format!("half a round trip + 5 ms = {}", ms(bound)), worst <= bound)
    };
    let (farhop, mut direct) = tokio::try_join!(events(&ways.farhop), events(&ways.direct))?;
    let polls =
        futures_util::future::try_join_all((0..POLLS).map(|number| poll(&ways.farhop, number))).await?;
    let mut rows = vec![
        judged("server-sent events, written to received, geo-hylas2", farhop),
        judged("long polls, answered to received, geo-hylas2", polls),
    ];
    rows.push(Row {
        what: "server-sent events, directly".into(),
        measured: format!("{} in the median of {}", ms(median(&mut direct)), direct.len()),
        bound: "none, printed".into(),
        verdict: Verdict::Told,
    });
    Ok(rows)
}

/// Events one after the other, each a while after the one before; gives how many came.
pub(crate) async fn told(visitor: &Visitor) -> io::Result<u64> {
    Ok(events(visitor).await?.len() as u64)
}

/// An answer that its origin withholds for a while.
pub(crate) async fn polled(visitor: &Visitor) -> io::Result<u64> {
    poll(visitor, 0).await.map(|_| 1)
}

/// How long each event took.
async fn events(visitor: &Visitor) -> io::Result<Vec<Duration>> {
    let path = format!("{EVENTS}?count={EVENTS_TIMED}&every={EVERY_MS}");
    let mut lines = ask(visitor, &path, "text/event-stream").await?;
    let mut times = Vec::new();
    while times.len() < EVENTS_TIMED {
        let Some(line) = lines.next().await? else {
            return Err(io::Error::other(format!("only {} of {EVENTS_TIMED} events came", times.len())));
        };
        if let Some(written) = line.strip_prefix("data: ").and_then(|told| told.parse().ok()) {
            times.push(since(written));
        }
    }
    Ok(times)
}

/// How long an answer took that its origin had withheld.
async fn poll(visitor: &Visitor, number: u64) -> io::Result<Duration> {
    let after = AFTER_MS + number * APART_MS;
    let mut lines = ask(visitor, &format!("{POLL}?after={after}"), "*/*").await?;
    let written = lines.next().await?.and_then(|line| line.parse().ok());
    written.map(since).ok_or_else(|| io::Error::other("the long poll was not answered"))
}

/// The lines of a body, each as soon as it is here.
struct Lines {
    body: Incoming,
    held: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.drain(..=end).take(end).collect();
                return String::from_utf8(line).map(Some).map_err(io::Error::other);
            }
            match self.body.frame().await {
                Some(frame) => {
                    let data = frame.map_err(io::Error::other)?.into_data().unwrap_or_default();
                    self.held.extend_from_slice(&data);
                }
                None => return Ok(None),
            }
        }
    }
}

async fn ask(visitor: &Visitor, path: &str, accept: &str) -> io::Result<Lines> {
    let stream = visitor.secure(HOST, &["http/1.1"]).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the body, or once nobody reads that any more.
    tokio::spawn(connection);
    let ask = Request::get(path).header(header::HOST, HOST).header(header::ACCEPT, accept);
    let ask = ask.body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
    let answer = sender.send_request(ask).await.map_err(io::Error::other)?;
    match answer.status() {
        StatusCode::OK => Ok(Lines { body: answer.into_body(), held: Vec::new() }),
        status => Err(io::Error::other(format!("{path} is answered '{status}'"))),
    }
}

fn since(written: u64) -> Duration {
    Duration::from_micros(clock().saturating_sub(written))
}
