//! What is assumed about the browser, and the bounds of what is read and kept of one page.

use crate::steps::Steps;

/// The screen for which `media`, `sizes` and `srcset` are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Viewport {
    /// CSS pixels.
    pub width: f64,
    /// CSS pixels.
    pub height: f64,
    /// Device pixels per CSS pixel.
    pub density: f64,
    /// Touched with fingers, which do not hover.
    pub touch: bool,
    /// Its user prefers a dark colour scheme.
    pub dark: bool,
}

impl Default for Viewport {
    /// A desktop window at one device pixel per CSS pixel: what most plain-HTTP clients of a satellite link show,
    /// and the usual size of a headless browser.
    fn default() -> Self {
        Viewport { width: 1280.0, height: 720.0, density: 1.0, touch: false, dark: false }
    }
}

/// Assumptions and bounds for one document.
#[derive(Debug, Clone)]
pub struct Options {
    /// Screen of the browser.
    pub viewport: Viewport,
    /// Whether the browser shows JPEG XL (its document request accepts `image/jxl`).
    pub jpeg_xl: bool,
    /// The document is XHTML served as XML (`application/xhtml+xml`).
    pub xml: bool,
    /// The document may run scripts; in a frame that is sandboxed it may not, and shows what stands in `<noscript>`.
    pub scripting: bool,
    /// Whether this document has an icon of its own: true for pages, false for documents in frames.
    pub default_icon: bool,
    /// Hints given at most, for one document.
    pub max_hints: usize,
    /// An attribute longer than this many bytes is ignored.
    pub max_attribute: usize,
    /// A URL longer than this many bytes is ignored.
    pub max_url: usize,
    /// Bytes of the document that are read.
    pub max_html: u64,
    /// Elements remembered for matching selectors; later ones match nothing.
    pub max_elements: usize,
    /// Bytes of names and attributes remembered of all elements.
    pub max_element_bytes: usize,
    /// Guesses taken from scripts: literal paths, and modules that only some of their code imports.
    pub max_literals: usize,
    /// Stylesheets and scripts read at one time, and bytes read of each.
    pub max_resources: usize,
    /// See [`max_resources`](Options::max_resources).
    pub max_resource_bytes: usize,
    /// Bytes of style sheets read for one page, `<style>` included; a sheet beyond it counts no more.
    pub max_css: usize,
    /// Steps of matching selectors; when they are spent nothing matches. A clone of these options shares them.
    pub matching: Steps,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            viewport: Viewport::default(),
            jpeg_xl: false,
            xml: false,
            scripting: true,
            default_icon: true,
            max_hints: 2_000,
            max_attribute: 64 * 1024,
            max_url: 8 * 1024,
            max_html: 16 << 20,
            max_elements: 60_000,
            max_element_bytes: 4 << 20,
            max_literals: 200,
            max_resources: 256,
            max_resource_bytes: 16 << 20,
            max_css: 8 << 20,
            matching: Steps::new(10_000_000),
        }
    }
}
