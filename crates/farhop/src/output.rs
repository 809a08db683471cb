//! Writing to standard output without dying when the reader has gone.

use std::io::{self, Write};

/// Writes `text` and a line end to standard output.
///
/// # Errors
/// The reader has gone ([`is_hangup`]), or the disk behind the redirection is full.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n'))?;
    Ok(out.flush()?)
}

/// Whether an error only says that nobody reads standard output any more.
pub(crate) fn is_hangup(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
