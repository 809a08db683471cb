//! `farhop link`: the link manager on a device, and its calls.

mod call;
mod classify;
mod config;
mod show;

use std::future::Future;
use std::sync::Arc;

use anyhow::Context;
use clap::Subcommand;
use farhop_control::Socket;
use farhop_events::Bus;
use farhop_link::{Linux, Manager};
use farhop_netdev::{Applied, Hold, LeafKind, unshape};
use farhop_settings::LinkManagerSettings;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use config::config;

use crate::log;
use crate::output::{complain, say};
use crate::source::Source;

/// Divides what a network device sends among classes, and sets bandwidth aside for calls.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints what each class would have and the commands that `apply` would run. Touches nothing, needs no rights.
    Plan(Of),
    /// Puts the classes into force. The same again changes nothing; other settings take the place of those in force.
    Apply(Of),
    /// Shows the classes in force, and what has passed in each.
    Show(show::Arguments),
    /// The same again each second, with the rates of that second, until it is interrupted.
    Watch(Of),
    /// Takes the classes away, and nothing else.
    Remove(Of),
    /// Puts the classes into force, keeps them there, and admits calls over the control socket.
    Run(Of),
    /// Opens, renews, releases and lists calls at a running manager.
    #[command(subcommand)]
    Call(call::Command),
    /// Says which class a flow is of, and why.
    Classify(classify::Arguments),
}

#[derive(Debug, clap::Args)]
struct Of {
    #[command(flatten)]
    source: Source,
}

impl Of {
    fn settings(&self) -> anyhow::Result<LinkManagerSettings> {
        Ok(self.source.load()?)
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Plan(of) => plan(&of.settings()?),
        Command::Apply(of) => apply(&of.settings()?),
        Command::Show(arguments) => show::run(arguments),
        Command::Watch(of) => show::watch(&of.settings()?),
        Command::Remove(of) => remove(&of.settings()?),
        Command::Run(of) => manage(&of.settings()?),
        Command::Call(command) => block_on(call::run(command)),
        Command::Classify(arguments) => classify::run(arguments),
    }
}

fn plan(settings: &LinkManagerSettings) -> anyhow::Result<()> {
    let config = config(settings)?;
    let shaped = farhop_link::plan(&config, Vec::new())?;
    // What people look for comes last, where it does not scroll away.
    let mut text = String::from(
        "On a device with nothing of Farhop's, and a kernel that has fq_codel, `apply` runs:\n\n",
    );
    text.push_str(&shaped.shaping.in_words(LeafKind::FqCodel));
    text.push('\n');
    text.push_str(&show::table(&shaped));
    if let Some(warning) = show::for_all(&config.rules) {
        text.push_str("\n\n");
        text.push_str(&warning);
    }
    text.push_str(&show::told(&config, show::Kept::ByRun));
    say(&text)
}

fn apply(settings: &LinkManagerSettings) -> anyhow::Result<()> {
    let config = config(settings)?;
    let shaped = farhop_link::plan(&config, Vec::new())?;
    let applied = shaped.shaping.apply(&Hold::take(&config.interface)?)?;
    say(&format!(
        "{}: in force, with queues of {}\n\n{}{}",
        config.interface,
        applied.kind.as_str(),
        show::table(&shaped),
        show::told(&config, show::Kept::ByNobody)
    ))?;
    complain_of_lacks(&applied, shaped.shaping.splits);
    complain(
        "drop precedences are kept, and acted on by `farhop link run` alone: it has to see how long the queues are",
    );
    Ok(())
}

/// What the kernel has not, and what that costs.
fn complain_of_lacks(applied: &Applied, splits: bool) {
    if applied.kind != LeafKind::FqCodel {
        complain(&format!(
            "this kernel has no fq_codel, so flows within a class share a queue of {}; load it with 'modprobe sch_fq_codel'",
            applied.kind.as_str()
        ));
    }
    if splits && applied.whole.is_none() {
        complain(
            "this kernel has no tbf, so voice waits for the whole of what TCP hands over as one segment; load it with 'modprobe sch_tbf', \
             or switch segments off ('ethtool -K DEVICE tso off gso off', and 'gro off' where they come in)",
        );
    }
}

fn remove(settings: &LinkManagerSettings) -> anyhow::Result<()> {
    let interface = &settings.interface;
    let was_there = unshape(&Hold::take(interface)?)?;
    say(&if was_there {
        format!("{interface}: taken away")
    } else {
        format!("{interface}: nothing of Farhop's is there")
    })
}

fn manage(settings: &LinkManagerSettings) -> anyhow::Result<()> {
    let config = config(settings)?;
    log::start(settings.log_level);
    let unadmitted = farhop_link::plan(&config, Vec::new())?.unadmitted;
    if !unadmitted.is_empty() {
        complain(&show::unadmitted(&unadmitted));
    }
    if let Some(warning) = show::for_all(&config.rules) {
        complain(&warning);
    }
    // Before calls are taken up: another manager may be writing them.
    let control = std::path::absolute(&settings.control).unwrap_or_else(|_| settings.control.clone());
    let hold = Hold::take(&config.interface)?.keep(&format!("control socket {}", control.display()))?;
    block_on(async {
        let manager = Arc::new(Manager::start(config, Bus::new())?);
        let socket = Socket::open(&settings.control)?;
        let rest = settings.rest.as_deref().map(Socket::open).transpose()?;
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        // What is in force stays so: a manager that is replaced leaves no gap. `farhop link remove` takes it away.
        farhop_link::run(manager, Arc::new(Linux::new(hold)), socket, rest, stop).await?;
        Ok(())
    })
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(work)
}
