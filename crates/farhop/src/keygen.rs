//! `farhop keygen`: makes an identity.

use std::path::PathBuf;

use farhop_transport::identity::Identity;

use crate::output::say;

/// Makes a new identity: writes the secret key to FILE and prints the public line for the other end's settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the secret key goes. It is never overwritten, and only its owner can read it.
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let identity = Identity::generate()?;
    identity.save(&arguments.file)?;
    say(&identity.public().to_string())
}
