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

/// Exit codes: 0 done, 1 failed, 2 the command line itself is wrong (clap's own).
fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Remote(arguments) => remote::run(&arguments),
        Command::Ground(arguments) => ground::run(&arguments),
        Command::Local(arguments) => local::run(&arguments),
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Status(arguments) => control::status(&arguments),
        Command::Control(arguments) => control::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Demo(arguments) => farhop_compare::demo(&arguments).map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // `head` and `less` hang up when they have seen enough: nothing failed.
        Err(error) if output::is_hangup(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // One line, whatever the causes say.
            eprintln!("farhop: {}", format!("{error:#}").replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}
