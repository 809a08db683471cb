//! What the first bytes of a flow say that it is. They are a stranger's: nothing is believed but their shape.

use std::fmt;
use std::str::FromStr;

use super::flow::Protocol;

/// A protocol that is known by how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opening {
    /// A TLS client hello (RFC 8446 §4.1.2).
    Tls,
    /// HTTP/1 or HTTP/2 in the clear (RFC 9112 §3, RFC 9113 §3.4).
    Http,
    /// HTTP/1 that asks for what is played: a manifest or a piece of HLS (RFC 8216) or DASH (ISO/IEC 23009-1), or a whole film or song.
    HttpMedia,
    /// SSH (RFC 4253 §4.2).
    Ssh,
    /// SIP (RFC 3261 §7).
    Sip,
    /// RTSP (RFC 7826).
    Rtsp,
    /// RTP (RFC 3550 §5.1).
    Rtp,
    /// STUN (RFC 8489 §5), with which calls of browsers begin.
    Stun,
    /// QUIC (RFC 9000 §17.2, RFC 9369).
    Quic,
    /// BitTorrent: peers, its table of them, or who asks a tracker for them.
    BitTorrent,
    /// rsync's daemon.
    Rsync,
}

/// How the names of what is played end (RFC 8216 §3, ISO/IEC 14496-12 and 23000-19, RFC 9559, RFC 5334, RFC 3003).
const PLAYED: [&str; 18] = [
    "m3u8", "mpd", "ts", "m4s", "cmfv", "cmfa", "mp4", "m4v", "m4a", "mov", "webm", "mkv", "ogv", "oga",
    "ogg", "opus", "aac", "mp3",
];

const ALL: [(Opening, &str); 11] = [
    (Opening::Tls, "tls"),
    (Opening::Http, "http"),
    (Opening::HttpMedia, "http-media"),
    (Opening::Ssh, "ssh"),
    (Opening::Sip, "sip"),
    (Opening::Rtsp, "rtsp"),
    (Opening::Rtp, "rtp"),
    (Opening::Stun, "stun"),
    (Opening::Quic, "quic"),
    (Opening::BitTorrent, "bittorrent"),
    (Opening::Rsync, "rsync"),
];

impl Opening {
    /// Whether what begins like `other` begins like this as well.
    pub(super) fn takes_in(self, other: Opening) -> bool {
        self == other || (self == Opening::Http && other == Opening::HttpMedia)
    }

    /// What these bytes begin, if it is any of these.
    pub fn of(protocol: Protocol, bytes: &[u8]) -> Option<Opening> {
        match protocol {
            Protocol::Tcp => of_text(bytes).or_else(|| of_tcp(bytes)),
            Protocol::Udp => of_text(bytes).filter(|it| *it == Opening::Sip).or_else(|| of_udp(bytes)),
        }
    }
}

fn of_text(bytes: &[u8]) -> Option<Opening> {
    if bytes.starts_with(b"SSH-") {
        return Some(Opening::Ssh);
    }
    if bytes.starts_with(b"SIP/2.0 ") {
        return Some(Opening::Sip);
    }
    if bytes.starts_with(b"@RSYNCD:") {
        return Some(Opening::Rsync);
    }
    if bytes.starts_with(b"PRI * HTTP/2") {
        return Some(Opening::Http);
    }
    // A method, a blank, and a target: its scheme tells SIP and RTSP from HTTP, whose OPTIONS they share.
    let blank = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let (method, target) = (&bytes[..blank], &bytes[blank + 1..]);
    if blank == 0 || !method.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_') {
        return None;
    }
    let begins = |scheme: &[u8]| target.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    if begins(b"sip:") || begins(b"sips:") || begins(b"tel:") {
        Some(Opening::Sip)
    } else if begins(b"rtsp:") || begins(b"rtsps:") {
        Some(Opening::Rtsp)
    } else {
        let of_http =
            [&b"GET"[..], b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"PATCH", b"TRACE"];
        (of_http.contains(&method) && !target.is_empty()).then(|| of_target(target))
    }
}

/// What is asked for by `/a/b.m4s?c HTTP/1.1 …`, where all of its path has come.
fn of_target(target: &[u8]) -> Opening {
    let Some(end) = target.iter().position(|byte| matches!(byte, b' ' | b'?')) else { return Opening::Http };
    let (path, rest) = target.split_at(end);
    // BEP 3: how a tracker is asked, wherever it is.
    if rest.starts_with(b"?info_hash=") || rest.windows(11).any(|it| it == b"&info_hash=") {
        return Opening::BitTorrent;
    }
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|byte| *byte == b'.');
    let ending = dot.and_then(|dot| std::str::from_utf8(&name[dot + 1..]).ok()).unwrap_or_default();
    let is_played = PLAYED.iter().any(|it| it.eq_ignore_ascii_case(ending));
    if is_played { Opening::HttpMedia } else { Opening::Http }
}

fn of_tcp(bytes: &[u8]) -> Option<Opening> {
    match bytes {
        // RFC 8446 §5.1: a handshake record, of version 3.1 to 3.3; §4: its first message is a client hello.
        [22, 3, 0..=4, _, _, 1, ..] => Some(Opening::Tls),
        [19, rest @ ..] if rest.starts_with(b"BitTorrent protocol") => Some(Opening::BitTorrent),
        _ => None,
    }
}

fn of_udp(bytes: &[u8]) -> Option<Opening> {
    // BEP 5: a dictionary whose first key is its arguments.
    if bytes.starts_with(b"d1:ad2:id20:") || bytes.starts_with(b"d1:rd2:id20:") {
        return Some(Opening::BitTorrent);
    }
    match bytes {
        // RFC 8489 §5: two zero bits, a length of whole words, the magic cookie.
        [0..=3, _, _, length, 0x21, 0x12, 0xa4, 0x42, ..] if length.is_multiple_of(4) => Some(Opening::Stun),
        // RFC 9000 §17.2: a long header with the fixed bit, of version 1 or 2.
        [0xc0..=0xff, 0, 0, 0, 1, ..] | [0xc0..=0xff, 0x6b, 0x33, 0x43, 0xcf, ..] => Some(Opening::Quic),
        // RFC 3550 §5.1: version 2, a whole header and something in it. RFC 5761 §4: types 64 to 95 would be RTCP's.
        [0x80..=0xbf, kind, ..] if bytes.len() > 12 && !(64..96).contains(&(kind & 0x7f)) => {
            Some(Opening::Rtp)
        }
        _ => None,
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = ALL.iter().find(|(opening, _)| opening == self).map_or("", |(_, word)| *word);
        f.write_str(word)
    }
}

impl FromStr for Opening {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        ALL.iter().find(|(_, word)| *word == text).map(|(opening, _)| *opening).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_known_by_how_they_begin() {
        let tcp = |bytes: &[u8]| Opening::of(Protocol::Tcp, bytes);
        let udp = |bytes: &[u8]| Opening::of(Protocol::Udp, bytes);
        assert_eq!(tcp(&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc]), Some(Opening::Tls));
        assert_eq!(tcp(b"GET / HTTP/1.1\r\n"), Some(Opening::Http));
        assert_eq!(tcp(b"OPTIONS * HTTP/1.1\r\n"), Some(Opening::Http));
        assert_eq!(tcp(b"OPTIONS rtsp://a/b RTSP/1.0\r\n"), Some(Opening::Rtsp));
        assert_eq!(tcp(b"SSH-2.0-OpenSSH_9.2\r\n"), Some(Opening::Ssh));
        assert_eq!(tcp(b"\x13BitTorrent protocol\0\0"), Some(Opening::BitTorrent));
        assert_eq!(udp(b"INVITE sip:bob@example.org SIP/2.0\r\n"), Some(Opening::Sip));
        assert_eq!(udp(b"d1:ad2:id20:aaaaaaaaaaaaaaaaaaaae"), Some(Opening::BitTorrent));
        assert_eq!(udp(&[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42, 1]), Some(Opening::Stun));
        assert_eq!(udp(&[0xc3, 0, 0, 0, 1, 8]), Some(Opening::Quic));
        let speech = [&[0x80, 18, 0, 1, 0, 0, 0, 160, 1, 2, 3, 4][..], &[7; 20]].concat();
        assert_eq!(udp(&speech), Some(Opening::Rtp));
    }

    #[test]
    fn a_request_for_what_is_played_or_for_peers_says_so() {
        let tcp = |text: &str| Opening::of(Protocol::Tcp, text.as_bytes());
        for (text, opening) in [
            ("GET /film/master.m3u8 HTTP/1.1\r\n", Opening::HttpMedia),
            ("GET http://cdn.test/v/3/seg-17.M4S?token=a.b/c HTTP/1.1\r\n", Opening::HttpMedia),
            ("GET /announce?info_hash=%12%34&peer_id=-A-&port=6881 HTTP/1.1\r\n", Opening::BitTorrent),
            ("GET /scrape?key=7&info_hash=%12 HTTP/1.1\r\n", Opening::BitTorrent),
            ("GET /search?q=info_hash= HTTP/1.1\r\n", Opening::Http),
            ("GET /a.mp4/index.html HTTP/1.1\r\n", Opening::Http),
            ("GET /page.ts.html HTTP/1.1\r\n", Opening::Http),
            ("GET /mp4 HTTP/1.1\r\n", Opening::Http),
            // It may be longer.
            ("GET /seg.ts", Opening::Http),
        ] {
            assert_eq!(tcp(text), Some(opening), "{text}");
        }
        assert!(Opening::Http.takes_in(Opening::HttpMedia) && !Opening::HttpMedia.takes_in(Opening::Http));
    }

    #[test]
    fn what_only_looks_like_it_is_nothing() {
        let udp = |bytes: &[u8]| Opening::of(Protocol::Udp, bytes);
        assert_eq!(udp(&[0x80, 200, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 9]), None, "RTCP");
        assert_eq!(udp(&[0x80, 0, 0, 1]), None, "half a header");
        assert_eq!(udp(b"GET / HTTP/1.1"), None);
        for bytes in [&b""[..], b" ", b"GET", b"GET ", b"get / HTTP/1.1", b"\x16\x03\x01", b"\x13BitTorrent"]
        {
            assert_eq!(Opening::of(Protocol::Tcp, bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn each_has_a_word_that_reads_back() {
        for (opening, word) in ALL {
            assert_eq!((opening.to_string().as_str(), word.parse()), (word, Ok(opening)));
        }
    }
}
