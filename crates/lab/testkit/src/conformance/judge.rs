//! Holds what the client got and what the origins saw against what a case wants, and against what must be true of every
//! message that a proxy sends.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Verdict;
use super::client::{Came, Client};
use super::notation::{Act, Case, Detail, DetailKind, Want};
use super::origin::{OWN, Origins, Which, repeated};
use super::strict::Message;
use super::text::Text;

/// Said by origins of whose responses no byte may come through.
const SECRET: &str = "SECRET";

/// What is known of a case that was played.
#[derive(Debug, Default)]
pub(super) struct Findings {
    seen: Vec<String>,
    wrong: Vec<String>,
}

/// The addresses of a case's two origins.
type Addresses = (SocketAddr, SocketAddr);

impl Findings {
    pub(super) fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }

    pub(super) fn is_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    /// Takes what comes to the client for what is wanted; `method` is that of the case's request. `false` when the
    /// connection has to end then.
    pub(super) async fn take<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        client: &mut Client<S>,
        want: &Want,
        method: &str,
        addresses: Addresses,
    ) -> bool {
        let method = match &want.act {
            Act::Closed => return false,
            Act::Forwarded { method, .. } => method.as_str(),
            Act::Tunnelled { .. } => "CONNECT",
            Act::Informed(_) | Act::Passed(_) | Act::Cut(_) | Act::Failed(_) => method,
            // The proxy may not even know what was asked.
            Act::Answered(_) | Act::Refused(_) | Act::Broken(_) => "GET",
        };
        match (self.next(client, method, want).await, &want.act) {
            (Came::Cut(bytes), Act::Cut(status)) => {
                self.seen.push(format!("{status}, cut short"));
                if !bytes.starts_with(format!("HTTP/1.1 {status} ").as_bytes()) {
                    self.wrong(format!("cut short: {:?}", String::from_utf8_lossy(&bytes)));
                }
                false
            }
            (Came::Response(answer), act) => {
                self.take_response(client, &answer, want, addresses).await;
                !matches!(act, Act::Refused(_) | Act::Broken(_))
            }
            (came, _) => {
                self.wrong(format!("{came} instead of an answer"));
                false
            }
        }
    }

    /// The next response; informational ones are passed over unless one is wanted.
    async fn next<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        client: &mut Client<S>,
        method: &str,
        want: &Want,
    ) -> Came {
        loop {
            match client.next(method).await {
                Came::Response(early)
                    if early.start[1].starts_with('1') && !matches!(want.act, Act::Informed(_)) =>
                {
                    self.wrong.extend(wrong_response(&early, false));
                }
                came => return came,
            }
        }
    }

    async fn take_response<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        client: &mut Client<S>,
        answer: &Message,
        want: &Want,
        addresses: Addresses,
    ) {
        let status = answer.start[1].as_str();
        self.seen.push(status.to_owned());
        self.wrong.extend(wrong_response(answer, !matches!(want.act, Act::Tunnelled { .. })));
        let expected = match &want.act {
            Act::Forwarded { method, target } => {
                self.check_repeated(answer, method, target);
                return;
            }
            Act::Tunnelled { method, target } => {
                match client.next(method).await {
                    Came::Response(inside) => self.check_repeated(&inside, method, target),
                    came => self.wrong(format!("{came} in the tunnel")),
                }
                200
            }
            Act::Answered(status) | Act::Refused(status) | Act::Broken(status) | Act::Failed(status) => {
                *status
            }
            Act::Informed(status) | Act::Passed(status) => *status,
            // Nothing of it had come through yet.
            Act::Cut(_) => 502,
            Act::Closed => return self.wrong(format!("{status} instead of the end")),
        };
        if status != expected.to_string() {
            self.wrong(format!("{status} instead of {expected}"));
        }
        let passed_on = matches!(want.act, Act::Informed(_) | Act::Passed(_));
        if passed_on && !answer.values("via").any(|via| via.contains(" farhop")) {
            self.wrong("no Via");
        }
        if matches!(want.act, Act::Failed(_) | Act::Cut(_)) {
            if !answer.values("proxy-status").any(|cause| cause.contains("error=")) {
                self.wrong("no Proxy-Status that says why");
            }
            if format!("{answer:?} {}", String::from_utf8_lossy(&answer.body)).contains(SECRET) {
                self.wrong("bytes of the origin");
            }
        }
        self.check_details(answer, &want.details, addresses);
    }

    fn check_repeated(&mut self, answer: &Message, method: &str, target: &str) {
        let body = String::from_utf8_lossy(&answer.body);
        let start = repeated(method, target, 0);
        let start = start.trim_end_matches("0\n");
        if answer.start[1] != "200" || (method != "HEAD" && !body.starts_with(start)) {
            self.wrong(format!(
                "{} '{}' instead of the answer to {method} {target}",
                answer.start[1],
                body.trim_end()
            ));
        }
    }

    fn check_details(&mut self, message: &Message, details: &[Detail], (origin, other): Addresses) {
        let written = |text: &Text| text.bytes(origin, other);
        let characters = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect::<String>();
        for detail in details {
            match &detail.kind {
                DetailKind::With(name, value) => {
                    let values: Vec<&str> = message.values(name).collect();
                    if values != [characters(written(value))] {
                        self.wrong(format!("{name} is {values:?}"));
                    }
                }
                DetailKind::Without(name) => {
                    if message.values(name).next().is_some() {
                        self.wrong(format!("{name} is there"));
                    }
                }
                DetailKind::Trailer(name, value) => {
                    let wanted = (name.clone(), characters(written(value)));
                    if message.trailers != [wanted] {
                        self.wrong(format!("trailers {:?}", message.trailers));
                    }
                }
                DetailKind::Body(text) => {
                    if message.body != written(text) {
                        self.wrong(format!("the body {:?}", String::from_utf8_lossy(&message.body)));
                    }
                }
            }
        }
    }

    /// Nothing more may come.
    pub(super) async fn expect_end<S: AsyncRead + AsyncWrite + Unpin>(&mut self, client: &mut Client<S>) {
        match client.next("GET").await {
            Came::End => self.seen.push("closed".into()),
            came => self.wrong(format!("{came} instead of the end")),
        }
    }

    /// Says what came of a case that is called so and wants this.
    pub(super) fn told(self, case: String, wanted: String) -> Verdict {
        Verdict::new(case, wanted, &self.seen, &self.wrong)
    }

    /// Adds what the origins saw, and says what came of the case.
    pub(super) fn verdict(mut self, case: &Case, number: usize, origins: &Origins) -> Verdict {
        let addresses = (origins.address(Which::Meant, number), origins.address(Which::Other, number));
        let tunnel = case.wants.iter().any(|want| matches!(want.act, Act::Tunnelled { .. }));
        for which in [Which::Meant, Which::Other] {
            let seen = origins.seen(which, number);
            let whole_only = !case.wants.iter().any(|want| matches!(want.act, Act::Broken(_)));
            self.wrong.extend(seen.wrong.iter().map(|why| format!("forwarded with no reading: {why}")));
            if whole_only {
                let pieces = seen.unfinished.iter().map(|piece| String::from_utf8_lossy(piece));
                self.wrong.extend(pieces.map(|piece| format!("forwarded in part: {piece:?}")));
            }
            let host = origins.address(which, number).to_string();
            let (own, others): (Vec<_>, Vec<_>) =
                seen.requests.into_iter().partition(|request| request.start[1].starts_with(OWN));
            for request in own.iter().chain(others.iter().filter(|_| !tunnel)) {
                self.wrong.extend(wrong_request(request, &host));
            }
            if which == Which::Other {
                self.wrong.extend(
                    others
                        .iter()
                        .map(|request| format!("{} {} went astray", request.start[0], request.start[1])),
                );
            } else if case.origin.is_none() {
                self.check_forwarded(&others, case, addresses);
            }
        }
        self.told(case.title(), case.wanted())
    }

    /// What the origin got are the requests that were to be forwarded, no more, no fewer.
    fn check_forwarded(&mut self, requests: &[Message], case: &Case, addresses: Addresses) {
        let wanted: Vec<_> = case
            .wants
            .iter()
            .filter_map(|want| match &want.act {
                Act::Forwarded { method, target } | Act::Tunnelled { method, target } => {
                    Some((method.as_str(), target.as_str(), want))
                }
                _ => None,
            })
            .collect();
        let came: Vec<_> = requests.iter().map(|request| (&*request.start[0], &*request.start[1])).collect();
        let named: Vec<_> = wanted.iter().map(|(method, target, _)| (*method, *target)).collect();
        if came != named {
            return self.wrong(format!("the origin saw {came:?}"));
        }
        for (request, (_, _, want)) in requests.iter().zip(wanted) {
            self.check_details(request, &want.details, addresses);
        }
    }
}

/// Fields of the connection that they came over (RFC 9110 §7.6.1), Connection itself left out.
const HOP_BY_HOP: [&str; 6] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "http2-settings",
    "proxy-authentication-info",
];

/// What is wrong with a request that a proxy has sent to the origin `host`, read already.
fn wrong_request(request: &Message, host: &str) -> Vec<String> {
    let [method, target, _] = &request.start;
    let mut wrong = Vec::new();
    let mut check = |fine: bool, what: String| {
        if !fine {
            wrong.push(format!("forwarded {method} {target}: {what}"));
        }
    };
    // RFC 9112 §3.2.1, §3.2.4.
    check(target.starts_with('/') || (target == "*" && method == "OPTIONS"), "no origin-form".into());
    let hosts: Vec<_> = request.values("host").collect();
    check(hosts == [host], format!("Host {hosts:?} at {host}"));
    for name in HOP_BY_HOP {
        check(request.values(name).next().is_none(), format!("{name} went along"));
    }
    check_connection(request, &mut check);
    // RFC 9110 §7.6.3.
    let via: Vec<_> = request.values("via").collect();
    let is_own = |via: &&str| ["1.0", "1.1", "2.0"].iter().any(|own| via.ends_with(&format!("{own} farhop")));
    check(via.last().is_some_and(is_own), format!("Via {via:?}"));
    wrong
}

/// What is wrong with a response that a proxy has sent, read already; what opens a tunnel need not be `dated`.
pub(super) fn wrong_response(response: &Message, dated: bool) -> Vec<String> {
    let status = &response.start[1];
    let mut wrong = Vec::new();
    let mut check = |fine: bool, what: String| {
        if !fine {
            wrong.push(format!("a {status}: {what}"));
        }
    };
    for name in HOP_BY_HOP.into_iter().filter(|name| *name != "proxy-authenticate" || status != "407") {
        check(response.values(name).next().is_none(), format!("{name} came along"));
    }
    check_connection(response, &mut check);
    // RFC 9110 §6.6.1.
    let dates = response.values("date").count();
    check(dates == 1 || status.starts_with('1') || !dated, format!("{dates} dates"));
    wrong
}

/// RFC 9110 §7.6.1: what Connection names is there and may be: TE, an upgrade.
fn check_connection(message: &Message, check: &mut impl FnMut(bool, String)) {
    for name in message
        .values("connection")
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
    {
        let known = ["close", "keep-alive", "te", "upgrade"].contains(&name.as_str());
        check(known, format!("Connection names {name}"));
    }
    for name in ["te", "upgrade"] {
        let there = message.values(name).next().is_some();
        check(
            there == message.lists("connection", name),
            format!("{name} without its Connection, or the other way"),
        );
    }
    check(message.values("te").all(|value| value == "trailers"), "TE other than trailers".into());
}
