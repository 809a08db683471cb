//! `farhop check`: tells what is wrong with a settings file before an end is started with it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use farhop_origin::Trust;
use farhop_remote::passwords::Passwords;
use farhop_settings::{
    End, GroundSettings, LinkManagerSettings, LocalSettings, PortRange, RemoteSettings, end_of, load,
    reference, sample,
};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{self, PathPlan};
use farhop_transport::tcp;

use crate::ca;
use crate::link;
use crate::output::say;

/// Checks a settings file, or prints one to start from.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The settings file.
    #[arg(required_unless_present_any = ["sample", "reference"])]
    file: Option<PathBuf>,
    /// Whose settings they are; told from the file where it is left out.
    #[arg(long = "as", value_name = "END")]
    end: Option<EndName>,
    /// Sets one value over the file, as `farhop remote` and `farhop ground` do.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Prints a settings file with every setting explained.
    #[arg(long, value_name = "END", conflicts_with_all = ["file", "reference"])]
    sample: Option<EndName>,
    /// Prints the reference of all settings (docs/config.md).
    #[arg(long, conflicts_with = "file")]
    reference: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EndName {
    Remote,
    Ground,
    Local,
    Link,
}

impl From<EndName> for End {
    fn from(name: EndName) -> End {
        match name {
            EndName::Remote => End::Remote,
            EndName::Ground => End::Ground,
            EndName::Local => End::Local,
            EndName::Link => End::LinkManager,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.reference {
        return say(&reference());
    }
    if let Some(end) = arguments.sample {
        return say(&match end.into() {
            End::Remote => sample::<RemoteSettings>("Settings of `farhop remote`, the end beside the users."),
            End::Ground => {
                sample::<GroundSettings>("Settings of `farhop ground`, the end near the internet.")
            }
            End::Local => sample::<LocalSettings>("Settings of `farhop local`, both ends in one process."),
            End::LinkManager => sample::<LinkManagerSettings>("Settings of `farhop link`, the link manager."),
        });
    }
    let Some(file) = &arguments.file else { bail!("no settings file is named; see farhop check --help") };
    let end = match arguments.end {
        Some(end) => end.into(),
        None => end_of(file)?,
    };
    let summary = match end {
        End::Remote => check_remote(&load(Some(file), &arguments.sets)?)?,
        End::Ground => check_ground(&load(Some(file), &arguments.sets)?)?,
        End::Local => {
            let LocalSettings { remote, ground } = load(Some(file), &arguments.sets)?;
            check_local(&remote, &ground)?
        }
        End::LinkManager => check_link(&load(Some(file), &arguments.sets)?)?,
    };
    say(&format!("{}: good, {summary}", file.display()))
}

fn check_remote(settings: &RemoteSettings) -> anyhow::Result<String> {
    check_identity(&settings.identity)?;
    check_users(settings)?;
    check_congestion(path::End::Remote, settings.tcp_congestion.as_deref())?;
    for ground in &settings.ground {
        check_keys("ground", ground.name.as_str(), &ground.keys)?;
    }
    let grounds = names(settings.ground.iter().map(|ground| &ground.name));
    Ok(format!("remote of {grounds}{}", looked_into(settings)))
}

/// Identities and peers are made on the spot.
fn check_local(remote: &RemoteSettings, ground: &GroundSettings) -> anyhow::Result<String> {
    check_users(remote).context("[remote]")?;
    check_trust(ground).context("[ground]")?;
    Ok(format!("local: both ends{}", looked_into(remote)))
}

/// The CA and the passwords, which are read at the start.
fn check_users(settings: &RemoteSettings) -> anyhow::Result<()> {
    if let Some(authority) = ca::authority(settings)? {
        authority.in_force().context("interception.ca")?;
    }
    if settings.auth.required {
        Passwords::load(&settings.auth.file)?;
    }
    Ok(())
}

fn check_trust(settings: &GroundSettings) -> anyhow::Result<()> {
    Trust::only(&settings.origin.roots, &settings.origin.crls).context("[origin]")?;
    Ok(())
}

/// Which connections are looked into and which are let through, by their ports.
fn looked_into(settings: &RemoteSettings) -> String {
    let interception = &settings.interception;
    if !interception.enabled {
        return String::new();
    }
    let untouched = |port: &&PortRange| !interception.ports.iter().any(|other| other.overlaps(**port));
    let through = names(settings.connect_ports.iter().filter(untouched));
    let into = format!("; CONNECT is looked into on port {}", names(interception.ports.iter()));
    if through.is_empty() { into } else { format!("{into}, and goes through untouched on {through}") }
}

fn check_ground(settings: &GroundSettings) -> anyhow::Result<String> {
    check_identity(&settings.identity)?;
    for remote in &settings.remote {
        check_keys("remote", remote.name.as_str(), &remote.keys)?;
    }
    check_trust(settings)?;
    if settings.tcp {
        check_congestion(path::End::Ground, settings.tcp_congestion.as_deref())?;
    }
    Ok(format!("ground of {}", names(settings.remote.iter().map(|remote| &remote.name))))
}

/// Of the kernels it is this one's that counts, as the files do.
fn check_congestion(end: path::End, name: Option<&str>) -> anyhow::Result<()> {
    tcp::Options::new(&PathPlan::UNKNOWN, end, name).context("tcp_congestion")?;
    Ok(())
}

fn check_link(settings: &LinkManagerSettings) -> anyhow::Result<String> {
    let config = link::config(settings)?;
    let plan = farhop_link::plan(&config, Vec::new())?.plan;
    Ok(format!(
        "link manager of {}: {} of {} sent at, {} for calls",
        config.interface,
        plan.shaped,
        plan.link,
        plan.ef()
    ))
}

fn check_identity(file: &Path) -> anyhow::Result<()> {
    Identity::load(file).context("identity")?;
    Ok(())
}

fn check_keys(list: &str, name: &str, keys: &[String]) -> anyhow::Result<()> {
    for (index, key) in keys.iter().enumerate() {
        let _: PublicKey = key.parse().with_context(|| format!("[[{list}]] {name}, key {}", index + 1))?;
    }
    Ok(())
}

fn names<T: std::fmt::Display>(names: impl Iterator<Item = T>) -> String {
    names.map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}
