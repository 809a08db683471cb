//! One flow: what becomes of its datagrams, and of what is none of RTP's.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn rtp(number: u16, marker: bool) -> Vec<u8> {
    rtp_at(number, u32::from(number) * 160, marker)
}

fn rtp_at(number: u16, timestamp: u32, marker: bool) -> Vec<u8> {
    let mut datagram = vec![0x80, 18 | u8::from(marker) << 7];
    datagram.extend(number.to_be_bytes());
    datagram.extend(timestamp.to_be_bytes());
    datagram.extend([1, 2, 3, 4]);
    datagram.extend([number as u8; 20]);
    datagram
}

fn at(number: usize) -> Duration {
    Duration::from_millis(number as u64 * 20)
}

#[test]
fn twelve_bytes_of_headers_become_three() {
    let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
    let mut crossed = 0;
    for number in 0..250 {
        let datagram = rtp(number, number == 100);
        let made = compressor.compress(at(number.into()), &datagram).unwrap();
        assert!(number < 10 || made.len() == 23, "{number}: {}", made.len());
        crossed += made.len();
        assert_eq!(decompressor.decompress(at(number.into()), &made), Ok(datagram), "{number}");
    }
    // Five seconds: 20 bytes of speech and 3 each, and whole headers a few times.
    assert!(crossed <= 250 * 23 + 10 * 14, "{crossed}");
    // 24 kbit/s with all headers of IPv4, less than 10 as a flow of a carrier.
    assert!(crossed * 8 / 5 < 10_000);
}

#[test]
fn what_is_no_rtp_crosses_as_it_is() {
    let mut compressor = Compressor::default();
    for datagram in [&b""[..], b"ping", &[0x81; 40], &[0x80; 11], &vec![7; 65_535]] {
        assert_eq!(compressor.compress(Duration::ZERO, datagram), None);
    }
    let mut decompressor = Decompressor::default();
    assert_eq!(decompressor.decompress(Duration::ZERO, b""), Err(Dropped::Malformed));
    assert_eq!(decompressor.decompress(Duration::ZERO, &[0, 0, 0, 0]), Err(Dropped::NoContext));
    assert_eq!(decompressor.decompress(Duration::ZERO, &[WHOLE, 1, 2]), Err(Dropped::Malformed));
    assert_eq!(
        decompressor.decompress(Duration::ZERO, &[WHOLE | 0x80, 0, 0, 0, 160, 1, 2]),
        Err(Dropped::Malformed)
    );
}

/// After losses before the compressor, with timestamps that follow from nothing, it tells all of them.
#[test]
fn a_stream_that_follows_from_nothing_takes_its_timestamp_with_it_and_no_more() {
    let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
    let numbers = (0..10).chain([20, 30, 40]).chain(41..60);
    for number in numbers {
        let own = if number < 10 { 0 } else { u32::from(number).pow(2) };
        let datagram = rtp_at(number, u32::from(number) * 160 + own, false);
        let made = compressor.compress(at(number.into()), &datagram).unwrap();
        assert_eq!(decompressor.decompress(at(number.into()), &made), Ok(datagram), "{number}");
        assert!(number < 55 || made.len() == 27, "{number}: {}", made.len());
    }
}

#[test]
fn who_has_lost_all_whole_headers_hears_again_after_a_refresh() {
    let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
    for number in 0..100 {
        let (datagram, is_lost) = (rtp(number, false), number < 10);
        if number == 40 {
            compressor.refresh();
        }
        let made = compressor.compress(at(number.into()), &datagram).unwrap();
        if !is_lost {
            let came = decompressor.decompress(at(number.into()), &made);
            assert_eq!(came, if number < 40 { Err(Dropped::NoContext) } else { Ok(datagram) }, "{number}");
        }
    }
}

proptest! {
    #[test]
    fn what_comes_out_is_what_went_in_or_nothing(
        lost in proptest::collection::vec(any::<bool>(), 1..300),
        refreshes in proptest::collection::vec(0usize..300, 0..5),
    ) {
        let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
        for (number, lost) in lost.into_iter().enumerate() {
            if refreshes.contains(&number) {
                compressor.refresh();
            }
            let datagram = rtp(65_400u16.wrapping_add(number as u16), number % 7 == 0);
            let made = compressor.compress(at(number), &datagram);
            if !lost && let Ok(came) = decompressor.decompress(at(number), &made.unwrap()) {
                prop_assert_eq!(came, datagram);
            }
        }
    }

    #[test]
    fn whatever_comes_ends_well(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut decompressor = Decompressor::default();
        let _ = decompressor.decompress(Duration::ZERO, &data);
        if let Some(made) = Compressor::default().compress(Duration::ZERO, &data) {
            prop_assert_eq!(Decompressor::default().decompress(Duration::ZERO, &made), Ok(data));
        }
    }
}
