//! Element names as numbers, and the groups of elements that tree construction knows (HTML, §13.2.4 and §13.2.6).

/// FNV-1a of a lower-case name: told apart well enough for advice, and cheap to compare.
pub(super) type Name = u64;

pub(super) const fn name(text: &str) -> Name {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

macro_rules! group {
    ($(#[$doc:meta])* $function:ident: $($text:literal)*) => {
        $(#[$doc])*
        pub(super) fn $function(which: Name) -> bool {
            const NAMES: &[Name] = &{
                let mut names = [$(name($text)),*];
                // Sorted, so that a look-up is a few comparisons.
                let mut at = 1;
                while at < names.len() {
                    let mut back = at;
                    while back > 0 && names[back - 1] > names[back] {
                        (names[back - 1], names[back]) = (names[back], names[back - 1]);
                        back -= 1;
                    }
                    at += 1;
                }
                names
            };
            NAMES.binary_search(&which).is_ok()
        }
    };
}

group! {
    /// Elements without content (HTML, §13.1.2, and the obsolete ones that the parser knows).
    is_void: "area" "base" "basefont" "bgsound" "br" "col" "embed" "frame" "hr" "img" "image" "input" "keygen" "link"
        "meta" "param" "source" "track" "wbr"
}

group! {
    /// Start tags that belong in the head while no body is open (HTML, §13.2.6.4.4).
    is_metadata: "base" "basefont" "bgsound" "link" "meta" "noframes" "noscript" "script" "style" "template" "title"
}

group! {
    /// Start tags that end an open paragraph (HTML, §13.2.6.4.7).
    ends_paragraph: "address" "article" "aside" "blockquote" "center" "dd" "details" "dialog" "dir" "div" "dl" "dt"
        "fieldset" "figcaption" "figure" "footer" "form" "h1" "h2" "h3" "h4" "h5" "h6" "header" "hgroup" "hr" "li"
        "listing" "main" "menu" "nav" "ol" "p" "plaintext" "pre" "search" "section" "summary" "table" "ul" "xmp"
}

group! {
    is_heading: "h1" "h2" "h3" "h4" "h5" "h6"
}

group! {
    /// Formatting elements: their end tags reach over blocks (HTML, §13.2.4.3).
    is_formatting: "a" "b" "big" "code" "em" "font" "i" "nobr" "s" "small" "strike" "strong" "tt" "u"
}

group! {
    /// Elements that no other element's end tag closes from within (HTML, §13.2.4.2, "has an element in scope").
    bounds_scope: "applet" "caption" "foreignobject" "html" "marquee" "object" "table" "td" "template" "th"
}

group! {
    /// Special elements without `address`, `div` and `p`: an open `<li>` outside of them stays open.
    bounds_list_item: "applet" "article" "aside" "blockquote" "body" "button" "caption" "center" "details" "dir" "dl"
        "fieldset" "figcaption" "figure" "footer" "form" "head" "header" "hgroup" "html" "main" "marquee" "menu" "nav"
        "object" "ol" "search" "section" "select" "summary" "table" "tbody" "td" "template" "tfoot" "th" "thead" "tr"
        "ul"
}

group! {
    /// HTML start tags that end foreign content (HTML, §13.2.6.5).
    leaves_foreign: "b" "big" "blockquote" "body" "br" "center" "code" "dd" "div" "dl" "dt" "em" "embed" "h1" "h2" "h3"
        "h4" "h5" "h6" "head" "hr" "i" "img" "li" "listing" "menu" "meta" "nobr" "ol" "p" "pre" "ruby" "s" "small"
        "span" "strong" "strike" "sub" "sup" "table" "tt" "u" "ul" "var"
}

group! {
    /// Foreign elements whose content is HTML again (HTML, §13.2.4.2, integration points).
    holds_html: "foreignobject" "desc" "title" "mi" "mo" "mn" "ms" "mtext"
}

group! {
    /// Displayed by no browser (HTML, §15.3.1).
    is_undisplayed: "area" "base" "basefont" "datalist" "head" "link" "meta" "noembed" "noframes" "noscript" "param" "rp"
        "script" "source" "style" "template" "title" "track"
}
