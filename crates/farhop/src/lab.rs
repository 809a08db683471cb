//! `farhop lab`: the emulated link and what is measured over it. The command lines are those of the lab's own crates.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;
use farhop_orbit::Profile;

/// A satellite link on this machine, and experiments over it. Needs root, or a system that allows user namespaces.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    Compare(farhop_compare::CompareArguments),
    Transport(farhop_lab_transport::TransportArguments),
    List(farhop_plan::ListArguments),
    Show(farhop_plan::ShowArguments),
    Run(farhop_plan::RunArguments),
    Summary(farhop_plan::SummaryArguments),
    Record(farhop_plan::RecordArguments),
    Shell(ShellArguments),
    Measure(farhop_measure::MeasureArguments),
    Pages(farhop_measure::PagesArguments),
    Soak(farhop_measure::SoakArguments),
    // The lab starts these itself, inside its testbed.
    #[command(hide = true)]
    Origins(farhop_compare::OriginsArguments),
    #[command(hide = true)]
    Remotes(crate::remotes::Arguments),
}

/// Runs any command behind the link: this machine and its networks, seen over a satellite.
#[derive(Debug, clap::Args)]
struct ShellArguments {
    /// The link
    #[arg(long, value_name = "LINK", default_value = "geo-hylas2", value_parser = farhop_compare::links())]
    link: Profile,
    /// Decides which packets a lossy link loses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The command and its arguments; $SHELL where they are left out. It finds this machine at $FARHOP_HOST
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Runs the experiment. A command behind the link gives its own exit code, a bound that is missed a failure.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if matches!(
        arguments.experiment,
        Experiment::Compare(_) | Experiment::Transport(_) | Experiment::Run(_) | Experiment::Measure(_)
    ) {
        farhop_testbed::become_privileged();
    }
    match &arguments.experiment {
        Experiment::Compare(arguments) => farhop_compare::compare(arguments)?,
        Experiment::Transport(arguments) => farhop_lab_transport::transport(arguments)?,
        Experiment::List(arguments) => farhop_plan::list(arguments)?,
        Experiment::Show(arguments) => farhop_plan::show(arguments)?,
        Experiment::Run(arguments) => farhop_plan::run(arguments)?,
        Experiment::Summary(arguments) => farhop_plan::summary(arguments)?,
        Experiment::Record(arguments) => farhop_plan::record(arguments)?,
        Experiment::Origins(arguments) => farhop_compare::origins(arguments)?,
        Experiment::Remotes(arguments) => crate::remotes::run(arguments)?,
        Experiment::Shell(arguments) => return shell(arguments),
        Experiment::Pages(arguments) => farhop_measure::package_pages(arguments)?,
        Experiment::Measure(arguments) => {
            return Ok(verdict(farhop_measure::measure(arguments)?));
        }
        Experiment::Soak(arguments) => return Ok(verdict(farhop_measure::soak(arguments)?)),
    }
    Ok(ExitCode::SUCCESS)
}

fn verdict(all_pass: bool) -> ExitCode {
    if all_pass { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shell(arguments: &ShellArguments) -> anyhow::Result<ExitCode> {
    let status = farhop_testbed::shell(&arguments.link, arguments.seed, &arguments.command)?;
    Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from))
}
