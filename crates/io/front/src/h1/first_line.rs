//! Tells from its first bytes whether a client speaks HTTP/1 at all, so that one of another protocol is not waited for until
//! the end of a head that never comes. Whether a request is a good one is judged elsewhere. Pure.

/// More bytes than this without the end of a line are a long target's: other protocols greet in fewer.
const LONGEST_GREETING: usize = 1024;

/// Whether what begins so is a request; `None` when more bytes are needed to tell.
pub(crate) fn begins_request(bytes: &[u8]) -> Option<bool> {
    let begun = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let line = &bytes[begun..];
    let method = line.iter().take_while(|byte| is_token(**byte)).count();
    match line.get(method) {
        None => return None,
        Some(b' ') if method > 0 => {}
        Some(_) => return Some(false),
    }
    match line.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            let version = line[..end].trim_ascii_end().rsplit(|&byte| byte == b' ').next();
            Some(version.is_some_and(|version| version.starts_with(b"HTTP/1.")))
        }
        None => (line.len() > LONGEST_GREETING).then_some(true),
    }
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_what_other_protocols_say_first() {
        let long = format!("GET /{}", "a".repeat(LONGEST_GREETING));
        for (bytes, is_request) in [
            (&b"GET / HTTP/1.1\r\n"[..], Some(true)),
            (b"\r\nPROPFIND /a b HTTP/1.0\n", Some(true)),
            (long.as_bytes(), Some(true)),
            (b"", None),
            (b"\r\n", None),
            (b"GE", None),
            (b"GET /index", None),
            (b"\x10\x12\x00\x04MQTT", Some(false)),
            (b"a1 CAPABILITY\r\n", Some(false)),
            (b"NICK somebody\r\n", Some(false)),
            (b"<stream:stream", Some(false)),
            (b"PRI * HTTP/2.0\r\n", Some(false)),
            (b"QUIT\r\n", Some(false)),
        ] {
            assert_eq!(begins_request(bytes), is_request, "{bytes:?}");
        }
    }
}
