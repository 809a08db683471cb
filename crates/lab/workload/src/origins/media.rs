//! Media types by file extension, and which of them are text. Pure.

/// Extension (lower case) and media type. No charset: the document's own declaration holds, as with stock servers.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("xhtml", "application/xhtml+xml"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("xml", "application/xml"),
    ("rss", "application/rss+xml"),
    ("atom", "application/atom+xml"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("vtt", "text/vtt"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("apng", "image/apng"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("bmp", "image/bmp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("eot", "application/vnd.ms-fontobject"),
    ("wasm", "application/wasm"),
    ("pdf", "application/pdf"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
];

/// The media type of a file by its name's extension; unknown ones are `application/octet-stream`.
pub fn media_type(file_name: &str) -> &'static str {
    let extension = file_name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == extension).map_or("application/octet-stream", |(_, media)| media)
}

/// The same media type where it is one of those that files have.
pub(crate) fn known(media_type: &str) -> Option<&'static str> {
    TYPES.iter().map(|(_, known)| *known).find(|known| known.eq_ignore_ascii_case(media_type))
}

/// Whether a careful operator's server would gzip this type, and the limit counts it at its best text coding.
pub fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("+xml")
        || media_type.ends_with("+json")
        || matches!(
            media_type,
            "application/json"
                | "application/xml"
                | "application/wasm"
                | "font/ttf"
                | "font/otf"
                | "image/bmp"
                | "application/vnd.ms-fontobject"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_the_extension_whatever_its_case() {
        assert_eq!(media_type("a/INDEX.HTML"), "text/html");
        assert_eq!(media_type("app.mjs"), "text/javascript");
        assert_eq!(media_type("LICENSE"), "application/octet-stream");
    }

    #[test]
    fn text_is_what_compresses_and_photographs_are_not() {
        assert!(is_text(media_type("flag.svg")) && is_text(media_type("data.json")));
        assert!(!is_text(media_type("photo.jpg")) && !is_text(media_type("font.woff2")));
    }
}
