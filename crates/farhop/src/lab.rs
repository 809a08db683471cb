//! `farhop lab`: the emulated link and what is measured over it. The command lines are those of the lab's own crates.

use clap::Subcommand;

/// A satellite link on this machine, and experiments over it. Needs root.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    Compare(farhop_compare::CompareArguments),
    // The lab starts this one itself, inside its testbed.
    #[command(hide = true)]
    Origins(farhop_compare::OriginsArguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.experiment {
        Experiment::Compare(arguments) => farhop_compare::compare(arguments)?,
        Experiment::Origins(arguments) => farhop_compare::origins(arguments)?,
    }
    Ok(())
}
