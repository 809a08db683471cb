//! HTTP/1.1 inside TLS that the proxy looks into: the connection says which origin is meant.

use std::sync::PoisonError;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Verdict;
use super::client::{Came, Client};
use super::h2::{AFTER, Log, wrong_detail, wrong_log};
use super::judge::wrong_response;
use super::notation::{self, Act, Case, Want};
use super::text::End;

/// The cases, in the order of the table.
pub(super) fn cases() -> Vec<Case> {
    notation::parse(include_str!("../../corpora/conformance/within.txt"))
}

/// Plays every case whose group and name contain `only`. `open` gives a new connection, deciphered, to the server of
/// `https://authority`, which tells in each answer which request it was handed.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    open: impl AsyncFn() -> (S, Log),
    authority: &str,
    only: &str,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for case in cases().into_iter().filter(|case| case.title().contains(only)) {
        let (stream, log) = open().await;
        let (seen, mut wrong) = play(&case, stream, authority).await;
        let wanted = case.wants.iter().filter_map(|want| match &want.act {
            Act::Forwarded { method, target } => Some(format!("{method} {target}")),
            _ => None,
        });
        let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wrong.extend(wrong_log(wanted.collect(), log));
        verdicts.push(Verdict::new(case.title(), case.wanted(), &seen, &wrong));
    }
    verdicts
}

/// What came, and what of it is wrong.
async fn play(
    case: &Case,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    authority: &str,
) -> (Vec<String>, Vec<String>) {
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    let mut client = Client::over(stream);
    client.send(&case.client.bytes(authority, "b.example"), case.client.end, false).await;
    let mut goes_on = true;
    for want in &case.wants {
        if want.act == Act::Closed {
            goes_on = false;
            break;
        }
        let method = if let Act::Forwarded { method, .. } = &want.act { method } else { "GET" };
        let came = client.next(method).await;
        seen.push(came.to_string().lines().next().unwrap_or_default().to_owned());
        wrong.extend(wrong_answer(&came, want, authority));
        goes_on &= !matches!(want.act, Act::Refused(_));
    }
    if goes_on {
        let ask = format!("GET {AFTER} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        client.send(ask.as_bytes(), End::Open, false).await;
        match client.next("GET").await {
            Came::Response(answer) if answer.body.starts_with(format!("GET {AFTER}\n").as_bytes()) => {}
            came => wrong.push(format!("after: {came}")),
        }
    } else if wrong.is_empty() {
        match client.next("GET").await {
            Came::End => seen.push("closed".into()),
            came => wrong.push(format!("{came} instead of the end")),
        }
    }
    (seen, wrong)
}

fn wrong_answer(came: &Came, want: &Want, authority: &str) -> Vec<String> {
    let Came::Response(answer) = came else { return vec![format!("{came} instead of an answer")] };
    let mut wrong = wrong_response(answer, true);
    let status = answer.start[1].as_str();
    match &want.act {
        Act::Forwarded { method, target } => {
            let told = answer.body.starts_with(format!("{method} {target}\n").as_bytes());
            if status != "200" || (method != "HEAD" && !told) {
                wrong.push(format!("{came} instead of the answer to {method} {target}"));
            }
            let details = want.details.iter();
            wrong.extend(details.filter_map(|detail| wrong_detail(&answer.body, &detail.kind, authority)));
        }
        Act::Answered(wanted) | Act::Refused(wanted) if status == wanted.to_string() => {}
        _ => wrong.push(format!("{status} instead of what is wanted")),
    }
    wrong
}
