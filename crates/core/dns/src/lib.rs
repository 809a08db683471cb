//! DNS (RFC 1035) as a cache on the way sees it: questions are checked strictly, answers are kept whole, byte for byte, for as
//! long as they say, and given with what is left of that. Signatures (RFC 4034) pass as they came.
//!
//! Pure: it asks nobody. What of a client is not the question does not cross: options of EDNS (RFC 6891), among them its
//! network (RFC 7871) and its cookies (RFC 7873), stay here.

mod answer;
mod cache;
mod names;
mod query;
mod reader;

pub use answer::Answer;
pub use cache::Cache;
pub use names::Names;
pub use query::{Query, Wanted};

/// Response codes (RFC 1035 §4.1.1, RFC 6891 §6.1.3).
pub mod code {
    #![allow(missing_docs)]
    pub const NO_ERROR: u16 = 0;
    pub const FORMAT_ERROR: u16 = 1;
    pub const SERVER_FAILURE: u16 = 2;
    pub const NAME_ERROR: u16 = 3;
    pub const NOT_IMPLEMENTED: u16 = 4;
    pub const REFUSED: u16 = 5;
    pub const BAD_VERSION: u16 = 16;
}

/// Bits of the header's second word.
mod flag {
    pub(crate) const RESPONSE: u16 = 1 << 15;
    pub(crate) const TRUNCATED: u16 = 1 << 9;
    pub(crate) const RECURSION_DESIRED: u16 = 1 << 8;
    pub(crate) const RECURSION_AVAILABLE: u16 = 1 << 7;
    pub(crate) const AUTHENTIC: u16 = 1 << 5;
    pub(crate) const CHECKING_DISABLED: u16 = 1 << 4;
    pub(crate) const OPCODE: u16 = 0xf << 11;
}

/// Bytes of a header.
const HEADER: usize = 12;
/// RFC 1035 §4.2.1: what an answer over UDP may have without EDNS.
const LEAST_UDP: usize = 512;
/// What passes any path in one packet (RFC 9715); more is asked for over TCP.
pub const MOST_UDP: usize = 1232;
/// RFC 1035 §3.2.4.
const INTERNET: u16 = 1;
/// RFC 6891 §6.1.1.
const OPT: u16 = 41;
/// RFC 6891 §6.1.4.
const DNSSEC_OK: u32 = 1 << 15;
const SOA: u16 = 6;

/// Entry point of the fuzz target: reading ends, and what was read can be said again.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let asked = match Query::read(data) {
        Ok(query) => query,
        Err(refusal) => return assert!(refusal.is_none_or(|refusal| refusal.len() >= HEADER)),
    };
    let again = Query::read(&asked.wanted.to_message(7)).unwrap_or_else(|_| panic!("{:?}", asked.wanted));
    assert_eq!(again.wanted, asked.wanted);
    assert!(asked.refuse(code::REFUSED).len() >= HEADER);
    // The same bytes as an answer to their own question.
    let mut answered = data.to_vec();
    answered[2] |= 0x80;
    if let Some(answer) = Answer::read(&answered, asked.id, &asked.wanted) {
        for most in [0, LEAST_UDP, usize::MAX] {
            let reply = answer.reply(&asked, 1, most);
            assert_eq!(reply[..2], data[..2]);
        }
    }
}
