//! Namespaces client, neighbour, remote, ground, origins around an emulated link, and what an experiment needs to trust
//! them: calibration, fitness of a load, measurements of the emulator itself.
//!
//! ```text
//!   client ──lan0── remote ──sat0══(satellite)══sat0── ground ──lan0── origins
//!   10.77.1.2   10.77.1.1  10.77.2.1      10.77.2.2  10.77.3.1   10.77.3.2, DNS 10.77.3.53,
//!                                                                origins 10.77.16.0/20
//!   neighbour ──lan0/lan1── remote: a second user, 10.77.4.2
//! ```
//!
//! Further terminals ([`Terminal`]) share the satellite where an experiment wants them.
//!
//! Traffic that asks for nobody's help goes from client to origins through all of it. What runs in the
//! namespaces (Farhop's two ends, browsers, servers) is the caller's; every privileged call is `io/netdev`'s.

mod calibrate;
mod controllers;
mod fitness;
mod granted;
mod impaired;
pub mod measure;
mod probe;
mod quiet;
mod shell;
mod terminal;
mod terminals;
mod testbed;

pub use calibrate::{Calibration, RateCheck};
pub use farhop_emulator::{Activity, LinkHandle, LoadRecord, WayRecord};
pub use farhop_netdev::{Namespace, Running, is_rootless};
pub use fitness::{Fitness, fit};
pub use shell::shell;
pub use terminal::Terminal;
pub use testbed::{Addresses, CAPACITY_PORT, Place, Testbed};

use std::io;
use std::sync::OnceLock;

/// Whether this process may bring a testbed up: to be asked before long preparations.
///
/// # Errors
/// It lacks the privileges, or the machine lacks TUN devices or `ip`.
pub fn require_privileges() -> Result<(), Error> {
    farhop_netdev::require_privileges("the lab").map_err(|error| match NO_NAMESPACE.get() {
        Some(reason) => Error::Privileges { error, reason: reason.clone() },
        None => error.into(),
    })
}

/// Where this process is not privileged, makes it so within a user namespace of its own, if the system allows that; else it stays as
/// it is. What is measured there is indicative: threads of the link have no priority, and ends share processors with everyone. To be called
/// before the process has a second thread.
pub fn become_privileged() {
    match farhop_netdev::enter_user_namespace("the lab") {
        Ok(()) if farhop_netdev::is_rootless() => {
            eprintln!("without root: in a user namespace; what is measured is indicative");
        }
        Ok(()) => {}
        // Said once it matters, by `require_privileges`.
        Err(reason) => drop(NO_NAMESPACE.set(reason.to_string())),
    }
}

/// Why this process could not become privileged in a user namespace.
static NO_NAMESPACE: OnceLock<String> = OnceLock::new();

/// Whether sockets of this kernel may send with the TCP congestion control `name`; loads its module where it can.
///
/// # Errors
/// They may not; says which ones they may.
pub fn require_congestion_control(name: &str) -> Result<(), Error> {
    let socket = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    let chosen = socket.and_then(|socket| farhop_netdev::set_congestion_control(&socket, name));
    chosen.map_err(|_| Error::CongestionControl {
        name: name.into(),
        known: std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .unwrap_or_default()
            .trim()
            .into(),
    })
}

/// Why a testbed does not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither root nor a user namespace.
    #[error("{error}; without it a user namespace would do, but: {reason}")]
    Privileges {
        /// What is missing.
        error: farhop_netdev::Error,
        /// What the namespace failed at.
        reason: String,
    },
    /// The kernel, or a tool that speaks to it, refused.
    #[error(transparent)]
    Net(#[from] farhop_netdev::Error),
    /// The link did not start.
    #[error(transparent)]
    Link(#[from] farhop_emulator::StartError),
    /// A program did not start inside.
    #[error("cannot start {program} in the {place} namespace: {source}")]
    Spawn {
        /// What was to run.
        program: String,
        /// Where.
        place: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// That many terminals have no addresses here.
    #[error("a testbed has 1 to 251 terminals, not {0}")]
    Terminals(u16),
    /// The kernel lacks a congestion control.
    #[error(
        "this kernel has no TCP congestion control '{name}', only: {known}; load its module (modprobe tcp_{name}) or leave out what needs it"
    )]
    CongestionControl {
        /// What was wanted.
        name: String,
        /// What there is.
        known: String,
    },
    /// Neither the kernel nor the lab has a congestion control here.
    #[error(
        "not present: the TCP congestion control '{algorithm}': this kernel has none, nor can the lab's own be made: {reason}"
    )]
    OwnController {
        /// What was wanted.
        algorithm: String,
        /// Why not.
        reason: String,
    },
    /// Every address that a shell could have is in use here.
    #[error("no free addresses in 100.64.0.0/10 on this machine, end another shell first")]
    NoAddress,
    /// A probe of the link got no answer.
    #[error("the link could not be probed, {what}: {source}")]
    Probe {
        /// Which part.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}
