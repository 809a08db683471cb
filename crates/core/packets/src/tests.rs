//! Packets as the kernel writes them, read and written.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;

use crate::*;

const NOW: Duration = Duration::ZERO;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ends() -> [Ends; 2] {
    [("10.0.0.2:4000", "198.51.100.7:53"), ("[fd00::2]:4000", "[2001:db8::7]:53")]
        .map(|(client, to)| Ends { client: at(client), to: at(to) })
}

/// An opening segment of IPv4 as Linux sends it, with its checksums.
fn opening() -> Vec<u8> {
    let text = "4500003c1c4640004006914bc0a80068c0a80001d43100508a5c4e9700000000a002faf0836b0000020405b40402080a\
                000ad2c30000000001030307";
    let mut bytes: Vec<u8> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect();
    // The captured checksums are made right by the rule that they have to obey.
    bytes[10..12].fill(0);
    let header = !sum::folded(&[sum::words(&bytes[..20])]);
    bytes[10..12].copy_from_slice(&header.to_be_bytes());
    bytes[36..38].fill(0);
    let packet = Packet::read(&bytes).unwrap();
    let all = [sum::pseudo(packet.from, packet.to, 6, 40), sum::words(packet.payload)];
    let segment = !sum::folded(&all);
    bytes[36..38].copy_from_slice(&segment.to_be_bytes());
    bytes
}

/// Whether both checksums of a segment are right.
fn is_right(bytes: &[u8]) -> bool {
    let packet = Packet::read(bytes).unwrap();
    let all = [sum::pseudo(packet.from, packet.to, 6, packet.payload.len()), sum::words(packet.payload)];
    sum::folded(&[sum::words(&bytes[..20])]) == 0xffff && sum::folded(&all) == 0xffff
}

#[test]
fn a_header_of_the_standards_example_has_its_checksum() {
    // RFC 1071 §3: 0001 f203 f4f5 f6f7 sums up to ddf2.
    assert_eq!(sum::folded(&[sum::words(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7])]), 0xddf2);
}

#[test]
fn a_segment_is_read_and_given_other_ends() {
    let mut bytes = opening();
    let segment = Packet::read(&bytes).unwrap().segment().unwrap();
    assert!(segment.opens && !segment.ends && !segment.resets);
    assert_eq!((segment.from, segment.to), (54321, 80));
    assert!(is_right(&bytes));
    assert!(readdress(&mut bytes, at("198.18.0.2:1024"), at("198.18.0.1:40000")));
    assert!(is_right(&bytes));
    let packet = Packet::read(&bytes).unwrap();
    assert_eq!((packet.from.to_string(), packet.to.to_string()), ("198.18.0.2".into(), "198.18.0.1".into()));
    let before = bytes.clone();
    assert!(!readdress(&mut bytes, at("[fd00::1]:1"), at("[fd00::2]:1")), "of another family");
    assert_eq!(bytes, before);
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut bytes = opening();
    bytes[45] ^= 1;
    assert!(readdress(&mut bytes, at("198.18.0.2:1024"), at("198.18.0.1:40000")));
    assert!(!is_right(&bytes));
}

#[test]
fn datagrams_read_as_they_were_written_in_pieces_too() {
    for Ends { client, to } in ends() {
        for length in [0, 1, 160, 1200, 1400, 20_000, 65_507] {
            let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let pieces = datagram(client, to, &payload, 7);
            assert_eq!(pieces.len() > 1, client.is_ipv6() && length > 1232, "{length}");
            for backwards in [false, true] {
                let mut pieces = pieces.clone();
                if backwards {
                    pieces.reverse();
                }
                let mut fragments = Fragments::default();
                let mut read =
                    pieces.iter().filter_map(|piece| fragments.datagram(NOW, &Packet::read(piece).unwrap()));
                assert_eq!(read.next(), Some((Ends { client, to }, payload.clone())), "{length}");
                assert_eq!(read.next(), None);
            }
        }
        assert!(datagram(client, to, &vec![0; 65_528], 7).is_empty(), "larger than any");
    }
    assert!(datagram(at("10.0.0.2:1"), at("[fd00::1]:1"), b"x", 7).is_empty());
}

#[test]
fn a_datagram_that_was_damaged_is_none() {
    for Ends { client, to } in ends() {
        let mut bytes = datagram(client, to, b"well said", 7).remove(0);
        assert_eq!(Packet::read(&bytes).unwrap().datagram().unwrap().payload, b"well said");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(Packet::read(&bytes).unwrap().datagram(), None);
    }
}

#[test]
fn pieces_that_overlap_or_never_end_come_to_nothing() {
    let Ends { client, to } = ends()[1];
    let pieces = datagram(client, to, &[7; 4000], 7);
    let packets: Vec<_> = pieces.iter().map(|piece| Packet::read(piece).unwrap()).collect();
    let mut fragments = Fragments::default();
    assert_eq!(fragments.datagram(NOW, &packets[0]), None);
    assert_eq!(fragments.datagram(NOW, &packets[0]), None, "the same again ends it");
    assert!(packets[1..].iter().all(|piece| fragments.datagram(NOW, piece).is_none()));
    // What is left of it is forgotten in time, and then it may come anew.
    let later = Duration::from_secs(6);
    let whole = packets.iter().filter_map(|piece| fragments.datagram(later, piece)).count();
    assert_eq!(whole, 1);
    // Of many beginnings the oldest are forgotten.
    for id in 0..10_000 {
        let begin = &datagram(client, to, &[7; 4000], id)[0];
        assert_eq!(fragments.datagram(later, &Packet::read(begin).unwrap()), None);
    }
    assert_eq!(packets.iter().filter_map(|piece| fragments.datagram(later, piece)).count(), 1);
}

#[test]
fn what_icmp_says_names_the_datagram_and_has_its_checksum() {
    for Ends { client, to } in ends() {
        for what in [Complaint::PortUnreachable, Complaint::HostUnreachable, Complaint::TooBig(1400)] {
            let said = complaint(what, client, to).unwrap();
            let packet = Packet::read(&said).unwrap();
            assert_eq!((packet.from, packet.to), (to.ip(), client.ip()));
            let pseudo = sum::pseudo(packet.from, packet.to, packet.protocol, packet.payload.len());
            let parts = [if client.is_ipv6() { pseudo } else { 0 }, sum::words(packet.payload)];
            assert_eq!(sum::folded(&parts), 0xffff, "{what:?}");
            let quoted = Packet::read(&packet.payload[8..]).unwrap();
            let datagram = quoted.datagram().unwrap();
            assert_eq!((datagram.from, datagram.to), (client, to));
            if what == Complaint::TooBig(1400) {
                assert_eq!(packet.payload[6..8], 1400_u16.to_be_bytes());
            }
        }
    }
    assert_eq!(complaint(Complaint::PortUnreachable, at("10.0.0.2:1"), at("[fd00::1]:1")), None);
}

fn segment(opens: bool, ends: bool, resets: bool) -> Segment {
    Segment { from: 1, to: 2, opens, ends, resets }
}

fn connection(number: u16) -> Ends {
    Ends { client: SocketAddr::new(at("10.0.0.2:1").ip(), number), to: at("198.51.100.7:80") }
}

#[test]
fn a_port_stands_for_a_connection_from_its_opening_until_a_minute_after_its_end() {
    let (mut table, open, data) = (Table::new(1), segment(true, false, false), segment(false, false, false));
    assert_eq!(table.outward(NOW, connection(1), &data), None, "nobody saw it open");
    let port = table.outward(NOW, connection(1), &open).unwrap();
    assert_eq!(table.outward(NOW, connection(1), &open), Some(port), "said again");
    assert_eq!(table.of(port), Some(connection(1)));
    assert_eq!(table.inward(NOW, port, &data), Some(connection(1)));
    assert_eq!(table.outward(NOW, connection(2), &open), None, "no room");
    let end = segment(false, true, false);
    table.outward(NOW, connection(1), &end);
    assert_eq!(table.outward(Duration::from_secs(120), connection(2), &open), None, "half of it goes on");
    table.inward(Duration::from_secs(120), port, &end);
    assert_eq!(table.outward(Duration::from_secs(179), connection(2), &open), None);
    assert!(table.outward(Duration::from_secs(180), connection(2), &open).is_some());
    assert_eq!(table.of(port), None);
}

#[test]
fn as_many_connections_as_ports_have_one_each() {
    let (mut table, open) = (Table::new(usize::MAX), segment(true, false, false));
    let mut ports = std::collections::HashSet::new();
    for host in 0..4_u8 {
        for number in 1..=u16::MAX {
            let client = SocketAddr::new(std::net::Ipv4Addr::new(10, 0, 0, host).into(), number);
            let ends = Ends { client, to: at("198.51.100.7:80") };
            ports.extend(table.outward(NOW, ends, &open));
        }
    }
    assert_eq!(ports.len(), 64_512);
    let reset = segment(false, false, true);
    table.outward(NOW, connection(9), &open);
    for port in &ports {
        table.inward(NOW, *port, &reset);
    }
    assert!(table.outward(Duration::from_secs(60), connection(9), &open).is_some());
}

proptest! {
    #[test]
    fn no_input_is_too_much(data: Vec<u8>) {
        fuzz(&data);
    }
}
