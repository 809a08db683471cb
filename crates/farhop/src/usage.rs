//! A command line that is wrong, in one line; and what was asked for instead of a command: help, version.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, Error};

use crate::output;

/// Says what is wrong with the command line (exit code 2), or prints the help or version that it asked for (0).
pub(crate) fn answer(error: &Error, command: &Command) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let printed = error.print().and_then(|()| io::stdout().flush());
            output::finish(printed.map(|()| ExitCode::SUCCESS).map_err(output::unwritable))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Where standard error is closed too, the exit code is all that can be said.
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            output::complain(&line(error, &called(command)));
            ExitCode::from(2)
        }
    }
}

/// The subcommand that was called, as it was typed: `farhop lab compare`.
fn called(command: &Command) -> String {
    let mut name = command.get_name().to_owned();
    let mut command = command;
    for argument in std::env::args().skip(1) {
        let Some(subcommand) = command.find_subcommand(&argument) else { break };
        name = format!("{name} {argument}");
        command = subcommand;
    }
    name
}

/// clap's words without its layout: what is wrong, what was meant, and where the rest is said.
fn line(error: &Error, called: &str) -> String {
    let text = error.render().to_string();
    let mut line = String::new();
    let told = text.lines().take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more "));
    for part in told.map(str::trim).filter(|part| !part.is_empty()) {
        let part = part.strip_prefix("error: ").unwrap_or(part);
        let (joint, part) = match part.strip_prefix("tip: ") {
            Some(tip) => ("; ", tip),
            None if line.is_empty() || line.ends_with(':') || part.starts_with('[') => (" ", part),
            None => (", ", part),
        };
        line.push_str(joint);
        line.push_str(part);
    }
    format!("{}; see {called} --help", line.trim())
}
