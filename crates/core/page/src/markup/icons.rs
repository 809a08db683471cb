//! Which of a page's icons the browser fetches. Desktop browsers show 16 px tabs.

/// An icon link, in document order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IconLink<T> {
    pub(crate) sizes: Option<String>,
    pub(crate) icon: T,
}

/// The sizes in pixels that Chromium wants of a tab's icon: for one and for two device pixels per CSS pixel.
const WANTED: [f64; 2] = [16.0, 32.0];

/// The icon that Chromium fetches first (recorded with Chromium 156): one that does not say its size, since it may be
/// right; else the one whose sizes fit best. Of equals the last (HTML, "link type icon").
pub(crate) fn choose<T>(links: Vec<IconLink<T>>) -> Option<T> {
    let mut best: Option<(f64, T)> = None;
    for link in links {
        let fit = link.sizes.as_deref().map_or(f64::INFINITY, fit);
        if best.as_ref().is_none_or(|(best, _)| fit >= *best) {
            best = Some((fit, link.icon));
        }
    }
    best.map(|(_, icon)| icon)
}

/// From 0 (of no use) to 1 (exact at both sizes).
fn fit(sizes: &str) -> f64 {
    let sizes = sizes.to_ascii_lowercase();
    let at =
        |wanted: f64| sizes.split_ascii_whitespace().map(|size| fit_at(size, wanted)).fold(0.0, f64::max);
    WANTED.into_iter().map(at).sum::<f64>() / WANTED.len() as f64
}

fn fit_at(size: &str, wanted: f64) -> f64 {
    if size == "any" {
        return 1.0;
    }
    match size.split('x').next().and_then(|width| width.parse::<u32>().ok()).map(f64::from) {
        Some(width) if width == wanted => 1.0,
        // Shrinking is better than growing, and less of either is better.
        Some(width) if width > wanted => 0.9 * (wanted / width).sqrt(),
        Some(width) => 0.5 * width / wanted,
        None => 0.0,
    }
}
