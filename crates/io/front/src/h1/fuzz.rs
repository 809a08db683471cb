//! Entries for fuzzing: any bytes may come in. Each panics only when an invariant that must hold for every
//! input is broken.

use super::{BodyDecoder, Decoded, Framing, HeadLimits, HeadScanner, RequestHead, ResponseHead, Section};
use bytes::BytesMut;
use http::Method;

/// Reads `data` as a request and its body.
pub fn fuzz_request(data: &[u8]) {
    let limits = HeadLimits::default();
    let mut scanner = HeadScanner::new(Section::Request);
    let Ok(Some(range)) = scanner.scan(data, &limits) else { return };
    let body = &data[range.end..];
    let Ok(head) = RequestHead::parse(&data[range], &limits) else { return };
    assert!(head.fields.get_all(http::header::HOST).iter().count() <= 1, "one host at most");
    drain(head.framing, body);
}

/// Reads `data` as a response to GET and its body.
pub fn fuzz_response(data: &[u8]) {
    let limits = HeadLimits::default();
    let mut scanner = HeadScanner::new(Section::Response);
    let Ok(Some(range)) = scanner.scan(data, &limits) else { return };
    let body = &data[range.end..];
    if let Ok(head) = ResponseHead::parse(&data[range], &Method::GET, &limits) {
        drain(head.framing, body);
    }
}

/// Reads `data` as a chunked body.
pub fn fuzz_chunked_body(data: &[u8]) {
    drain(Framing::Chunked, data);
}

/// Decodes to the end; no body is longer than its bytes.
fn drain(framing: Framing, data: &[u8]) {
    let mut buffer = BytesMut::from(data);
    let mut decoder = BodyDecoder::new(framing, HeadLimits::default());
    let mut total = 0;
    while let Ok(Decoded::Data(piece)) = decoder.decode(&mut buffer) {
        assert!(!piece.is_empty(), "data is never empty");
        total += piece.len();
    }
    assert!(total + buffer.len() <= data.len(), "no byte is invented");
}
