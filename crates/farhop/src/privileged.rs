//! `farhop privileged`: the helper that alone may change networks, for an end that keeps no such right.

/// Changes networks for the end that started it, and undoes that when it ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> anyhow::Result<()> {
    Ok(farhop_netdev::serve_privileged()?)
}
