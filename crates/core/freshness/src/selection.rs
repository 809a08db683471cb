//! Which of several stored responses that answer one request is to be used (RFC 9111 §4, §4.1).

use std::cmp::Reverse;

use crate::stored::Stored;
use crate::vary::varies;

/// Puts `found`, all of which answers one request, in the order in which it is to be used, the best first. What is not to be used
/// beside the rest goes.
pub fn select<T>(found: &mut Vec<T>, head: impl Fn(&T) -> &Stored) {
    // RFC 9111 §4.1: where some of what is stored under a URL has no `Vary`, that was most likely left out: the origin answers requests
    // that prefer nothing so, and what fits by a `Vary` SHOULD be chosen.
    if found.iter().any(|one| varies(&head(one).fields)) {
        found.retain(|one| varies(&head(one).fields));
    }
    // RFC 9111 §4: of several that fit, the latest by its date MUST be used.
    found.sort_by_key(|one| Reverse((head(one).recency(), head(one).requested_at)));
}
