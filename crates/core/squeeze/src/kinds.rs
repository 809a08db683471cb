//! Which media types gain from compression like text does.

/// Types outside `text/` that are text, or compress like it.
const LIKE_TEXT: [&str; 18] = [
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "application/x-javascript",
    "application/xml",
    "application/xml-dtd",
    "application/graphql",
    "application/x-ndjson",
    "application/wasm",
    "application/vnd.ms-fontobject",
    "application/x-font-ttf",
    "application/x-font-otf",
    "font/ttf",
    "font/otf",
    "font/sfnt",
    "image/bmp",
    "image/x-icon",
];

/// Whether a body of this `Content-Type` is worth compressing: text of any kind, and the few binary formats that are
/// not compressed by themselves (SVG, ICO, BMP, TTF, OTF, WebAssembly). WOFF, PNG and the like are.
pub fn is_text(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || essence == "image/vnd.microsoft.icon"
        || LIKE_TEXT.contains(&essence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gains_and_what_is_compressed_already_does_not() {
        for text in [
            "text/html; charset=utf-8",
            "Text/CSS",
            "application/json",
            "image/svg+xml",
            "application/ld+json",
            "font/ttf",
            "application/javascript;charset=utf-8",
            "image/x-icon",
            "application/wasm",
        ] {
            assert!(is_text(text), "{text}");
        }
        for other in [
            "image/png",
            "image/jpeg",
            "font/woff2",
            "application/zip",
            "video/mp4",
            "application/octet-stream",
            "",
            "multipart/form-data",
        ] {
            assert!(!is_text(other), "{other}");
        }
    }
}
