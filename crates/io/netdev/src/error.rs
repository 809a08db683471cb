//! What can go wrong when the kernel is asked for devices, each in one line that says what to do.

use std::io;

/// A failed request to the kernel or to one of the tools that speak to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not do this.
    #[error("{what} needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN), run it with sudo")]
    NoPrivileges {
        /// What was wanted.
        what: String,
    },
    /// The process may not change networks.
    #[error(
        "{what} needs CAP_NET_ADMIN, run it with sudo or give its service 'AmbientCapabilities=CAP_NET_ADMIN'"
    )]
    NoNetAdmin {
        /// What was wanted.
        what: String,
    },
    /// The process may not listen to what passes a device.
    #[error(
        "{what} needs CAP_NET_RAW, run it with sudo or give its service 'AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW'"
    )]
    NoNetRaw {
        /// What was wanted.
        what: String,
    },
    /// Connections are diverted already.
    #[error(
        "process {pid} diverts connections by mark {mark} already; end the farhop that started it, or set another mark"
    )]
    Diverted {
        /// Who does.
        pid: u32,
        /// By this mark.
        mark: u32,
    },
    /// There is a device of this name.
    #[error(
        "there is a network device '{device}' already; name another one (--tun NAME), or end the farhop that has made it"
    )]
    Taken {
        /// The name.
        device: String,
    },
    /// The routing table is in use.
    #[error("the routing table {table} leads to {device} already; set another 'transparent.mark'")]
    Routed {
        /// Its number.
        table: u32,
        /// Where it leads.
        device: String,
    },
    /// The helper has refused a command.
    #[error("{0}")]
    Helper(String),
    /// There is no such device.
    #[error("there is no network device '{interface}' here; `ip link` shows those that there are")]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// The classes of the device have lost the rules that lead to them.
    #[error(
        "somebody has taken away the rules that lead to the classes of {interface}; `farhop link apply` puts them back"
    )]
    NoRules {
        /// The device.
        interface: String,
    },
    /// Somebody else shapes the device.
    #[error(
        "{interface} has a queue of somebody else's at its root ('{what}'), which is left alone; take it away with `tc qdisc del dev {interface} root` if it may go"
    )]
    ForeignQueue {
        /// The device.
        interface: String,
        /// Kind and handle of what is there.
        what: String,
    },
    /// A manager keeps the device.
    #[error(
        "{interface} is kept by a running `farhop link run` ({keeper}), which would put its own back; end that one first, or give it the new settings and start it anew"
    )]
    Kept {
        /// The device.
        interface: String,
        /// Who that is.
        keeper: String,
    },
    /// Somebody is at work on the device.
    #[error(
        "another `farhop link apply` or `remove` is still at work on {interface}; try again when it has ended"
    )]
    Busy {
        /// The device.
        interface: String,
    },
    /// The kernel cannot share a link's rate.
    #[error(
        "this kernel has no HTB, with which a link's rate is shared; load it with 'modprobe sch_htb' or build it in (CONFIG_NET_SCH_HTB)"
    )]
    NoHtb,
    /// The kernel cannot divert connections to a socket here.
    #[error(
        "this kernel has no TPROXY for nftables, by which connections are caught; load it with 'modprobe nft_tproxy' or build it in (CONFIG_NFT_TPROXY)"
    )]
    NoTproxy,
    /// The kernel has no TUN driver, or a container hides it.
    #[error(
        "/dev/net/tun is missing, load it with 'modprobe tun' or, in a container, pass it in with '--device /dev/net/tun'"
    )]
    NoTun,
    /// A program that the work is given to is not installed.
    #[error("the program '{program}' is not installed, install the package {package}")]
    MissingProgram {
        /// Its name.
        program: &'static str,
        /// Where it comes from.
        package: &'static str,
    },
    /// A program refused.
    #[error("'{command}' failed: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Its complaint, in one line.
        reason: String,
    },
    /// A syscall or file refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried, where.
        what: String,
        /// The kernel's word.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was tried.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |source| Error::System { what, source: source.into() }
    }
}
