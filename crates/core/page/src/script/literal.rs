//! Strings of a script that look like paths of resources, and what they would be used as.

use crate::hint::{Destination, Mode};

/// Longest string considered, in bytes.
const MAX_LENGTH: usize = 512;

/// Whether `text` looks like the path or URL of a resource: a known suffix with a name before it, and nothing that
/// stands in prose, patterns or templates. With a query it is more often a call that counts or changes something than a
/// file. A script's name without a slash is more often a word (`Vue.js`).
pub(super) fn is_path(text: &str) -> bool {
    let path = without_fragment(text);
    let Some((stem, suffix)) = path.rsplit_once('.') else { return false };
    if text.len() > MAX_LENGTH || kind(suffix).is_none() {
        return false;
    }
    let named = stem.as_bytes().last().is_some_and(|byte| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'-' | b')')
    });
    let plain = text.bytes().all(|byte| {
        byte > b' '
            && byte != 0x7F
            && !matches!(
                byte,
                b'?' | b'<' | b'>' | b'{' | b'}' | b'*' | b'|' | b'"' | b'`' | b'^' | b'$' | b'\\'
            )
    });
    // What could not be decoded is in another encoding than was thought.
    named
        && plain
        && !text.contains('\u{fffd}')
        && (stem.contains('/') || !matches!(suffix, "js" | "mjs" | "json"))
}

/// The path in what scripts put behind a scheme that they choose by the page's own, as in `scheme + '://cdn.example/a.js'`.
pub(super) fn behind_scheme(text: &str) -> Option<&str> {
    text.strip_prefix(':').filter(|rest| rest.starts_with("//") && is_path(rest))
}

fn without_fragment(text: &str) -> &str {
    text.split('#').next().unwrap_or_default()
}

/// What a path names, by its suffix; the mode in which scripts usually load such a thing.
pub(crate) fn destination(path: &str, module: bool) -> Option<(Destination, Mode)> {
    let (_, suffix) = without_fragment(path).rsplit_once('.')?;
    let destination = kind(suffix)?;
    let mode = match destination {
        Destination::Font | Destination::Fetch => Mode::Cors,
        Destination::Script if module => Mode::Cors,
        _ => Mode::NoCors,
    };
    Some((destination, mode))
}

fn kind(suffix: &str) -> Option<Destination> {
    Some(match suffix {
        "js" | "mjs" => Destination::Script,
        "css" => Destination::Style,
        "json" => Destination::Fetch,
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" => Destination::Image,
        "woff2" | "woff" | "ttf" | "otf" => Destination::Font,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_a_scheme_is_of_the_pages_own() {
        assert_eq!(behind_scheme("://cdn.test/a.js"), Some("//cdn.test/a.js"));
        for text in ["/cdn.test/a.js", "//cdn.test/a.js", ":8080/a.js", "://cdn.test/a"] {
            assert_eq!(behind_scheme(text), None, "{text}");
        }
    }

    #[test]
    fn paths_are_told_from_prose() {
        for path in [
            "a/b.js",
            "/app.css",
            "img.png",
            "./x.woff2",
            "https://cdn.test/x.mjs",
            "assets/About-3f2c.js",
            "a.svg#icon",
            "data/list.json",
        ] {
            assert!(is_path(path), "{path}");
        }
        for text in [
            "",
            ".js",
            "/.png",
            "Vue.js",
            "use a.js",
            "*.png",
            "${a}/b.png",
            "a.b",
            "package.json",
            "<img src=a.png",
            "a.png ",
            "image/png",
            "/click.gif?vote=1",
            "/cart/remove.js?item=3#x",
            "/^a.js$/",
            "a.js|b.js",
            "img/\u{fffd}.png",
        ] {
            assert!(!is_path(text), "{text}");
        }
    }
}
