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

/// The groups that an element is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Groups(u16);

/// An element's name, looked up once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(super) name: Name,
    pub(super) groups: Groups,
}

impl Kind {
    /// Of the element `text`, in lower case.
    pub(crate) fn of(text: &str) -> Self {
        let name = name(text);
        Kind { name, groups: Groups(TABLE[slot(&TABLE, name)].1) }
    }

    /// Whether mark-up of this kind can name anything.
    pub(crate) fn is_telling(self) -> bool {
        self.groups.is_telling()
    }

    /// Whether it is a box within a line.
    pub(crate) fn is_box(self) -> bool {
        self.groups.is_box()
    }

    /// Of no group.
    pub(super) const fn bare(name: Name) -> Self {
        Kind { name, groups: Groups(0) }
    }
}

macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident = $bit:literal: $($text:literal)*;)*) => {
        impl Groups {
            $($(#[$doc])* pub(super) fn $group(self) -> bool {
                self.0 & 1 << $bit != 0
            })*
        }

        /// What each name is of, by its last bits.
        static TABLE: [(Name, u16); SLOTS] = {
            let mut table = [(0, 0); SLOTS];
            $($(add(&mut table, name($text), 1 << $bit);)*)*
            table
        };
    };
}

const SLOTS: usize = 512;

const fn slot(table: &[(Name, u16); SLOTS], name: Name) -> usize {
    let mut at = name as usize % SLOTS;
    while table[at].0 != name && table[at].0 != 0 {
        at = (at + 1) % SLOTS;
    }
    at
}

const fn add(table: &mut [(Name, u16); SLOTS], name: Name, group: u16) {
    let at = slot(table, name);
    table[at] = (name, table[at].1 | group);
}

groups! {
    /// Elements without content (HTML, §13.1.2, and the obsolete ones that the parser knows).
    is_void = 0: "area" "base" "basefont" "bgsound" "br" "col" "embed" "frame" "hr" "img" "image" "input"
        "keygen" "link" "meta" "param" "source" "track" "wbr";
    /// Start tags that belong in the head while no body is open (HTML, §13.2.6.4.4).
    is_metadata = 1: "base" "basefont" "bgsound" "link" "meta" "noframes" "noscript" "script" "style"
        "template" "title";
    /// Start tags that end an open paragraph (HTML, §13.2.6.4.7).
    ends_paragraph = 2: "address" "article" "aside" "blockquote" "center" "dd" "details" "dialog" "dir"
        "div" "dl" "dt" "fieldset" "figcaption" "figure" "footer" "form" "h1" "h2" "h3" "h4" "h5" "h6"
        "header" "hgroup" "hr" "li" "listing" "main" "menu" "nav" "ol" "p" "plaintext" "pre" "search"
        "section" "summary" "table" "ul" "xmp";
    is_heading = 3: "h1" "h2" "h3" "h4" "h5" "h6";
    /// Formatting elements: their end tags reach over blocks (HTML, §13.2.4.3).
    is_formatting = 4: "a" "b" "big" "code" "em" "font" "i" "nobr" "s" "small" "strike" "strong" "tt" "u";
    /// Elements that no other element's end tag closes from within (HTML, §13.2.4.2, "has an element in scope").
    bounds_scope = 5: "applet" "caption" "foreignobject" "html" "marquee" "object" "table" "td" "template"
        "th";
    /// Special elements without `address`, `div` and `p`: an open `<li>` outside of them stays open.
    bounds_list_item = 6: "applet" "article" "aside" "blockquote" "body" "button" "caption" "center"
        "details" "dir" "dl" "fieldset" "figcaption" "figure" "footer" "form" "head" "header" "hgroup"
        "html" "main" "marquee" "menu" "nav" "object" "ol" "search" "section" "select" "summary" "table"
        "tbody" "td" "template" "tfoot" "th" "thead" "tr" "ul";
    /// HTML start tags that end foreign content (HTML, §13.2.6.5).
    leaves_foreign = 7: "b" "big" "blockquote" "body" "br" "center" "code" "dd" "div" "dl" "dt" "em" "embed"
        "h1" "h2" "h3" "h4" "h5" "h6" "head" "hr" "i" "img" "li" "listing" "menu" "meta" "nobr" "ol" "p"
        "pre" "ruby" "s" "small" "span" "strong" "strike" "sub" "sup" "table" "tt" "u" "ul" "var";
    /// Foreign elements whose content is HTML again (HTML, §13.2.4.2, integration points).
    holds_html = 8: "foreignobject" "desc" "title" "mi" "mo" "mn" "ms" "mtext";
    /// Displayed by no browser (HTML, §15.3.1).
    is_undisplayed = 9: "area" "base" "basefont" "datalist" "head" "link" "meta" "noembed" "noframes"
        "noscript" "param" "rp" "script" "source" "style" "template" "title" "track";
    /// Blocks with a margin of a line above and below (HTML, §15.3), headings apart.
    has_margin = 10: "p" "ul" "ol" "dl" "pre" "blockquote" "figure" "hr" "fieldset";
    /// Blocks without, and what ends a line besides.
    ends_line = 11: "div" "section" "article" "header" "footer" "main" "aside" "form" "nav" "li" "dt" "dd"
        "table" "tr" "br" "address" "figcaption" "details" "summary" "center" "video" "iframe";
    /// Boxes within a line.
    is_box = 12: "img" "input" "svg" "canvas" "object" "embed" "video" "iframe";
    /// Their content is text up to their end tag, for a browser that runs scripts (HTML, §13.2.6).
    holds_text = 13: "script" "style" "textarea" "title" "iframe" "noscript" "noembed" "noframes" "xmp" "plaintext";
    /// What the mark-up's hints come from.
    is_telling = 14: "base" "meta" "script" "style" "link" "picture" "source" "img" "image" "input" "video" "iframe"
        "frame" "object" "embed" "body" "table" "thead" "tbody" "tfoot" "tr" "td" "th";
}
