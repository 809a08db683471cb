//! What a scanner assumes about the browser, and its bounds.

/// The screen for which `media`, `sizes` and `srcset` are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Viewport {
    /// CSS pixels.
    pub width: f64,
    /// CSS pixels.
    pub height: f64,
    /// Device pixels per CSS pixel.
    pub density: f64,
}

impl Default for Viewport {
    /// A desktop window at one device pixel per CSS pixel: what most plain-HTTP clients of a satellite link show,
    /// and the usual size of a headless browser.
    fn default() -> Self {
        Viewport { width: 1280.0, height: 720.0, density: 1.0 }
    }
}

/// Assumptions and bounds of one scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Screen of the browser.
    pub viewport: Viewport,
    /// Whether the browser shows JPEG XL (its document request accepts `image/jxl`).
    pub jpeg_xl: bool,
    /// Whether this document has an icon of its own: true for pages, false for documents in frames.
    pub default_icon: bool,
    /// Hints given at most, for one document.
    pub max_hints: usize,
    /// An attribute longer than this many bytes is ignored.
    pub max_attribute: usize,
    /// A URL longer than this many bytes is ignored.
    pub max_url: usize,
    /// Bytes that the HTML parser may hold; beyond it the scan ends.
    pub max_memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            viewport: Viewport::default(),
            jpeg_xl: false,
            default_icon: true,
            max_hints: 2_000,
            max_attribute: 64 * 1024,
            max_url: 8 * 1024,
            max_memory: 512 * 1024,
        }
    }
}
