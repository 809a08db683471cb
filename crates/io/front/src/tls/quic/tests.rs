//! The packets of the RFCs' appendices, those of quinn, and hellos in pieces.

use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig};
use rustls::RootCertStore;
use rustls::crypto::ring;

use super::keys::seal;
use super::packet::{V1, V2};
use super::*;
use crate::tls::ClientHello;

/// RFC 9001 A.1, RFC 9369 A.1.
const ID: &[u8] = &[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
/// RFC 9001 A.2: the CRYPTO frame, without its header of four bytes the hello.
const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
    0d0010000e0403050306030203080408050806002d00020101001c0002400100\
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn hello() -> Vec<u8> {
    hex(FRAME).split_off(4)
}

fn example() -> Reading {
    let alpn = vec![b"alpn".to_vec()];
    Reading::Hello(ClientHello { sni: Some("example.com".into()), alpn })
}

/// RFC 9000 §19.6.
fn crypto(at: usize, piece: &[u8]) -> Vec<u8> {
    let number = |number: usize| (0x4000 | number as u16).to_be_bytes();
    [&[6][..], &number(at), &number(piece.len()), piece].concat()
}

fn packet(id: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    seal(V1, (id, id), number, frames).unwrap()
}

#[test]
fn the_packets_of_the_appendices_are_read() {
    for (version, begins, ends) in [
        (V1, "c000000001088394c8f03e5157080000449e7b9aec34", "e221af44860018ab0856972e194cd934"),
        (V2, "d76b3343cf088394c8f03e5157080000449ea0c95e82", "a18b2faa745b6fe189cf772a9f84cbfc"),
    ] {
        let datagram = seal(version, (ID, ID), 2, &hex(FRAME)).unwrap();
        // It is the appendix's: the tag at its end is over all of it.
        assert_eq!(datagram.len(), 1200);
        assert!(datagram.starts_with(&hex(begins)) && datagram.ends_with(&hex(ends)), "{version:x}");
        assert_eq!(Initials::default().read(&datagram), example());
    }
}

/// The datagrams that quinn begins a connection with, to this host and with these protocols.
fn of_quinn(host: &str, alpn: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    config.alpn_protocols = alpn.to_vec();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, Some([7; 32]));
    let now = Instant::now();
    let (_, mut connection) = endpoint.connect(now, config, "192.0.2.1:443".parse().unwrap(), host).unwrap();
    let mut datagrams = Vec::new();
    loop {
        let mut datagram = Vec::new();
        let Some(sent) = connection.poll_transmit(now, 1, &mut datagram) else { return datagrams };
        datagram.truncate(sent.size);
        datagrams.push(datagram);
    }
}

#[test]
fn what_quinn_sends_is_read_also_where_it_takes_several_datagrams() {
    let protocols = |count: usize| (0..count).map(|it| format!("h3-{it:0>40}").into_bytes()).collect();
    for (alpn, least) in [(vec![b"h3".to_vec()], 1), (protocols(60), 3)] {
        let datagrams = of_quinn("www.a.example", &alpn);
        assert!(datagrams.len() >= least, "{} of {least}", datagrams.len());
        let expected = Reading::Hello(ClientHello { sni: Some("www.a.example".into()), alpn });
        for backwards in [false, true] {
            let mut order: Vec<_> = datagrams.iter().collect();
            if backwards {
                order.reverse();
            }
            let mut initials = Initials::default();
            let readings: Vec<_> = order.into_iter().map(|datagram| initials.read(datagram)).collect();
            let (last, before) = readings.split_last().unwrap();
            assert!(before.iter().all(|it| *it == Reading::NeedMore), "{before:?}");
            assert_eq!(*last, expected);
        }
    }
}

proptest! {
    /// As Chromium sends them: cut anywhere, in any order, over two packets, with PING, ACK and PADDING between.
    #[test]
    fn pieces_are_put_together_whatever_their_order(
        cuts in prop::collection::btree_set(1_usize..241, 0..40),
        order: u64,
        together: bool,
    ) {
        let hello = hello();
        let ends = cuts.iter().copied().chain([hello.len()]);
        let mut pieces: Vec<_> = [0].into_iter().chain(cuts.iter().copied()).zip(ends).collect();
        pieces.sort_by_key(|(at, _)| (*at as u64 + 1).wrapping_mul(order | 1));
        let between = [&[0, 1][..], &[2, 0x40, 7, 0, 1, 3, 0, 1], &[0; 5]];
        let mut packets: [Vec<u8>; 2] = Default::default();
        for (number, (at, end)) in pieces.into_iter().enumerate() {
            packets[number % 2].extend(between[number % 3]);
            packets[number % 2].extend(crypto(at, &hello[at..end]));
        }
        let datagrams = [packet(ID, 0, &packets[0]), packet(ID, 1, &packets[1])];
        let mut initials = Initials::default();
        let reading = if together {
            initials.read(&datagrams.concat())
        } else {
            initials.read(&datagrams[0]);
            initials.read(&datagrams[1])
        };
        prop_assert_eq!(reading, example());
    }
}

#[test]
fn keys_stay_when_the_server_has_named_itself_and_change_with_a_retry() {
    let hello = hello();
    let (half, rest) = hello.split_at(100);
    let first = packet(ID, 0, &crypto(0, half));
    let named = seal(V1, (ID, b"the server"), 1, &crypto(100, rest)).unwrap();
    let mut initials = Initials::default();
    assert_eq!([initials.read(&first), initials.read(&named)], [Reading::NeedMore, example()]);
    // RFC 9000 §17.2.5.2: after it the hello comes again, whole.
    let again = packet(b"of a retry", 1, &crypto(0, &hello));
    let mut initials = Initials::default();
    assert_eq!([initials.read(&first), initials.read(&again)], [Reading::NeedMore, example()]);
}

#[test]
fn what_is_no_hello_is_given_up_at_once() {
    let spoilt = |at: usize| {
        let mut datagram = packet(ID, 0, &crypto(0, &hello()));
        datagram[at] ^= 1;
        datagram
    };
    let cut = packet(ID, 0, &crypto(0, &hello()))[..1199].to_vec();
    let short = vec![0x40; 1200];
    let server_hello = packet(ID, 0, &crypto(0, &[2, 0, 0, 1, 0]));
    let beyond = packet(ID, 0, &crypto(4096, b"x"));
    let closing = packet(ID, 0, &[0x1c, 0, 0, 0]);
    for (what, datagram) in [
        ("a bit of its payload", spoilt(800)),
        ("a bit of the id", spoilt(8)),
        ("a bit of the version", spoilt(4)),
        ("smaller than servers take", cut),
        ("a short header", short),
        ("a server's message", server_hello),
        ("a piece beyond the longest hello", beyond),
        ("the end of the connection", closing),
        ("nothing", vec![]),
    ] {
        assert_eq!(Initials::default().read(&datagram), Reading::Other, "{what}");
    }
}

#[test]
fn no_client_has_more_kept_or_read_than_a_hello() {
    let mut initials = Initials::default();
    let mut readings = Vec::new();
    for number in 0..20 {
        let frames: Vec<u8> =
            (0..2).flat_map(|it| crypto(1 + 40 * (2 * number as usize + it), b"x")).collect();
        readings.push(initials.read(&packet(ID, number, &frames)));
    }
    assert_eq!(readings[14], Reading::NeedMore);
    assert!(readings[15..].iter().all(|it| *it == Reading::Other));
    let gaps: Vec<u8> = (0..65).flat_map(|it| crypto(1 + 2 * it, b"x")).collect();
    assert_eq!(Initials::default().read(&packet(ID, 0, &gaps)), Reading::Other);
    assert_eq!(Initials::default().read(&packet(ID, 0, &gaps[..64 * 6])), Reading::NeedMore);
}
