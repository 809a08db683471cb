//! What is asked for, and of which the beginning is held: only the rest crosses, and both are one answer (RFC 9111 §3.3, §3.4).

use std::ops::Range;
use std::time::SystemTime;

use farhop_freshness::{Part, Reply, Validation, Verdict, Why};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_store::Held;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName};

use crate::answers::from_repository;
use crate::ask::Asked;
use crate::lookup::to_store;
use crate::request::Fetch;
use crate::section::Section;

/// Bytes that have to be held for it: less than a packet saves nothing.
const LEAST: u64 = 1_200;

/// Conditions of a client's: what is asked for in parts answers none of them.
const CONDITIONS: [HeaderName; 4] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE];

/// See the module.
pub(crate) struct Beginning {
    held: Held,
    /// Where in the whole it lies.
    part: Part,
    /// The bytes that are wanted.
    wanted: Range<u64>,
    reply: Reply,
}

impl Beginning {
    /// What `held`, the bytes of `part`, has of what `request` asks for; `None` where that is nothing, or not worth while.
    pub(crate) fn of(
        request: &HeaderMap,
        held: &Held,
        part: &Part,
        reply: &Reply,
        verdict: Verdict,
    ) -> Option<Beginning> {
        let wanted = match reply {
            Reply::Whole if !request.contains_key(header::RANGE) => 0..part.complete,
            Reply::Part(wanted, _) => wanted.clone(),
            _ => return None,
        };
        let may_be_used = match verdict {
            Verdict::Fresh | Verdict::Revalidate => true,
            // It is the origin that answers, and confirms what is held by its validator.
            Verdict::Validate { why: Why::Stale | Why::RequestAge | Why::ResponseNoCache, .. } => true,
            Verdict::Validate { .. } | Verdict::Unsatisfiable => false,
        };
        let begins =
            (part.range.start..part.range.end).contains(&wanted.start) && wanted.end > part.range.end;
        let is_plain = !CONDITIONS.iter().any(|name| request.contains_key(name));
        let is_worth_while = begins && part.range.end - wanted.start >= LEAST;
        (may_be_used && is_plain && is_worth_while).then(|| Beginning {
            held: held.clone(),
            part: part.clone(),
            wanted,
            reply: reply.clone(),
        })
    }

    /// Makes a request ask for the rest; `false` if it cannot.
    pub(crate) fn ask_for_rest(&self, head: &mut RequestHead) -> bool {
        // Who wants all of it is given all of it anew where it has changed. Who wants a part is not.
        let or_all = self.reply == Reply::Whole;
        self.held.head.ask_for_part(&mut head.fields, &self.rest(), or_all)
    }

    fn rest(&self) -> Range<u64> {
        self.part.range.end..self.wanted.end
    }

    /// Whether an answer to [`ask_for_rest`](Self::ask_for_rest) says that what is held is of no use, and nothing else.
    pub(crate) fn is_refused_by(&self, head: &ResponseHead) -> bool {
        matches!(head.status, StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE)
    }

    /// The answer that both are; gives `asked` back where it is not the rest of what is held.
    pub(crate) fn complete(
        self,
        fetch: &Fetch,
        asked: Asked,
        at: SystemTime,
    ) -> Result<Completed, Box<Asked>> {
        let rest = Part::of(asked.head.status, &asked.head.fields);
        let expected = Part { range: self.rest(), complete: self.part.complete };
        let Some(rest) = rest.filter(|rest| *rest == expected) else { return Err(asked.into()) };
        let whole = ResponseHead { status: StatusCode::OK, fields: rest.of_whole(&asked.head.fields) };
        let new = to_store(self.held.partition, &fetch.head.fields, &whole, at);
        // RFC 9111 §3.4: MUST share a strong validator.
        let Some(reader) = self.held.body.reader().filter(|_| self.held.head.goes_with(&new)) else {
            return Err(asked.into());
        };
        let head = from_repository(&new.joined_to(&self.held.head), &self.reply, Validation::Done);
        let from = self.part.range.start;
        let here = Section::part(reader, &(self.wanted.start - from..self.part.range.end - from));
        Ok(Completed { head, body: here.and_then(asked.reader), stored: asked.stored })
    }
}

/// An answer of which the beginning was held.
pub(crate) struct Completed {
    pub(crate) head: ResponseHead,
    pub(crate) body: Section,
    /// It is held from now on.
    pub(crate) stored: bool,
}
