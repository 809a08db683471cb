//! Streaming media as it passes by: HLS and DASH manifests limited to the renditions that a link carries, and the rate at
//! which what they name, or a file by itself, is played, so that it is sent as it plays and not as fast as can be. Pure:
//! bytes and the time in, bytes and times out.

mod book;
mod dash;
mod file;
mod hls;
mod pick;
mod xml;

use farhop_units::BitRate;

pub use book::{Book, Course, Terms};
pub use file::play_time;

/// A longer manifest is left alone.
pub const LARGEST_MANIFEST: u64 = 4 << 20;

/// What a manifest is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// HTTP Live Streaming (RFC 8216).
    Hls,
    /// MPEG-DASH (ISO/IEC 23009-1).
    Dash,
}

/// A manifest that was limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    /// All of it but what was left out, byte for byte.
    pub text: Vec<u8>,
    /// Renditions that are in it still.
    pub kept: usize,
    /// Renditions that are not.
    pub left_out: usize,
    /// The highest bit rate that is in it still.
    pub best: BitRate,
}

/// Why a manifest is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Left {
    /// It names no renditions, but pieces of one.
    #[error("it offers no choice")]
    NoChoice,
    /// None of them is beyond the limit.
    #[error("the limit allows all of its renditions")]
    Fits,
    /// Each that is beyond the limit is the least of its kind.
    #[error("each of its renditions is the least of its kind")]
    Least,
    /// It vouches for its own bytes.
    #[error("it is signed")]
    Signed,
    /// Parts of it cannot be read.
    #[error("it is encrypted")]
    Encrypted,
    /// What changes of it is told by position.
    #[error("changes of it are told by their place in it")]
    Patched,
    /// Not what its form allows, or more than is read.
    #[error("it is not understood")]
    NotUnderstood,
}

impl Form {
    /// The form of what has this media type, in lower case and without parameters, and this path. Servers that do not know the
    /// types say that it is bytes, or text.
    pub fn of(media: &str, path: &str) -> Option<Form> {
        let ends = |suffix: &str| {
            let path = path.split(['?', '#']).next().unwrap_or_default();
            path.len() >= suffix.len()
                && path.as_bytes()[path.len() - suffix.len()..].eq_ignore_ascii_case(suffix.as_bytes())
        };
        match media {
            "application/vnd.apple.mpegurl"
            | "application/x-mpegurl"
            | "audio/mpegurl"
            | "audio/x-mpegurl" => Some(Form::Hls),
            "application/dash+xml" => Some(Form::Dash),
            "" | "application/octet-stream" | "binary/octet-stream" | "text/plain" if ends(".m3u8") => {
                Some(Form::Hls)
            }
            ""
            | "application/octet-stream"
            | "binary/octet-stream"
            | "text/plain"
            | "text/xml"
            | "application/xml"
                if ends(".mpd") =>
            {
                Some(Form::Dash)
            }
            _ => None,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Form::Hls => "HLS",
            Form::Dash => "DASH",
        }
    }
}

/// The manifest without the renditions whose bit rate is beyond `most`. Of each kind that a player may need (codecs, dynamic
/// range, way of delivery; picture or sound) the least stays, so that it is never empty. All else stays byte for byte.
///
/// # Errors
/// It has to stay as it is.
pub fn limit(form: Form, text: &[u8], most: BitRate) -> Result<Limited, Left> {
    let text = read(text)?;
    match form {
        Form::Hls => hls::limit(text, most),
        Form::Dash => dash::limit(text, most),
    }
}

/// Both forms are UTF-8 (RFC 8216 §4.1; other encodings of XML are left alone), and HLS allows no byte order mark.
fn read(text: &[u8]) -> Result<&str, Left> {
    if text.len() as u64 > LARGEST_MANIFEST {
        return Err(Left::NotUnderstood);
    }
    std::str::from_utf8(text).map_err(|_| Left::NotUnderstood)
}

/// Entry point of the fuzz target: of whatever comes a manifest is made that says less, and says it in the same words.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let Ok(url) = url::Url::parse("https://media.test/show/master") else { return };
    let most = BitRate::kbit(data.first().copied().map_or(0, u64::from) * 40);
    let mut book = Book::default();
    for form in [Form::Hls, Form::Dash] {
        if let Ok(limited) = limit(form, data, most) {
            assert!(limited.kept > 0 && limited.left_out > 0 && limited.text.len() < data.len());
            let mut rest = data.iter();
            assert!(limited.text.iter().all(|byte| rest.any(|it| it == byte)), "nothing is added");
            match limit(form, &limited.text, most) {
                Err(Left::Fits | Left::Least | Left::NoChoice) => {}
                other => panic!("limited once is limited for good: {other:?}"),
            }
        }
        book.note_manifest(1, &url, form, data);
    }
    let _ = play_time(data);
    let _ = book.course(1, &url, Some(1_000_000));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn manifests_are_known_by_type_and_by_name_where_the_type_says_nothing() {
        for (media, path, form) in [
            ("application/vnd.apple.mpegurl", "/x", Some(Form::Hls)),
            ("audio/x-mpegurl", "/x", Some(Form::Hls)),
            ("application/dash+xml", "/x", Some(Form::Dash)),
            ("application/octet-stream", "/a/b.M3U8?t=1", Some(Form::Hls)),
            ("text/xml", "/a.mpd", Some(Form::Dash)),
            ("text/html", "/a.m3u8", None),
            ("text/plain", "/readme", None),
            ("", "/é", None),
        ] {
            assert_eq!(Form::of(media, path), form, "{media} {path}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_ends_well(data in proptest::collection::vec(any::<u8>(), 0..400)) {
            fuzz(&data);
        }
    }
}
