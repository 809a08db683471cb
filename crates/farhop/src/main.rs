//! The `farhop` program: reads the command line and hands over to an app crate. One file per subcommand;
//! none holds behaviour of its own.

mod ca;
mod check;
mod control;
mod explain;
mod first_window;
mod ground;
mod inherited;
mod keygen;
mod lab;
mod limits;
mod link;
mod local;
mod log;
mod models;
mod output;
mod path;
mod privileged;
mod remote;
mod remotes;
mod signals;
mod source;
mod transparent;
mod usage;
mod user;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

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
    Ca(ca::Arguments),
    User(user::Arguments),
    Check(check::Arguments),
    Status(control::StatusArguments),
    Control(control::Arguments),
    Explain(explain::Arguments),
    Path(path::Arguments),
    Link(link::Arguments),
    Models(models::Arguments),
    Lab(lab::Arguments),
    // `farhop remote` starts this one itself.
    #[command(hide = true)]
    Privileged(privileged::Arguments),
    Demo(farhop_compare::DemoArguments),
}

/// Exit codes: 0 done, 1 failed, 2 the command line itself is wrong. `lab shell` ends as its command did.
fn main() -> ExitCode {
    match CommandLine::try_parse() {
        Ok(called) => output::finish(run(called.command)),
        Err(error) => usage::answer(&error, &CommandLine::command()),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Remote(arguments) => remote::run(&arguments)?,
        Command::Ground(arguments) => ground::run(&arguments)?,
        Command::Local(arguments) => local::run(&arguments)?,
        Command::Keygen(arguments) => keygen::run(&arguments)?,
        Command::Ca(arguments) => ca::run(&arguments)?,
        Command::User(arguments) => user::run(&arguments)?,
        Command::Check(arguments) => check::run(&arguments)?,
        Command::Status(arguments) => control::status(&arguments)?,
        Command::Control(arguments) => control::run(&arguments)?,
        Command::Explain(arguments) => explain::run(&arguments)?,
        Command::Path(arguments) => path::run(&arguments)?,
        Command::Link(arguments) => link::run(&arguments)?,
        Command::Models(arguments) => models::run(&arguments)?,
        Command::Lab(arguments) => return lab::run(&arguments),
        Command::Privileged(arguments) => privileged::run(&arguments)?,
        Command::Demo(arguments) => farhop_compare::demo(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
