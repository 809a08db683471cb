//! A comparison with made-up numbers, for tests of how results are written.

use farhop_report::{
    Accounts, Bar, Calibration, Comparison, Crossed, Leg, Limit, Link, PageResult, Servers, Spread,
    VariantResult, Waterfall, Ways,
};

fn variant(name: &str, plt: f64, crossed: f64, promised: f64) -> VariantResult {
    let spread = |seconds: f64| Spread::of([seconds * 0.97, seconds, seconds * 1.1]);
    VariantResult {
        name: name.into(),
        runs: 3,
        plt_s: spread(plt),
        fcp_s: spread(plt * 0.4),
        ttfb_s: spread(0.7),
        connections: if promised > 0.0 { 1.0 } else { 6.0 },
        link_bytes: Ways { forward: 925_000.0, return_: 124_000.0 },
        link_packets: Ways { forward: 800.0, return_: 700.0 },
        requests_crossed: crossed,
        promised,
        used: promised,
        wasted_bytes: 0.0,
        limit_s: Some(1.58),
        limit_bytes: 512_345,
        unfit: false,
        present: true,
        accounts: if promised > 0.0 { vec![accounts(promised as u64)] } else { Vec::new() },
        resources_ok: 251,
        resources_bad: 0,
        last_s: spread(plt * 1.01),
        waterfall: waterfall(plt, promised > 0.0),
    }
}

fn accounts(promised: u64) -> Accounts {
    let document = Crossed { url: "http://flags.test/".into(), why: "undiscovered".into(), field: None };
    let mismatch = Crossed { why: "mismatch".into(), field: Some("accept".into()), ..document.clone() };
    Accounts {
        hints: [("img".to_owned(), promised)].into(),
        promised,
        used: promised,
        ends: [("used".to_owned(), promised)].into(),
        crossed: vec![document, mismatch],
        ..Accounts::default()
    }
}

/// A document and thirty pictures, evenly over the load.
fn waterfall(plt: f64, unasked: bool) -> Waterfall {
    let bar = |number: u32| {
        let start_s = if number == 0 { 0.0 } else { 0.7 };
        let end_s = plt * f64::from(number + 1) / 31.0;
        Bar {
            url: format!("http://flags.test/{number}"),
            destination: if number == 0 { "document" } else { "image" }.into(),
            start_s,
            sent_s: start_s + (end_s - start_s) * 0.5,
            first_byte_s: start_s + (end_s - start_s) * 0.9,
            end_s: end_s.max(start_s),
            unasked: unasked && number > 0,
        }
    };
    Waterfall { load_s: Some(plt), paint_s: Some(plt * 0.4), bars: (0..31).map(bar).collect(), left_out: 0 }
}

/// A comparison of two pages.
pub(crate) fn comparison() -> Comparison {
    let leg = |rate| Leg { rate_bit_s: Some(rate), delay_s: 0.325, queue_bytes: 600_000, loss: 0.0 };
    let page = |name: &str, plt: [f64; 3]| {
        let limit = Limit { browser_s: Some(0.42), rtt_s: 0.65, origin_s: 0.0, bytes: 512_345 };
        PageResult {
            page: name.into(),
            entry: "/".into(),
            limit_s: limit.seconds(Some(8_000_000)),
            limit,
            variants: vec![
                variant("direct-h1", plt[0], 252.0, 0.0),
                variant("direct-h2", plt[1], 252.0, 0.0),
                variant("farhop", plt[2], 1.0, 251.0),
            ],
        }
    };
    Comparison {
        link: Link {
            profile: "geo-hylas2".into(),
            rtt_s: 0.65,
            forward: leg(8_000_000),
            return_: leg(512_000),
            calibration: Calibration {
                rtt_s: 0.651,
                forward_bit_s: Some(7_999_000),
                return_bit_s: Some(511_900),
                fit: true,
                text: "link geo-hylas2: round trip 651.0 ms (set 650.0 ms)".into(),
            },
            servers: Servers {
                settings: "cubic congestion control, text gzip -5".into(),
                origins: vec!["flags.test, delay 0 ms".into()],
            },
            browser: "Chromium 150.0".into(),
            method: vec!["fresh browser profile for each load".into()],
            notes: vec!["photos, direct-h1: one load was left out, 2.5 ms late <b>".into()],
        },
        results: vec![page("flags", [28.2, 9.5, 2.1]), page("photos", [5.02, 5.03, 1.4])],
    }
}
