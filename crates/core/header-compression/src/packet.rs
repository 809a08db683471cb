//! An RTP packet in UDP in IP, as far as its headers can be made anew from a few of their fields.

const UDP: usize = 8;
const RTP: usize = 12;

/// The headers of a packet with nothing in them that could not be made anew: no options, no fragments, no extensions, right
/// lengths and sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Headers {
    /// As they are on the wire; `length` of them.
    bytes: [u8; 60],
    length: usize,
}

impl Headers {
    /// The headers of `packet`, and its payload. `None` where it is no such packet.
    pub(crate) fn split(packet: &[u8]) -> Option<(Headers, &[u8])> {
        let ip = match packet.first()? {
            0x45 => 20, // RFC 791 §3.1: version 4, no options
            0x60..=0x6f => 40,
            _ => return None,
        };
        let length = ip + UDP + RTP;
        let mut bytes = [0; 60];
        bytes[..length].copy_from_slice(packet.get(..length)?);
        let headers = Headers { bytes, length };
        let payload = &packet[length..];
        let is_udp = if ip == 20 { bytes[9] == 17 } else { bytes[6] == 17 };
        // RFC 3550 §5.1: version 2, without padding, extension and contributing sources.
        let is_plain = bytes[ip + UDP] == 0x80;
        let is_fragment = ip == 20 && (bytes[6] & 0x3f != 0 || bytes[7] != 0);
        // Made anew, it has to be the same: this is where wrong lengths and sums come out.
        (is_udp && is_plain && !is_fragment && headers.filled(payload) == Some(headers))
            .then_some((headers, payload))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether both are of one stream: all is equal but what each packet has anew.
    pub(crate) fn is_same_stream(&self, other: &Headers) -> bool {
        let still = |headers: &Headers| {
            let mut still = *headers;
            still.set_sequence(0);
            still.set_timestamp(0);
            still.set_identification(0);
            still.set_marker(false);
            still.clear_sums();
            still
        };
        // Whether packets have a sum of UDP's: IPv4 may leave it out.
        still(self) == still(other) && (self.udp_sum() == 0) == (other.udp_sum() == 0)
    }

    /// Whether both go between the same ports: then one context serves both.
    pub(crate) fn is_same_path(&self, other: &Headers) -> bool {
        let range = if self.is_v4() { 12..24 } else { 8..44 };
        self.length == other.length && self.bytes[range.clone()] == other.bytes[range]
    }

    pub(crate) fn sequence(&self) -> u16 {
        u16::from_be_bytes([self.bytes[self.rtp() + 2], self.bytes[self.rtp() + 3]])
    }

    pub(crate) fn timestamp(&self) -> u32 {
        let at = self.rtp() + 4;
        u32::from_be_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]])
    }

    pub(crate) fn marker(&self) -> bool {
        self.bytes[self.rtp() + 1] & 0x80 != 0
    }

    /// IPv4's; IPv6 has none, which counts as 0.
    pub(crate) fn identification(&self) -> u16 {
        if self.is_v4() { u16::from_be_bytes([self.bytes[4], self.bytes[5]]) } else { 0 }
    }

    pub(crate) fn set_sequence(&mut self, sequence: u16) {
        let at = self.rtp() + 2;
        self.bytes[at..at + 2].copy_from_slice(&sequence.to_be_bytes());
    }

    pub(crate) fn set_timestamp(&mut self, timestamp: u32) {
        let at = self.rtp() + 4;
        self.bytes[at..at + 4].copy_from_slice(&timestamp.to_be_bytes());
    }

    pub(crate) fn set_marker(&mut self, marker: bool) {
        let at = self.rtp() + 1;
        self.bytes[at] = self.bytes[at] & 0x7f | u8::from(marker) << 7;
    }

    pub(crate) fn set_identification(&mut self, identification: u16) {
        if self.is_v4() {
            self.bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        }
    }

    /// With lengths and sums that fit the other fields and `payload`; `None` where that is too long for a packet.
    pub(crate) fn filled(mut self, payload: &[u8]) -> Option<Headers> {
        let had_sum = self.udp_sum() != 0;
        let (ip, whole) = (self.ip(), self.length + payload.len());
        let udp_length = u16::try_from(whole - ip).ok()?;
        self.clear_sums();
        self.bytes[ip + 4..ip + 6].copy_from_slice(&udp_length.to_be_bytes());
        if self.is_v4() {
            self.bytes[2..4].copy_from_slice(&u16::try_from(whole).ok()?.to_be_bytes());
            let sum = !folded(sum(&self.bytes[..20]));
            self.bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            self.bytes[4..6].copy_from_slice(&udp_length.to_be_bytes());
        }
        if had_sum {
            // RFC 768, RFC 8200 §8.1: over addresses, protocol and length as well; 0 is sent as its complement.
            let addresses = if self.is_v4() { 12..20 } else { 8..40 };
            let header = sum(&self.bytes[ip..self.length]) + sum(&self.bytes[addresses]);
            let all = header + sum(payload) + 17 + u64::from(udp_length);
            let sum = match !folded(all) {
                0 => u16::MAX,
                sum => sum,
            };
            self.bytes[ip + 6..ip + 8].copy_from_slice(&sum.to_be_bytes());
        }
        Some(self)
    }

    fn udp_sum(&self) -> u16 {
        u16::from_be_bytes([self.bytes[self.ip() + 6], self.bytes[self.ip() + 7]])
    }

    fn clear_sums(&mut self) {
        let ip = self.ip();
        self.bytes[ip + 4..ip + 6].fill(0);
        self.bytes[ip + 6..ip + 8].fill(0);
        if self.is_v4() {
            self.bytes[2..4].fill(0);
            self.bytes[10..12].fill(0);
        } else {
            self.bytes[4..6].fill(0);
        }
    }

    fn is_v4(&self) -> bool {
        self.length == 40
    }

    fn ip(&self) -> usize {
        self.length - UDP - RTP
    }

    fn rtp(&self) -> usize {
        self.length - RTP
    }
}

/// RFC 1071: words are added, and what overflows is added again.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let words =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)));
    words.sum()
}

pub(crate) fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16 // at most 0xffff, as the loop says
}
