//! A load of the lab's loader as reports draw loads. Pure.

use std::time::Duration;

use farhop_loader::{Kind, Loaded, PageGraph};
use farhop_report::{Bar, Waterfall};

/// Rows of a waterfall, at most: what a person can tell apart.
pub(crate) const ROWS: usize = 150;

/// The waterfall of a load, its first rows and how many are missing where there are too many.
pub(crate) fn of(loaded: &Loaded, graph: &PageGraph) -> Waterfall {
    let seconds = |time: Duration| (time.as_secs_f64() * 1e4).round() / 1e4;
    let bars = loaded.objects.iter().zip(&graph.objects).filter_map(|(object, about)| {
        let (wanted, end) = (object.wanted?, object.end?);
        // A push is promised before anyone wants it.
        let start = object.start.map_or(wanted, |start| start.min(end));
        let wanted = wanted.min(end);
        Some(Bar {
            url: object.url.clone(),
            destination: destination(about.kind).to_owned(),
            start_s: seconds(wanted),
            sent_s: seconds(start.max(wanted)),
            first_byte_s: seconds(object.first_byte.unwrap_or(end).clamp(start.max(wanted).min(end), end)),
            end_s: seconds(end),
            unasked: object.pushed,
        })
    });
    Waterfall {
        load_s: loaded.time.map(seconds),
        paint_s: loaded.blocking.map(seconds),
        bars: bars.collect(),
        left_out: 0,
    }
    .shortened(ROWS)
}

/// As browsers name it.
fn destination(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "document",
        Kind::Style => "stylesheet",
        Kind::Script => "script",
        Kind::Image => "image",
        Kind::Font => "font",
        Kind::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_loader::{Object, ObjectResult};

    #[test]
    fn every_object_that_came_has_its_three_phases() {
        let object =
            |path: &str| Object::new(format!("http://a.test{path}").parse().unwrap(), Kind::Image, b"");
        let graph = PageGraph { objects: vec![object("/1"), object("/2"), object("/3")] };
        let ms = Duration::from_millis;
        let result = |wanted, start, first, end| ObjectResult {
            url: "u".into(),
            wanted: Some(ms(wanted)),
            start: Some(ms(start)),
            first_byte: Some(ms(first)),
            end,
            ..ObjectResult::default()
        };
        let pushed = ObjectResult { pushed: true, ..result(500, 300, 400, Some(ms(900))) };
        let objects = vec![result(0, 100, 700, Some(ms(800))), pushed, result(1, 2, 3, None)];
        let fall = of(&Loaded { objects, ..Loaded::default() }, &graph);
        let times: Vec<_> =
            fall.bars.iter().map(|bar| [bar.start_s, bar.sent_s, bar.first_byte_s, bar.end_s]).collect();
        assert_eq!(times, [[0.0, 0.1, 0.7, 0.8], [0.5, 0.5, 0.5, 0.9]], "what never came has no bar");
        assert!(fall.bars[1].unasked && !fall.bars[0].unasked);
    }
}
