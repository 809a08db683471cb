//! What the program says, without dying when nobody can hear it.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use farhop_settings::SettingsError;

/// Writes `text` and a line end to standard output.
///
/// # Errors
/// The reader has gone, which is no failure ([`finish`]), or the disk behind the redirection is full.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()).map_err(unwritable)
}

/// Names standard output as what could not be written to.
pub(crate) fn unwritable(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot write to standard output")
}

/// Writes one line to standard error, whatever `text` holds.
pub(crate) fn complain(text: &str) {
    // Where that fails too, nobody is left to be told.
    let _ = writeln!(io::stderr(), "farhop: {}", text.replace('\n', " "));
}

/// The command line says what cannot be, each word by itself well written.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The exit code of an outcome, its error told: 1 it failed, 2 the command line is wrong ([`Usage`], a `--set` that cannot be).
pub(crate) fn finish(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        // `head` and `less` hang up when they have seen enough: nothing failed.
        Err(error) if is_hangup(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&told(&error));
            let usage = error.downcast_ref::<SettingsError>().is_some_and(SettingsError::is_usage);
            if usage || error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// An error and its causes, each said once: some say their cause themselves.
fn told(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| match cause.to_string() {
        cause if said.is_empty() => cause,
        cause if said.ends_with(&cause) => said,
        cause => format!("{said}: {cause}"),
    })
}

fn is_hangup(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_says_of_its_cause_is_not_said_again() {
        let cause = io::Error::from_raw_os_error(2);
        let line = format!("[origin]: old.crl can't be read: {cause}");
        let trust = farhop_origin::TrustError::Unreadable { path: "old.crl".into(), cause };
        assert_eq!(told(&farhop_ground::GroundError::from(trust).into()), line);
        let wrapped = anyhow::Error::new(io::Error::other("no room")).context("cannot start");
        assert_eq!(told(&wrapped), "cannot start: no room");
    }
}
