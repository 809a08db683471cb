//! Which of a page's icons the browser fetches. Desktop browsers show 16 px tabs.

/// An icon link, in document order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IconLink<T> {
    pub(crate) sizes: Option<String>,
    pub(crate) icon: T,
}

/// The size in pixels that a tab shows at one device pixel per CSS pixel.
const TAB_ICON: f64 = 16.0;

/// The one that fits a tab best; where several fit equally well, the first, as Chromium does.
pub(crate) fn choose<T>(links: Vec<IconLink<T>>) -> Option<T> {
    let mut best: Option<(f64, T)> = None;
    for link in links {
        let fit = link.sizes.as_deref().map_or(0.0, fit);
        if best.as_ref().is_none_or(|(best, _)| fit > *best) {
            best = Some((fit, link.icon));
        }
    }
    best.map(|(_, icon)| icon)
}

/// From 0 (nothing known) to 1 (exact): an icon that must shrink is better than one that must grow.
fn fit(sizes: &str) -> f64 {
    let score = |token: &str| -> f64 {
        if token == "any" {
            return 1.0;
        }
        let width =
            token.split('x').next().and_then(|width| width.parse::<u32>().ok()).map_or(0.0, f64::from);
        match width {
            0.0 => 0.0,
            exact if exact == TAB_ICON => 1.0,
            larger if larger > TAB_ICON => 0.9 * (TAB_ICON / larger).sqrt(),
            smaller => 0.1 * smaller / TAB_ICON,
        }
    };
    sizes.to_ascii_lowercase().split_ascii_whitespace().map(score).fold(0.0, f64::max)
}
