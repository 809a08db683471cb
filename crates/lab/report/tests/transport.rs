//! Carriers side by side, shown: the JSON satisfies its schema, table and HTML say what a reader looks for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use farhop_report::{
    Calibration, Cell, Condition, Leg, LinkResult, Named, Spread, TRANSPORT_SCHEMA, Transports,
    WorkloadResult, transport_html, transport_table,
};

fn sample() -> Transports {
    let named = |name: &str| Named { name: name.into(), words: format!("{name} in words") };
    let leg = |rate| Leg { rate_bit_s: Some(rate), delay_s: 0.325, queue_bytes: 600_000, loss: 0.0 };
    let cell = |route: &str, median: f64, ratio: f64| Cell {
        route: route.into(),
        present: true,
        runs: 3,
        time_s: Some(Spread { median, min: median, max: median + 1.0 }),
        ratio: Some(ratio),
        forward_bytes: 2_100_000.0,
        return_bytes: 10_034.0,
        return_packets: 153.0,
        ..Cell::default()
    };
    let late = Cell { late: true, ..cell("direct-cubic", 6.6, 2.4) };
    let failed = Cell {
        route: "qpep".into(),
        present: true,
        failures: vec!["/2m is <cut off> after 7 bytes".into()],
        ..Cell::default()
    };
    let absent = Cell { route: "pepsal".into(), ..Cell::default() };
    Transports {
        workloads: vec![named("2m")],
        routes: ["farhop", "direct-cubic", "pepsal", "qpep"].map(named).into(),
        links: vec![LinkResult {
            profile: "geo-hylas2".into(),
            rtt_s: 0.65,
            forward: leg(8_000_000),
            return_: leg(512_000),
            calibration: Calibration {
                rtt_s: 0.651,
                forward_bit_s: Some(8_000_000),
                return_bit_s: Some(512_000),
                fit: true,
                text: "link geo-hylas2: measured".into(),
            },
            conditions: vec![Condition {
                queue_bytes: 600_000,
                loss: 0.01,
                results: vec![WorkloadResult {
                    workload: "2m".into(),
                    limit_s: Some(2.75),
                    limit_bytes: Some(2_100_000),
                    cells: vec![cell("farhop", 2.77, 1.01), late, absent, failed],
                }],
            }],
        }],
        method: vec!["in turn".into()],
        notes: vec!["a load was repeated".into()],
    }
}

#[test]
fn what_is_written_satisfies_the_schema_and_reads_back() {
    let json = serde_json::to_value(sample()).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(TRANSPORT_SCHEMA).unwrap()).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert_eq!(complaints, [""; 0]);
    let mut unknown = json.clone();
    unknown["links"][0]["conditions"][0]["results"][0]["cells"][0]["surprise"] = true.into();
    assert!(!validator.is_valid(&unknown));
    assert_eq!(serde_json::from_value::<Transports>(json).unwrap(), sample());
}

#[test]
fn the_table_has_a_row_for_each_route_with_its_multiple_of_the_limit() {
    let table = transport_table(&sample());
    let expected = "\
link geo-hylas2: measured

geo-hylas2, 1 % lost both ways, 600 KB of queue: times, and as multiples of the limit
                               2m
  limit                    2.75 s
  farhop          2.77 s (1.01 x)
  direct-cubic  6.60 s (2.40 x) late
  pepsal              not present
  qpep                     failed

note: a load was repeated
";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&table), squeezed(expected));
}

#[test]
fn the_page_marks_the_best_tells_what_failed_and_needs_nothing_else() {
    let html = transport_html(&sample());
    assert!(html.contains("<td class=\"best\"") && html.contains("1.01 ×<small>2.77 s</small>"));
    assert!(html.contains("2.40 ×<small>6.60 s, late</small>"));
    assert!(html.contains("/2m is &lt;cut off&gt; after 7 bytes"), "text is no markup");
    assert!(html.contains("not present") && html.contains("geo-hylas2: 8 Mbit/s down, 0.512 Mbit/s up"));
    for outside in ["src=", "href=", "url(", "{{"] {
        assert!(!html.contains(outside), "{outside}");
    }
}
