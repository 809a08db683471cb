//! Media types that browsers take: scripts by their `type`, preloads and picture sources by what can be shown.

use crate::hint::Destination;

/// Types that make a `<script>` a classic script (HTML, JavaScript MIME type essence match).
const SCRIPT_TYPES: [&str; 17] = [
    "",
    "application/ecmascript",
    "application/javascript",
    "application/x-ecmascript",
    "application/x-javascript",
    "text/ecmascript",
    "text/javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/jscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
];

const IMAGE_TYPES: [&str; 14] = [
    "image/apng",
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/jpeg",
    "image/jpg",
    "image/pjpeg",
    "image/png",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
    "image/webp",
    "image/x-icon",
    "image/x-png",
    "image/x-xbitmap",
];

const FONT_TYPES: [&str; 13] = [
    "font/woff2",
    "font/woff",
    "font/ttf",
    "font/otf",
    "font/sfnt",
    "font/collection",
    "application/font-woff",
    "application/font-woff2",
    "application/x-font-woff",
    "application/x-font-ttf",
    "application/x-font-otf",
    "application/font-sfnt",
    "application/vnd.ms-opentype",
];

/// Whether a response of media type `kind`, in lower case and without parameters, is JavaScript (MIME Sniffing, §4.6).
pub fn is_script_type(kind: &str) -> bool {
    !kind.is_empty() && is_classic_script(kind)
}

/// Whether `type`, lower-case and trimmed, makes a `<script>` a classic script.
pub(crate) fn is_classic_script(kind: &str) -> bool {
    SCRIPT_TYPES.contains(&kind)
}

/// Whether a browser would use a preload or picture source of this `type`; saying none fits everything.
pub(crate) fn fits(destination: Destination, kind: &str, jpeg_xl: bool) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.is_empty()
        || match destination {
            // Chromium preloads scripts of any type, `module` and data blocks among them (recorded).
            Destination::Script => true,
            Destination::Style => essence == "text/css",
            Destination::Image => IMAGE_TYPES.contains(&essence) || (jpeg_xl && essence == "image/jxl"),
            Destination::Font => FONT_TYPES.contains(&essence),
            _ => true,
        }
}
