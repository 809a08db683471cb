//! What SDP says of speech: where it is to be sent, and by which codecs.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use farhop_diffserv::calls::Codec;

/// Streams of speech that are kept of one description.
const MOST_AUDIO: usize = 8;
/// Lines that are read.
const MOST_LINES: usize = 500;
/// Codecs that are kept of one stream of speech.
const MOST_CODECS: usize = 32;

/// The speech that a description offers or accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// Its streams of speech in their order, by which an answer refers to its offer (RFC 3264 §6); `None` for one that is refused,
    /// or that nothing is to be sent in.
    pub audio: Vec<Option<Audio>>,
}

/// A stream of speech.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// Where it is to be sent; `None` where that is a host by name, which is not resolved here.
    pub to: Option<SocketAddr>,
    /// Its codecs as far as they are known here, the preferred one first.
    pub codecs: Vec<Codec>,
    /// How long the speech of a packet is to be, where it is said (RFC 8866 §6.4).
    pub packet_time: Option<Duration>,
    /// Whether its packets bear what proves them true (RFC 3711).
    pub is_secured: bool,
}

/// Where `c=` says that streams are to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    At(IpAddr),
    Named,
    /// Nowhere that speech could go to.
    Nowhere,
}

/// A stream while its lines are read.
struct Reading {
    /// Of others than speech no line counts until the next.
    is_speech: bool,
    port: u16,
    host: Option<Host>,
    is_active: Option<bool>,
    formats: Vec<u8>,
    maps: Vec<(u8, Codec)>,
    packet_time: Option<Duration>,
    is_secured: bool,
}

/// What is said before the first stream holds for each that says nothing else (RFC 8866 §5.7, §6.7).
struct Usual {
    host: Host,
    is_active: bool,
}

impl Session {
    /// Reads a description; what is not understood of it is left out.
    pub fn read(text: &str) -> Session {
        let mut session = Session::default();
        let mut usual = Usual { host: Host::Nowhere, is_active: true };
        let mut reading: Option<Reading> = None;
        for line in text.split('\n').map(|line| line.trim_end_matches('\r')).take(MOST_LINES) {
            let Some((kind, value)) = line.split_once('=') else { continue };
            match (kind, &mut reading) {
                ("m", _) => {
                    session.add(reading.take(), &usual);
                    reading = Some(Reading::begin(value));
                }
                ("c", None) => usual.host = host(value),
                ("c", Some(reading)) => reading.host = Some(host(value)),
                ("a", None) => usual.is_active = direction(value).unwrap_or(usual.is_active),
                ("a", Some(reading)) => reading.attribute(value),
                _ => {}
            }
        }
        session.add(reading, &usual);
        session
    }

    fn add(&mut self, reading: Option<Reading>, usual: &Usual) {
        if let Some(reading) = reading.filter(|it| it.is_speech && self.audio.len() < MOST_AUDIO) {
            self.audio.push(reading.audio(usual));
        }
    }
}

impl Reading {
    /// `audio 49170 RTP/AVP 0 8 97`
    fn begin(value: &str) -> Reading {
        let mut words = value.split_whitespace();
        let is_speech = words.next() == Some("audio");
        let port = words.next().and_then(|it| it.split('/').next()?.parse().ok());
        // Of whatever profile: RTP/AVP, RTP/SAVP, UDP/TLS/RTP/SAVPF. By another no speech is sent that is known here.
        let profile = words.next().filter(|profile| profile.contains("RTP/"));
        let formats = words.filter_map(|format| format.parse().ok()).take(MOST_CODECS).collect();
        Reading {
            is_speech,
            port: profile.and(port).unwrap_or(0),
            host: None,
            is_active: None,
            formats,
            maps: Vec::new(),
            packet_time: None,
            is_secured: profile.is_some_and(|profile| profile.contains("RTP/SAVP")),
        }
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
        } else if let Some(is_active) = direction(value) {
            self.is_active = Some(is_active);
        }
    }

    /// What it has become; `None` where nothing is sent in it.
    fn audio(self, usual: &Usual) -> Option<Audio> {
        // RFC 8866 §5.14: port 0 refuses a stream.
        let is_active = self.port > 0 && self.is_active.unwrap_or(usual.is_active);
        let to = match self.host.unwrap_or(usual.host) {
            _ if !is_active => return None,
            Host::At(address) => Some(SocketAddr::new(address, self.port)),
            Host::Named => None,
            Host::Nowhere => return None,
        };
        let codecs = self.codecs();
        Some(Audio { to, codecs, packet_time: self.packet_time, is_secured: self.is_secured })
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

/// Whether anything is sent in a stream, where an attribute says so (RFC 8866 §6.7). What is on hold may have music.
fn direction(attribute: &str) -> Option<bool> {
    match attribute.trim() {
        "inactive" => Some(false),
        "sendrecv" | "sendonly" | "recvonly" => Some(true),
        _ => None,
    }
}

/// `IN IP4 224.2.36.42/127`
fn host(value: &str) -> Host {
    let mut words = value.split_whitespace();
    let (net, family, host) = (words.next(), words.next(), words.next());
    let host = host.and_then(|host| host.split('/').next()).unwrap_or_default();
    match (net, family, host.parse::<IpAddr>()) {
        (Some("IN"), _, Ok(address)) if !is_beyond(address) => Host::Nowhere,
        (Some("IN"), Some("IP4"), Ok(address)) if address.is_ipv4() => Host::At(address),
        (Some("IN"), Some("IP6"), Ok(address)) if address.is_ipv6() => Host::At(address),
        // RFC 8866 §5.7: a host may be named, too.
        (Some("IN"), Some("IP4" | "IP6"), Err(_)) if is_name(host) => Host::Named,
        _ => Host::Nowhere,
    }
}

/// Whether packets to an address can leave the machine that they are made on, and its network, for one host: else no speech crosses a link to
/// there. 0.0.0.0 once said what is on hold (RFC 3264 §8.4).
fn is_beyond(address: IpAddr) -> bool {
    match address.to_canonical() {
        // RFC 6890 §2.2.2: this network, loopback, link-local, reserved with the limited broadcast.
        IpAddr::V4(it) => {
            let first = it.octets()[0];
            first != 0 && first < 224 && !it.is_loopback() && !it.is_link_local()
        }
        // RFC 6890 §2.2.3.
        IpAddr::V6(it) => {
            !(it.is_unspecified() || it.is_loopback() || it.is_multicast() || it.is_unicast_link_local())
        }
    }
}

fn is_name(host: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !host.is_empty() && host.bytes().all(is_part)
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

    fn audio(to: &str, codecs: &[Codec]) -> Audio {
        Audio { to: to.parse().ok(), codecs: codecs.to_vec(), packet_time: None, is_secured: false }
    }

    #[test]
    fn speech_is_found_among_other_streams_with_its_codecs() {
        let session = Session::read(
            "v=0\r\no=alice 1 1 IN IP4 host\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n\
             m=audio 49170 RTP/AVP 97 18 0 101\r\na=rtpmap:97 iLBC/8000\r\na=rtpmap:101 telephone-event/8000\r\na=ptime:30\r\n\
             m=video 51372 RTP/AVP 31\r\na=ptime:90\r\n\
             m=audio 0 RTP/AVP 0\r\n\
             m=audio 4000/2 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP6 2001:db8::1\r\na=rtpmap:111 opus/48000/2\r\n",
        );
        let first = audio("192.0.2.7:49170", &[Codec::Ilbc, Codec::G729, Codec::G711]);
        let last = Audio { is_secured: true, ..audio("[2001:db8::1]:4000", &[Codec::OPUS]) };
        let first = Audio { packet_time: Some(Duration::from_millis(30)), ..first };
        assert_eq!(session.audio, [Some(first), None, Some(last)]);
    }

    #[test]
    fn what_can_be_sent_nowhere_is_no_speech_and_keeps_its_place() {
        for text in [
            "m=audio 4000 RTP/AVP 0",
            "c=IN IP4 0.0.0.0\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 ::\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 239.1.1.1/127\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 127.0.0.1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 255.255.255.255\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 169.254.3.4\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 0.1.2.3\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 ::1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 fe80::1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 ff02::1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 ::ffff:127.0.0.1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP6 192.0.2.1\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 a!b\nm=audio 4000 RTP/AVP 0",
            "c=TN RFC2543 host\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 192.0.2.1\nm=audio 70000 RTP/AVP 0",
            "c=IN IP4 192.0.2.1\nm=audio 4000 tcp 0",
            "c=IN IP4 192.0.2.1\na=inactive\nm=audio 4000 RTP/AVP 0",
            "c=IN IP4 192.0.2.1\nm=audio 4000 RTP/AVP 0\na=inactive",
        ] {
            assert_eq!(Session::read(text).audio, [None], "{text}");
        }
        assert_eq!(Session::read(""), Session::default());
    }

    #[test]
    fn a_direction_of_the_session_is_that_of_streams_without_one() {
        let session = Session::read(
            "c=IN IP4 192.0.2.1\na=inactive\nm=audio 4000 RTP/AVP 0\na=sendonly\nm=audio 4002 RTP/AVP 0\n",
        );
        assert_eq!(session.audio, [Some(audio("192.0.2.1:4000", &[Codec::G711])), None]);
    }

    #[test]
    fn a_host_by_name_is_no_address() {
        let session = Session::read("c=IN IP4 phone.example.org\nm=audio 4000 RTP/AVP 18");
        assert_eq!(session.audio, [Some(audio("", &[Codec::G729]))]);
    }

    #[test]
    fn no_more_streams_are_kept_than_there_is_room_for() {
        let text = format!("c=IN IP4 192.0.2.1\n{}", "m=audio 4000 RTP/AVP 0\n".repeat(400));
        assert_eq!(Session::read(&text).audio.len(), MOST_AUDIO);
    }
}
