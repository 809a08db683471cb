//! HTTP/2 frames and field blocks as bytes, right or wrong: just enough to send anything and to read what a server answers.

/// RFC 9113 §3.4.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
/// Of SETTINGS and PING.
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// RFC 9113 §7.
const ERRORS: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// A frame that came.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

/// A frame's bytes.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame of a case is small").to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Takes the frame at the front of `bytes`, once it is whole.
pub(super) fn take(bytes: &mut Vec<u8>) -> Option<Frame> {
    let head: [u8; 9] = bytes.get(..9)?.try_into().ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let payload = bytes.get(9..9 + length)?.to_vec();
    let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
    bytes.drain(..9 + length);
    Some(Frame { kind: head[3], flags: head[4], stream, payload })
}

/// A field as a literal that nobody keeps (RFC 7541 §6.2.2), whatever its bytes.
pub(super) fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut block = vec![0];
    for text in [name, value] {
        integer(text.len(), &mut block);
        block.extend_from_slice(text);
    }
    block
}

/// RFC 7541 §5.1, with a prefix of seven bits.
fn integer(value: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = value.checked_sub(127) else { return block.push(value as u8) };
    block.push(127);
    while rest >= 128 {
        block.push((rest % 128 + 128) as u8);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// The status that a response's field block begins with (RFC 9113 §8.3.2).
pub(super) fn status(mut block: &[u8]) -> Option<u16> {
    const INDEXED: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    // RFC 7541 §6.3: changes of the table's size come first.
    while block.first()? & 0xe0 == 0x20 {
        block = &block[1..];
    }
    let first = *block.first()?;
    if first & 0x80 != 0 {
        return INDEXED.get(usize::from(first & 0x7f).checked_sub(8)?).copied();
    }
    let name = if first & 0x40 != 0 { first & 0x3f } else { first & 0x0f };
    let length = usize::from(*block.get(1)?);
    let text = block.get(2..2 + (length & 0x7f))?;
    match (name, length & 0x80 != 0) {
        (8..=14, true) => huffman_digits(text),
        (8..=14, false) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Three digits as RFC 7541 appendix B writes them: 0 to 2 in five bits, the others in six.
fn huffman_digits(bytes: &[u8]) -> Option<u16> {
    let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| u16::from(byte >> at & 1)));
    let mut number = 0;
    for _ in 0..3 {
        let mut code = 0;
        for _ in 0..5 {
            code = code * 2 + bits.next()?;
        }
        let digit = match code {
            0..=2 => code,
            12..=15 => (code * 2 + bits.next()?) - 25 + 3,
            _ => return None,
        };
        number = number * 10 + digit;
    }
    Some(number)
}

/// The name of the error in RST_STREAM or, behind the last stream, in GOAWAY.
pub(super) fn error(payload: &[u8]) -> String {
    let code = payload.first_chunk().map_or(u32::MAX, |code| u32::from_be_bytes(*code));
    ERRORS.get(code as usize).map_or_else(|| format!("error {code}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut bytes = [frame(DATA, END_STREAM, 3, b"hello"), frame(SETTINGS, 0, 0, b"")].concat();
        let cut = bytes[..10].to_vec();
        let read = take(&mut bytes).unwrap();
        assert_eq!(
            (read.kind, read.flags, read.stream, read.payload.as_slice()),
            (0, 1, 3, b"hello".as_slice())
        );
        assert_eq!(take(&mut bytes).unwrap().kind, SETTINGS);
        assert!(take(&mut cut.clone()).is_none() && take(&mut bytes).is_none());
    }

    #[test]
    fn long_fields_have_lengths_in_several_bytes() {
        // RFC 7541 §C.1.2: 1337 with a prefix of five bits is 31, 154, 10; of seven it is 127, 186, 9.
        let block = field(b"x", &[b'y'; 1337]);
        assert_eq!(block[..6], [0, 1, b'x', 127, 186, 9]);
    }

    #[test]
    fn statuses_are_read_in_each_of_their_codings() {
        assert_eq!(status(&[0x88]), Some(200));
        assert_eq!(status(&[0x3f, 0x8c]), Some(400));
        assert_eq!(status(b"\x08\x03421"), Some(421));
        // RFC 7541 §C.6.1: 302.
        assert_eq!(status(&[0x48, 0x82, 0x64, 0x02]), Some(302));
        assert_eq!(status(b"\x00\x01x\x01y"), None);
    }
}
