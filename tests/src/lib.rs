//! Reads the workspace for the tests beside it: its crates, their layers, their sources. Runs cargo, builds nothing.

pub mod source;
pub mod workspace;
