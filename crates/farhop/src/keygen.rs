//! `farhop keygen`: makes an identity, or tells the public line of one.

use std::path::PathBuf;

use farhop_transport::identity::Identity;

use crate::output::say;

/// Makes a new identity: writes the secret key to FILE and prints the public line for the other end's settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the secret key goes. It is never overwritten, and only its owner can read it.
    file: PathBuf,
    /// Makes nothing: prints the public line of the secret key that FILE holds already.
    #[arg(long)]
    public: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let identity = if arguments.public {
        Identity::load(&arguments.file)?
    } else {
        let identity = Identity::generate()?;
        identity.save(&arguments.file)?;
        identity
    };
    say(&identity.public().to_string())
}
