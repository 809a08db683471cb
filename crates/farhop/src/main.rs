//! The `farhop` program: reads the command line and hands over to an app crate.

fn main() {}
