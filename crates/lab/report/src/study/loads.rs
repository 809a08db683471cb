//! Single loads of a study for people to look at: waterfalls side by side, and filmstrips on one time axis. Pure.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Study;
use crate::Waterfall;
use crate::html::escape;
use crate::html::falls::{Panel, panels};

/// One load, as the report shows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyLoad {
    /// The page's name.
    pub page: String,
    /// The link's.
    pub link: String,
    /// The variant's.
    pub variant: String,
    /// Resource by resource.
    pub waterfall: Waterfall,
    /// What it looked like, where it was filmed: each picture where it changed, from the beginning on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub film: Vec<Still>,
}

/// What a page looked like from some moment on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Still {
    /// Seconds since the load began.
    pub at_s: f64,
    /// The share of the way to its last look.
    pub complete: f64,
    /// A JPEG, base64.
    pub jpeg: String,
}

/// Pictures in a row.
const PICTURES: usize = 12;

/// Every page on every link, its variants side by side.
pub(super) fn draw(out: &mut String, study: &Study) {
    for page in &study.pages {
        for link in &study.links {
            let here = study.loads.iter().filter(|load| load.page == page.name && load.link == link.name);
            let loads: Vec<&StudyLoad> = here.collect();
            if loads.is_empty() {
                continue;
            }
            let title = format!("{} over {}", page.name, link.name);
            let _ = writeln!(out, "<section>\n<details><summary>Loads of {}</summary>", escape(&title));
            let shown: Vec<Panel<'_>> = loads
                .iter()
                .map(|load| Panel {
                    name: &load.variant,
                    is_farhop: load.variant.starts_with("farhop"),
                    waterfall: &load.waterfall,
                })
                .collect();
            panels(out, &format!("Waterfalls of {title}"), &shown);
            films(out, &loads);
            out.push_str("</details>\n</section>\n");
        }
    }
}

/// Filmstrips one below the other: the same moment stands below the same moment.
fn films(out: &mut String, loads: &[&StudyLoad]) {
    let filmed: Vec<&&StudyLoad> = loads.iter().filter(|load| !load.film.is_empty()).collect();
    let end = filmed.iter().filter_map(|load| Some(load.film.last()?.at_s)).fold(0.0, f64::max);
    if filmed.is_empty() || end <= 0.0 {
        return;
    }
    let step = end / (PICTURES - 1) as f64;
    // As many digits as tell two neighbours apart.
    let digits = (1.0 - step.log10()).ceil().clamp(1.0, 4.0) as usize;
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>film</th>");
    for place in 0..PICTURES {
        let _ = write!(out, "<th>{:.digits$} s</th>", place as f64 * step);
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for load in filmed {
        let _ = write!(out, "<tr><th>{}</th>", escape(&load.variant));
        for place in 0..PICTURES {
            // A hair of tolerance: the last moment is that of the last picture.
            let moment = place as f64 * step + 1e-9;
            let still = load.film.iter().rfind(|still| still.at_s <= moment).or(load.film.first());
            let Some(still) = still else { continue };
            let _ = write!(
                out,
                "<td><img width=\"120\" alt=\"{:.0} % complete\" src=\"data:image/jpeg;base64,{}\"></td>",
                still.complete * 100.0,
                escape(&still.jpeg)
            );
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_moments_of_a_film_have_the_same_label() {
        for end in [0.02, 0.13, 0.4, 1.0, 12.0, 300.0] {
            let still = |at_s| Still { at_s, complete: 1.0, jpeg: String::new() };
            let load = StudyLoad { film: vec![still(0.0), still(end)], ..StudyLoad::default() };
            let mut out = String::new();
            films(&mut out, &[&load]);
            let labels: Vec<&str> = out.split("<th>").filter(|it| it.contains(" s</th>")).collect();
            let mut different = labels.clone();
            different.dedup();
            assert_eq!((labels.len(), different.len()), (PICTURES, PICTURES), "{labels:?}");
        }
    }
}
