//! The rows of part 6, "the satellite whole", in the order of its "Must hold".

use crate::group::{Context, Group};
use crate::{MeasureError, Row, satellite};

/// All of them.
pub(crate) const GROUPS: [Group; 2] =
    [Group { name: "satellite", measure: satellite::rows }, Group { name: "emulator", measure: emulator }];

fn emulator(_: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = farhop_testbed::measure::impaired()?;
    rows.extend(farhop_testbed::measure::terminals()?);
    Ok(rows.into_iter().map(Row::from).collect())
}
