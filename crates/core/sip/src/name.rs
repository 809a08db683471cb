//! What a call is called: its `Call-ID`, or what is short enough to be kept and shown of a long one.

use std::borrow::Cow;

/// The longest name of a call; `Call-ID`s have no bound (RFC 3261 §25.1), and usual ones are a third of it.
pub const LONGEST_NAME: usize = 200;
/// Bytes of the sum at the end of what was shortened: nobody finds another `Call-ID` with the same.
const SUM: usize = 16;

/// The name of the call with this `Call-ID`.
pub(crate) fn name(call_id: &str) -> Cow<'_, str> {
    if call_id.len() <= LONGEST_NAME {
        return Cow::Borrowed(call_id);
    }
    let sum = blake3::hash(call_id.as_bytes()).to_hex();
    let begin = call_id.get(..LONGEST_NAME - 1 - 2 * SUM).unwrap_or_default();
    Cow::Owned(format!("{begin}~{}", &sum[..2 * SUM]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_shortened_to_one_of_its_own() {
        let usual = "a".repeat(LONGEST_NAME);
        assert_eq!(name(&usual), usual);
        let long = "a".repeat(5_000);
        let short = name(&long);
        assert_eq!((short.len(), name(&short)), (LONGEST_NAME, short.clone()));
        assert_ne!(name(&format!("{long}b")), short);
        assert_ne!(name(&format!("{long}a")), short);
    }
}
