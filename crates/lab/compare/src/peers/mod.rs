//! Programs of others that run beside Farhop: whether the machine has them, and that they have come up and stay up. Their settings are
//! made in `caddy`, `squid`, `nginx` and `split`.

pub(crate) mod caddy;
mod nginx;
pub(crate) mod split;
pub(crate) mod squid;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use farhop_testbed::{Place, Running, Testbed};
use farhop_units::Bytes;

use crate::CompareError;
use crate::ends::{Stage, computed, most_resident};
use crate::interrupt::Interrupt;
use crate::peers::split::{Peers, RunningPeer, Splitter};
use crate::peers::squid::SquidPair;
use crate::scene::{Scene, last_words, spawn};

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a program is, if the machine has it. Servers live in /usr/sbin, which not every PATH names.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// What others made to stand between client and origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A pair of Squid proxies, one at each end of the link, their caches cold.
    Squid,
    /// nginx at the gateway: a proxy for plain HTTP; for HTTPS it stands in for the origins ([`Besides::gateway`](crate::Besides)).
    Nginx,
    /// Connections split at both ends.
    Split(Splitter),
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 4] =
        [Peer::Squid, Peer::Nginx, Peer::Split(Splitter::Pepsal), Peer::Split(Splitter::Qpep)];

    /// As plans and reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Squid => "squid",
            Peer::Nginx => "nginx",
            Peer::Split(Splitter::Pepsal) => "pepsal",
            Peer::Split(Splitter::Qpep) => "qpep",
        }
    }

    /// Whether HTTPS passes it untouched, asked as a proxy or caught.
    pub fn tunnels(self) -> bool {
        self != Peer::Nginx
    }

    /// What this machine lacks for it, in words.
    pub fn lacks(self, given: &Peers) -> Option<String> {
        let name = self.name();
        match self {
            Peer::Squid | Peer::Nginx => {
                program(name).is_none().then(|| format!("not present: {name}, of the package {name}"))
            }
            Peer::Split(splitter) => {
                let say = || format!("not present: {name}; say where the program is with --{name}");
                given.program(splitter).is_none().then(say)
            }
        }
    }
}

/// A peer that is running; it ends when dropped.
pub struct Standing<'a>(Kind<'a>);

enum Kind<'a> {
    Squid(SquidPair),
    Nginx(nginx::Gateway),
    Split(RunningPeer<'a>),
}

impl<'a> Standing<'a> {
    /// Starts it, new and cold, and waits until it is up.
    ///
    /// # Errors
    /// It is not here, or does not come up.
    pub fn start(scene: &'a Scene, peer: Peer, given: &Peers) -> Result<Standing<'a>, CompareError> {
        let stage = scene.stage();
        if let Some(reason) = peer.lacks(given) {
            return Err(CompareError::Peer { name: peer.name(), reason });
        }
        Ok(Standing(match peer {
            Peer::Squid => Kind::Squid(SquidPair::start(stage)?),
            Peer::Nginx => Kind::Nginx(nginx::Gateway::start(stage, &scene.spec)?),
            Peer::Split(splitter) => {
                // It was there a moment ago.
                let program = given.program(splitter).unwrap_or(Path::new(peer.name()));
                let Stage { testbed, folder, interrupt, .. } = stage;
                Kind::Split(RunningPeer::start(testbed, splitter, program, folder, interrupt)?)
            }
        }))
    }

    /// Where clients find it; none where it catches connections.
    pub fn proxy(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Squid(pair) => Some(pair.proxy),
            Kind::Nginx(gateway) => Some(gateway.proxy),
            Kind::Split(_) => None,
        }
    }

    /// What it has computed so far at the terminal and at the gateway, its own work and the kernel's for it; none where nothing of it is.
    pub fn computed(&self) -> [Option<Duration>; 2] {
        self.processes().map(|process| computed(process?))
    }

    /// The most memory that it has held at a time at the terminal and at the gateway.
    pub fn peak_memory(&self) -> [Option<Bytes>; 2] {
        self.processes().map(|process| most_resident(process?))
    }

    /// Its processes at the terminal and at the gateway.
    fn processes(&self) -> [Option<&Running>; 2] {
        match &self.0 {
            Kind::Squid(pair) => pair.processes().map(Some),
            Kind::Nginx(gateway) => [None, Some(gateway.process())],
            Kind::Split(split) => split.processes(),
        }
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// It does not; with its last words.
    pub fn check_alive(&mut self) -> Result<(), CompareError> {
        match &mut self.0 {
            Kind::Squid(pair) => pair.check_alive(),
            Kind::Nginx(gateway) => gateway.check_alive(),
            Kind::Split(split) => split.check_alive(),
        }
    }
}

/// Whether a program runs.
fn alive(name: &'static str, process: &mut Running, stderr: &Path) -> Result<(), CompareError> {
    match process.try_wait() {
        Ok(Some(status)) => {
            Err(CompareError::Peer { name, reason: format!("it ended ({status}): {}", last_words(stderr)) })
        }
        _ => Ok(()),
    }
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
            alive(name, &mut running, &stderr)?;
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

    #[test]
    fn what_is_not_present_is_told_with_where_it_comes_from() {
        let lacks = |peer: Peer| peer.lacks(&Peers::default());
        assert_eq!(
            lacks(Peer::Split(Splitter::Qpep)).unwrap(),
            "not present: qpep; say where the program is with --qpep"
        );
        let there = Peers { pepsal: Some("/bin/sh".into()), qpep: None };
        assert_eq!(Peer::Split(Splitter::Pepsal).lacks(&there), None);
    }
}
