//! A segment of TCP in a packet of IP, as an observer of the network is handed it.

use std::net::SocketAddr;

use crate::packet;

const TCP: u8 = 6;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Whose it is.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// The number of the first byte of its content (RFC 9293 §3.4).
    pub number: u32,
    /// It opens its sender's side.
    pub opens: bool,
    /// Its sender says nothing behind it.
    pub ends: bool,
    /// The connection is no more.
    pub resets: bool,
    /// What is in it; of one that was cut off on its way here, the beginning.
    pub content: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a packet from its IP header on; `None` where it holds no segment, or not its beginning. Sums are not looked at: a
    /// sender's own device may be the one to make them.
    pub fn read(packet: &'a [u8]) -> Option<Segment<'a>> {
        let (from, to, rest) = packet::read(packet, TCP)?;
        // RFC 9293 §3.1.
        let header = rest.get(..20)?;
        let port = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let number = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let has = |flag| header[13] & flag != 0;
        let opens = has(SYN);
        Some(Segment {
            from: SocketAddr::new(from, port(0)),
            to: SocketAddr::new(to, port(2)),
            // SYN has a number of its own.
            number: number.wrapping_add(opens.into()),
            opens,
            ends: has(FIN),
            resets: has(RST),
            content: rest.get(usize::from(header[12] >> 4).max(5) * 4..)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From port 5060 to 5061, with four bytes of options.
    fn tcp(number: u32, flags: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = [5060u16.to_be_bytes(), 5061u16.to_be_bytes()].concat();
        bytes.extend(number.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 6 << 4, flags, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        bytes.extend(content);
        bytes
    }

    fn fourth(length: u16, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend([length.to_be_bytes(), [0, 0], fragment.to_be_bytes()].concat());
        bytes.extend([64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn segments_are_read_in_both_families() {
        let packet = fourth(20 + 24 + 3, 0, &tcp(7, FIN, b"abc and padding"));
        let segment = Segment::read(&packet).unwrap();
        assert_eq!((segment.number, segment.content, segment.ends), (7, &b"abc"[..], true));
        assert!(!segment.opens && !segment.resets, "{segment:?}");
        assert_eq!(
            (segment.from, segment.to),
            ("10.0.0.1:5060".parse().unwrap(), "10.0.0.2:5061".parse().unwrap())
        );
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, 6, 64];
        packet.extend([[0; 15].as_slice(), &[1], &[0; 15], &[2]].concat());
        packet.extend(tcp(u32::MAX, SYN, b"padding"));
        let segment = Segment::read(&packet).unwrap();
        assert_eq!((segment.number, segment.opens, segment.content), (0, true, &b""[..]));
        assert_eq!(segment.to, "[::2]:5061".parse().unwrap());
    }

    #[test]
    fn one_whose_length_no_field_can_say_is_as_long_as_what_there_is() {
        let packet = fourth(0, 0, &tcp(7, RST, &[b'x'; 66_000]));
        let segment = Segment::read(&packet).unwrap();
        assert_eq!((segment.content.len(), segment.resets), (66_000, true));
    }

    #[test]
    fn what_is_no_segment_is_not_read() {
        let mut long = tcp(0, 0, b"");
        long[12] = 15 << 4;
        for packet in [
            Vec::new(),
            vec![0x45],
            vec![0x60; 40],
            fourth(100, 100, &tcp(0, 0, b"a later fragment")),
            fourth(100, 0, &[0; 19]),
            fourth(30, 0, &tcp(0, 0, b"shorter than its header")),
            fourth(100, 0, &long),
        ] {
            assert_eq!(Segment::read(&packet), None, "{packet:?}");
        }
    }
}
