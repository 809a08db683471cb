//! Calls across a hop that loses and reorders: what comes out is what went in, or nothing.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use farhop_header_compression::{Compressor, Decompressor, Dropped, FlowCompressor, FlowDecompressor};
use proptest::prelude::*;

/// A stream as an IP telephone sends it.
#[derive(Debug, Clone, Copy)]
struct Stream {
    v6: bool,
    has_udp_sum: bool,
    port: u16,
    sequence: u16,
    timestamp: u32,
    /// The next IP identification, and how it goes on.
    identification: u16,
    identification_step: u16,
}

const PHONE: Stream = Stream {
    v6: false,
    has_udp_sum: true,
    port: 16384,
    sequence: 65_500,
    timestamp: u32::MAX - 1_000,
    identification: 65_530,
    identification_step: 1,
};

impl Stream {
    /// The next packet.
    fn packet(&mut self, marker: bool) -> Vec<u8> {
        let packet = self.build(marker, &[self.sequence as u8; 20]);
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(160);
        self.identification = self.identification.wrapping_add(self.identification_step);
        packet
    }

    fn build(&self, marker: bool, payload: &[u8]) -> Vec<u8> {
        let udp_length = (20 + payload.len()) as u16;
        let mut rtp = vec![0x80, 18 | u8::from(marker) << 7];
        rtp.extend(self.sequence.to_be_bytes());
        rtp.extend(self.timestamp.to_be_bytes());
        rtp.extend([1, 2, 3, 4]);
        rtp.extend(payload);
        let mut udp: Vec<u8> =
            [self.port, 16384, udp_length, 0].iter().flat_map(|it| it.to_be_bytes()).collect();
        udp.extend(rtp);
        let addresses: Vec<u8> = if self.v6 { (1..=32).collect() } else { vec![10, 0, 0, 1, 10, 0, 0, 2] };
        if self.has_udp_sum || self.v6 {
            let pseudo = [&addresses[..], &[0, 17], &udp_length.to_be_bytes(), &udp].concat();
            udp[6..8].copy_from_slice(&sum(&pseudo).to_be_bytes());
        }
        let mut packet = if self.v6 {
            [&[0x60, 0, 0, 0][..], &udp_length.to_be_bytes(), &[17, 64]].concat()
        } else {
            let mut ip = [&[0x45, 0xb8][..], &(20 + udp_length).to_be_bytes()].concat();
            ip.extend(self.identification.to_be_bytes());
            ip.extend([0x40, 0, 64, 17, 0, 0]);
            ip
        };
        packet.extend(&addresses);
        if !self.v6 {
            let sum = sum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend(udp);
        packet
    }
}

/// RFC 1071, written another way than the crate's.
fn sum(bytes: &[u8]) -> u16 {
    let mut all = 0u32;
    for pair in bytes.chunks(2) {
        all += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        all = (all & 0xffff) + (all >> 16);
    }
    !(all as u16)
}

fn at(packet: usize) -> Duration {
    Duration::from_millis(packet as u64 * 20)
}

#[test]
fn forty_bytes_of_headers_become_four_and_sixty_too() {
    for v6 in [false, true] {
        let (mut stream, mut small, mut whole) =
            (Stream { v6, ..PHONE }, Compressor::default(), Decompressor::default());
        let mut crossed = 0;
        for number in 0..1000 {
            let packet = stream.packet(number == 0);
            let made = small.compress(at(number), &packet);
            assert_eq!(whole.decompress(at(number), &made).as_ref(), Ok(&packet), "{number}");
            crossed += made.len() - 20;
            if number == 100 {
                assert_eq!(made.len(), 24);
            }
        }
        let mean = crossed as f64 / 1000.0;
        assert!(mean < 4.7, "{mean} bytes in the mean, refreshes and all");
    }
}

#[test]
fn what_is_no_call_crosses_as_it_is() {
    let (mut small, mut whole) = (Compressor::default(), Decompressor::default());
    let mut stream = PHONE;
    let good = stream.packet(false);
    let mut with_options = good.clone();
    with_options[0] = 0x46;
    let mut wrong_sum = good.clone();
    wrong_sum[11] ^= 1;
    let mut fragment = good.clone();
    fragment[6] = 0x20;
    let mut tcp = good.clone();
    tcp[9] = 6;
    for packet in
        [vec![], vec![1], vec![0x45; 20], with_options, wrong_sum, fragment, tcp, good[..39].to_vec()]
    {
        let made = small.compress(at(0), &packet);
        assert_eq!(made.len(), packet.len() + 1);
        assert_eq!(whole.decompress(at(0), &made), Ok(packet));
    }
}

#[test]
fn who_came_too_late_waits_for_the_refresh() {
    let (mut stream, mut small, mut whole) = (PHONE, Compressor::default(), Decompressor::default());
    let mut first = None;
    for number in 0..400 {
        let made = small.compress(at(number), &stream.packet(false));
        if number >= 20 {
            match whole.decompress(at(number), &made) {
                Ok(_) => first = first.or(Some(number)),
                Err(reason) => assert_eq!((reason, first), (Dropped::NoContext, None)),
            }
        }
    }
    assert!(first.is_some_and(|first| first <= 260), "{first:?}");
}

#[test]
fn silence_and_identifications_of_others_cost_little_and_harm_nothing() {
    let (mut stream, mut small, mut whole) = (PHONE, Compressor::default(), Decompressor::default());
    stream.identification_step = 7919;
    let mut longest = 0;
    for number in 0..200 {
        if number == 100 {
            stream.timestamp = stream.timestamp.wrapping_add(48_000);
        }
        let packet = stream.packet(number == 100);
        let made = small.compress(at(number), &packet);
        assert_eq!(whole.decompress(at(number), &made).as_ref(), Ok(&packet), "{number}");
        if (10..100).contains(&number) || number > 110 {
            longest = longest.max(made.len() - 20);
        }
    }
    assert_eq!(longest, 6, "the identification is sent with each");
}

#[test]
fn streams_have_a_context_each_and_the_oldest_makes_room() {
    let (mut small, mut whole) = (Compressor::default(), Decompressor::default());
    let mut streams: Vec<Stream> = (0..200).map(|number| Stream { port: 20_000 + number, ..PHONE }).collect();
    for round in 0..6 {
        for stream in &mut streams[..100] {
            let packet = stream.packet(false);
            let made = small.compress(at(round), &packet);
            assert_eq!(whole.decompress(at(round), &made), Ok(packet));
            assert!(round < 5 || made.len() == 24, "{}", made.len());
        }
    }
    for stream in &mut streams[100..] {
        let packet = stream.packet(false);
        assert_eq!(whole.decompress(at(9), &small.compress(at(9), &packet)), Ok(packet));
    }
}

/// What a hop does to a packet.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Arrives,
    Lost,
    /// It is overtaken by so many.
    Late(usize),
    Twice,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Arrives),
        3 => Just(Fate::Lost),
        1 => (1usize..6).prop_map(Fate::Late),
        1 => Just(Fate::Twice),
    ]
}

proptest! {
    #[test]
    fn what_comes_out_is_what_went_in_or_nothing(
        fates in proptest::collection::vec(fate(), 1..400),
        v6: bool,
        has_udp_sum: bool,
        identification_step in prop_oneof![Just(0u16), Just(1), any::<u16>()],
        silences in proptest::collection::vec(0usize..400, 0..5),
    ) {
        let mut stream = Stream { v6, has_udp_sum, identification_step, ..PHONE };
        let (mut small, mut whole) = (Compressor::default(), Decompressor::default());
        // When each arrives, in twentieths of a second, and what it was.
        let mut arrivals = Vec::new();
        for (number, fate) in fates.iter().enumerate() {
            let silent = silences.contains(&number);
            if silent {
                stream.timestamp = stream.timestamp.wrapping_add(32_000);
            }
            let packet = stream.packet(silent);
            let made = small.compress(at(number), &packet);
            match fate {
                Fate::Arrives => arrivals.push((number, packet, made)),
                Fate::Lost => {}
                Fate::Late(by) => arrivals.push((number + by, packet, made)),
                Fate::Twice => arrivals.extend([(number, packet.clone(), made.clone()), (number, packet, made)]),
            }
        }
        arrivals.sort_by_key(|(at, ..)| *at);
        for (when, packet, made) in arrivals {
            if let Ok(out) = whole.decompress(at(when), &made) {
                prop_assert_eq!(out, packet);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Timestamps follow from numbers, or not at all (`wander`): then contexts are set up anew, and their numbers come again.
    #[test]
    fn after_a_cut_of_any_length_speech_goes_on_as_it_is_or_asks(
        (sequence, timestamp, source) in any::<(u16, u32, [u8; 4])>(),
        stride in prop_oneof![Just(80u32), Just(160), Just(320), Just(960)],
        wander in prop_oneof![3 => Just(None), 1 => (2usize..40).prop_map(Some)],
        cuts in proptest::collection::vec((1usize..=1000, 1usize..400), 1..6),
        step in prop_oneof![Just(2u64), Just(10), Just(20), Just(60)],
    ) {
        let at = |number: usize| Duration::from_millis(number as u64 * step);
        let (mut small, mut whole) = (FlowCompressor::default(), FlowDecompressor::default());
        let lost: Vec<bool> = [(0, 300)].into_iter().chain(cuts)
            .flat_map(|(lost, come)| [(true, lost), (false, come)])
            .flat_map(|(is_lost, length)| std::iter::repeat_n(is_lost, length)).collect();
        let (mut own, mut before) = (0u32, false);
        for (number, is_lost) in lost.into_iter().enumerate() {
            if wander.is_some_and(|every| number % every == 0) {
                own = own.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            }
            let mut rtp = vec![0x80, 18];
            rtp.extend(sequence.wrapping_add(number as u16).to_be_bytes());
            rtp.extend(timestamp.wrapping_add(stride * number as u32).wrapping_add(own).to_be_bytes());
            rtp.extend(source);
            rtp.extend([7; 20]);
            let made = small.compress(at(number), &rtp);
            let Some(made) = made.filter(|_| !is_lost) else { continue };
            match whole.decompress(at(number), &made) {
                Ok(out) => {
                    prop_assert_eq!(out, rtp, "{}", number);
                    before = true;
                }
                // A steady stream is understood as soon as it is there again, unless that took too long.
                Err(reason) => {
                    prop_assert_eq!(reason, Dropped::NoContext);
                    prop_assert!(before && (wander.is_some() || step >= 20), "{}", number);
                    small.refresh();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_comes_in_place_of_a_packet_ends_well(data in proptest::collection::vec(any::<u8>(), 0..600), size in 1u8..80) {
        farhop_header_compression::fuzz(&[&[size][..], &data].concat());
    }
}
