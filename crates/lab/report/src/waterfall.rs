//! When each resource of one load was asked for, answered and there, and how those of several loads are put side by side:
//! one row per resource, the same in every load, grouped by kind. Pure data; `html` draws it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// One load, resource by resource. Times in seconds since its navigation began.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Waterfall {
    /// The load event.
    pub load_s: Option<f64>,
    /// First contentful paint.
    pub paint_s: Option<f64>,
    /// Every resource that came, or the first of them.
    pub bars: Vec<Bar>,
    /// How many came after these and are not among them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub left_out: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Waterfall {
    /// The same with as many resources as `most`, in the order in which they were wanted.
    #[must_use]
    pub fn shortened(mut self, most: usize) -> Waterfall {
        if self.bars.len() > most {
            self.bars.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
            self.left_out += self.bars.split_off(most).len();
        }
        self
    }

    /// The last moment that it shows: where resources are left out, the last of those that are not, so that these have room.
    pub(crate) fn last_s(&self) -> f64 {
        let whole = self.load_s.into_iter().chain(self.paint_s).filter(|_| self.left_out == 0);
        self.bars.iter().map(|bar| bar.end_s).chain(whole).fold(0.0, f64::max)
    }

    /// That there is more than is shown, in words; nothing where there is not.
    pub(crate) fn of_how_many(&self) -> Option<String> {
        let shown = self.bars.len();
        (self.left_out > 0).then(|| format!("first {shown} of {}", shown + self.left_out))
    }
}

/// One resource of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its URL.
    pub url: String,
    /// What it was for, as browsers name it: `document`, `stylesheet`, `image`, …
    pub destination: String,
    /// The page wanted it.
    pub start_s: f64,
    /// The browser sent its request: until then it looked up a name, opened a connection or had none free.
    pub sent_s: f64,
    /// The first byte of the answer was there.
    pub first_byte_s: f64,
    /// The last one was.
    pub end_s: f64,
    /// Whether it was sent across the link before the browser asked for it.
    pub unasked: bool,
}

/// The groups of rows in their order: the heading, and the destinations that belong there.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Page", &["document"]),
    ("Style", &["stylesheet"]),
    ("Scripts", &["script"]),
    ("Fonts", &["font"]),
    ("Pictures", &["image"]),
    ("Other", &[]),
];

/// Rows of one kind.
#[derive(Debug, PartialEq)]
pub(crate) struct Group<'a> {
    pub(crate) heading: &'static str,
    pub(crate) rows: Vec<Row<'a>>,
}

/// One resource: its bar in each of the loads.
#[derive(Debug, PartialEq)]
pub(crate) struct Row<'a> {
    pub(crate) url: &'a str,
    pub(crate) bars: Vec<Option<&'a Bar>>,
}

/// Puts loads side by side. A resource that a load asks for twice has two rows; rows are in the order in which the first
/// load that has them wanted them.
pub(crate) fn side_by_side<'a>(loads: &[&'a Waterfall]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> =
        GROUPS.iter().map(|(heading, _)| Group { heading, rows: Vec::new() }).collect();
    let mut known: HashMap<(&str, usize), (usize, usize)> = HashMap::new();
    for (load, waterfall) in loads.iter().enumerate() {
        let mut bars: Vec<&Bar> = waterfall.bars.iter().collect();
        bars.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
        let mut times: HashMap<&str, usize> = HashMap::new();
        for bar in bars {
            let place = address(&bar.url);
            let time = times.entry(place).and_modify(|time| *time += 1).or_insert(0);
            let (group, row) = *known.entry((place, *time)).or_insert_with(|| {
                let group = group_of(&bar.destination);
                groups[group].rows.push(Row { url: &bar.url, bars: vec![None; loads.len()] });
                (group, groups[group].rows.len() - 1)
            });
            groups[group].rows[row].bars[load] = Some(bar);
        }
    }
    groups.retain(|group| !group.rows.is_empty());
    groups
}

fn group_of(destination: &str) -> usize {
    let place = GROUPS.iter().position(|(_, destinations)| destinations.contains(&destination));
    place.unwrap_or(GROUPS.len() - 1)
}

/// A URL without its scheme: a resource is the same over HTTP and HTTPS.
pub(crate) fn address(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(url: &str, destination: &str, start_s: f64) -> Bar {
        Bar {
            url: url.into(),
            destination: destination.into(),
            start_s,
            sent_s: start_s,
            first_byte_s: start_s + 0.6,
            end_s: start_s + 0.7,
            unasked: false,
        }
    }

    fn waterfall(bars: Vec<Bar>) -> Waterfall {
        Waterfall { bars, ..Waterfall::default() }
    }

    #[test]
    fn a_resource_has_one_row_over_http_and_https_alike() {
        let plain = waterfall(vec![
            bar("http://a.test/", "document", 0.0),
            bar("http://a.test/2.png", "image", 2.0),
            bar("http://a.test/1.png", "image", 1.0),
        ]);
        let secure = waterfall(vec![
            bar("https://a.test/", "document", 0.0),
            bar("https://a.test/2.png", "image", 0.5),
            bar("https://a.test/x", "fetch", 3.0),
        ]);
        let groups = side_by_side(&[&plain, &secure]);
        let row = |row: &Row<'_>| (row.url.to_owned(), row.bars[0].is_some(), row.bars[1].is_some());
        let shape: Vec<_> = groups
            .iter()
            .map(|group| (group.heading, group.rows.iter().map(row).collect::<Vec<_>>()))
            .collect();
        let row = |url: &str, first, second| (url.to_owned(), first, second);
        assert_eq!(
            shape,
            [
                ("Page", vec![row("http://a.test/", true, true)]),
                (
                    "Pictures",
                    vec![row("http://a.test/1.png", true, false), row("http://a.test/2.png", true, true)]
                ),
                ("Other", vec![row("https://a.test/x", false, true)]),
            ]
        );
    }

    #[test]
    fn a_waterfall_of_many_shows_the_first_and_says_of_how_many() {
        let bars = (0..641).rev().map(|at| bar("http://a.test/x", "image", f64::from(at) / 10.0)).collect();
        let whole = Waterfall { load_s: Some(70.0), ..waterfall(bars) };
        assert_eq!((whole.of_how_many(), whole.last_s()), (None, 70.0));
        let short = whole.clone().shortened(150);
        assert_eq!((short.bars.len(), short.bars[0].start_s, short.bars[149].start_s), (150, 0.0, 14.9));
        assert_eq!(short.of_how_many().unwrap(), "first 150 of 641");
        assert!(
            (short.last_s() - 15.6).abs() < 1e-9,
            "the load's end would leave the rest of the axis empty"
        );
        assert_eq!(short.clone().shortened(150), short);
        assert_eq!(whole.clone().shortened(641), whole);
    }

    #[test]
    fn what_a_load_asks_for_twice_has_two_rows() {
        let load =
            waterfall(vec![bar("http://a.test/x", "fetch", 1.0), bar("http://a.test/x", "fetch", 2.0)]);
        let groups = side_by_side(&[&load, &load]);
        assert_eq!(groups[0].rows.len(), 2);
        assert_eq!(groups[0].rows[1].bars[1].unwrap().start_s, 2.0);
    }
}
