//! How far down the page an element stands, estimated before any style sheet is there.
//!
//! The estimate lays the page out as mark-up alone would: text in lines of 16 px type over three quarters of the
//! window's width (10 px for a character that is no blank, line 24 px), blocks below each other with their usual margins, images
//! where lines are by their `width` and `height` attributes (100 px where they say nothing), table cells side by
//! side. What is not displayed takes no room. Floats, grids, columns and everything absolute are unknown, and put
//! more on the first screenful than this says; so what counts as below the fold must stand [`MARGIN`] screenfuls
//! down. It ranks, and holds back what is lazy and far down; nothing else is left out for it.

use super::names::{Kind, name};
use crate::options::Viewport;

/// Screenfuls of estimated height that count as "in view".
const MARGIN: f64 = 2.0;
/// Whole numbers, so that sums do not depend on how the text was cut.
const CHARACTER: f64 = 10.0;
const LINE: f64 = 24.0;
const UNKNOWN_IMAGE: f64 = 100.0;
/// Further height of a lazy image of unknown size for [`Fold::is_far`], so that no more than ten or twenty of them are
/// near.
const UNKNOWN_LAZY: f64 = 100.0;
/// How far below the window Chromium asks for what is lazy, over a quick link, in CSS pixels (2,500 over a slow one: its
/// settings `lazy_loading_image_margin_px`).
const NEAR: f64 = 1_250.0;

/// The pen of the estimate, in CSS pixels.
#[derive(Debug)]
pub(crate) struct Fold {
    column: f64,
    fold: f64,
    /// Height of the window and of what is near it.
    near: f64,
    /// Further height of lazy images.
    lazy: f64,
    x: f64,
    y: f64,
    /// Height of the line that is being filled.
    line: f64,
}

impl Fold {
    pub(crate) fn new(viewport: &Viewport) -> Self {
        Fold {
            column: (viewport.width * 0.75).round().max(CHARACTER),
            fold: viewport.height * MARGIN,
            near: viewport.height + NEAR,
            lazy: 0.0,
            x: 0.0,
            y: 0.0,
            line: 0.0,
        }
    }

    pub(crate) fn is_below(&self) -> bool {
        self.y > self.fold
    }

    /// Whether the browser leaves what is lazy here until the user scrolls.
    pub(crate) fn is_far(&self) -> bool {
        self.y + self.lazy > self.near
    }

    /// The image that comes next is lazy and says no size.
    pub(crate) fn unknown_lazy(&mut self) {
        self.lazy += UNKNOWN_LAZY;
    }

    /// Text of so many bytes that are no blanks.
    pub(crate) fn text(&mut self, bytes: usize) {
        self.line = self.line.max(LINE);
        self.x += bytes as f64 * CHARACTER;
        if self.x >= self.column {
            let lines = (self.x / self.column).floor();
            self.y += lines * LINE;
            self.x -= lines * self.column;
            self.line = LINE;
        }
    }

    /// A box within the line.
    fn inline(&mut self, width: f64, height: f64) {
        if self.x > 0.0 && self.x + width > self.column {
            self.end_line();
        }
        self.x += width;
        self.line = self.line.max(height);
    }

    /// An image with its `width` and `height` attributes, if they are numbers.
    pub(crate) fn image(&mut self, width: Option<f64>, height: Option<f64>) {
        let (width, height) = match (width, height) {
            (Some(width), Some(height)) if width > self.column => {
                (self.column, (height * self.column / width).round())
            }
            (Some(width), Some(height)) => (width, height),
            (Some(side), None) | (None, Some(side)) => (side.min(self.column), side.min(self.column)),
            (None, None) => (UNKNOWN_IMAGE, UNKNOWN_IMAGE),
        };
        self.inline(width, height);
    }

    fn end_line(&mut self) {
        self.y += self.line;
        (self.x, self.line) = (0.0, 0.0);
    }

    /// The start or end tag of an element of this kind, whose block may end the line.
    pub(crate) fn edge(&mut self, kind: Kind) {
        let margin = match kind.groups {
            block if block.has_margin() => 16.0,
            heading if heading.is_heading() => {
                if kind.name == name("h1") {
                    21.0
                } else {
                    20.0
                }
            }
            block if block.ends_line() => 0.0,
            _ => return,
        };
        if self.x > 0.0 || kind.name == name("br") {
            self.line = self.line.max(LINE);
            self.end_line();
            // Margins of neighbours collapse: only the edge that ends a line has one.
            self.y += margin;
        }
    }
}

/// `width` and `height` as numbers of pixels (HTML, "rules for parsing dimension values", short of percentages).
pub(crate) fn pixels(value: &str) -> Option<f64> {
    let text = value.trim_start();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if text[digits..].trim_start().starts_with('%') {
        return None;
    }
    text[..digits].parse().ok().filter(|&pixels| pixels < 100_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images_in_view(width: Option<f64>, height: Option<f64>) -> usize {
        let mut fold = Fold::new(&Viewport::default());
        (0..100_000)
            .take_while(|_| {
                fold.image(width, height);
                !fold.is_below()
            })
            .count()
    }

    #[test]
    fn large_images_pass_the_fold_sooner_than_small_ones() {
        let (large, small) =
            (images_in_view(Some(960.0), Some(480.0)), images_in_view(Some(32.0), Some(24.0)));
        assert!((2..8).contains(&large), "{large}");
        assert!((1_000..3_000).contains(&small), "{small}");
        assert!((100..200).contains(&images_in_view(None, None)));
    }

    #[test]
    fn text_and_blocks_take_room() {
        let mut fold = Fold::new(&Viewport::default());
        for _ in 0..8 {
            fold.text(500);
            fold.edge(Kind::of("p"));
        }
        assert!(!fold.is_below());
        for _ in 0..8 {
            fold.text(500);
            fold.edge(Kind::of("p"));
        }
        assert!(fold.is_below());
    }

    #[test]
    fn dimensions_are_read_as_browsers_do() {
        let cases = [
            ("12", Some(12.0)),
            (" 12px", Some(12.0)),
            ("50%", None),
            ("auto", None),
            ("", None),
            ("12.7", Some(12.0)),
        ];
        for (value, expected) in cases {
            assert_eq!(pixels(value), expected, "{value:?}");
        }
    }
}
