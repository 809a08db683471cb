//! What a call takes of the link: its speech, and every header around it.

use std::net::SocketAddr;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use super::codec::Codec;

/// RFC 3550 §5.1, without contributing sources.
const RTP: u64 = 12;
/// RFC 768.
const UDP: u64 = 8;

/// The network protocol below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ip {
    /// 20 bytes (RFC 791 §3.1, without options).
    V4,
    /// 40 bytes (RFC 8200 §3).
    V6,
}

/// What the link puts around speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The network protocol of the call.
    pub ip: Ip,
    /// Where RTP, UDP and IP headers are compressed on the hop: what is left of the three.
    pub compressed: Option<Bytes>,
    /// What carries a packet over the link besides: a tunnel's headers, or the frame's of layer 2.
    pub overhead: Bytes,
}

/// The packet time is no whole number of the codec's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "packets of {} ms cannot hold whole frames of {codec}, which are {} ms long",
    packet_time.as_secs_f64() * 1e3,
    codec.frame_time().as_secs_f64() * 1e3
)]
pub struct NotWhole {
    /// Whose frames.
    pub codec: Codec,
    /// What was asked for.
    pub packet_time: Duration,
}

impl Hop {
    /// IPv4 with whole headers and nothing around them.
    pub const PLAIN: Hop = Hop { ip: Ip::V4, compressed: None, overhead: Bytes(0) };

    /// The same for a call whose packets go there. Where one of these addresses is of IPv6, so are the headers.
    #[must_use]
    pub fn of_media(self, media: &[SocketAddr]) -> Hop {
        if media.iter().any(SocketAddr::is_ipv6) { Hop { ip: Ip::V6, ..self } } else { self }
    }

    /// Bytes around the speech of a packet.
    pub(super) fn around(&self) -> u64 {
        let ip = match self.ip {
            Ip::V4 => 20,
            Ip::V6 => 40,
        };
        self.compressed.map_or(RTP + UDP + ip, |left| left.0) + self.overhead.0
    }
}

/// The bytes of one packet of a call, as the link carries them.
///
/// # Errors
/// The packet time is no whole number of the codec's frames.
pub fn packet(codec: Codec, packet_time: Duration, hop: &Hop) -> Result<Bytes, NotWhole> {
    let payload = codec.payload(packet_time).ok_or(NotWhole { codec, packet_time })?;
    Ok(Bytes(payload + hop.around()))
}

/// The rate of a call in one direction, rounded up to whole bits.
///
/// # Errors
/// As [`packet`].
pub fn rate(codec: Codec, packet_time: Duration, hop: &Hop) -> Result<BitRate, NotWhole> {
    let bits = u128::from(packet(codec, packet_time, hop)?.0) * 8 * 1_000_000_000;
    Ok(BitRate(u64::try_from(bits.div_ceil(packet_time.as_nanos())).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kbit(codec: Codec, ms: u64, hop: Hop) -> f64 {
        rate(codec, Duration::from_millis(ms), &hop).unwrap().0 as f64 / 1e3
    }

    #[test]
    fn every_header_is_counted() {
        // 20 bytes of speech and 40 of headers, 50 times a second.
        assert_eq!(kbit(Codec::G729, 20, Hop::PLAIN), 24.0);
        assert_eq!(kbit(Codec::G711, 20, Hop::PLAIN), 80.0);
        assert_eq!(kbit(Codec::G729, 20, Hop { ip: Ip::V6, ..Hop::PLAIN }), 32.0);
        assert_eq!(kbit(Codec::G729, 20, Hop { overhead: Bytes(30), ..Hop::PLAIN }), 36.0);
        // Compressed, near the 8 kbit/s that BACOPT (§4) has for a call.
        assert_eq!(kbit(Codec::G729, 20, Hop { compressed: Some(Bytes(4)), ..Hop::PLAIN }), 9.6);
        assert_eq!(kbit(Codec::G723, 30, Hop::PLAIN), 17.067);
    }

    #[test]
    fn a_packet_time_that_cannot_be_says_so() {
        let error = rate(Codec::G729, Duration::from_millis(25), &Hop::PLAIN).unwrap_err();
        assert_eq!(
            error.to_string(),
            "packets of 25 ms cannot hold whole frames of G.729, which are 10 ms long"
        );
    }

    proptest! {
        #[test]
        fn longer_packets_and_smaller_headers_never_cost_more(frames in 1u32..20, left in 1u64..40, more in 0u64..60) {
            let (short, long) = (Duration::from_millis(10) * frames, Duration::from_millis(10) * (frames + 1));
            let plain = Hop { overhead: Bytes(more), ..Hop::PLAIN };
            let compressed = Hop { compressed: Some(Bytes(left)), ..plain };
            let of = |time, hop: &Hop| rate(Codec::G729, time, hop).unwrap();
            prop_assert!(of(long, &plain) < of(short, &plain));
            prop_assert!(of(short, &compressed) <= of(short, &plain));
            prop_assert!(of(short, &compressed) > BitRate::kbit(8));
        }
    }
}
