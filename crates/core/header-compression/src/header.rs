//! RTP's fixed header (RFC 3550 §5.1), as far as it can be made anew from a few of its fields.

/// Bytes of it.
pub(crate) const LENGTH: usize = 12;

/// A header with nothing behind it but the payload: no padding, no extension, no contributing sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header([u8; LENGTH]);

impl Header {
    /// The header of `datagram`, and its payload. `None` where it has none such.
    pub(crate) fn split(datagram: &[u8]) -> Option<(Header, &[u8])> {
        let (header, payload) = datagram.split_first_chunk()?;
        (header[0] == 0x80).then_some((Header(*header), payload))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both are of one stream: payload type and source are.
    pub(crate) fn is_same_stream(&self, other: &Header) -> bool {
        self.0[1] & 0x7f == other.0[1] & 0x7f && self.0[8..] == other.0[8..]
    }

    pub(crate) fn sequence(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    pub(crate) fn timestamp(&self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    pub(crate) fn marker(&self) -> bool {
        self.0[1] & 0x80 != 0
    }

    pub(crate) fn set_sequence(&mut self, sequence: u16) {
        self.0[2..4].copy_from_slice(&sequence.to_be_bytes());
    }

    pub(crate) fn set_timestamp(&mut self, timestamp: u32) {
        self.0[4..8].copy_from_slice(&timestamp.to_be_bytes());
    }

    pub(crate) fn set_marker(&mut self, marker: bool) {
        self.0[1] = self.0[1] & 0x7f | u8::from(marker) << 7;
    }
}
