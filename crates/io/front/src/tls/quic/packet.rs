//! Packets with long headers as a client sends them, and the frames inside (RFC 9000 §17.2, §19; RFC 9369 §3.2).

/// RFC 9000 §15, RFC 9369 §3.1.
pub(super) const V1: u32 = 1;
pub(super) const V2: u32 = 0x6b33_43cf;
/// RFC 9000 §17.2: the longest connection id of these versions.
const LONGEST_ID: usize = 20;

/// A packet with a long header.
pub(super) struct Packet<'a> {
    pub(super) version: u32,
    /// The connection id of whom it is for.
    pub(super) destination: &'a [u8],
    pub(super) is_initial: bool,
    /// All of it, with its header.
    pub(super) bytes: &'a [u8],
    /// Where in it its number begins, which is protected.
    pub(super) number_at: usize,
}

impl<'a> Packet<'a> {
    /// The first packet of a datagram's, and what follows it (RFC 9000 §12.2).
    pub(super) fn split(datagram: &'a [u8]) -> Option<(Packet<'a>, &'a [u8])> {
        let mut reader = Reader(datagram);
        let first = *reader.take(1)?.first()?;
        let version = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
        // RFC 9369 §3.2: types have other numbers there.
        let initial = match version {
            V1 => 0,
            V2 => 1,
            _ => return None,
        };
        let retry = (initial + 3) % 4;
        let kind = first >> 4 & 3;
        // A long header with the fixed bit.
        if first >> 6 != 3 || kind == retry {
            return None;
        }
        let destination = reader.id()?;
        let _source = reader.id()?;
        if kind == initial {
            let _token = reader.vector()?;
        }
        let length = reader.length()?;
        let number_at = datagram.len() - reader.0.len();
        reader.take(length)?;
        let (bytes, rest) = datagram.split_at(datagram.len() - reader.0.len());
        Some((Packet { version, destination, is_initial: kind == initial, bytes, number_at }, rest))
    }
}

/// Where in the handshake each CRYPTO frame of an Initial packet stands, and its bytes; `None` where a client's packet can't be so.
pub(super) fn crypto_frames(payload: &[u8]) -> Option<Vec<(usize, &[u8])>> {
    let (mut reader, mut frames) = (Reader(payload), Vec::new());
    while let [kind, rest @ ..] = reader.0 {
        reader.0 = rest;
        // RFC 9000 §17.2.2: PADDING, PING, ACK and CRYPTO alone are of use here; with CONNECTION_CLOSE there is no more.
        match kind {
            0 | 1 => {}
            2 | 3 => {
                let (_largest, _delay) = (reader.length()?, reader.length()?);
                let ranges = reader.length()?;
                let counts = if *kind == 3 { 3 } else { 0 };
                let _first = reader.length()?;
                for _ in 0..ranges.checked_mul(2)?.checked_add(counts)? {
                    reader.length()?;
                }
            }
            6 => frames.push((reader.length()?, reader.vector()?)),
            _ => return None,
        }
    }
    Some(frames)
}

/// Takes what packets consist of from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn id(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.take(1)?.first()?);
        if length > LONGEST_ID { None } else { self.take(length) }
    }

    fn vector(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// RFC 9000 §16: the first two bits say in how many bytes.
    fn length(&mut self) -> Option<usize> {
        let count = 1 << (self.0.first()? >> 6);
        let bytes = self.take(count)?;
        let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        usize::try_from(number & (u64::MAX >> (66 - 8 * count))).ok()
    }
}
