//! The rows of part 1, "the spine", in the order of its "Must hold".

use crate::group::{Context, Group};
use crate::{MeasureError, Row, Verdict, heads, hostile, outage, pages, transfers};

/// All of them.
pub(crate) const GROUPS: [Group; 7] = [
    Group { name: "pages", measure: pages::rows },
    Group { name: "transfers", measure: transfers::rows },
    Group { name: "outage", measure: outage::rows },
    Group { name: "hostile", measure: hostile::rows },
    Group { name: "emulator", measure: emulator },
    Group { name: "heads", measure: heads::rows },
    Group { name: "fresh clone", measure: fresh_clone },
];

fn emulator(_: &Context) -> Result<Vec<Row>, MeasureError> {
    Ok(farhop_testbed::measure::emulator()?.into_iter().map(Row::from).collect())
}

/// A running program cannot clone and build itself anew; CI does on every change.
fn fresh_clone(_: &Context) -> Result<Vec<Row>, MeasureError> {
    let row = |command: &str| Row {
        what: format!("{command} from a fresh clone"),
        measured: "not measured here".into(),
        bound: "works without other preparation (held by CI)".into(),
        verdict: Verdict::Elsewhere,
    };
    Ok(vec![row("./run demo"), row("./run test")])
}
