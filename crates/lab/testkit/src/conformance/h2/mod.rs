//! The same for HTTP/2: frames byte by byte, to whoever speaks HTTP/2 at the other end of a stream and tells, in the body of
//! each answer, which request it was handed ([`told`]).

mod answers;
mod cases;
mod origins;
mod peer;
mod script;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};

use super::Verdict;
use super::notation::DetailKind;
pub(super) use answers::Answers;
use cases::{Act, Case, Want};
use peer::{Came, Peer};

/// The requests that one connection has brought, whole: method and target.
pub type Log = Arc<Mutex<Vec<String>>>;

/// How the other end tells which request it was handed: the body of its answer.
pub fn told<'a>(
    method: &str,
    target: &str,
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
    body: &[u8],
) -> Vec<u8> {
    let mut told = format!("{method} {target}\n").into_bytes();
    for (name, value) in fields {
        told.extend_from_slice(format!("{name}: ").as_bytes());
        told.extend_from_slice(value);
        told.push(b'\n');
    }
    told.push(b'\n');
    told.extend_from_slice(body);
    told
}

/// Rows of the table: group, name, what must happen, who says so.
pub(super) fn rows() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let row = |case: Case| (case.block.group, case.block.name, case.wanted(), case.block.rule);
    cases::cases().into_iter().map(row).chain(answers::rows()).collect()
}

/// Plays every case of HTTP/2 whose group and name contain `only`. `open` gives a new connection to the server of
/// `https://authority`, on which nothing has been said yet.
pub async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    open: impl AsyncFn() -> (S, Log),
    authority: &str,
    only: &str,
) -> Vec<Verdict> {
    let mut played = Vec::new();
    for case in cases::cases().into_iter().filter(|case| case.title().contains(only)) {
        let (stream, log) = open().await;
        let (seen, wrong) = play(&case, stream, authority).await;
        played.push((case, log, seen, wrong));
    }
    // Only now: what leaks late has leaked as well.
    let verdict = |(case, log, seen, mut wrong): (Case, Log, Vec<String>, Vec<String>)| {
        let whole = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wrong.extend(wrong_requests(&case, whole));
        Verdict::new(case.title(), case.wanted(), &seen, &wrong)
    };
    played.into_iter().map(verdict).collect()
}

pub(super) const AFTER: &str = "/farhop-after";
/// Above every stream of a case.
const AFTER_STREAM: u32 = 1001;

/// What came, and what of it is wrong.
async fn play(
    case: &Case,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    authority: &str,
) -> (Vec<String>, Vec<String>) {
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    let mut peer = Peer::start(stream, case.preface).await;
    peer.send(&case.bytes(authority)).await;
    for want in &case.wants {
        let came = match want.act {
            Act::Ended(_) => peer.end().await,
            _ => peer.outcome(want.stream).await,
        };
        seen.push(came.to_string());
        wrong.extend(wrong_outcome(&came, want, authority));
    }
    if !case.wants.iter().any(|want| matches!(want.act, Act::Ended(_))) {
        peer.get(AFTER_STREAM, authority, AFTER).await;
        match peer.outcome(AFTER_STREAM).await {
            Came::Response { status: 200, body } if body.starts_with(format!("GET {AFTER}\n").as_bytes()) => {
            }
            came => wrong.push(format!("after: {came}")),
        }
    }
    (seen, wrong)
}

fn wrong_outcome(came: &Came, want: &Want, authority: &str) -> Vec<String> {
    match (came, &want.act) {
        (Came::Response { status: 200, body }, Act::Forwarded { method, target }) => {
            let mut wrong = Vec::new();
            if !body.starts_with(format!("{method} {target}\n").as_bytes()) {
                wrong.push(format!("{came} instead of the answer to {method} {target}"));
            }
            wrong
                .extend(want.details.iter().filter_map(|detail| wrong_detail(body, &detail.kind, authority)));
            return wrong;
        }
        (Came::Response { status, .. }, Act::Answered(wanted)) if status == wanted => return Vec::new(),
        (Came::Reset(error), Act::Reset(wanted)) | (Came::Ended(error), Act::Ended(wanted))
            if error == wanted =>
        {
            return Vec::new();
        }
        _ => {}
    }
    vec![format!("{came} on stream {}", want.stream)]
}

/// Holds what was told of a request against what must be true of it.
pub(super) fn wrong_detail(told: &[u8], kind: &DetailKind, authority: &str) -> Option<String> {
    let end = told.windows(2).position(|two| two == b"\n\n").unwrap_or(told.len());
    let (head, body) = told.split_at(end);
    let body = body.get(2..).unwrap_or_default();
    let values = |name: &str| -> Vec<&[u8]> {
        let prefix = format!("{name}: ");
        head.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(prefix.as_bytes())).collect()
    };
    let (fine, what) = match kind {
        DetailKind::With(name, value) => {
            (values(name) == [value.bytes(authority, "b.example")], name.as_str())
        }
        DetailKind::Without(name) => (values(name).is_empty(), name.as_str()),
        DetailKind::Body(text) => (body == text.bytes(authority, "b.example"), "the body"),
        DetailKind::Trailer(name, _) => (false, name.as_str()),
    };
    (!fine).then(|| format!("{what} in {:?}", String::from_utf8_lossy(told)))
}

fn wrong_requests(case: &Case, mut whole: Vec<String>) -> Option<String> {
    if case.wants.iter().any(|want| matches!(want.act, Act::Ended(_))) {
        // Whether what was whole is handed on before the connection ends is a matter of how its bytes arrive.
        let mut left = case.whole_requests();
        whole.retain(|request| {
            let may = request == "GET /x" && left > 0;
            left -= usize::from(may);
            !may
        });
    }
    let wanted = case.wants.iter().filter_map(|want| match &want.act {
        Act::Forwarded { method, target } => Some(format!("{method} {target}")),
        _ => None,
    });
    wrong_log(wanted.collect(), whole)
}

/// What was handed on are the requests that were to be forwarded, no more, no fewer.
pub(super) fn wrong_log(mut wanted: Vec<String>, log: Vec<String>) -> Option<String> {
    let mut came: Vec<_> = log.into_iter().filter(|request| !request.ends_with(AFTER)).collect();
    // Requests of one connection may run beside each other.
    wanted.sort();
    came.sort();
    (came != wanted).then(|| format!("handed on: {came:?}"))
}
