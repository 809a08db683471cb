//! `farhop user`: who may use a remote, by name and password.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use farhop_remote::passwords::{self, Passwords};

use crate::output::say;

/// Adds, removes and lists the users of a remote whose settings say `[auth] required`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Adds a user. The password is asked for, or read from standard input where that is no terminal.
    Add {
        /// The file of users, as 'auth.file' names it. It is made where it is missing.
        file: PathBuf,
        /// What the user is called.
        name: String,
        /// Sets another password for a user that is there.
        #[arg(long)]
        replace: bool,
    },
    /// Removes a user.
    Remove {
        /// The file of users.
        file: PathBuf,
        /// What the user is called.
        name: String,
    },
    /// Lists the users.
    List {
        /// The file of users.
        file: PathBuf,
    },
}

/// A running remote takes the file over on SIGHUP.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Add { file, name, replace } => {
            passwords::check(file, name, *replace)?;
            passwords::add(file, name, &password(name)?, *replace)?;
        }
        Command::Remove { file, name } => passwords::remove(file, name)?,
        Command::List { file } => {
            for name in Passwords::load(file)?.names() {
                say(name)?;
            }
        }
    }
    Ok(())
}

/// A password is never an argument: everyone on the machine can read those.
fn password(name: &str) -> anyhow::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let mut line = String::new();
        stdin.lock().read_line(&mut line).context("password")?;
        ensure!(!line.is_empty(), "there is no password on standard input; write it there as one line");
        let end = line.trim_end_matches(['\r', '\n']).len();
        line.truncate(end);
        return Ok(line);
    }
    let first = rpassword::prompt_password(format!("Password for {name}: ")).context("password")?;
    let again = rpassword::prompt_password("Once more: ").context("password")?;
    if first != again {
        bail!("the two are not the same; nothing was changed");
    }
    Ok(first)
}
