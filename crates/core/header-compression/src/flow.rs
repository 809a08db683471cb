//! One flow of datagrams, as a carrier has it: both ends know its addresses and ports, so that of the headers only RTP's is left,
//! and the twelve bytes of that become three.
//!
//! A datagram goes through the compressor for packets with headers of IP and UDP that say nothing, which are left out of what
//! crosses and put back at the other end. So is what says nothing in a flow alone: which context it is, and what follows of an
//! identification.
//!
//! ```text
//! whole       0 0 1 GEN  TS stride (4)  the datagram, as it is
//! compressed  M T 0 GEN  sequence number (2)  [timestamp (4)]  payload
//! ```

use std::time::Duration;

use crate::packet::{folded, sum};
use crate::{COMPRESSED, Compressor, Decompressor, Dropped, IDENTIFICATION, TIMESTAMP, VERBATIM};

/// IPv4's header and UDP's.
const AROUND: usize = 28;
/// What stands before whole headers of a packet: context, generation and strides.
const BEFORE: usize = 7;
/// Bytes of the timestamp's stride.
const STRIDE: usize = 4;
/// Marks whole headers: no packet of a flow has an identification to tell.
const WHOLE: u8 = IDENTIFICATION;

/// Makes the headers of one flow's datagrams small that go one way.
#[derive(Debug, Clone, Default)]
pub struct FlowCompressor(Compressor);

/// Makes them whole again. One for each flow and direction, as of the compressor.
#[derive(Debug, Clone, Default)]
pub struct FlowDecompressor(Decompressor);

impl FlowCompressor {
    /// What crosses in place of `datagram`, or `None` where it has to cross as it is; `now` never goes back.
    pub fn compress(&mut self, now: Duration, datagram: &[u8]) -> Option<Vec<u8>> {
        let made = self.0.compress(now, &packet(datagram)?);
        let (first, flags) = (*made.first()?, *made.get(1)?);
        if first == VERBATIM {
            return None;
        }
        if first & COMPRESSED == 0 {
            let stride = made.get(2..2 + STRIDE)?;
            return Some([&[WHOLE | flags], stride, made.get(BEFORE + AROUND..)?].concat());
        }
        let length = |flag, length| if flags & flag == 0 { 0 } else { length };
        let head = 4 + length(TIMESTAMP, 4);
        let payload = made.get(head + length(IDENTIFICATION, 2)..)?;
        Some([&[flags & !IDENTIFICATION], made.get(2..head)?, payload].concat())
    }

    /// The other end has not what the next would stand on: it is told anew.
    pub fn refresh(&mut self) {
        self.0.refresh();
    }
}

impl FlowDecompressor {
    /// The datagram that the compressor was given; `now` never goes back.
    ///
    /// # Errors
    /// Why it cannot be told; nothing is passed on then.
    pub fn decompress(&mut self, now: Duration, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let (flags, rest) = bytes.split_first().ok_or(Dropped::Malformed)?;
        let made = if flags & WHOLE == 0 {
            [&[COMPRESSED, *flags], rest].concat()
        } else {
            let (stride, datagram) = rest.split_at_checked(STRIDE).ok_or(Dropped::Malformed)?;
            let packet = packet(datagram).ok_or(Dropped::Malformed)?;
            [&[0, flags & !WHOLE], stride, &[0], &packet].concat()
        };
        let packet = self.0.decompress(now, &made)?;
        packet.get(AROUND..).map(<[u8]>::to_vec).ok_or(Dropped::Malformed)
    }
}

/// The datagram in a packet between nowhere and nowhere; `None` where it is too long for one.
fn packet(datagram: &[u8]) -> Option<Vec<u8>> {
    let whole = u16::try_from(datagram.len() + AROUND).ok()?;
    let mut packet = Vec::with_capacity(usize::from(whole));
    packet.extend([0x45, 0]);
    packet.extend(whole.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let header = !folded(sum(&packet));
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    packet.extend([0, 0, 0, 0]);
    packet.extend((whole - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(datagram);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
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
        let mut compressor = FlowCompressor::default();
        for datagram in [&b""[..], b"ping", &[0x81; 40], &[0x80; 11], &vec![7; 65_535]] {
            assert_eq!(compressor.compress(Duration::ZERO, datagram), None);
        }
        let mut decompressor = FlowDecompressor::default();
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
        let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
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
        let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
        for number in 0..100 {
            let (datagram, is_lost) = (rtp(number, false), number < 10);
            if number == 40 {
                compressor.refresh();
            }
            let made = compressor.compress(at(number.into()), &datagram).unwrap();
            if !is_lost {
                let came = decompressor.decompress(at(number.into()), &made);
                assert_eq!(
                    came,
                    if number < 40 { Err(Dropped::NoContext) } else { Ok(datagram) },
                    "{number}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_went_in_or_nothing(
            lost in proptest::collection::vec(any::<bool>(), 1..300),
            refreshes in proptest::collection::vec(0usize..300, 0..5),
        ) {
            let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
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
            let mut decompressor = FlowDecompressor::default();
            let _ = decompressor.decompress(Duration::ZERO, &data);
            if let Some(made) = FlowCompressor::default().compress(Duration::ZERO, &data) {
                prop_assert_eq!(FlowDecompressor::default().decompress(Duration::ZERO, &made), Ok(data));
            }
        }
    }
}
