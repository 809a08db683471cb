//! One load as the report draws it: each resource with its three phases, and whether it came before it was asked for. Pure.

use std::collections::HashMap;

use farhop_report::{Bar, Waterfall};
use farhop_workload::browser::PageLoad;

/// Makes the waterfall of a load; `unasked` tells for each URL, request by request, whether Farhop had it before it was
/// asked for.
pub(crate) fn waterfall(load: &PageLoad, unasked: &HashMap<String, Vec<bool>>) -> Waterfall {
    let seconds = |ms: f64| (ms * 10.0).round() / 1e4;
    let mut times: HashMap<&str, usize> = HashMap::new();
    let mut bars = Vec::new();
    for resource in &load.resources {
        let url = resource.url.split('#').next().unwrap_or_default();
        let time = times.entry(url).and_modify(|time| *time += 1).or_insert(0);
        let (Some(start), Some(end)) = (resource.start_ms, resource.end_ms) else { continue };
        // The clocks of the page and of the network part of the browser differ by a little.
        let end = end.max(start);
        let sent = resource.sent_ms.unwrap_or(start).clamp(start, end);
        let first_byte = resource.first_byte_ms.unwrap_or(end).clamp(sent, end);
        bars.push(Bar {
            url: resource.url.clone(),
            destination: resource.destination.clone(),
            start_s: seconds(start),
            sent_s: seconds(sent),
            first_byte_s: seconds(first_byte),
            end_s: seconds(end),
            unasked: unasked.get(url).and_then(|times| times.get(*time)).copied().unwrap_or(false),
        });
    }
    let (load_s, paint_s) = (load.load_ms.map(seconds), load.first_paint_ms.map(seconds));
    Waterfall { load_s, paint_s, bars, left_out: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn load(resources: serde_json::Value) -> PageLoad {
        serde_json::from_value(json!({
            "browser": null, "load_ms": 900.0, "first_paint_ms": 500.0, "first_byte_ms": 300.0,
            "url": "http://a.test/", "errors": [], "resources": resources,
        }))
        .unwrap()
    }

    fn resource(
        url: &str,
        start: f64,
        sent: Option<f64>,
        first: Option<f64>,
        end: Option<f64>,
    ) -> serde_json::Value {
        json!({
            "url": url, "destination": "image", "status": 200, "protocol": null, "media_type": null, "sha256": null,
            "bytes": null, "decoded": null, "start_ms": start, "sent_ms": sent, "first_byte_ms": first, "end_ms": end,
            "initiator": null, "redirected_to": null, "failure": null,
        })
    }

    #[test]
    fn the_three_phases_follow_each_other_whatever_the_clocks_say() {
        let load = load(json!([
            resource("http://a.test/1", 100.0, Some(99.8), Some(400.0), Some(450.0)),
            resource("http://a.test/2", 100.0, None, None, Some(150.0)),
            resource("http://a.test/3", 100.0, Some(120.0), None, None),
        ]));
        let fall = waterfall(&load, &HashMap::new());
        let times: Vec<_> =
            fall.bars.iter().map(|bar| [bar.start_s, bar.sent_s, bar.first_byte_s, bar.end_s]).collect();
        assert_eq!(times, [[0.1, 0.1, 0.4, 0.45], [0.1, 0.1, 0.15, 0.15]], "what never came has no bar");
        assert_eq!((fall.load_s, fall.paint_s), (Some(0.9), Some(0.5)));
    }

    #[test]
    fn each_request_for_a_url_has_its_own_way() {
        let twice = || resource("http://a.test/x#part", 1.0, None, None, Some(2.0));
        let load = load(json!([twice(), twice(), twice()]));
        let unasked = HashMap::from([("http://a.test/x".to_owned(), vec![true, false])]);
        let ways: Vec<bool> = waterfall(&load, &unasked).bars.iter().map(|bar| bar.unasked).collect();
        assert_eq!(ways, [true, false, false]);
    }
}
