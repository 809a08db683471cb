//! `srcset`: its candidates, and the one that a browser takes (HTML, "parsing a srcset attribute").

/// Candidates beyond this number are ignored.
const MAX_CANDIDATES: usize = 256;

/// One image of a `srcset`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate<'a> {
    pub(crate) url: &'a str,
    pub(crate) descriptor: Descriptor,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Descriptor {
    /// `2x`; `1x` where nothing is said.
    Density(f64),
    /// `640w`.
    Width(f64),
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

/// The valid candidates in order.
pub(crate) fn parse(srcset: &str) -> Vec<Candidate<'_>> {
    let mut candidates = Vec::new();
    let mut rest = srcset;
    while candidates.len() < MAX_CANDIDATES {
        rest = rest.trim_start_matches(|c| is_space(c) || c == ',');
        if rest.is_empty() {
            break;
        }
        let (word, tail) = rest.split_at(rest.find(is_space).unwrap_or(rest.len()));
        let url = word.trim_end_matches(',');
        if url.len() < word.len() {
            rest = tail;
            candidates.push(Candidate { url, descriptor: Descriptor::Density(1.0) });
            continue;
        }
        let end = end_of_descriptors(tail);
        rest = &tail[end..];
        if let Some(descriptor) = descriptor(&tail[..end]) {
            candidates.push(Candidate { url, descriptor });
        }
    }
    candidates
}

/// Up to the comma that is in no parentheses.
fn end_of_descriptors(text: &str) -> usize {
    let mut inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => return at,
            _ => {}
        }
    }
    text.len()
}

fn descriptor(text: &str) -> Option<Descriptor> {
    let (mut width, mut density, mut height) = (None, None, false);
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        let (number, unit) = word.split_at_checked(word.len() - 1)?;
        match unit {
            "w" if width.is_none() && density.is_none() => {
                width = Some(number.parse::<u32>().ok().filter(|&n| n > 0 && !number.starts_with('+'))?);
            }
            "x" if width.is_none() && density.is_none() && !height => density = Some(floating(number)?),
            "h" if density.is_none() && !height => {
                number.parse::<u32>().ok().filter(|&n| n > 0)?;
                height = true;
            }
            _ => return None,
        }
    }
    match (width, density) {
        (Some(width), _) => Some(Descriptor::Width(width.into())),
        // A height without a width is an error.
        (None, _) if height => None,
        (None, density) => Some(Descriptor::Density(density.unwrap_or(1.0))),
    }
}

/// HTML's "valid floating-point number", which knows neither `inf` nor a leading plus.
fn floating(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E'));
    (plain && !text.starts_with('+'))
        .then(|| text.parse::<f64>().ok())
        .flatten()
        .filter(|&value| value >= 0.0)
}

/// Whether the width of the slot decides among several.
pub(crate) fn depends_on_width(srcset: &str) -> bool {
    let candidates = parse(srcset);
    let of_width = candidates.iter().filter(|candidate| matches!(candidate.descriptor, Descriptor::Width(_)));
    of_width.take(2).count() > 1
}

/// The URL that Chromium would load for an element: among the candidates of `srcset` and `src`, for a slot of
/// `slot` CSS pixels on a screen of `density`.
pub(crate) fn choose<'a>(srcset: &'a str, src: Option<&'a str>, slot: f64, density: f64) -> Option<&'a str> {
    let parsed = parse(srcset);
    let by_width = parsed.iter().any(|candidate| matches!(candidate.descriptor, Descriptor::Width(_)));
    let mut images: Vec<(f64, &str)> = parsed
        .into_iter()
        .map(|candidate| match candidate.descriptor {
            Descriptor::Density(density) => (density, candidate.url),
            Descriptor::Width(width) => (width / slot.max(f64::MIN_POSITIVE), candidate.url),
        })
        .collect();
    // HTML, "update the source set": `src` counts as 1x unless widths or another 1x are given.
    let has_single = images.iter().any(|&(density, _)| (density - 1.0).abs() < f64::EPSILON);
    images.extend(src.filter(|_| !by_width && !has_single).map(|src| (1.0, src)));
    images.sort_by(|a, b| a.0.total_cmp(&b.0));
    images.dedup_by(|next, kept| next.0 == kept.0);
    // As Blink's `SelectionLogic` does: the densest below the screen is left only when the geometric mean with the
    // next says so, and at 1x or less the next larger is always taken.
    let mut chosen = 0;
    for next in 1..images.len() {
        let (current_density, next_density) = (images[chosen].0, images[next].0);
        if next_density < density {
            chosen = next;
            continue;
        }
        let mean = (current_density * next_density).sqrt();
        if (density <= 1.0 && density > current_density) || density >= mean {
            chosen = next;
        }
        break;
    }
    images.get(chosen).map(|&(_, url)| url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_parsed_as_the_standard_says() {
        let density = |url, value| Candidate { url, descriptor: Descriptor::Density(value) };
        let width = |url, value| Candidate { url, descriptor: Descriptor::Width(value) };
        let cases: Vec<(&str, Vec<Candidate<'_>>)> = vec![
            ("", vec![]),
            (" , ,", vec![]),
            ("a.png", vec![density("a.png", 1.0)]),
            ("a.png, b.png 2x", vec![density("a.png", 1.0), density("b.png", 2.0)]),
            ("a.png 1x,b.png 1.5x", vec![density("a.png", 1.0), density("b.png", 1.5)]),
            ("a.png 100w, b.png 200w 50h", vec![width("a.png", 100.0), width("b.png", 200.0)]),
            ("a,b.png 2x", vec![density("a,b.png", 2.0)]),
            (
                "data:image/gif;base64,R0== 1x, b.png 2x",
                vec![density("data:image/gif;base64,R0==", 1.0), density("b.png", 2.0)],
            ),
            ("a.png 1y, b.png 0w, c.png -1x, d.png 10h, e.png 1w 2x", vec![]),
            ("a.png foo(1, 2), b.png", vec![density("b.png", 1.0)]),
            ("a.png,, b.png", vec![density("a.png", 1.0), density("b.png", 1.0)]),
            ("a.png é", vec![]),
        ];
        for (srcset, expected) in cases {
            assert_eq!(parse(srcset), expected, "{srcset:?}");
        }
    }

    #[test]
    fn a_screen_of_one_pixel_per_pixel_takes_the_smallest_image_that_fills_the_slot() {
        let set = "s.jpg 165w, m.jpg 360w, l.jpg 533w";
        assert_eq!(choose(set, Some("src.jpg"), 330.0, 1.0), Some("m.jpg"));
        assert_eq!(choose(set, None, 100.0, 1.0), Some("s.jpg"));
        assert_eq!(choose(set, None, 165.0, 1.0), Some("s.jpg"));
        assert_eq!(choose(set, None, 2000.0, 1.0), Some("l.jpg"));
        assert_eq!(choose("b.png 2x", Some("a.png"), 100.0, 1.0), Some("a.png"));
        assert_eq!(choose("b.png 2x", Some("a.png"), 100.0, 2.0), Some("b.png"));
        assert_eq!(choose("a.png 1x, b.png 2x", Some("c.png"), 100.0, 1.0), Some("a.png"));
        assert_eq!(choose("", Some("c.png"), 100.0, 1.0), Some("c.png"));
        assert_eq!(choose("", None, 100.0, 1.0), None);
        assert_eq!(choose("a 100w, b 200w, c 1000w", None, 0.0, 1.0), Some("a"));
    }
}
