//! Which of a page's icons the browser fetches. Desktop browsers show 16 px tabs.

/// An icon link, in document order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IconLink<T> {
    pub(crate) sizes: Option<String>,
    pub(crate) icon: T,
}

/// The sizes in pixels that Chromium wants of a tab's icon: for one and for two device pixels per CSS pixel.
const WANTED: [f64; 2] = [16.0, 32.0];

/// Icons of one page that are taken.
const MOST: usize = 4;

/// The icons that Chromium fetches, in its order (recorded with Chromium 156): first one that does not say its size, since it
/// may be right; else the one whose sizes fit best. Of equals the last (HTML, "link type icon"). What has not said its size
/// and proves to be of another than those wanted is followed by the next that may be right; a file that `has_all` sizes is not.
pub(crate) fn choose<T>(links: Vec<IconLink<T>>, has_all: impl FnOnce(&T) -> bool) -> Vec<T> {
    let fit_of = |link: &IconLink<T>| link.sizes.as_deref().map_or(f64::INFINITY, fit);
    let mut ranked: Vec<(f64, T)> = links.into_iter().rev().map(|link| (fit_of(&link), link.icon)).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let is_right = ranked.first().is_some_and(|(fit, icon)| fit.is_finite() || has_all(icon));
    let may_follow = |(at, (fit, _)): &(usize, (f64, T))| *at == 0 || (!is_right && *fit >= 1.0);
    ranked.into_iter().enumerate().filter(may_follow).take(MOST).map(|(_, (_, icon))| icon).collect()
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
