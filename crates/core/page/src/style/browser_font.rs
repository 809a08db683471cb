//! What the browser's own sheet says of an element's font (HTML, "rendering": §15.3 and §15.5).

use super::font_value::Weight;
use super::fonts::Font;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrowserFont {
    Inherited,
    Heading,
    Strong,
    Emphasis,
    Code,
    /// Controls do not inherit.
    Control,
}

impl BrowserFont {
    pub(super) const COUNT: usize = BrowserFont::Control as usize + 1;

    /// Of the element `name`.
    pub(super) fn of(name: &str) -> Self {
        match name.as_bytes() {
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"th" => BrowserFont::Heading,
            b"b" | b"strong" => BrowserFont::Strong,
            b"i" | b"em" | b"cite" | b"var" | b"dfn" | b"address" => BrowserFont::Emphasis,
            b"code" | b"pre" | b"kbd" | b"samp" | b"tt" => BrowserFont::Code,
            b"input" | b"button" | b"select" | b"textarea" => BrowserFont::Control,
            _ => BrowserFont::Inherited,
        }
    }

    /// The font of such an element within one that has `above`.
    pub(super) fn within(self, above: &Font) -> Font {
        let above = above.clone();
        match self {
            BrowserFont::Inherited => above,
            BrowserFont::Heading => Font { weight: 700, ..above },
            BrowserFont::Strong => Font { weight: Weight::Bolder.computed(above.weight), ..above },
            BrowserFont::Emphasis => Font { italic: true, ..above },
            BrowserFont::Code => Font { families: ["monospace".into()].into(), ..above },
            BrowserFont::Control => {
                Font { families: ["system-ui".into()].into(), weight: 400, italic: false }
            }
        }
    }
}
