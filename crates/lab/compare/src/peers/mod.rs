//! Programs of others that a comparison runs beside Farhop: whether the machine has them, and that they have come up. Their
//! settings are made in `caddy` and `squid`.

pub(crate) mod caddy;
pub(crate) mod squid;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use farhop_testbed::{Place, Running, Testbed};

use crate::CompareError;
use crate::interrupt::Interrupt;
use crate::scene::{last_words, spawn};

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a program is, if the machine has it. Servers live in /usr/sbin, which not every PATH names.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A server of others to be started.
struct Server<'a> {
    name: &'static str,
    place: Place,
    command: Command,
    /// Listens over TCP once it is up.
    listens: SocketAddr,
    /// For what it says on standard error.
    stderr: PathBuf,
    testbed: &'a Testbed,
}

impl Server<'_> {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// It does not; with its last words.
    fn start(self, interrupt: &Interrupt) -> Result<Running, CompareError> {
        let Server { name, place, command, listens, stderr, testbed } = self;
        let mut running = spawn(testbed, place, command, &stderr)?;
        let deadline = Instant::now() + PATIENCE;
        let failed = |reason: String| CompareError::Peer { name, reason };
        loop {
            if let Ok(Some(status)) = running.try_wait() {
                return Err(failed(format!("it ended ({status}): {}", last_words(&stderr))));
            }
            let listening = testbed.namespace(place).run(|| TcpStream::connect(listens));
            if listening.map_err(farhop_testbed::Error::from)?.is_ok() {
                return Ok(running);
            }
            if Instant::now() > deadline {
                return Err(failed(format!("it does not listen on {listens}: {}", last_words(&stderr))));
            }
            interrupt.sleep(Duration::from_millis(20))?;
        }
    }
}

/// Writes a settings file and gives its path.
fn settings_file(folder: &Path, name: &str, text: &str) -> Result<PathBuf, CompareError> {
    let file = folder.join(name);
    std::fs::write(&file, text).map_err(CompareError::file(&file))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name_or_not_at_all() {
        assert!(program("sh").is_some_and(|file| file.is_absolute()));
        assert_eq!(program("no-such-program-anywhere"), None);
    }
}
