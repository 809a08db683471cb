//! Programs of others that split TCP at both ends of the link, run beside Farhop: PEPsal, whose two ends are the same program,
//! and QPEP, a client at the terminal and a server at the gateway. Both take connections by TPROXY, whose rules are made here
//! and go when the peer does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use farhop_testbed::{Place, Running, Testbed};

use super::program;
use crate::CompareError;
use crate::interrupt::Interrupt;
use crate::scene::{last_words, spawn};

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splitter {
    /// PEPsal 2: `-p` says where it listens; daemon, log and limits stay as they are.
    Pepsal,
    /// QPEP: `-client -gateway ADDRESS` at the terminal, nothing at the gateway.
    Qpep,
}

/// Where the programs are; none for one that is not there.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    /// PEPsal.
    pub pepsal: Option<PathBuf>,
    /// QPEP.
    pub qpep: Option<PathBuf>,
}

/// Where PEPsal listens unless told otherwise, QPEP's client always, and QPEP's server (UDP).
const PEPSAL_PORT: u16 = 5000;
const QPEP_PORT: u16 = 8080;
const QPEP_SERVER_PORT: u16 = 4242;
/// How long one may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// The mark of packets that stay here (ip-rule(8)), its table of routes, and the table of nftables.
const MARK: u32 = 1;
const ROUTES: u32 = 100;
const TABLE: &str = "farhop-lab-peer";

impl Peers {
    /// Where a peer is.
    pub fn program(&self, peer: Splitter) -> Option<&Path> {
        match peer {
            Splitter::Pepsal => self.pepsal.as_deref(),
            Splitter::Qpep => self.qpep.as_deref(),
        }
    }

    /// The same with those that nobody has named where the machine has them on its path.
    #[must_use]
    pub fn or_installed(self) -> Peers {
        Peers {
            pepsal: self.pepsal.or_else(|| program("pepsal")),
            qpep: self.qpep.or_else(|| program("qpep")),
        }
    }

    /// Whether every program that was named is there.
    ///
    /// # Errors
    /// One is not.
    pub fn check(&self) -> Result<(), CompareError> {
        for path in self.pepsal.iter().chain(&self.qpep) {
            let found = std::fs::metadata(path).map_err(CompareError::file(path))?;
            if !found.is_file() {
                return Err(CompareError::Arguments(format!("{} is no program", path.display())));
            }
        }
        Ok(())
    }
}

/// A peer that is running, at both ends.
pub struct RunningPeer<'a> {
    testbed: &'a Testbed,
    caught: Vec<Place>,
    processes: Vec<(&'static str, Running, PathBuf)>,
}

impl<'a> RunningPeer<'a> {
    /// Starts both ends and waits until they listen; from then on they take what passes.
    ///
    /// # Errors
    /// One of them ends or does not listen, or the kernel refuses the rules.
    pub fn start(
        testbed: &'a Testbed,
        peer: Splitter,
        program: &Path,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<RunningPeer<'a>, CompareError> {
        let mut running = RunningPeer { testbed, caught: Vec::new(), processes: Vec::new() };
        for place in [Place::Ground, Place::Remote] {
            let mut command = Command::new(program);
            let (name, listens) = match (peer, place) {
                (Splitter::Pepsal, _) => {
                    command.args(["-p", &PEPSAL_PORT.to_string()]);
                    ("pepsal", ("tcp", PEPSAL_PORT))
                }
                (Splitter::Qpep, Place::Remote) => {
                    let gateway = testbed.addresses.ground_satellite.to_string();
                    command.args(["-client", "-gateway", &gateway]);
                    ("qpep", ("tcp", QPEP_PORT))
                }
                (Splitter::Qpep, _) => ("qpep", ("udp", QPEP_SERVER_PORT)),
            };
            let stderr = folder.join(format!("{name}-{}.stderr", place.name()));
            let mut process = spawn(testbed, place, command, &stderr)?;
            let deadline = Instant::now() + PATIENCE;
            let failed =
                |why: String| CompareError::Peer { name, reason: format!("{why}: {}", last_words(&stderr)) };
            while !is_listening(testbed, place, listens)? {
                if let Ok(Some(status)) = process.try_wait() {
                    return Err(failed(format!("it ended ({status})")));
                }
                if Instant::now() > deadline {
                    return Err(failed(format!("it does not listen on {} port {}", listens.0, listens.1)));
                }
                interrupt.sleep(Duration::from_millis(20))?;
            }
            running.processes.push((name, process, stderr));
            if listens.0 == "tcp" {
                running.caught.push(place);
                catch(testbed, place, listens.1)?;
            }
        }
        Ok(running)
    }

    /// The end at the terminal, the one at the gateway.
    pub(crate) fn processes(&self) -> [Option<&Running>; 2] {
        // In the order in which they were started.
        let mut started = self.processes.iter().map(|(_, process, _)| process);
        let gateway = started.next();
        [started.next(), gateway]
    }

    /// Whether both ends run.
    ///
    /// # Errors
    /// One of them does not; with its last words.
    pub fn check_alive(&mut self) -> Result<(), CompareError> {
        self.processes.iter_mut().try_for_each(|(name, process, stderr)| super::alive(name, process, stderr))
    }
}

impl Drop for RunningPeer<'_> {
    fn drop(&mut self) {
        for place in &self.caught {
            // The namespaces go soon after in any case, and these with them.
            let _ = run(self.testbed, *place, "nft", &["delete", "table", "ip", TABLE]);
            let _ = run(self.testbed, *place, "ip", &["rule", "del", "fwmark", &MARK.to_string()]);
        }
    }
}

/// Whether somebody listens on a port in a namespace, without knocking at it: whoever connects to a transparent proxy itself
/// makes it connect to itself.
fn is_listening(
    testbed: &Testbed,
    place: Place,
    (protocol, port): (&str, u16),
) -> Result<bool, CompareError> {
    let read = || {
        let table =
            |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        table(protocol) + &table(&format!("{protocol}6"))
    };
    let tables = testbed.namespace(place).run(read).map_err(farhop_testbed::Error::from)?;
    Ok(bound(&tables, port))
}

/// Whether one of the sockets in these lines of `/proc/net` (proc(5)) waits for peers at a port of its own.
fn bound(tables: &str, port: u16) -> bool {
    let waits = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote) = (fields.next()?, fields.next()?);
        Some(local.ends_with(&format!(":{port:04X}")) && remote.ends_with(":0000"))
    };
    tables.lines().any(|line| waits(line).unwrap_or(false))
}

/// Gives what passes through `place` over TCP to the proxy at `port` (the kernel's Documentation/networking/tproxy.rst).
fn catch(testbed: &Testbed, place: Place, port: u16) -> Result<(), CompareError> {
    run(testbed, place, "ip", &["rule", "add", "fwmark", &MARK.to_string(), "lookup", &ROUTES.to_string()])?;
    run(
        testbed,
        place,
        "ip",
        &["route", "replace", "local", "default", "dev", "lo", "table", &ROUTES.to_string()],
    )?;
    let rules = format!(
        "table ip {TABLE} {{
             chain caught {{
                 type filter hook prerouting priority mangle
                 iifname {{ \"lan0\", \"sat0\" }} fib daddr type != local meta l4proto tcp tproxy to :{port} meta mark set {MARK} accept
             }}
         }}"
    );
    run(testbed, place, "nft", &[&rules])
}

/// Runs a command in a namespace to its end.
fn run(
    testbed: &Testbed,
    place: Place,
    program: &'static str,
    arguments: &[&str],
) -> Result<(), CompareError> {
    let mut command = Command::new(program);
    testbed.namespace(place).prepare(&mut command);
    let output =
        command.args(arguments).stdin(Stdio::null()).output().map_err(CompareError::file(program))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().next().unwrap_or("it said nothing").to_owned();
    Err(CompareError::Peer { name: program, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_told_from_a_connection_on_the_same_port() {
        let listening = "  0: 00000000:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1";
        let connected = "  1: 0101A8C0:1388 0201A8C0:C350 01 00000000:00000000 00:00000000 00000000 0 0 2";
        assert!(bound(listening, 5000));
        assert!(!bound(connected, 5000) && !bound(listening, 8080) && !bound("", 5000));
    }

    #[test]
    fn a_program_that_is_not_where_it_should_be_is_named() {
        let peers = Peers { pepsal: Some("/nowhere/pepsal".into()), qpep: None };
        assert!(peers.check().unwrap_err().to_string().starts_with("/nowhere/pepsal: "));
        assert!(Peers::default().check().is_ok());
    }
}
