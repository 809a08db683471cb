//! Web archives (ISO 28500) as crawlers write them: `response` records, each a whole HTTP answer, gzipped one by one or not.
//! Pure.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use super::{Entry, Recording, essence};

/// More than any page.
const MOST: u64 = 1 << 30;

/// The answers of a WARC.
///
/// # Errors
/// It is none, in words.
pub(super) fn read(bytes: &[u8]) -> Result<Recording, String> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        let read = MultiGzDecoder::new(bytes).take(MOST).read_to_end(&mut plain);
        read.map_err(|error| format!("its gzip coding is broken: {error}"))?;
        return records(&plain);
    }
    records(bytes)
}

fn records(mut rest: &[u8]) -> Result<Recording, String> {
    let mut recording = Recording::default();
    let mut number = 0;
    loop {
        while let Some(further) = rest.strip_prefix(b"\r\n") {
            rest = further;
        }
        if rest.is_empty() {
            return Ok(recording);
        }
        number += 1;
        let broken = |what: &str| format!("record {number}: {what}");
        if !rest.starts_with(b"WARC/1.") {
            return Err(broken("it does not begin with WARC/1"));
        }
        let (head, body) = split(rest).ok_or_else(|| broken("its head does not end"))?;
        let length = field(head, "content-length").and_then(|length| length.parse::<usize>().ok());
        let length = length.ok_or_else(|| broken("it has no Content-Length"))?;
        let content = body.get(..length).ok_or_else(|| broken("it is cut off"))?;
        rest = &body[length..];
        if field(head, "warc-type").is_none_or(|kind| !kind.eq_ignore_ascii_case("response")) {
            continue;
        }
        let uri = field(head, "warc-target-uri").map(|uri| uri.trim_matches(['<', '>']).to_owned());
        match uri.and_then(|url| answer(url, content)) {
            Some(entry) => recording.entries.push(entry),
            None => recording.left_out += 1,
        }
    }
}

/// None where it does not count, or its body is in a coding that is not known here.
fn answer(url: String, content: &[u8]) -> Option<Entry> {
    let (head, body) = split(content)?;
    let status = head.split(|byte| *byte == b' ').nth(1)?;
    if !content.starts_with(b"HTTP/") || status.get(..3)? != b"200" {
        return None;
    }
    // Some crawlers undo the transfer coding and leave its field standing: then there is no size to be read.
    let chunked =
        field(head, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let body = if chunked { unchunked(body).unwrap_or_else(|| body.to_vec()) } else { body.to_vec() };
    let body = match field(head, "content-encoding").as_deref().map(str::trim) {
        None | Some("" | "identity") => body,
        Some("gzip" | "x-gzip") => {
            let mut plain = Vec::new();
            MultiGzDecoder::new(&body[..]).take(MOST).read_to_end(&mut plain).ok()?;
            plain
        }
        Some(_) => return None,
    };
    let media_type = essence(&field(head, "content-type").unwrap_or_default());
    Some(Entry { url, media_type, body })
}

/// A head, and what follows its empty line.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((&bytes[..end], &bytes[end + 4..]))
}

/// The value of a field, by its name in lower case.
fn field(head: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    text.lines().skip(1).find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

/// RFC 9112 §7.1; none where it is not chunked.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(out);
        }
        let from = end + 2;
        let to = from.checked_add(size)?;
        out.extend_from_slice(bytes.get(from..to)?);
        bytes = bytes.get(to..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn record(kind: &str, url: &str, content: &[u8]) -> Vec<u8> {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: <{url}>\r\nContent-Length: {}\r\n\r\n",
            content.len()
        );
        [head.as_bytes(), content, b"\r\n\r\n"].concat()
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn sample() -> Vec<Vec<u8>> {
        let coded = gzipped(b"coded");
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Encoding: gzip\r\n\r\n";
        vec![
            record("warcinfo", "", b"software: test"),
            record("response", "http://a.example/", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n4;x=y\r\ntext\r\n0\r\n\r\n"),
            record("request", "http://a.example/", b"GET / HTTP/1.1\r\n\r\n"),
            record("response", "http://a.example/x.css", &[&head[..], &coded].concat()),
            record("response", "http://a.example/gone", b"HTTP/1.1 404 Not Found\r\n\r\n"),
            record("response", "http://a.example/br", b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nx"),
        ]
    }

    fn check(recording: &Recording) {
        let bodies: Vec<_> = recording
            .entries
            .iter()
            .map(|entry| (entry.url.as_str(), entry.media_type.as_str(), entry.body.as_slice()))
            .collect();
        let expected = [
            ("http://a.example/", "text/html", &b"<p>text"[..]),
            ("http://a.example/x.css", "text/css", b"coded"),
        ];
        assert_eq!(bodies, expected);
        assert_eq!(recording.left_out, 2);
    }

    #[test]
    fn responses_are_read_with_every_coding_undone_gzipped_or_not() {
        check(&read(&sample().concat()).unwrap());
        let each: Vec<u8> = sample().iter().flat_map(|record| gzipped(record)).collect();
        check(&read(&each).unwrap());
    }

    #[test]
    fn what_is_no_archive_is_told_by_its_record() {
        let reason = |bytes: &[u8]| read(bytes).unwrap_err();
        assert_eq!(reason(b"<html>"), "record 1: it does not begin with WARC/1");
        let whole = sample().concat();
        assert_eq!(reason(&whole[..whole.len() - 6]), "record 6: it is cut off");
        assert_eq!(reason(b"WARC/1.0\r\nWARC-Type: response\r\n\r\n"), "record 1: it has no Content-Length");
        assert_eq!(reason(b"WARC/1.0\r\nWARC-Type"), "record 1: its head does not end");
    }
}
