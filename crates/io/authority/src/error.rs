//! What can go wrong with a CA, each in one line that says what, where and what to do.

use std::io;
use std::path::PathBuf;

/// Why there is no authority, or no certificate of one.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The folder holds none.
    #[error("{} does not exist, make a CA with 'farhop ca init {}'", .0.display(), folder(.0))]
    Missing(PathBuf),
    /// A new one would replace one that users may have installed.
    #[error(
        "{} exists already and is not overwritten; 'farhop ca rotate {}' changes a CA that is in use",
        .0.display(),
        folder(.0)
    )]
    Exists(PathBuf),
    /// Others may read the key, so it is no secret.
    #[error("{} can be read by other users (mode {mode:04o}), run 'chmod 600 {}'", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Others may put a CA of their own in its place.
    #[error("{} can be written by everybody (mode {mode:04o}), run 'chmod go-w {}'", folder.display(), folder.display())]
    Replaceable {
        /// The folder.
        folder: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file was not made by `farhop ca`.
    #[error("{} is no CA made by 'farhop ca init': it does not begin with 'farhop-authority'", .0.display())]
    Foreign(PathBuf),
    /// The file is of another format than this version of Farhop reads.
    #[error("{} is of format '{found}', this version of farhop reads format 1; use the version that wrote it", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What it says of itself.
        found: String,
    },
    /// The file is not whole.
    #[error("{} is damaged: {why}; restore it from a backup, or move it away and run 'farhop ca init'", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No folder can be made, or no file in it.
    #[error("{}: {error}; give a folder that exists and is writable, or can be made", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The system refused.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A CA cannot be called so.
    #[error("'{0}' cannot be the name of a CA: write 1 to 48 printable characters")]
    Name(String),
    /// Neither a domain nor a range of addresses.
    #[error("'{0}' is neither a domain such as example.org nor an address range such as 10.0.0.0/8")]
    Subtree(String),
    /// A domain's names without the domain itself.
    #[error(
        "'{pattern}' cannot stand for the names below {domain} alone; write {domain}, which stands for itself as well"
    )]
    BelowOnly {
        /// As it was written.
        pattern: String,
        /// What is written instead.
        domain: String,
    },
    /// The overlap of the last rotation still runs, and one certificate can be carried over at a time.
    #[error(
        "the last rotation is carried over until {0}, and only one can be at a time; wait until then, or end it now with '--overlap 0'"
    )]
    Overlapping(String),
    /// The CA is over.
    #[error(
        "the CA '{name}' expired on {date}; make its successor with 'farhop ca rotate' and have users install it"
    )]
    Expired {
        /// The CA's name.
        name: String,
        /// Its last day.
        date: String,
    },
    /// The CA is of the future.
    #[error("the CA '{name}' is valid from {date} only: the clock of this machine is wrong")]
    NotYetValid {
        /// The CA's name.
        name: String,
        /// Its first day.
        date: String,
    },
    /// No certificate can name this host.
    #[error("'{0}' is no host name or address that a certificate can name")]
    Host(String),
    /// The CA was made for other hosts only.
    #[error("the CA may not vouch for '{0}': it was made for other domains or addresses only")]
    NotPermitted(String),
    /// The system's random number generator failed, or what rcgen or rustls refuse.
    #[error("no certificate made: {0}")]
    Crypto(String),
}

impl From<rcgen::Error> for AuthorityError {
    fn from(error: rcgen::Error) -> Self {
        AuthorityError::Crypto(error.to_string())
    }
}

/// The folder of a CA's file, for commands.
fn folder(file: &std::path::Path) -> std::path::Display<'_> {
    file.parent().unwrap_or(file).display()
}
