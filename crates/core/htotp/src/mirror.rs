//! The mirror: what the remote holds, told to ground as a log of stores and evictions, so that ground does not push what
//! is there, and asks the origin about what is stale there. Here are its words and the fingerprint by which both ends know
//! an entry. Nothing of a URL or of a request's field can be read from it.

mod heard;
mod ledger;
mod summary;

pub use heard::{Effect, Heard};
pub use ledger::{Content, Ledger, Opening, Telling};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};

/// Entries that are told of; beyond that those give way that were stored, renewed or missed the longest ago.
pub const MOST: usize = 50_000;

/// A place in the log of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Names the log; 0 is none.
    pub log: u64,
    /// Number of the next record; 0 where it is not known what was heard.
    pub next: u64,
}

/// What the remote says of its repository, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// All that was said before is void: what is held follows anew.
    Reset,
    /// The log goes on here. Each entry in the following words is a record.
    Log(Position),
    /// Sums of what ground was told of, by buckets ([`Ledger`]).
    Summary(Vec<u32>),
    /// These are held; one whose number was told before replaces what was said of it, but for its validators.
    Stored(Vec<Entry>),
    /// By what the origins of these can be asked; it replaces what was said before.
    Validators(Vec<Validators>),
    /// These numbers are held no longer.
    Evicted(Vec<u64>),
    /// These bodies are held: others may cross as what differs from them.
    Holds(Vec<HeldBody>),
    /// These are not, or no longer.
    Lacks(Vec<HeldBody>),
}

/// A body that is held whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldBody {
    /// For whom: one user, or everyone.
    pub user: Option<u64>,
    /// Which.
    pub hash: BodyHash,
}

/// Names a body by what it is: the first 16 bytes of its BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BodyHash(pub [u8; Self::LENGTH]);

impl BodyHash {
    /// In bytes.
    pub const LENGTH: usize = 16;

    /// Of this body.
    pub fn of(body: &[u8]) -> BodyHash {
        let mut hash = [0; Self::LENGTH];
        hash.copy_from_slice(&blake3::hash(body).as_bytes()[..Self::LENGTH]);
        BodyHash(hash)
    }
}

/// One response that is held whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Names it among all that this remote holds.
    pub number: u64,
    /// Whom it may answer: one user, or everyone.
    pub user: Option<u64>,
    /// Which request fields it is bound to.
    pub bound: Bound,
    /// Seconds for which it stays fresh (RFC 9111 §4.2); 0 where it is stale, or has to be validated whenever it is used.
    pub fresh_s: u64,
    /// See [`fingerprint`].
    pub fingerprint: u64,
}

/// By what the origin of an entry can be asked whether it is still right (RFC 9110 §8.8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Validators {
    /// The entry.
    pub number: u64,
    /// Its entity tag as it stands in `ETag`; empty where it has none.
    pub tag: Bytes,
    /// Its `Last-Modified` in seconds since 1970; 0 where it has none.
    pub modified: u64,
}

/// A set of request fields whose values decide whether a held response answers: those that its `Vary` names, and what
/// it is bound to besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bound(u8);

const COUNT: usize = 7;
/// The fields that a set can name, by bit. A response that varies by others is not told of.
static FIELDS: [HeaderName; COUNT] = [
    header::ORIGIN,
    header::AUTHORIZATION,
    header::COOKIE,
    header::USER_AGENT,
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
];

impl Bound {
    /// Sets that there can be.
    pub const SETS: usize = 1 << COUNT;

    /// The set of these fields; `None` if it cannot be named.
    pub fn to<'a>(names: impl IntoIterator<Item = &'a HeaderName>) -> Option<Bound> {
        names.into_iter().try_fold(Bound(0), |set, name| {
            let bit = FIELDS.iter().position(|field| field == name)?;
            Some(Bound(set.0 | 1 << bit))
        })
    }

    /// As it stands on the wire; below [`Bound::SETS`].
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Reads [`Bound::bits`].
    pub fn from_bits(bits: u8) -> Option<Bound> {
        (usize::from(bits) < Self::SETS).then_some(Bound(bits))
    }

    fn fields(self) -> impl Iterator<Item = &'static HeaderName> {
        FIELDS.iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name)
    }
}

/// Names a response by whose it is, its URL (normalised, without fragment) and the values of the fields that it is bound
/// to: the first eight bytes, big-endian, of BLAKE3 over these.
///
/// A collision costs a push that would have been of use, never a wrong byte: the remote looks at what it holds.
pub fn fingerprint(user: Option<u64>, url: &str, bound: Bound, fields: &HeaderMap) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(&user.map_or(0, |user| user + 1).to_be_bytes());
    hash.update(&[bound.bits()]);
    let mut part = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(url.as_bytes());
    for name in bound.fields() {
        let values: Vec<_> = fields.get_all(name).iter().collect();
        part(&(values.len() as u64).to_be_bytes());
        values.iter().for_each(|value| part(value.as_bytes()));
    }
    let hash = hash.finalize();
    hash.as_bytes()[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fields(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_fingerprint_tells_users_urls_and_bound_fields_apart_and_nothing_else() {
        let bound = Bound::to([&header::ORIGIN, &header::ACCEPT]).unwrap();
        let request = fields(&[(header::ACCEPT, "image/*"), (header::REFERER, "http://a.test/")]);
        let it = fingerprint(Some(1), "http://a.test/x", bound, &request);
        let same = fields(&[(header::ACCEPT, "image/*")]);
        assert_eq!(it, fingerprint(Some(1), "http://a.test/x", bound, &same));
        assert_ne!(it, fingerprint(None, "http://a.test/x", bound, &request));
        assert_ne!(it, fingerprint(Some(1), "http://a.test/y", bound, &request));
        assert_ne!(it, fingerprint(Some(1), "http://a.test/x", bound, &fields(&[])));
        let with_origin = fields(&[(header::ACCEPT, "image/*"), (header::ORIGIN, "http://a.test")]);
        assert_ne!(it, fingerprint(Some(1), "http://a.test/x", bound, &with_origin));
    }

    #[test]
    fn a_response_that_varies_by_another_field_cannot_be_told_of() {
        assert_eq!(Bound::to([&header::RANGE]), None);
    }
}
