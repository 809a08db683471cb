//! The body of an answer, its content coding undone as it comes, and whether it is the original's. Pure.

use std::io::Write as _;

use farhop_workload::origins::site::sha256_hex;
use flate2::write::GzDecoder;

use crate::graph::{Kind, Object};

/// More than any page of the lab has in one object.
const MOST: usize = 256 << 20;

/// A body that is coming in.
pub(crate) struct Body {
    /// Bytes so far as they crossed.
    pub(crate) coded: u64,
    content: Content,
}

enum Content {
    Identity(Vec<u8>),
    Gzip(Box<GzDecoder<Vec<u8>>>),
}

impl Body {
    /// For a body with this `Content-Encoding`.
    pub(crate) fn new(coding: Option<&str>) -> Result<Body, String> {
        let content = match coding.map(str::trim).unwrap_or("identity") {
            coding if coding.eq_ignore_ascii_case("identity") => Content::Identity(Vec::new()),
            coding if coding.eq_ignore_ascii_case("gzip") => {
                Content::Gzip(Box::new(GzDecoder::new(Vec::new())))
            }
            coding => return Err(format!("its content coding '{coding}' was not asked for")),
        };
        Ok(Body { coded: 0, content })
    }

    /// The next bytes; how many of the content are known now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<u64, String> {
        self.coded += bytes.len() as u64;
        let plain = match &mut self.content {
            Content::Identity(plain) => {
                plain.extend_from_slice(bytes);
                plain
            }
            Content::Gzip(decoder) => {
                let written = decoder.write_all(bytes).and_then(|()| decoder.flush());
                written.map_err(|error| format!("its gzip coding is broken: {error}"))?;
                decoder.get_mut()
            }
        };
        if plain.len() > MOST { Err("it does not end".into()) } else { Ok(plain.len() as u64) }
    }

    /// All of it, at its end.
    pub(crate) fn finish(self) -> Result<Vec<u8>, String> {
        match self.content {
            Content::Identity(plain) => Ok(plain),
            Content::Gzip(decoder) => {
                decoder.finish().map_err(|error| format!("its gzip coding is broken: {error}"))
            }
        }
    }
}

/// Whether an answer is what the page has there.
pub(crate) fn judge(object: &Object, status: u16, content: &[u8], may_recode: bool) -> Result<(), String> {
    if status != 200 {
        return Err(format!("status {status}"));
    }
    if object.upload.is_some() {
        // The receipt of the lab's origins.
        let receipt = String::from_utf8_lossy(content);
        let arrived = receipt.contains(&format!("\"sha256\":\"{}\"", object.sha256));
        return if arrived {
            Ok(())
        } else {
            Err(format!("other bytes arrived than were sent: {}", receipt.trim()))
        };
    }
    if sha256_hex(content) == object.sha256 {
        return Ok(());
    }
    if may_recode && object.kind == Kind::Image && object.pixels.is_some() {
        let size = imagesize::blob_size(content).ok().map(|size| (size.width, size.height));
        return match size {
            size if size == object.pixels => Ok(()),
            Some((width, height)) => {
                Err(format!("a recoded image of {width}x{height}, not the original's size"))
            }
            None => Err("a recoded image that is none".into()),
        };
    }
    Err(format!("other bytes than the original's ({} bytes)", content.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";

    fn image(bytes: &[u8]) -> Object {
        Object::new("http://a.test/p.png".parse().unwrap(), Kind::Image, bytes)
    }

    #[test]
    fn gzip_is_undone_as_it_comes() {
        let text = b"again and again and again".repeat(100);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
        encoder.write_all(&text).unwrap();
        let coded = encoder.finish().unwrap();
        let mut body = Body::new(Some("gzip")).unwrap();
        let mut known = 0;
        for piece in coded.chunks(7) {
            let now = body.push(piece).unwrap();
            assert!(now >= known);
            known = now;
        }
        assert_eq!((body.coded, known), (coded.len() as u64, text.len() as u64));
        assert_eq!(body.finish().unwrap(), text);
        assert!(Body::new(Some("br")).is_err());
        let mut broken = Body::new(Some("gzip")).unwrap();
        assert!(broken.push(b"this is no gzip").is_err() || broken.finish().is_err());
    }

    #[test]
    fn an_upload_is_judged_by_its_receipt() {
        let object = Object::upload("http://a.test/up".parse().unwrap(), 3_000);
        let receipt = format!("{{\"bytes\":3000,\"sha256\":\"{}\"}}\n", object.sha256);
        assert_eq!(judge(&object, 200, receipt.as_bytes(), false), Ok(()));
        let other = receipt.replace(&object.sha256[..4], "0000");
        assert!(judge(&object, 200, other.as_bytes(), false).unwrap_err().starts_with("other bytes arrived"));
    }

    #[test]
    fn bytes_are_the_originals_or_a_recoded_image_has_its_size() {
        let object = image(PNG);
        assert_eq!(judge(&object, 200, PNG, false), Ok(()));
        assert_eq!(judge(&object, 502, PNG, false), Err("status 502".into()));
        let recoded = [PNG, b"more"].concat();
        assert!(judge(&object, 200, &recoded, false).is_err());
        assert_eq!(judge(&object, 200, &recoded, true), Ok(()));
        let mut smaller = recoded.clone();
        smaller[19] = 2;
        assert_eq!(
            judge(&object, 200, &smaller, true),
            Err("a recoded image of 2x2, not the original's size".into())
        );
    }
}
