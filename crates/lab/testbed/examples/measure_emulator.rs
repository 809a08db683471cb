//! Prints the emulator's rows of `./run measure 1`, or with the argument 6 those of `./run measure 6`, by themselves. Needs root and a
//! quiet machine.

use farhop_testbed::measure;

fn main() -> Result<(), farhop_testbed::Error> {
    let rows = match std::env::args().nth(1).as_deref() {
        Some("6") => [measure::impaired()?, measure::terminals()?].concat(),
        _ => measure::emulator()?,
    };
    for row in rows {
        let verdict = if row.pass { "pass" } else { "MISS" };
        println!("{verdict}  {}: {}, bound {}", row.what, row.measured, row.bound);
    }
    Ok(())
}
