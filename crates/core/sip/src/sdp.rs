//! What SDP says of speech: where it is to be sent, and by which codecs.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use farhop_diffserv::calls::Codec;

/// Addresses of speech that are kept of one description.
pub(crate) const MOST_MEDIA: usize = 4;
/// Lines that are read.
const MOST_LINES: usize = 500;
/// Codecs that are kept of one stream of speech.
const MOST_CODECS: usize = 32;

/// The speech that a description offers or accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// Its streams of speech; none that is refused.
    pub audio: Vec<Audio>,
}

/// A stream of speech.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// Where it is to be sent.
    pub to: SocketAddr,
    /// Its codecs as far as they are known here, the preferred one first.
    pub codecs: Vec<Codec>,
    /// How long the speech of a packet is to be, where it is said (RFC 8866 §6.4).
    pub packet_time: Option<Duration>,
}

/// A stream while its lines are read.
struct Reading {
    port: u16,
    address: Option<IpAddr>,
    formats: Vec<u8>,
    maps: Vec<(u8, Codec)>,
    packet_time: Option<Duration>,
}

impl Session {
    /// Reads a description; what is not understood of it is left out.
    pub fn read(text: &str) -> Session {
        let mut session = Session::default();
        // RFC 8866 §5.7: the session's address is that of each stream which has none of its own.
        let mut address = None;
        let mut reading: Option<Reading> = None;
        for line in text.split('\n').map(|line| line.trim_end_matches('\r')).take(MOST_LINES) {
            let Some((kind, value)) = line.split_once('=') else { continue };
            match (kind, &mut reading) {
                ("m", _) => {
                    session.add(reading.take(), address);
                    // Of others than speech no line counts until the next.
                    reading = Some(stream(value).unwrap_or_else(Reading::none));
                }
                ("c", None) => address = connection(value),
                ("c", Some(reading)) => reading.address = connection(value),
                ("a", Some(reading)) => reading.attribute(value),
                _ => {}
            }
        }
        session.add(reading, address);
        session
    }

    fn add(&mut self, reading: Option<Reading>, address: Option<IpAddr>) {
        let Some(reading) = reading else { return };
        // §5.14: port 0 refuses a stream. RFC 3264 §8.4: so once was an address of none put on hold.
        let address = reading
            .address
            .or(address)
            .filter(|address| !address.is_unspecified() && !address.is_multicast());
        if let Some(address) = address
            && reading.port > 0
            && self.audio.len() < MOST_MEDIA
        {
            let to = SocketAddr::new(address, reading.port);
            self.audio.push(Audio { to, codecs: reading.codecs(), packet_time: reading.packet_time });
        }
    }
}

impl Reading {
    fn none() -> Reading {
        Reading { port: 0, address: None, formats: Vec::new(), maps: Vec::new(), packet_time: None }
    }

    fn attribute(&mut self, value: &str) {
        if let Some(map) = value.strip_prefix("rtpmap:") {
            // 97 iLBC/8000
            let Some((format, encoding)) = map.trim().split_once(' ') else { return };
            let name = encoding.trim().split('/').next().unwrap_or_default();
            if let (Ok(format), Ok(codec)) = (format.parse(), name.parse())
                && self.maps.len() < MOST_CODECS
            {
                self.maps.push((format, codec));
            }
        } else if let Some(time) = value.strip_prefix("ptime:") {
            let time = time.trim().parse().ok().filter(|ms| (1..=200).contains(ms));
            self.packet_time = time.map(Duration::from_millis);
        }
    }

    fn codecs(&self) -> Vec<Codec> {
        let of = |format: &u8| {
            let mapped = self.maps.iter().find(|(of, _)| of == format).map(|(_, codec)| *codec);
            mapped.or_else(|| well_known(*format))
        };
        let mut codecs: Vec<Codec> = self.formats.iter().filter_map(of).collect();
        codecs.dedup();
        codecs
    }
}

/// `audio 49170 RTP/AVP 0 8 97`
fn stream(value: &str) -> Option<Reading> {
    let mut words = value.split_whitespace();
    (words.next()? == "audio").then_some(())?;
    let port = words.next()?.split('/').next()?.parse().ok()?;
    // Of whatever profile: RTP/AVP, RTP/SAVP, UDP/TLS/RTP/SAVPF.
    words.next().filter(|profile| profile.contains("RTP/"))?;
    let formats = words.filter_map(|format| format.parse().ok()).take(MOST_CODECS).collect();
    Some(Reading { port, formats, ..Reading::none() })
}

/// `IN IP4 224.2.36.42/127`
fn connection(value: &str) -> Option<IpAddr> {
    let mut words = value.split_whitespace();
    (words.next()? == "IN").then_some(())?;
    let family = words.next()?;
    let address: IpAddr = words.next()?.split('/').next()?.parse().ok()?;
    (family == if address.is_ipv4() { "IP4" } else { "IP6" }).then_some(address)
}

/// RFC 3551 §6, tables 4 and 5.
fn well_known(format: u8) -> Option<Codec> {
    match format {
        0 | 8 => Some(Codec::G711),
        2 => Some(Codec::G726),
        3 => Some(Codec::Gsm),
        4 => Some(Codec::G723),
        9 => Some(Codec::G722),
        18 => Some(Codec::G729),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speech_is_found_among_other_streams_with_its_codecs() {
        let session = Session::read(
            "v=0\r\no=alice 1 1 IN IP4 host\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n\
             m=audio 49170 RTP/AVP 97 18 0 101\r\na=rtpmap:97 iLBC/8000\r\na=rtpmap:101 telephone-event/8000\r\na=ptime:30\r\n\
             m=video 51372 RTP/AVP 31\r\na=ptime:90\r\n\
             m=audio 0 RTP/AVP 0\r\n\
             m=audio 4000/2 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP6 2001:db8::1\r\na=rtpmap:111 opus/48000/2\r\n",
        );
        let first = Audio {
            to: "192.0.2.7:49170".parse().unwrap(),
            codecs: vec![Codec::Ilbc, Codec::G729, Codec::G711],
            packet_time: Some(Duration::from_millis(30)),
        };
        let last =
            Audio { to: "[2001:db8::1]:4000".parse().unwrap(), codecs: vec![Codec::OPUS], packet_time: None };
        assert_eq!(session.audio, [first, last]);
    }

    #[test]
    fn what_can_be_sent_nowhere_is_no_speech() {
        for text in [
            "",
            "m=audio 4000 RTP/AVP 0",
            "c=IN IP4 0.0.0.0\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 239.1.1.1/127\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 192.0.2.1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 192.0.2.1\nm=audio 70000 RTP/AVP 0",
            "c=IN IP4 192.0.2.1\nm=audio 4000 tcp 0",
        ] {
            assert_eq!(Session::read(text), Session::default(), "{text}");
        }
    }
}
