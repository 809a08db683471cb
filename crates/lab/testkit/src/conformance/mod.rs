//! HTTP conformance: malformed and ambiguous messages, sent byte by byte through a whole proxy, and what came of each.
//!
//! The cases are text (`corpora/conformance`). Each has an origin of its own that keeps what reaches it and a client that
//! keeps what it gets; `strict` reads both as a sender has to write, and shares no code with the proxy. Whatever a case
//! wants, three things must be true of all: what reached the origin has one reading and is what was asked for, what the
//! client got has one reading, and the next request, of this client or another, gets its own answer.

mod client;
pub mod h2;
mod judge;
mod notation;
mod origin;
pub(crate) mod secure;
mod strict;
mod table;
mod text;
mod within;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use client::{Came, Client};
use judge::Findings;
use notation::{Act, Case};
use origin::{OWN, Origins, Which, repeated};
use text::End;

pub use secure::SecureOrigin;
pub use table::table;

/// Cases that are played at a time.
const CONCURRENT: u8 = 8;

/// What came of one case.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Its group and name.
    pub case: String,
    /// What must happen, in the corpus's words.
    pub wanted: String,
    /// What did: what the client got, and what is wrong if something is.
    pub seen: String,
    /// Whether all of it is as it must be.
    pub pass: bool,
}

impl Verdict {
    fn new(case: String, wanted: String, seen: &[String], wrong: &[String]) -> Verdict {
        let pass = wrong.is_empty();
        let mut seen = seen.join("; ");
        if !pass {
            seen = format!("{seen}. WRONG: {}", wrong.join("; "));
        }
        Verdict { case, wanted, seen, pass }
    }

    /// The same case sent in pieces has to end as well.
    fn also(self, in_pieces: Verdict) -> Verdict {
        if !self.pass || in_pieces.pass {
            return self;
        }
        Verdict { seen: format!("in pieces: {}", in_pieces.seen), ..in_pieces }
    }
}

/// Which cases a test plays: those whose group and name contain `FARHOP_CASE`, all where it is not set.
pub fn only() -> String {
    std::env::var("FARHOP_CASE").unwrap_or_default()
}

/// Fails the test in which it is called unless every case ended as it must.
///
/// # Panics
/// One did not; all that did not are told.
pub fn assert_right(verdicts: &[Verdict]) {
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| !verdict.pass).collect();
    let told = wrong
        .iter()
        .map(|Verdict { case, wanted, seen, .. }| format!("{case}\n  wanted: {wanted}\n  came: {seen}"));
    let told: Vec<_> = told.collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), verdicts.len(), told.join("\n"));
}

/// The cases of HTTP/1.1, in the order of the table.
fn cases() -> Vec<Case> {
    const FILES: [&str; 8] = [
        include_str!("../../corpora/conformance/lines.txt"),
        include_str!("../../corpora/conformance/framing.txt"),
        include_str!("../../corpora/conformance/chunks.txt"),
        include_str!("../../corpora/conformance/targets.txt"),
        include_str!("../../corpora/conformance/fields.txt"),
        include_str!("../../corpora/conformance/sequences.txt"),
        include_str!("../../corpora/conformance/responses.txt"),
        include_str!("../../corpora/conformance/response-bodies.txt"),
    ];
    FILES.into_iter().flat_map(notation::parse).collect()
}

/// Plays every case whose group and name contain `only`, once in one write and once byte by byte, through `proxy`, which
/// has to serve clients from 127/8 and fetch from 127/8.
///
/// # Panics
/// No socket is to be had, or the proxy cannot be reached.
pub async fn run(proxy: SocketAddr, only: &str) -> Vec<Verdict> {
    let in_pieces = cases().into_iter().map(|case| Case { in_pieces: true, ..case });
    let cases: Arc<Vec<Case>> = Arc::new(cases().into_iter().chain(in_pieces).collect());
    let origins = Arc::new(Origins::start(&cases).await);
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for slot in 1..=CONCURRENT {
        let (cases, origins, next) = (cases.clone(), origins.clone(), next.clone());
        let only = only.to_owned();
        workers.spawn(async move {
            let mut played = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(number) else { return played };
                if case.title().contains(&only) {
                    played.push((number, play(case, number, &origins, proxy, slot).await));
                }
            }
        });
    }
    let mut played = Vec::new();
    while let Some(part) = workers.join_next().await {
        played.extend(part.expect("a worker ends with its cases"));
    }
    played.sort_by_key(|(number, _)| *number);
    // Only now: what leaks late has leaked as well.
    let verdict = |(number, findings): (usize, Findings)| {
        let case: &Case = &cases[number];
        findings.verdict(case, number, &origins)
    };
    let mut verdicts: Vec<_> = played.into_iter().map(verdict).collect();
    let in_pieces = verdicts.split_off(verdicts.len() / 2);
    verdicts.into_iter().zip(in_pieces).map(|(whole, pieces)| whole.also(pieces)).collect()
}

async fn play(case: &Case, number: usize, origins: &Origins, proxy: SocketAddr, slot: u8) -> Findings {
    let mut findings = Findings::default();
    let (origin, other) = (origins.address(Which::Meant, number), origins.address(Which::Other, number));
    let mut client = Client::connect(proxy, Ipv4Addr::new(127, 37, slot, 1)).await;
    client.send(&case.client.bytes(origin, other), case.client.end, case.in_pieces).await;
    if case.client.end == End::Reset {
        client.reset();
    } else {
        let (mut goes_on, method) = (true, case.method());
        for want in &case.wants {
            goes_on &= findings.take(&mut client, want, &method, (origin, other)).await;
        }
        if !goes_on || case.client.end == End::Closed {
            // A proxy that has not refused has no reason to close.
            if !findings.is_wrong() {
                findings.expect_end(&mut client).await;
            }
        } else if !case.wants.iter().any(|want| matches!(want.act, Act::Tunnelled { .. })) {
            ask(&mut client, origin, "after", &mut findings).await;
        }
    }
    let mut neighbour = Client::connect(proxy, Ipv4Addr::new(127, 37, slot, 2)).await;
    ask(&mut neighbour, origin, "neighbour", &mut findings).await;
    findings
}

/// Asks as an honest client does, and wants the answer to just that.
async fn ask(client: &mut Client<TcpStream>, origin: SocketAddr, name: &str, findings: &mut Findings) {
    let path = format!("{OWN}{name}");
    client.send(&client::get(origin, &path), End::Open, false).await;
    match client.next("GET").await {
        Came::Response(answer) if answer.body == repeated("GET", &path, 0).as_bytes() => {}
        came => findings.wrong(format!("{name}: {came}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_corpus_is_as_large_as_promised_and_says_nothing_twice() {
        let cases = cases();
        assert!(cases.len() >= 150, "{} cases", cases.len());
        let mut names = HashSet::new();
        let twice: Vec<_> =
            cases.iter().map(Case::title).filter(|title| !names.insert(title.clone())).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
