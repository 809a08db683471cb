//! What a fuzz target calls: whatever a client and an origin send, the rules hold.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::{Fallback, Part, Reply, ResponseDirectives, Scope, Stored, Validation, Verdict, storable};

/// A response that came for a request, and another request that it may answer: lines of fields, with empty lines between the
/// three.
///
/// # Panics
/// When a rule is broken.
pub fn fuzz(data: &[u8]) {
    let mut blocks = data.split(|byte| *byte == b'\n').fold(vec![HeaderMap::new()], |mut blocks, line| {
        match line.iter().position(|byte| *byte == b':') {
            Some(colon) => {
                let name = HeaderName::from_bytes(line[..colon].trim_ascii());
                let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
                if let (Some(block), Ok(name), Ok(value)) = (blocks.last_mut(), name, value) {
                    block.append(name, value);
                }
            }
            None => blocks.push(HeaderMap::new()),
        }
        blocks
    });
    blocks.resize(3, HeaderMap::new());
    // RFC 9213.
    crate::obey(&mut blocks[0], &[HeaderName::from_static("cdn-cache-control")]);
    let [response, came_for, asked] = [&blocks[0], &blocks[1], &blocks[2]];
    let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(1_773_648_000 + seconds);
    for scope in [Scope::Shared, Scope::Private] {
        let _ = storable(&Method::GET, came_for, StatusCode::OK, response, scope);
        let stored = Stored::new(came_for, StatusCode::OK, response, at(0), at(1)).kept_by(scope);
        for now in [1, 100, 1 << 33_u64] {
            judge(&stored, asked, scope, at(now));
        }
        let _ = stored.validated_by(asked, came_for, at(5), at(6));
    }
    if let Some(part) = Part::of(StatusCode::PARTIAL_CONTENT, response) {
        assert!(part.length() > 0 && part.range.end <= part.complete);
    }
}

fn judge(stored: &Stored, asked: &HeaderMap, scope: Scope, now: SystemTime) {
    let said = ResponseDirectives::of(&stored.fields);
    match stored.verdict(&Method::GET, asked, scope, now) {
        Verdict::Fresh | Verdict::Revalidate => {
            assert!(!said.no_cache);
            assert!(stored.is_fresh(scope, now) || !said.forbids_stale(scope));
        }
        Verdict::Validate { fallback, .. } => {
            assert!(fallback == Fallback::Never || !said.forbids_stale(scope));
        }
        Verdict::Unsatisfiable => {}
    }
    for length in [None, Some(0), Some(1), Some(100)] {
        let reply = stored.reply(&Method::GET, asked, length);
        if let Reply::Part(part, of) = &reply {
            assert!(part.start < part.end && part.end <= *of && Some(*of) == length);
        }
        let (_, fields) = stored.reply_head(&reply, Validation::None, now);
        assert!(said.no_cache_fields.iter().all(|name| name == "age"
            || !fields.contains_key(name)
            || name == "content-length"
            || name == "content-range"));
    }
    let mut conditional = asked.clone();
    if stored.make_conditional(&mut conditional) {
        assert!(conditional.contains_key("if-none-match") || conditional.contains_key("if-modified-since"));
    }
}
