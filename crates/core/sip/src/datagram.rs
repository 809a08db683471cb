//! A datagram of UDP in a packet of IP, as an observer of the network is handed it.

use std::net::SocketAddr;

use crate::packet;

const UDP: u8 = 17;

/// A datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Whose it is.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// What is in it; of one in fragments, or cut off on its way here, the beginning.
    pub content: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a packet from its IP header on; `None` where it holds no datagram, or not its beginning. Sums are not looked at: a
    /// sender's own device may be the one to make them.
    pub fn read(packet: &'a [u8]) -> Option<Datagram<'a>> {
        let (from, to, rest) = packet::read(packet, UDP)?;
        // RFC 768.
        let (header, content) = rest.split_at_checked(8)?;
        let port = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let length = usize::from(port(4)).checked_sub(8)?;
        Some(Datagram {
            from: SocketAddr::new(from, port(0)),
            to: SocketAddr::new(to, port(2)),
            content: &content[..length.min(content.len())],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from port 5060 to 5061 with `said` bytes of it, and what is there.
    fn udp(said: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [5060, 5061, 8 + said, 0] {
            bytes.extend(u16::to_be_bytes(number));
        }
        bytes.extend(content);
        bytes
    }

    fn fourth(first: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first, 0, 0, 0, 0, 0];
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(usize::from(first & 0xf) * 4, 1);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn datagrams_are_read_in_both_families() {
        let packet = fourth(0x46, 0, &udp(3, b"abc and padding"));
        let datagram = Datagram::read(&packet).unwrap();
        assert_eq!(datagram.content, b"abc");
        assert_eq!(
            (datagram.from, datagram.to),
            ("10.0.0.1:5060".parse().unwrap(), "10.0.0.2:5061".parse().unwrap())
        );
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
        packet.extend([[0; 15].as_slice(), &[1], &[0; 15], &[2]].concat());
        packet.extend(udp(99, b"cut"));
        let datagram = Datagram::read(&packet).unwrap();
        assert_eq!((datagram.content, datagram.to), (&b"cut"[..], "[::2]:5061".parse().unwrap()));
    }

    #[test]
    fn the_first_fragment_is_read_and_what_is_no_datagram_is_not() {
        assert!(Datagram::read(&fourth(0x45, 0x2000, &udp(3000, b"begins"))).is_some());
        for packet in [
            Vec::new(),
            vec![0x45],
            vec![0x60; 40],
            fourth(0x45, 100, &udp(3, b"abc")),
            fourth(0x45, 0, &[0; 7]),
            fourth(0x45, 0, &[0; 8]),
            fourth(0x4f, 0, b"")[..40].to_vec(),
        ] {
            assert_eq!(Datagram::read(&packet), None, "{packet:?}");
        }
    }
}
