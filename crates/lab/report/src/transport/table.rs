//! Carriers side by side as lines for a terminal. Pure.

use super::{Cell, Condition, Transports};
use crate::table::aligned;

/// Every link: one table for each condition, routes down, workloads across. Ends in a line break.
pub fn transport_table(transports: &Transports) -> String {
    let mut out = String::new();
    for link in &transports.links {
        out.push_str(&format!("{}\n", link.calibration.text));
        for condition in &link.conditions {
            out.push_str(&format!(
                "\n{}, {}: times, and as multiples of the limit\n",
                link.profile,
                condition.in_words()
            ));
            out.push_str(&aligned(&rows(transports, condition)));
        }
        out.push('\n');
    }
    for note in &transports.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    out
}

fn rows(transports: &Transports, condition: &Condition) -> Vec<Vec<String>> {
    let heads = condition.results.iter().map(|result| result.workload.clone());
    let mut rows = vec![[String::new()].into_iter().chain(heads).collect::<Vec<_>>()];
    let limits = condition.results.iter().map(|result| seconds(result.limit_s));
    rows.push(["limit".to_owned()].into_iter().chain(limits).collect());
    rows.extend(transports.routes.iter().map(|route| {
        let cells =
            condition.results.iter().map(|result| cell(condition.cell(&result.workload, &route.name)));
        [route.name.clone()].into_iter().chain(cells).collect()
    }));
    rows
}

fn seconds(time: Option<f64>) -> String {
    time.map_or("-".into(), |time| format!("{time:.2} s"))
}

fn cell(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell { present: false, .. }) => "not present".into(),
        Some(Cell { time_s: Some(time), ratio, late, .. }) => {
            let ratio = ratio.map(|ratio| format!(" ({ratio:.2} x)")).unwrap_or_default();
            format!("{:.2} s{ratio}{}", time.median, if *late { " late" } else { "" })
        }
        Some(_) => "failed".into(),
        None => "-".into(),
    }
}
