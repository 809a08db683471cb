//! IP packets, as a TUN device gives and takes them: read, given other addresses, put together from fragments and made anew;
//! what ICMP says of datagrams that do not arrive; and which port stands for which connection. No sockets, no clocks.

mod fragments;
mod read;
mod sum;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use fragments::Fragments;
pub use read::{Datagram, Packet, Segment};
pub use table::{Ends, Table};
pub use write::{Complaint, complaint, datagram, readdress};

use std::time::Duration;

impl Fragments {
    /// The datagram of a packet that may be one of several pieces, once it is whole: ends and payload.
    pub fn datagram(&mut self, now: Duration, packet: &Packet<'_>) -> Option<(Ends, Vec<u8>)> {
        let whole = if packet.is_fragment() { self.push(now, packet)? } else { packet.payload.to_vec() };
        let datagram = packet.datagram_in(&whole)?;
        Some((Ends { client: datagram.from, to: datagram.to }, datagram.payload.to_vec()))
    }
}

#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let (mut fragments, mut rest) = (Fragments::default(), data);
    // Pieces of the input, each as long as its first byte says.
    while let Some((length, after)) = rest.split_first() {
        let (bytes, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        let Some(packet) = Packet::read(bytes) else { continue };
        let ends = fragments.datagram(Duration::ZERO, &packet);
        if let Some((ends, payload)) = ends {
            let pieces = datagram(ends.client, ends.to, &payload, 7);
            let mut again = Fragments::default();
            let read = pieces.iter().find_map(|piece| {
                let packet = Packet::read(piece).expect("what is written is a packet");
                again.datagram(Duration::ZERO, &packet)
            });
            assert_eq!(read, Some((ends, payload)), "a datagram reads as it was written");
        }
        if let Some(segment) = packet.segment() {
            let other = |address: std::net::IpAddr, port| std::net::SocketAddr::new(address, port);
            let (from, to) = (other(packet.to, 7), other(packet.from, 9));
            let mut moved = bytes.to_vec();
            assert!(readdress(&mut moved, from, to), "it has ports");
            let back = (other(packet.from, segment.from), other(packet.to, segment.to));
            assert!(readdress(&mut moved, back.0, back.1), "it still has");
            assert_eq!(Packet::read(&moved).and_then(|it| it.segment()), Some(segment), "there and back");
        }
    }
}
