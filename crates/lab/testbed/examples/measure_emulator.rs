//! Prints the emulator's rows of `./run measure 1` by themselves. Needs root and a quiet machine.

fn main() -> Result<(), farhop_testbed::Error> {
    for row in farhop_testbed::measure::emulator()? {
        let verdict = if row.pass { "pass" } else { "MISS" };
        println!("{verdict}  {}: {}, bound {}", row.what, row.measured, row.bound);
    }
    Ok(())
}
