//! WebSocket frames as RFC 6455 has them, and as it does not: what the origin answers to each, byte by byte, has to be the same
//! through Farhop as without it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::{Ways, socket};
use crate::Row;
use crate::visitor::Visitor;

/// After so long without a byte nothing more is coming: all cases together on the narrow way up.
const SILENCE: Duration = Duration::from_secs(8);

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
/// RFC 6455 §5.2.
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x40;

/// A case by name, and what the client writes.
fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let one = |first: u8, payload: &[u8]| frame(first, payload);
    let many =
        |frames: &[(u8, &[u8])]| frames.iter().flat_map(|(first, payload)| frame(*first, payload)).collect();
    vec![
        ("empty text", one(FIN | TEXT, b"")),
        ("text", one(FIN | TEXT, "grüß Gott".as_bytes())),
        ("binary, 125 bytes", one(FIN | BINARY, &[7; 125])),
        ("binary, 126 bytes", one(FIN | BINARY, &[7; 126])),
        ("binary, 65,535 bytes", one(FIN | BINARY, &[7; 65_535])),
        ("binary, 65,536 bytes", one(FIN | BINARY, &[7; 65_536])),
        ("two fragments", many(&[(TEXT, b"one "), (FIN | CONTINUATION, b"two")])),
        ("empty fragments", many(&[(BINARY, b""), (CONTINUATION, b""), (FIN | CONTINUATION, b"")])),
        ("a character cut by fragments", many(&[(TEXT, &[0xC3]), (FIN | CONTINUATION, &[0xBC])])),
        ("ping between fragments", many(&[(TEXT, b"a"), (FIN | PING, b"?"), (FIN | CONTINUATION, b"b")])),
        ("ping", one(FIN | PING, b"here?")),
        ("ping of 125 bytes", one(FIN | PING, &[1; 125])),
        ("ping too long", one(FIN | PING, &[1; 126])),
        ("ping in fragments", many(&[(PING, b"a"), (FIN | CONTINUATION, b"b")])),
        ("unasked pong", many(&[(FIN | PONG, b"!"), (FIN | TEXT, b"still here")])),
        ("close", one(FIN | CLOSE, &1000u16.to_be_bytes())),
        ("close without status", one(FIN | CLOSE, b"")),
        ("close with one byte", one(FIN | CLOSE, &[3])),
        ("close with a forbidden status", one(FIN | CLOSE, &1005u16.to_be_bytes())),
        ("close with a reason", one(FIN | CLOSE, b"\x03\xE9going")),
        ("close with a broken reason", one(FIN | CLOSE, b"\x03\xE9\xFF")),
        ("data after close", many(&[(FIN | CLOSE, &1000u16.to_be_bytes()), (FIN | TEXT, b"late")])),
        ("broken UTF-8", one(FIN | TEXT, &[0xC3, 0x28])),
        ("reserved bit", one(FIN | RESERVED | TEXT, b"x")),
        ("reserved data opcode", one(FIN | 0x3, b"x")),
        ("reserved control opcode", one(FIN | 0xB, b"x")),
        ("continuation of nothing", one(FIN | CONTINUATION, b"x")),
        ("a message within a message", many(&[(TEXT, b"a"), (FIN | TEXT, b"b")])),
        ("not masked", vec![FIN | TEXT, 1, b'x']),
        ("length longer than needed", [&[FIN | BINARY, 0x80 | 126, 0, 1][..], &[0, 0, 0, 0, 9]].concat()),
    ]
}

/// A frame as a client writes it, masked (RFC 6455 §5.3).
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | len as u8),
        len @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Every case both ways, and how many differ.
pub(super) async fn compared(ways: &Ways) -> io::Result<Row> {
    let cases = cases();
    let [direct, farhop] = ways.each();
    // One after the other: at once they would fill the way up for longer than silence is waited for.
    let (direct, farhop) = (all(direct, &cases).await?, all(farhop, &cases).await?);
    let mut differing = Vec::new();
    for ((name, _), (direct, farhop)) in cases.iter().zip(direct.iter().zip(&farhop)) {
        if direct != farhop {
            eprintln!(
                "WebSocket framing, {name}: {} bytes directly, {} through Farhop",
                direct.len(),
                farhop.len()
            );
            differing.push(*name);
        }
    }
    let measured = match differing.as_slice() {
        [] => format!("{} of {} alike", cases.len(), cases.len()),
        names => format!("other: {}", names.join(", ")),
    };
    // An origin that never says a word would be alike, too.
    let silent = direct.iter().all(Vec::is_empty);
    Ok(Row::judged(
        "WebSocket framing cases",
        measured,
        "answered as directly",
        differing.is_empty() && !silent,
    ))
}

/// What each case is answered, all at once: each mostly waits.
async fn all(visitor: &Visitor, cases: &[(&'static str, Vec<u8>)]) -> io::Result<Vec<Vec<u8>>> {
    let answers = cases.iter().map(|(_, frames)| answer(visitor, frames));
    futures_util::future::join_all(answers).await.into_iter().collect()
}

/// Everything that comes back on a socket of its own.
async fn answer(visitor: &Visitor, frames: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = socket::open(visitor).await?;
    stream.write_all(frames).await?;
    // What the socket does not take at once waits within TLS until then.
    stream.flush().await?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    // The end of the connection, however it comes, is the end of the answer.
    while let Ok(Ok(count @ 1..)) = timeout(SILENCE, stream.read(&mut buffer)).await {
        answer.extend_from_slice(&buffer[..count]);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_the_one_of_rfc_6455_section_5_7() {
        // "A single-frame masked text message (contains "Hello")", with this file's mask instead.
        assert_eq!(frame(FIN | TEXT, b"Hello")[..6], [0x81, 0x85, 0x12, 0x34, 0x56, 0x78]);
        assert_eq!(frame(FIN | TEXT, b"Hello")[6] ^ 0x12, b'H');
        assert_eq!(frame(FIN | BINARY, &[0; 256])[..4], [0x82, 0xFE, 1, 0]);
        assert_eq!(frame(FIN | BINARY, &[0; 65_536])[..10], [0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0]);
    }
}
