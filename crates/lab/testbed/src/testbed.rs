//! The testbed itself: five namespaces, the wires between them, and the link in the middle.

use farhop_emulator::{Counter, Desk, Hop, Link, LinkHandle, LoadRecord};
use farhop_netdev::{
    Janitor, Namespace, Running, Tun, congestion_control_allowed, is_rootless, require_privileges,
};
use farhop_orbit::Profile;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use crate::Error;
use crate::controllers::Controllers;
use crate::terminal::{self, Terminal};

/// Congestion control of every kernel in the testbed unless a socket asks for another.
const CONGESTION_CONTROL: &str = "cubic";

/// A part of the testbed with a network of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The user's machine, where browsers run.
    Client,
    /// Another user's machine at the same terminal.
    Neighbour,
    /// The terminal's side of the satellite link, where `farhop remote` runs.
    Remote,
    /// The gateway's side, where `farhop ground` runs.
    Ground,
    /// The internet: origins and their DNS.
    Origins,
}

impl Place {
    /// From the user to the internet.
    pub const ALL: [Place; 5] =
        [Place::Client, Place::Neighbour, Place::Remote, Place::Ground, Place::Origins];

    /// In lower case, as namespaces and messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Place::Client => "client",
            Place::Neighbour => "neighbour",
            Place::Remote => "remote",
            Place::Ground => "ground",
            Place::Origins => "origins",
        }
    }
}

/// Who lives where. Every testbed has the same addresses: they never meet.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// The client.
    pub client: Ipv4Addr,
    /// The other user.
    pub neighbour: Ipv4Addr,
    /// The remote end, as both reach it.
    pub remote: Ipv4Addr,
    /// The remote end on the satellite link.
    pub remote_satellite: Ipv4Addr,
    /// The ground end on the satellite link, as the remote end reaches it.
    pub ground_satellite: Ipv4Addr,
    /// The ground end on the internet's side.
    pub ground: Ipv4Addr,
    /// The origins' router address.
    pub origins: Ipv4Addr,
    /// Where every `/etc/resolv.conf` points; lives in the origins namespace.
    pub dns: Ipv4Addr,
    /// First address of the origins' range, with its prefix length. All of it is local to the origins
    /// namespace: a server may bind any of these addresses.
    pub origin_range: (Ipv4Addr, u8),
}

/// Where everything is.
const ADDRESSES: Addresses = Addresses {
    client: Ipv4Addr::new(10, 77, 1, 2),
    neighbour: Ipv4Addr::new(10, 77, 4, 2),
    remote: Ipv4Addr::new(10, 77, 1, 1),
    remote_satellite: Ipv4Addr::new(10, 77, 2, 1),
    ground_satellite: Ipv4Addr::new(10, 77, 2, 2),
    ground: Ipv4Addr::new(10, 77, 3, 1),
    origins: Ipv4Addr::new(10, 77, 3, 2),
    dns: Ipv4Addr::new(10, 77, 3, 53),
    origin_range: (Ipv4Addr::new(10, 77, 16, 0), 20),
};

impl Addresses {
    /// How many origins have an address.
    pub const ORIGINS: u16 = 4094;

    /// Address of origin `number`, counted from 0; numbers past [`Addresses::ORIGINS`] start over.
    pub fn origin(&self, number: u16) -> Ipv4Addr {
        let offset = u32::from(number % Addresses::ORIGINS) + 1;
        Ipv4Addr::from_bits(self.origin_range.0.to_bits() + offset)
    }
}

/// A running testbed; all of it goes when dropped, and also when its process ends in any other way.
#[derive(Debug)]
pub struct Testbed {
    /// Who lives where.
    pub addresses: Addresses,
    // Dropped in this order: first the link lets go of its devices, then the namespaces go.
    _desk: Desk,
    link: Link,
    namespaces: [Namespace; 5],
    terminals: Vec<Terminal>,
    control: &'static str,
    controllers: Controllers,
}

impl Testbed {
    /// Brings a testbed up on `profile`; `seed` decides which packets a lossy link loses.
    ///
    /// # Errors
    /// No privileges, a missing tool, or a kernel that lacks something; nothing is left behind.
    pub fn up(profile: &Profile, seed: u64) -> Result<Self, Error> {
        Testbed::with_terminals(profile, seed, 1)
    }

    /// The same with so many terminals that share the link, 1 to 251: [`Place::Remote`] is one, [`Testbed::terminals`] are the others.
    ///
    /// # Errors
    /// As for [`Testbed::up`]; or capacity on demand is for fewer terminals.
    pub fn with_terminals(profile: &Profile, seed: u64, terminals: u16) -> Result<Self, Error> {
        if !(1..=terminal::MOST + 1).contains(&terminals) {
            return Err(Error::Terminals(terminals));
        }
        require_privileges("the testbed")?;
        let janitor = Janitor::start()?;
        let at = ADDRESSES;

        let mut client = Namespace::create(&janitor, "client")?;
        let mut neighbour = Namespace::create(&janitor, "neighbour")?;
        let mut remote = Namespace::create(&janitor, "remote")?;
        let mut ground = Namespace::create(&janitor, "ground")?;
        let mut origins = Namespace::create(&janitor, "origins")?;
        let control = match congestion_control_allowed(&janitor, CONGESTION_CONTROL) {
            Ok(()) => CONGESTION_CONTROL,
            // What the machine allows is not for a user namespace to change; this one is always allowed.
            Err(_) if is_rootless() => "reno",
            Err(error) => return Err(error.into()),
        };
        for namespace in [&mut client, &mut neighbour, &mut remote, &mut ground, &mut origins] {
            namespace.sysctl("net/ipv4/tcp_congestion_control", control)?;
            // Else the second load would start with the window and threshold that the first one learned.
            namespace.sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
            namespace.resolver(at.dns.into())?;
        }
        // Servers take what comes with a SYN (RFC 7413) from who has their cookie, whether their sockets ask for it or not
        // (ip-sysctl: 0x2 and 0x400); who does not want it notices nothing.
        origins.sysctl("net/ipv4/tcp_fastopen", "1027")?;
        let first = Hop {
            terminal: Tun::create(Some(&remote), "sat0")?,
            gateway: Tun::create(Some(&ground), "sat0")?,
        };

        client.ip(&[
            format!("link add lan0 type veth peer name lan0 netns {}", remote.name()),
            format!("addr add {}/24 dev lan0", at.client),
            "link set lan0 up".into(),
        ])?;
        neighbour.ip(&[
            format!("link add lan0 type veth peer name lan1 netns {}", remote.name()),
            format!("addr add {}/24 dev lan0", at.neighbour),
            "link set lan0 up".into(),
        ])?;
        origins.ip(&[
            format!("link add lan0 type veth peer name lan0 netns {}", ground.name()),
            format!("addr add {}/24 dev lan0", at.origins),
            format!("addr add {}/24 dev lan0", at.dns),
            "link set lan0 up".into(),
            format!("route add local {}/{} dev lo", at.origin_range.0, at.origin_range.1),
            format!("route add default via {}", at.ground),
        ])?;
        remote.ip(&[
            format!("addr add {}/24 dev lan0", at.remote),
            "link set lan0 up".into(),
            format!("addr add {NEIGHBOURS_ROUTER}/24 dev lan1"),
            "link set lan1 up".into(),
            format!("addr add {} peer {} dev sat0", at.remote_satellite, at.ground_satellite),
            satellite_up("sat0"),
            "route add default dev sat0".into(),
        ])?;
        ground.ip(&[
            format!("addr add {}/24 dev lan0", at.ground),
            "link set lan0 up".into(),
            format!("addr add {} peer {} dev sat0", at.ground_satellite, at.remote_satellite),
            satellite_up("sat0"),
            format!("route add {}/24 dev sat0", network(at.client)),
            format!("route add {}/24 dev sat0", network(at.neighbour)),
            format!("route add default via {}", at.origins),
        ])?;
        client.ip(&[format!("route add default via {}", at.remote)])?;
        neighbour.ip(&[format!("route add default via {NEIGHBOURS_ROUTER}")])?;
        for router in [&remote, &ground] {
            router.sysctl("net/ipv4/ip_forward", "1")?;
        }

        let (mut hops, mut others) = (vec![first], Vec::new());
        for number in 1..terminals {
            let (other, terminal) = Terminal::create(&janitor, number, &at, control)?;
            hops.push(Hop { gateway: other.attach(&ground)?, terminal });
            others.push(other);
        }
        let link = Link::start(hops, profile, seed)?;
        let ask = |namespace: &Namespace, address: Ipv4Addr, counter| -> Result<_, Error> {
            let socket = namespace.run(|| UdpSocket::bind((address, CAPACITY_PORT)))?;
            Ok((socket.map_err(farhop_emulator::StartError::from)?, counter))
        };
        let mut counters = vec![
            ask(&ground, at.ground_satellite, Counter::Centre)?,
            ask(&remote, at.remote_satellite, Counter::Modem(0))?,
        ];
        for other in &others {
            counters.push(ask(other.remote(), other.satellite_address, Counter::Modem(other.number))?);
        }
        let desk = Desk::open(link.handle().clone(), counters).map_err(farhop_emulator::StartError::from)?;
        let namespaces = [client, neighbour, remote, ground, origins];
        let controllers = Controllers::new(janitor);
        Ok(Testbed { addresses: at, _desk: desk, link, namespaces, terminals: others, control, controllers })
    }

    /// What the kernel calls the TCP congestion control `algorithm`: the same, or where it has none the name of the lab's own (Hybla,
    /// Vegas, Westwood, BIC), which is there from the first call on until the testbed goes.
    ///
    /// # Errors
    /// Neither is to be had.
    pub fn congestion_control(&self, algorithm: &str) -> Result<String, Error> {
        self.controllers.name(algorithm)
    }

    /// A place's namespace: to run a thread inside, or to prepare a command that is started elsewhere.
    pub fn namespace(&self, place: Place) -> &Namespace {
        match place {
            Place::Client => &self.namespaces[0],
            Place::Neighbour => &self.namespaces[1],
            Place::Remote => &self.namespaces[2],
            Place::Ground => &self.namespaces[3],
            Place::Origins => &self.namespaces[4],
        }
    }

    /// Starts `command` at `place`, resolving names there. It is killed, with what it started, when the
    /// result is dropped, and at the latest with the testbed.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn_in(&self, place: Place, command: Command) -> Result<Running, Error> {
        spawn(self.namespace(place), place.name(), command)
    }

    /// The terminals beside the first, each with a remote end and a client of its own.
    pub fn terminals(&self) -> &[Terminal] {
        &self.terminals
    }

    /// The link: to switch its profile, to cut it, and to read what it saw of a load.
    pub fn link(&self) -> &LinkHandle {
        self.link.handle()
    }

    /// What was set, for the report: name and value.
    pub fn conditions(&self) -> Vec<(&'static str, String)> {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let LoadRecord { realtime, .. } = self.link().record();
        let scheduling = if realtime { "SCHED_FIFO" } else { "ordinary, expect lateness under load" };
        let privileges =
            if is_rootless() { "a user namespace's, without root: indicative" } else { "root's" };
        vec![
            ("privileges", privileges.into()),
            ("kernel", kernel.trim().into()),
            ("tcp congestion control", self.control.into()),
            ("tcp metrics cache", "off".into()),
            ("mtu of the link", "1500".into()),
            ("scheduling of the link", scheduling.into()),
            ("dns", format!("{} port 53, beyond the link for client and remote", self.addresses.dns)),
        ]
    }
}

/// The remote's address on the neighbour's own wire.
const NEIGHBOURS_ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 4, 1);

/// Where each terminal's modem, and at ground the network control centre, is asked for capacity ahead of the packets (UDP), at its address
/// on the satellite link.
pub const CAPACITY_PORT: u16 = 7310;

/// Sets a device of the link up: its queue is long, so that the model's queue is the one that fills.
pub(crate) fn satellite_up(device: &str) -> String {
    format!("link set {device} mtu 1500 txqueuelen 5000 up")
}

/// Starts `command` inside.
pub(crate) fn spawn(
    namespace: &Namespace,
    place: &'static str,
    mut command: Command,
) -> Result<Running, Error> {
    namespace.prepare(&mut command);
    Running::start(&mut command).map_err(|source| {
        let program = command.get_program().to_string_lossy().into_owned();
        Error::Spawn { program, place, source }
    })
}

/// The /24 around an address.
fn network(address: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() & 0xffff_ff00)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_origin_has_its_own_address_inside_the_range() {
        let (first, length) = ADDRESSES.origin_range;
        let mask = u32::MAX << (32 - length);
        let all: HashSet<_> = (0..Addresses::ORIGINS).map(|n| ADDRESSES.origin(n)).collect();
        assert_eq!(all.len(), usize::from(Addresses::ORIGINS));
        assert!(all.iter().all(|address| address.to_bits() & mask == first.to_bits()));
        assert_eq!(ADDRESSES.origin(0), Ipv4Addr::new(10, 77, 16, 1));
    }
}
