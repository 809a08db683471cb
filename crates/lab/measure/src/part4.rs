//! The rows of part 4, "the transport", in the order of its "Must hold".

use crate::group::{Context, Group};
use crate::{MeasureError, Row, carriers, hop, lossy_pages, simulation};

/// All of them.
pub(crate) const GROUPS: [Group; 10] = [
    Group { name: "downloads", measure: hop::downloads::rows },
    Group { name: "fresh", measure: hop::fresh::rows },
    Group { name: "loss", measure: hop::loss::rows },
    Group { name: "cut", measure: hop::cut::rows },
    Group { name: "tunnel", measure: hop::tunnel::rows },
    Group { name: "pages", measure: lossy_pages::rows },
    Group { name: "carriers", measure: carriers::rows },
    Group { name: "simulation", measure: simulation::rows },
    Group { name: "split", measure: split },
    Group { name: "endurance", measure: endurance },
];

/// A bound that nothing here can hold or show yet. It misses: what is not there does not pass.
fn unbuilt(what: &str, bound: &str, lacks: &str) -> Row {
    Row::judged(what, format!("not built: {lacks}"), bound, false)
}

fn split(_: &Context) -> Result<Vec<Row>, MeasureError> {
    let row = |what: &str, bound: &str| unbuilt(what, bound, "its measurement");
    Ok(vec![
        row("10 MB through split TCP: iperf3, SSH, FTP", "≤ 1.1 × limit"),
        row("connect of a split flow, as the client sees it", "< 5 ms"),
        row("memory of 5,000 concurrent split flows, each end", "< 400 MB"),
    ])
}

fn endurance(_: &Context) -> Result<Vec<Row>, MeasureError> {
    Ok(vec![unbuilt("1,000,000 connections in sequence", "no growth", "its measurement")])
}
