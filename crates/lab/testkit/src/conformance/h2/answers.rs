//! What origins answer over HTTP/2, right or wrong, to a client of HTTP/1.1: each case has an origin of its own, which says what the
//! corpus has. What the client gets is held against the same rules as what comes over HTTP/1.1.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::super::Verdict;
use super::super::client::{Came, Client};
use super::super::judge::Findings;
use super::super::notation::{self, Act, Want};
use super::super::text::{Block, End, blocks};
use super::AFTER;
use super::origins::{self, HONEST, Origins};
use super::script::Script;

/// A case.
#[derive(Debug)]
pub(super) struct Case {
    block: Block,
    /// The client's; all else of its request is ordinary.
    method: &'static str,
    /// What the origin answers.
    pub(super) frames: Script,
    /// Whether it closes then.
    pub(super) closes: bool,
    wants: Vec<Want>,
}

impl Case {
    fn title(&self) -> String {
        format!("{}: {}", self.block.group, self.block.name)
    }

    fn wanted(&self) -> String {
        self.wants.iter().map(Want::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// The cases, in the order of the table.
///
/// # Panics
/// The corpus is not in its notation.
fn cases() -> Vec<Case> {
    blocks(include_str!("../../../corpora/conformance/responses-h2.txt")).into_iter().map(case).collect()
}

fn case(block: Block) -> Case {
    let mut case = Case { block, method: "GET", frames: Script::default(), closes: false, wants: Vec::new() };
    for (mark, written) in case.block.lines.clone() {
        match mark {
            '>' => case.method = written,
            '<' if written == "closed" => case.closes = true,
            '<' => case.frames.frame(written),
            ':' => case.frames.field(written),
            '=' => case.wants.push(notation::want(written)),
            '+' => {
                let want =
                    case.wants.last_mut().unwrap_or_else(|| panic!("'{written}' is of nothing wanted"));
                want.details.push(notation::detail(written));
            }
            _ => panic!("'{mark}' is no mark"),
        }
    }
    assert!(!case.wants.is_empty(), "'{}' wants nothing", case.block.name);
    case
}

/// Rows of the table: group, name, what must happen, who says so.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str, String, &'static str)> {
    cases().into_iter().map(|case| (case.block.group, case.block.name, case.wanted(), case.block.rule))
}

/// The cases with their origins, which end when this is dropped.
#[derive(Debug)]
pub(in crate::conformance) struct Answers {
    cases: Arc<Vec<Case>>,
    origins: Origins,
}

impl Answers {
    /// Starts the origins, which speak TLS with a certificate for [`Answers::addresses`].
    pub(in crate::conformance) async fn start(acceptor: TlsAcceptor) -> Answers {
        let cases = Arc::new(cases());
        let origins = Origins::start(cases.clone(), acceptor).await;
        Answers { cases, origins }
    }

    /// Where the origins are.
    pub(in crate::conformance) fn addresses() -> impl Iterator<Item = IpAddr> {
        origins::addresses(cases().len())
    }

    /// Plays every case whose group and name contain `only`. `open` gives a new connection to an origin, deciphered, through the
    /// proxy.
    pub(in crate::conformance) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        open: impl AsyncFn(SocketAddr) -> S,
        only: &str,
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (number, case) in self.cases.iter().enumerate().filter(|(_, case)| case.title().contains(only)) {
            let at = self.origins.address(number);
            let findings = play(case, async || Client::over(open(at).await), at).await;
            verdicts.push(findings.told(case.title(), case.wanted()));
        }
        verdicts
    }
}

async fn play<S: AsyncRead + AsyncWrite + Unpin>(
    case: &Case,
    open: impl AsyncFn() -> Client<S>,
    at: SocketAddr,
) -> Findings {
    let mut findings = Findings::default();
    let mut client = open().await;
    let ask = format!("{} /x HTTP/1.1\r\nHost: {at}\r\n\r\n", case.method);
    client.send(ask.as_bytes(), End::Open, false).await;
    let mut goes_on = true;
    for want in &case.wants {
        goes_on &= findings.take(&mut client, want, case.method, (at, at)).await;
    }
    if goes_on {
        honest(&mut client, "after", at, &mut findings).await;
    } else if case.wants.iter().any(|want| want.act == Act::Closed) {
        findings.expect_end(&mut client).await;
    }
    honest(&mut open().await, "neighbour", at, &mut findings).await;
    findings
}

/// Asks what the origin answers honestly, and wants just that.
async fn honest<S: AsyncRead + AsyncWrite + Unpin>(
    client: &mut Client<S>,
    name: &str,
    at: SocketAddr,
    findings: &mut Findings,
) {
    let ask = format!("POST {AFTER} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 5\r\n\r\nafter");
    client.send(ask.as_bytes(), End::Open, false).await;
    match client.next("POST").await {
        Came::Response(answer) if answer.body == HONEST.as_bytes() => {}
        came => findings.wrong(format!("{name}: {came}")),
    }
}
