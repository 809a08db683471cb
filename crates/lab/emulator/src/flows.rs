//! Which distinct flows crossed the link: TCP by its SYN, UDP by its pair of endpoints, DNS left out. Reads
//! headers only and believes nothing: what is no whole header is no flow.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// More flows than this are not told apart, so that a port scan cannot fill the memory.
const MOST: usize = 100_000;

const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;

/// Flows seen in one direction since the last reset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flows {
    tcp: HashSet<Flow>,
    udp: HashSet<Flow>,
    /// The flow of the last packet: most packets belong to the one before.
    last_udp: Option<Flow>,
}

/// Two endpoints; for TCP the one that opened comes first, for UDP the lower one.
type Flow = (SocketAddr, SocketAddr);

impl Flows {
    /// Takes note of an IP packet.
    pub(crate) fn note(&mut self, packet: &[u8]) {
        let Some((protocol, from, to, payload)) = endpoints(packet) else {
            return;
        };
        match protocol {
            // RFC 9293 §3.1: flags are byte 13; SYN is 2, ACK 16. A repeated SYN is the same flow.
            TCP if payload.get(13).is_some_and(|flags| flags & 0x12 == 0x02) => {
                insert(&mut self.tcp, (from, to));
            }
            UDP if from.port() != DNS_PORT && to.port() != DNS_PORT => {
                let flow = (from.min(to), from.max(to));
                if self.last_udp != Some(flow) {
                    self.last_udp = Some(flow);
                    insert(&mut self.udp, flow);
                }
            }
            _ => {}
        }
    }

    /// Distinct TCP and UDP flows in `self` and `other` together: a UDP flow shows in both directions.
    pub(crate) fn union(&self, other: &Flows) -> (u64, u64) {
        let count = |a: &HashSet<Flow>, b| a.union(b).count() as u64;
        (count(&self.tcp, &other.tcp), count(&self.udp, &other.udp))
    }
}

fn insert(flows: &mut HashSet<Flow>, flow: Flow) {
    if flows.len() < MOST {
        flows.insert(flow);
    }
}

/// The connection that a packet belongs to, the same in both directions; none for DNS and for what has no ports.
pub(crate) fn connection(packet: &[u8]) -> Option<(u8, SocketAddr, SocketAddr)> {
    let (protocol, from, to, _) = endpoints(packet)?;
    let is_dns = protocol == UDP && (from.port() == DNS_PORT || to.port() == DNS_PORT);
    (matches!(protocol, TCP | UDP) && !is_dns).then(|| (protocol, from.min(to), from.max(to)))
}

/// Protocol, where from, where to, and what follows the IP header.
fn endpoints(packet: &[u8]) -> Option<(u8, SocketAddr, SocketAddr, &[u8])> {
    let (protocol, source, destination, payload) = addresses(packet)?;
    let port = |at: usize| Some(u16::from_be_bytes([*payload.get(at)?, *payload.get(at + 1)?]));
    let (from, to) = (SocketAddr::new(source, port(0)?), SocketAddr::new(destination, port(2)?));
    Some((protocol, from, to, payload))
}

/// Protocol, source, destination and what follows the IP header.
fn addresses(packet: &[u8]) -> Option<(u8, IpAddr, IpAddr, &[u8])> {
    match packet.first()? >> 4 {
        4 => {
            // RFC 791 §3.1. Only a first fragment has the ports.
            let header = usize::from(packet[0] & 0x0f) * 4;
            let offset = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
            let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            let destination: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            let payload = packet.get(header.max(20)..)?;
            let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
            (offset == 0).then_some((packet[9], source.into(), destination.into(), payload))
        }
        6 => {
            // RFC 8200 §3. Extension headers do not stand before TCP and UDP in a testbed.
            let source: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            let destination: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
            Some((packet[6], source.into(), destination.into(), packet.get(40..)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with the fields that matter here.
    fn packet(protocol: u8, from: (u8, u16), to: (u8, u16), flags: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&[10, 0, 0, from.0]);
        packet[16..20].copy_from_slice(&[10, 0, 0, to.0]);
        packet[20..22].copy_from_slice(&from.1.to_be_bytes());
        packet[22..24].copy_from_slice(&to.1.to_be_bytes());
        packet[33] = flags;
        packet
    }

    #[test]
    fn a_connection_counts_once_however_often_its_syn_is_sent() {
        let mut flows = Flows::default();
        for flags in [0x02, 0x02, 0x12, 0x10, 0x11] {
            flows.note(&packet(TCP, (1, 4000), (2, 80), flags));
        }
        flows.note(&packet(TCP, (1, 4001), (2, 80), 0x02));
        assert_eq!(flows.union(&Flows::default()), (2, 0));
    }

    #[test]
    fn the_two_directions_of_a_udp_flow_are_one() {
        let (mut there, mut back) = (Flows::default(), Flows::default());
        there.note(&packet(UDP, (1, 4000), (2, 443), 0));
        back.note(&packet(UDP, (2, 443), (1, 4000), 0));
        assert_eq!(there.union(&back), (0, 1));
    }

    #[test]
    fn dns_and_later_fragments_are_no_flows() {
        let mut flows = Flows::default();
        flows.note(&packet(UDP, (1, 4000), (2, 53), 0));
        flows.note(&packet(UDP, (2, 53), (1, 4000), 0));
        let mut fragment = packet(UDP, (1, 4000), (2, 443), 0);
        fragment[7] = 1;
        flows.note(&fragment);
        assert_eq!(flows.union(&Flows::default()), (0, 0));
    }

    #[test]
    fn a_cut_off_packet_is_no_flow() {
        let whole = packet(TCP, (1, 4000), (2, 80), 0x02);
        let mut flows = Flows::default();
        for length in 0..34 {
            flows.note(&whole[..length]);
        }
        assert_eq!(flows.union(&Flows::default()), (0, 0));
        flows.note(&whole[..34]);
        assert_eq!(flows.union(&Flows::default()), (1, 0));
    }
}
