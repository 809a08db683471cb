//! The `farhop` program: reads the command line and hands over to an app crate. One file per subcommand;
//! none holds behaviour of its own.

mod check;
mod control;
mod ground;
mod keygen;
mod lab;
mod local;
mod log;
mod output;
mod plan;
mod remote;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use farhop_settings::SettingsError;

/// The web made quick over links with long round trips.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Remote(remote::Arguments),
    Ground(ground::Arguments),
    Local(local::Arguments),
    Keygen(keygen::Arguments),
    Check(check::Arguments),
    Status(control::StatusArguments),
    Control(control::Arguments),
    Lab(lab::Arguments),
    Demo(farhop_compare::DemoArguments),
}

/// Exit codes: 0 done, 1 failed, 2 the command line itself is wrong (clap's own, and a `--set` that cannot be). `lab shell` ends as its command did.
fn main() -> ExitCode {
    let done = |()| ExitCode::SUCCESS;
    let outcome = match CommandLine::parse().command {
        Command::Remote(arguments) => remote::run(&arguments).map(done),
        Command::Ground(arguments) => ground::run(&arguments).map(done),
        Command::Local(arguments) => local::run(&arguments).map(done),
        Command::Keygen(arguments) => keygen::run(&arguments).map(done),
        Command::Check(arguments) => check::run(&arguments).map(done),
        Command::Status(arguments) => control::status(&arguments).map(done),
        Command::Control(arguments) => control::run(&arguments).map(done),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Demo(arguments) => farhop_compare::demo(&arguments).map(done).map_err(Into::into),
    };
    match outcome {
        Ok(code) => code,
        // `head` and `less` hang up when they have seen enough: nothing failed.
        Err(error) if output::is_hangup(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // One line, whatever the causes say.
            eprintln!("farhop: {}", format!("{error:#}").replace('\n', " "));
            let usage = error.downcast_ref::<SettingsError>().is_some_and(SettingsError::is_usage);
            if usage { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
