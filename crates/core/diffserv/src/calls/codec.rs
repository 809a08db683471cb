//! Codecs of speech: how many bytes a packet has of them, and what they cost in quality.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A codec of speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// ITU-T G.711, 64 kbit/s: PCMU and PCMA.
    G711,
    /// ITU-T G.722, 64 kbit/s, wideband.
    G722,
    /// ITU-T G.723.1 at 6.3 kbit/s: 24 bytes each 30 ms.
    G723,
    /// ITU-T G.726 at 32 kbit/s.
    G726,
    /// ITU-T G.729, 8 kbit/s: 10 bytes each 10 ms.
    G729,
    /// GSM full rate: 33 bytes each 20 ms.
    Gsm,
    /// iLBC at 15.2 kbit/s: 38 bytes each 20 ms (RFC 3952 §3).
    Ilbc,
    /// Opus (RFC 6716) at a rate in bits/s, counted as if it were constant.
    Opus(u32),
}

/// A text that names no codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no codec known here; there are G.711, G.722, G.723.1, G.726, G.729, GSM, iLBC and Opus (Opus/24000 for its rate \
     in bits/s)"
)]
pub struct UnknownCodec(pub String);

impl Codec {
    /// Opus for speech where its rate is not said: wideband (RFC 7587 §3.1.1 has 16 to 20 kbit/s for it, 28 to 40 for fullband).
    pub const OPUS: Codec = Codec::Opus(24_000);

    /// Bytes of a frame and its length in time: a packet holds whole ones. Sample by sample codecs count as 1 ms.
    fn frame(self) -> (u64, Duration) {
        match self {
            Codec::G711 | Codec::G722 => (8, Duration::from_millis(1)),
            Codec::G723 => (24, Duration::from_millis(30)),
            Codec::G726 => (4, Duration::from_millis(1)),
            Codec::G729 => (10, Duration::from_millis(10)),
            Codec::Gsm => (33, Duration::from_millis(20)),
            Codec::Ilbc => (38, Duration::from_millis(20)),
            Codec::Opus(rate) => (u64::from(rate).div_ceil(3_200), Duration::from_micros(2_500)),
        }
    }

    /// The length of its frames.
    pub fn frame_time(self) -> Duration {
        self.frame().1
    }

    /// What a packet is usually long (RFC 3551 §4.5): 20 ms, or one frame where that is longer.
    pub fn usual_packet_time(self) -> Duration {
        self.frame_time().max(Duration::from_millis(20))
    }

    /// Bytes of speech in a packet of this length; `None` where it is not a whole number of frames, or none.
    pub fn payload(self, packet_time: Duration) -> Option<u64> {
        let (bytes, time) = self.frame();
        let (packet, frame) = (packet_time.as_micros(), time.as_micros());
        if packet == 0 || !packet.is_multiple_of(frame) {
            return None;
        }
        match self {
            // Its bytes are not bound to frames of 2.5 ms: rounded up once a packet.
            Codec::Opus(rate) => u64::try_from((u128::from(rate) * packet).div_ceil(8_000_000)).ok(),
            _ => u64::try_from(packet / frame).ok().map(|frames| frames * bytes),
        }
    }

    /// The equipment impairment factor and the packet-loss robustness factor (ITU-T G.113 Appendix I), where they are
    /// published for narrowband speech; G.722 and Opus have other scales.
    pub fn impairment(self) -> Option<(f64, f64)> {
        match self {
            Codec::G711 => Some((0.0, 25.1)), // with Appendix I's concealment
            Codec::G723 => Some((15.0, 16.1)),
            Codec::G729 => Some((11.0, 19.0)), // G.729A with VAD
            Codec::G722 | Codec::G726 | Codec::Gsm | Codec::Ilbc | Codec::Opus(_) => None,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::G711 => f.write_str("G.711"),
            Codec::G722 => f.write_str("G.722"),
            Codec::G723 => f.write_str("G.723.1"),
            Codec::G726 => f.write_str("G.726"),
            Codec::G729 => f.write_str("G.729"),
            Codec::Gsm => f.write_str("GSM"),
            Codec::Ilbc => f.write_str("iLBC"),
            Codec::Opus(rate) => write!(f, "Opus/{rate}"),
        }
    }
}

/// As people write it, or as SDP names it (RFC 3551 §6).
impl FromStr for Codec {
    type Err = UnknownCodec;

    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        let unknown = || UnknownCodec(text.into());
        let word = text.trim().to_ascii_lowercase();
        Ok(match &*word {
            "g.711" | "g711" | "pcmu" | "pcma" => Codec::G711,
            "g.722" | "g722" => Codec::G722,
            "g.723.1" | "g.723" | "g723" => Codec::G723,
            "g.726" | "g726" | "g726-32" => Codec::G726,
            "g.729" | "g729" | "g.729a" | "g729a" => Codec::G729,
            "gsm" => Codec::Gsm,
            "ilbc" => Codec::Ilbc,
            "opus" => Codec::OPUS,
            other => {
                let rate = other.strip_prefix("opus/").ok_or_else(unknown)?;
                let digits = !rate.is_empty() && rate.bytes().all(|byte| byte.is_ascii_digit());
                let rate = rate.parse().ok().filter(|rate| digits && (6_000..=510_000).contains(rate));
                Codec::Opus(rate.ok_or_else(unknown)?) // RFC 6716 §2.1.1: from 6 to 510 kbit/s
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Codec; 8] = [
        Codec::G711,
        Codec::G722,
        Codec::G723,
        Codec::G726,
        Codec::G729,
        Codec::Gsm,
        Codec::Ilbc,
        Codec::OPUS,
    ];

    #[test]
    fn a_packet_holds_whole_frames() {
        let payload = |codec: Codec, ms| codec.payload(Duration::from_millis(ms));
        assert_eq!(payload(Codec::G711, 20), Some(160));
        assert_eq!(payload(Codec::G729, 20), Some(20));
        assert_eq!(payload(Codec::G729, 30), Some(30));
        assert_eq!(payload(Codec::G723, 30), Some(24));
        assert_eq!(payload(Codec::Gsm, 20), Some(33));
        assert_eq!(payload(Codec::Opus(24_000), 20), Some(60));
        assert_eq!(payload(Codec::Opus(6_000), 10), Some(8), "7.5 bytes are 8");
        for (codec, ms) in [(Codec::G729, 15), (Codec::G723, 20), (Codec::Gsm, 30), (Codec::G711, 0)] {
            assert_eq!(payload(codec, ms), None, "{codec} at {ms} ms");
        }
    }

    #[test]
    fn codecs_read_as_they_are_written_and_as_sdp_has_them() {
        for codec in ALL {
            assert_eq!(codec.to_string().parse(), Ok(codec));
            assert!(codec.payload(codec.usual_packet_time()).is_some_and(|bytes| bytes > 0), "{codec}");
        }
        assert_eq!(("PCMA".parse(), "opus".parse()), (Ok(Codec::G711), Ok(Codec::OPUS)));
        for text in ["", "g.728", "opus/", "opus/+24000", "opus/5999", "opus/510001"] {
            assert!(text.parse::<Codec>().is_err(), "{text}");
        }
    }
}
