//! The body of a message: where it begins, and where in it a description of its session is (RFC 3261 §7.4; RFC 2046 §5.1).

/// Parts of a body that are looked at.
const MOST_PARTS: usize = 16;
/// RFC 2046 §5.1.1.
const LONGEST_BOUNDARY: usize = 70;

/// The head of a message or of a part, and what is behind its empty line.
pub(crate) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    // A part may have no head at all.
    for end in [&b"\r\n"[..], b"\n"] {
        if let Some(body) = bytes.strip_prefix(end) {
            return (&[], body);
        }
    }
    let ends = [&b"\r\n\r\n"[..], b"\n\n"];
    match ends.iter().filter_map(|end| Some((find(bytes, end)?, end.len()))).min() {
        Some((at, end)) => (&bytes[..at], &bytes[at + end..]),
        None => (bytes, &[]),
    }
}

/// The lines of a head.
pub(crate) fn lines(head: &str) -> impl Iterator<Item = &str> {
    head.split('\n').map(|line| line.trim_end_matches('\r'))
}

/// Name, in small letters, and value of a field. RFC 3261 §7.3.1: blanks may stand before the colon. A folded line continues one
/// that is not asked for.
pub(crate) fn field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim_end().to_ascii_lowercase(), value.trim()))
}

/// The description in a body of this type: the whole of it, or the first part that is one.
pub(crate) fn sdp<'a>(content_type: &str, body: &'a [u8]) -> Option<&'a str> {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/sdp") {
        return std::str::from_utf8(body).ok();
    }
    let is_multipart = kind.get(..10).is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/"));
    let boundary = boundary(content_type).filter(|_| is_multipart)?;
    parts(boundary, body).take(MOST_PARTS).find_map(|part| {
        let (head, content) = split(part);
        let head = std::str::from_utf8(head).ok()?;
        let of_type = lines(head).filter_map(field).find(|(name, _)| name == "content-type");
        let kind = of_type.map(|(_, value)| value.split(';').next().unwrap_or_default().trim());
        kind.filter(|kind| kind.eq_ignore_ascii_case("application/sdp"))?;
        std::str::from_utf8(content).ok()
    })
}

/// `multipart/mixed;boundary="a;b"`
fn boundary(content_type: &str) -> Option<&str> {
    let at = content_type.to_ascii_lowercase().find("boundary=")?;
    let value = content_type.get(at + "boundary=".len()..)?;
    let boundary = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split(';').next()?.trim(),
    };
    (1..=LONGEST_BOUNDARY).contains(&boundary.len()).then_some(boundary)
}

/// What stands between lines that begin with two dashes and the boundary, without the end of line before each.
fn parts<'a>(boundary: &str, body: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mark = format!("--{boundary}").into_bytes();
    // What comes before the first is of nobody.
    let mut rest = after_mark(body, &mark);
    std::iter::from_fn(move || {
        let begin = rest?;
        let end = next_mark(begin, &mark).unwrap_or(begin.len());
        rest = after_mark(&begin[end..], &mark);
        let part = &begin[..end];
        let part = part.strip_suffix(b"\n").unwrap_or(part);
        Some(part.strip_suffix(b"\r").unwrap_or(part))
    })
}

/// What is behind the line of the next mark; `None` where that is the last, or where there is none.
fn after_mark<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let behind = &bytes[next_mark(bytes, mark)? + mark.len()..];
    if behind.starts_with(b"--") {
        return None;
    }
    Some(&behind[find(behind, b"\n")? + 1..])
}

/// Where a line begins with the mark.
fn next_mark(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + find(&bytes[from..], mark)?;
        if at == 0 || bytes[at - 1] == b'\n' {
            return Some(at);
        }
        from = at + 1;
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|it| it == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_found_among_other_parts() {
        let body = b"for those without MIME\r\n--b 1\r\nContent-Type: application/isup\r\n\r\n\x01\xff--b 1\r\n--b 1 \r\n\
                     Content-Disposition: session\r\ncontent-type : Application/SDP;x=y\r\n\r\nv=0\r\ns=-\r\n\r\n--b 1--\r\nv=1\r\n";
        let found = sdp("Multipart/Mixed; charset=x; Boundary=\"b 1\"", body);
        assert_eq!(found, Some("v=0\r\ns=-\r\n"));
        let bare = b"--b\nContent-Type: application/sdp\n\nv=0\n--b--\n";
        assert_eq!(sdp("multipart/related;boundary=b;type=x", bare), Some("v=0"));
        assert_eq!(sdp("application/sdp", b"v=0\r\n"), Some("v=0\r\n"));
    }

    #[test]
    fn where_there_is_none_nothing_is_found() {
        let part: &[u8] = b"--b\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b--\r\n";
        for (kind, body) in [
            ("multipart/mixed", part),
            ("multipart/mixed;boundary=", part),
            ("multipart/mixed;boundary=c", part),
            ("text/plain;boundary=b", part),
            ("", part),
            ("multipart/mixed;boundary=b", b"--b--\r\nContent-Type: application/sdp\r\n\r\nv=0"),
            ("multipart/mixed;boundary=b", b"--b\r\n\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b--"),
            ("multipart/mixed;boundary=b", b"--b"),
            ("multipart/mixed;boundary=b", b""),
            ("application/sdp", b"\xff"),
        ] {
            assert_eq!(sdp(kind, body), None, "{kind}");
        }
    }
}
