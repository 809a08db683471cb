//! Reads what matters here of a ClientHello (RFC 8446 §4.1.2): for which host, and what is to be spoken. Pure.
//!
//! It does not judge what it need not understand; the handshake does. But what could be read differently, such as two
//! names for the host, makes it no hello.

use crate::h1::Authority;
use rustls::pki_types::ServerName;

/// The longest ClientHello that is read, in bytes. Those of browsers have up to about 2,000.
const LONGEST: usize = 16 * 1024;
/// RFC 8446 §5.1: the longest plaintext of a record, in bytes.
const LONGEST_RECORD: usize = 1 << 14;
/// The bytes before a record's plaintext.
const RECORD_HEADER: usize = 5;
/// The bytes before a handshake message.
const MESSAGE_HEADER: usize = 4;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;

/// What [`super::accept`] can shake hands with: the suites of TLS 1.3 (RFC 8446 §B.4) and those of TLS 1.2 for a key on a curve
/// (RFC 5289 §3.2, RFC 7905 §2); X25519, P-256 and P-384 (RFC 8446 §4.2.7); a signature by a key on P-256 (§4.2.3).
const SUITES: [u16; 6] = [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xcca9];
const GROUPS: [u16; 3] = [29, 23, 24];
const SIGNATURES: [u16; 1] = [0x0403];

/// What the first bytes of a connection turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A whole ClientHello.
    Hello(ClientHello),
    /// The bytes so far can begin one.
    NeedMore,
    /// Not TLS, TLS before 1.2, a hello that is malformed or too large, or one that offers nothing that can be answered here, as
    /// of clients that know only RSA.
    Other,
}

/// What a client wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The host it wants to reach (RFC 6066 §3), in lower case and without a final dot.
    pub sni: Option<String>,
    /// The protocols it can speak, best first (RFC 7301 §3.1); empty when it does not say.
    pub alpn: Vec<Vec<u8>>,
}

/// What is spoken here, the best first. `http/1.0` is what some programs offer alone (`curl --http1.0`).
pub(super) const SPOKEN: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];

/// Whether a client that offers `alpn` can be answered in HTTP: it can speak a version of it, or does not say.
pub fn speaks_http(alpn: &[Vec<u8>]) -> bool {
    alpn.is_empty() || alpn.iter().any(|protocol| SPOKEN.contains(&protocol.as_slice()))
}

/// Reads the first bytes that a client sent; to be called again with all of them while it needs more.
pub fn read_hello(mut bytes: &[u8]) -> Reading {
    let mut message = Vec::new();
    loop {
        let header = &bytes[..bytes.len().min(RECORD_HEADER)];
        let begins = match header {
            [] => true,
            [kind] => *kind == HANDSHAKE,
            [kind, 3] => *kind == HANDSHAKE,
            // Every version so far writes 3 and at most 4 here.
            [kind, 3, 0..=4, ..] => *kind == HANDSHAKE,
            _ => false,
        };
        if !begins {
            return Reading::Other;
        }
        let [_, _, _, high, low] = *header else { return Reading::NeedMore };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length == 0 || length > LONGEST_RECORD {
            return Reading::Other;
        }
        let record = &bytes[RECORD_HEADER..];
        message.extend_from_slice(&record[..record.len().min(length)]);
        match read_message(&message) {
            Reading::NeedMore => {}
            verdict => return verdict,
        }
        let Some(rest) = record.get(length..) else { return Reading::NeedMore };
        bytes = rest;
    }
}

/// Reads the handshake message that a client's side begins with, as it stands in records (RFC 8446 §5.1) or in QUIC's CRYPTO frames
/// (RFC 9001 §4.1.3).
pub(super) fn read_message(bytes: &[u8]) -> Reading {
    if bytes.first().is_some_and(|&kind| kind != CLIENT_HELLO) {
        return Reading::Other;
    }
    let [_, high, middle, low, rest @ ..] = bytes else { return Reading::NeedMore };
    let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
    if MESSAGE_HEADER + length > LONGEST {
        return Reading::Other;
    }
    match rest.get(..length) {
        Some(message) => hello(message).map_or(Reading::Other, Reading::Hello),
        None => Reading::NeedMore,
    }
}

/// Reads the message; `None` when it is malformed or offers nothing that can be answered.
fn hello(message: &[u8]) -> Option<ClientHello> {
    let mut reader = Reader(message);
    let legacy_version = reader.number()?;
    let _random = reader.take(32)?;
    let _session = reader.short()?;
    let suites = reader.long()?;
    let compressions = reader.short()?;
    if !offers(suites, &SUITES)? || compressions.0.is_empty() {
        return None;
    }
    let mut extensions = if reader.0.is_empty() { Reader(&[]) } else { reader.long()? };
    if !reader.0.is_empty() {
        return None;
    }
    let mut hello = ClientHello::default();
    let mut modern = legacy_version >= TLS_1_2;
    let mut answerable = true;
    let mut seen = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long()?;
        // RFC 8446 §4.2: no extension twice.
        if seen.contains(&kind) {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.sni = Some(server_name(content)?),
            ALPN => hello.alpn = protocols(content)?,
            SUPPORTED_VERSIONS => modern = versions(content)?,
            SUPPORTED_GROUPS => answerable &= offers(within(content)?, &GROUPS)?,
            SIGNATURE_ALGORITHMS => answerable &= offers(within(content)?, &SIGNATURES)?,
            _ => {}
        }
    }
    (modern && answerable).then_some(hello)
}

/// RFC 6066 §3: one name of each kind, and only one kind was ever defined.
fn server_name(mut content: Reader<'_>) -> Option<String> {
    let mut list = content.long()?;
    let kind = list.take(1)?;
    let name = list.long()?.0;
    if kind != [0] || !list.0.is_empty() || !content.0.is_empty() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    let authority = Authority::parse(name).ok().filter(|authority| authority.port().is_none())?;
    let host = authority.host().trim_end_matches('.');
    // The handshake would end over names such as `-a.example`, which are browsed all the same.
    ServerName::try_from(host).ok()?;
    Some(host.to_owned())
}

fn protocols(mut content: Reader<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = content.long()?;
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        let name = list.short()?.0;
        protocols.push(Some(name).filter(|name| !name.is_empty())?.to_vec());
    }
    (content.0.is_empty() && !protocols.is_empty()).then_some(protocols)
}

/// Whether TLS 1.2 or 1.3 is among the versions offered (RFC 8446 §4.2.1).
fn versions(mut content: Reader<'_>) -> Option<bool> {
    let list = content.short()?;
    offers(list, &[TLS_1_2, TLS_1_3]).filter(|_| content.0.is_empty())
}

/// The list that an extension is.
fn within(mut content: Reader<'_>) -> Option<Reader<'_>> {
    let list = content.long()?;
    content.0.is_empty().then_some(list)
}

/// Whether one of these is in a list of numbers.
fn offers(mut list: Reader<'_>, wanted: &[u16]) -> Option<bool> {
    let mut offered = false;
    while !list.0.is_empty() {
        offered |= wanted.contains(&list.number()?);
    }
    Some(offered)
}

/// Takes vectors (RFC 8446 §3.4) from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector with one byte of length.
    fn short(&mut self) -> Option<Reader<'a>> {
        let length = self.take(1)?[0];
        self.take(length.into()).map(Reader)
    }

    /// A vector with two bytes of length.
    fn long(&mut self) -> Option<Reader<'a>> {
        let length = self.number()?;
        self.take(length.into()).map(Reader)
    }
}

/// Reads any bytes, whole and cut short; panics when more bytes change a verdict.
pub fn fuzz_hello(data: &[u8]) {
    let whole = read_hello(data);
    for end in [data.len() / 2, data.len().saturating_sub(1), data.len().min(RECORD_HEADER)] {
        let cut = read_hello(&data[..end]);
        assert!(cut == Reading::NeedMore || cut == whole, "{cut:?} became {whole:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u16).to_be_bytes()[..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &long(content)].concat()
    }

    fn sni(name: &str) -> Vec<u8> {
        extension(SERVER_NAME, &long(&[&[0][..], &long(name.as_bytes())].concat()))
    }

    /// A hello of TLS 1.2 with these extensions, as one handshake message.
    fn message_with(extensions: &[u8]) -> Vec<u8> {
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 0x01], &[1, 0], &long(extensions)].concat();
        [&[CLIENT_HELLO, 0][..], &long(&body)].concat()
    }

    fn record(content: &[u8]) -> Vec<u8> {
        [&[HANDSHAKE, 3, 1][..], &long(content)].concat()
    }

    fn hello_with(extensions: &[u8]) -> Reading {
        read_hello(&record(&message_with(extensions)))
    }

    #[test]
    fn host_and_protocols_are_read() {
        let alpn = extension(ALPN, &long(b"\x02h2\x08http/1.1"));
        let Reading::Hello(hello) = hello_with(&[sni("WWW.a.Example"), alpn].concat()) else {
            panic!("no hello")
        };
        assert_eq!(hello.sni.as_deref(), Some("www.a.example"));
        assert_eq!(hello.alpn, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(speaks_http(&hello.alpn));
        assert_eq!(hello_with(&[]), Reading::Hello(ClientHello::default()));
    }

    #[test]
    fn what_offers_nothing_that_can_be_answered_is_none() {
        let lists = |kind: u16, numbers: &[u16]| {
            let list: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
            hello_with(&extension(kind, &long(&list)))
        };
        // ECDSA on P-256 and PSS; PSS alone. P-521 and P-256; P-521 alone.
        for (kind, good, bad) in
            [(SIGNATURE_ALGORITHMS, [0x0804, 0x0403], [0x0804]), (SUPPORTED_GROUPS, [25, 23], [25])]
        {
            assert_eq!(lists(kind, &good), Reading::Hello(ClientHello::default()));
            assert_eq!(lists(kind, &bad), Reading::Other);
        }
        // ECDHE with RSA and no other suite.
        let mut message = message_with(&[]);
        let suite = message.windows(4).position(|bytes| bytes == [0, 2, 0x13, 0x01]).unwrap() + 2;
        message[suite..suite + 2].copy_from_slice(&[0xc0, 0x2f]);
        assert_eq!(read_hello(&record(&message)), Reading::Other);
    }

    #[test]
    fn only_unknown_protocols_are_no_http() {
        assert!(speaks_http(&[]));
        assert!(speaks_http(&[b"x".to_vec(), b"http/1.1".to_vec()]));
        assert!(speaks_http(&[b"http/1.0".to_vec()]));
        assert!(!speaks_http(&[b"acme-tls/1".to_vec()]));
    }

    #[test]
    fn every_prefix_needs_more_also_over_several_records() {
        let message = message_with(&[sni("a.example"), extension(0xfe0d, &[0; 300])].concat());
        let whole: Vec<u8> = message.chunks(100).flat_map(record).collect();
        for end in 0..whole.len() {
            assert_eq!(read_hello(&whole[..end]), Reading::NeedMore, "{end} bytes");
        }
        assert!(
            matches!(read_hello(&whole), Reading::Hello(hello) if hello.sni.as_deref() == Some("a.example"))
        );
    }

    #[test]
    fn what_is_no_hello_is_known_from_its_first_bytes() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x",
            b"\x16\x02",
            b"\x16\x03\x09",
            b"\x16\x03\x01\x00\x00",
            b"\x16\x03\x01\x40\x01",
            b"\x16\x03\x01\x00\x10\x02",
            b"\x16\x03\x01\x40\x00\x01\x00\x40\x00",
            b"\x80\x2e\x01\x03\x01",
        ] {
            assert_eq!(read_hello(bytes), Reading::Other, "{bytes:?}");
        }
    }

    #[test]
    fn ambiguous_or_old_hellos_are_not_taken() {
        let two_names = long(&[&[0][..], &long(b"a.example"), &[0], &long(b"b.example")].concat());
        for extensions in [
            [sni("a.example"), sni("b.example")].concat(),
            extension(SERVER_NAME, &two_names),
            sni(""),
            sni("a b"),
            sni("a.example:443"),
            sni("user@a.example"),
            sni("-a.example"),
            extension(ALPN, &long(b"")),
            extension(ALPN, &long(b"\x00")),
            extension(ALPN, &long(b"\x05h2")),
            extension(SUPPORTED_VERSIONS, b"\x04\x03\x02\x03\x01"),
            extension(SUPPORTED_VERSIONS, b"\x03\x03\x04\x03"),
            b"\x00\x00\x00\x09".to_vec(),
        ] {
            assert_eq!(hello_with(&extensions), Reading::Other, "{extensions:?}");
        }
        let current = extension(SUPPORTED_VERSIONS, b"\x04\x2a\x2a\x03\x04");
        assert!(matches!(hello_with(&current), Reading::Hello(_)));
        let mut old = record(&message_with(&[]));
        old[RECORD_HEADER + MESSAGE_HEADER + 1] = 1;
        assert_eq!(read_hello(&old), Reading::Other, "TLS 1.0");
    }

    proptest::proptest! {
        #[test]
        fn no_verdict_changes_with_more_bytes(data: Vec<u8>, real: bool) {
            let mut data = data;
            if real {
                let mut bytes = record(&message_with(&sni("a.example")));
                for (byte, change) in bytes.iter_mut().zip(data.iter().map(|byte| byte >> 7)) {
                    *byte ^= change;
                }
                data = bytes;
            }
            for end in 0..data.len() {
                fuzz_hello(&data[..end]);
            }
        }
    }
}
