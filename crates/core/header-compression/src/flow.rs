//! One flow of datagrams, as a carrier has it: both ends know its addresses and ports, so that of the headers only RTP's is left,
//! and the twelve bytes of that become four. What is no RTP takes one byte more.
//!
//! A datagram goes through the compressor for packets with headers of IP and UDP that say nothing, which are left out of what
//! crosses and put back at the other end.

use std::time::Duration;

use crate::packet::{folded, sum};
use crate::{COMPRESSED, Compressor, Decompressor, Dropped, VERBATIM};

/// IPv4's header and UDP's.
const AROUND: usize = 28;
/// What stands before whole headers: context, generation and strides.
const BEFORE: usize = 7;

/// Makes the headers of one flow's datagrams small that go one way.
#[derive(Debug, Clone, Default)]
pub struct FlowCompressor(Compressor);

/// Makes them whole again. One for each flow and direction, as of the compressor.
#[derive(Debug, Clone, Default)]
pub struct FlowDecompressor(Decompressor);

impl FlowCompressor {
    /// What crosses in place of `datagram`; `now` never goes back.
    pub fn compress(&mut self, now: Duration, datagram: &[u8]) -> Vec<u8> {
        let Some(packet) = packet(datagram) else { return [&[VERBATIM][..], datagram].concat() };
        let made = self.0.compress(now, &packet);
        match made.first() {
            Some(first) if first & COMPRESSED != 0 => made,
            Some(&VERBATIM) | None => [&[VERBATIM][..], datagram].concat(),
            Some(_) => [&made[..BEFORE], &made[BEFORE + AROUND..]].concat(),
        }
    }
}

impl FlowDecompressor {
    /// The datagram that the compressor was given.
    ///
    /// # Errors
    /// Why it cannot be told; nothing is passed on then.
    pub fn decompress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let (first, rest) = bytes.split_first().ok_or(Dropped::Malformed)?;
        if *first == VERBATIM {
            return Ok(rest.to_vec());
        }
        let packet = if first & COMPRESSED != 0 {
            self.0.decompress(bytes)?
        } else {
            let (before, datagram) = bytes.split_at_checked(BEFORE).ok_or(Dropped::Malformed)?;
            let packet = packet(datagram).ok_or(Dropped::Malformed)?;
            self.0.decompress(&[before, &packet].concat())?
        };
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
        let mut datagram = vec![0x80, 18 | u8::from(marker) << 7];
        datagram.extend(number.to_be_bytes());
        datagram.extend((u32::from(number) * 160).to_be_bytes());
        datagram.extend([1, 2, 3, 4]);
        datagram.extend([number as u8; 20]);
        datagram
    }

    fn at(number: usize) -> Duration {
        Duration::from_millis(number as u64 * 20)
    }

    #[test]
    fn twelve_bytes_of_headers_become_four() {
        let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
        let mut crossed = 0;
        for number in 0..250 {
            let datagram = rtp(number, number == 100);
            let made = compressor.compress(at(number.into()), &datagram);
            crossed += made.len();
            assert_eq!(decompressor.decompress(&made), Ok(datagram), "{number}");
        }
        // Five seconds: 20 bytes of speech and 4 each, and whole headers a few times.
        assert!(crossed <= 250 * 24 + 10 * 15, "{crossed}");
        // 24 kbit/s with all headers of IPv4, less than 10 as a flow of a carrier.
        assert!(crossed * 8 / 5 < 10_000);
    }

    #[test]
    fn what_is_no_rtp_takes_a_byte_more() {
        let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
        for datagram in [&b""[..], b"ping", &[0x81; 40], &[0x80; 11], &vec![7; 65_535]] {
            let made = compressor.compress(Duration::ZERO, datagram);
            assert_eq!(made.len(), datagram.len() + 1);
            assert_eq!(decompressor.decompress(&made).as_deref(), Ok(datagram));
        }
        assert_eq!(decompressor.decompress(b""), Err(Dropped::Malformed));
        assert_eq!(decompressor.decompress(&[0x80, 0, 0, 0]), Err(Dropped::NoContext));
        assert_eq!(decompressor.decompress(&[0, 1, 2]), Err(Dropped::Malformed));
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_went_in_or_nothing(lost in proptest::collection::vec(any::<bool>(), 1..300)) {
            let (mut compressor, mut decompressor) = (FlowCompressor::default(), FlowDecompressor::default());
            for (number, lost) in lost.into_iter().enumerate() {
                let datagram = rtp(65_400u16.wrapping_add(number as u16), number % 7 == 0);
                let made = compressor.compress(at(number), &datagram);
                if !lost && let Ok(came) = decompressor.decompress(&made) {
                    prop_assert_eq!(came, datagram);
                }
            }
        }

        #[test]
        fn whatever_comes_ends_well(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decompressor = FlowDecompressor::default();
            let _ = decompressor.decompress(&data);
            let made = FlowCompressor::default().compress(Duration::ZERO, &data);
            prop_assert_eq!(FlowDecompressor::default().decompress(&made), Ok(data));
        }
    }
}
