//! Calls across a hop that loses and reorders: what comes out is what went in, or nothing.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::time::Duration;

use farhop_header_compression::{Compressor, Decompressor, Dropped};
use proptest::prelude::*;

/// A stream as an IP telephone sends it.
#[derive(Debug, Clone, Copy)]
struct Stream {
    sequence: u16,
    timestamp: u32,
}

/// One whose numbers come round soon.
const PHONE: Stream = Stream { sequence: 65_500, timestamp: u32::MAX - 1_000 };

impl Stream {
    /// The next datagram.
    fn next(&mut self, marker: bool) -> Vec<u8> {
        let mut rtp = vec![0x80, 18 | u8::from(marker) << 7];
        rtp.extend(self.sequence.to_be_bytes());
        rtp.extend(self.timestamp.to_be_bytes());
        rtp.extend([1, 2, 3, 4]);
        rtp.extend([self.sequence as u8; 20]);
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(160);
        rtp
    }
}

fn at(datagram: usize) -> Duration {
    Duration::from_millis(datagram as u64 * 20)
}

#[test]
fn who_came_too_late_waits_for_whole_headers() {
    let (mut stream, mut small, mut whole) = (PHONE, Compressor::default(), Decompressor::default());
    let mut first = None;
    for number in 0..400 {
        let made = small.compress(at(number), &stream.next(false)).unwrap();
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
fn silence_costs_little_and_harms_nothing() {
    let (mut stream, mut small, mut whole) = (PHONE, Compressor::default(), Decompressor::default());
    let mut crossed = 0;
    for number in 0..200 {
        if number == 100 {
            stream.timestamp = stream.timestamp.wrapping_add(48_000);
        }
        let datagram = stream.next(number == 100);
        let made = small.compress(at(number), &datagram).unwrap();
        assert_eq!(whole.decompress(at(number), &made), Ok(datagram), "{number}");
        crossed += made.len() - 20;
    }
    assert!(crossed <= 200 * 3 + 10 * 14, "{crossed}");
}

/// What a hop does to a datagram.
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
        silences in proptest::collection::vec(0usize..400, 0..5),
    ) {
        let mut stream = PHONE;
        let (mut small, mut whole) = (Compressor::default(), Decompressor::default());
        // When each arrives, in twentieths of a second, and what it was.
        let mut arrivals = Vec::new();
        for (number, fate) in fates.iter().enumerate() {
            let silent = silences.contains(&number);
            if silent {
                stream.timestamp = stream.timestamp.wrapping_add(32_000);
            }
            let datagram = stream.next(silent);
            let Some(made) = small.compress(at(number), &datagram) else { continue };
            match fate {
                Fate::Arrives => arrivals.push((number, datagram, made)),
                Fate::Lost => {}
                Fate::Late(by) => arrivals.push((number + by, datagram, made)),
                Fate::Twice => arrivals.extend([(number, datagram.clone(), made.clone()), (number, datagram, made)]),
            }
        }
        arrivals.sort_by_key(|(at, ..)| *at);
        for (when, datagram, made) in arrivals {
            if let Ok(out) = whole.decompress(at(when), &made) {
                prop_assert_eq!(out, datagram);
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
        let (mut small, mut whole) = (Compressor::default(), Decompressor::default());
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
    fn whatever_comes_in_place_of_a_datagram_ends_well(data in proptest::collection::vec(any::<u8>(), 0..600), size in 1u8..80) {
        farhop_header_compression::fuzz(&[&[size][..], &data].concat());
    }
}
