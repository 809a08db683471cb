//! Terminals beside the first: each with a remote end and a client of its own, sharing the satellite link with all others. To be
//! reached over the link like the first, from ground and from the origins.
//!
//! ```text
//!   client ──lan0── remote ──sat0══(satellite)══satN── ground
//!   10.78.N.2   10.78.N.1  10.79.N.1      10.79.N.2
//! ```

use farhop_netdev::{Janitor, Namespace, Running, Tun};
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

use crate::testbed::{satellite_up, spawn};
use crate::{Addresses, Error};

/// A terminal beside the first, and its user.
#[derive(Debug)]
pub struct Terminal {
    /// Which one: 1 for the first of these.
    pub number: u16,
    /// Its user's address.
    pub client_address: Ipv4Addr,
    /// Its remote end, as the user reaches it.
    pub remote_address: Ipv4Addr,
    /// Its remote end on the satellite link.
    pub satellite_address: Ipv4Addr,
    client: Namespace,
    remote: Namespace,
}

/// More than any experiment has, and few enough for an address of each.
pub(crate) const MOST: u16 = 250;

impl Terminal {
    /// A terminal `number`, and its device; the one on the gateway's side is the caller's affair.
    pub(crate) fn create(
        janitor: &Arc<Janitor>,
        number: u16,
        at: &Addresses,
        control: &str,
    ) -> Result<(Self, Tun), Error> {
        let last = u8::try_from(number.min(MOST)).unwrap_or(u8::MAX);
        let [client_address, remote_address] = [2, 1].map(|host| Ipv4Addr::new(10, 78, last, host));
        let [satellite_address, gateway] = [1, 2].map(|host| Ipv4Addr::new(10, 79, last, host));
        let mut client = Namespace::create(janitor, &format!("client{number}"))?;
        let mut remote = Namespace::create(janitor, &format!("remote{number}"))?;
        for namespace in [&mut client, &mut remote] {
            namespace.sysctl("net/ipv4/tcp_congestion_control", control)?;
            namespace.sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
            namespace.resolver(at.dns.into())?;
        }
        let device = Tun::create(Some(&remote), "sat0")?;
        client.ip(&[
            format!("link add lan0 type veth peer name lan0 netns {}", remote.name()),
            format!("addr add {client_address}/24 dev lan0"),
            "link set lan0 up".into(),
        ])?;
        remote.ip(&[
            format!("addr add {remote_address}/24 dev lan0"),
            "link set lan0 up".into(),
            format!("addr add {satellite_address} peer {gateway} dev sat0"),
            satellite_up("sat0"),
            "route add default dev sat0".into(),
        ])?;
        client.ip(&[format!("route add default via {remote_address}")])?;
        remote.sysctl("net/ipv4/ip_forward", "1")?;
        let terminal = Terminal { number, client_address, remote_address, satellite_address, client, remote };
        Ok((terminal, device))
    }

    /// Makes the gateway's device for this terminal, and the way to it.
    pub(crate) fn attach(&self, ground: &Namespace) -> Result<Tun, Error> {
        let name = format!("sat{}", self.number);
        let device = Tun::create(Some(ground), &name)?;
        let [a, b, c, _] = self.satellite_address.octets();
        let [d, e, f, _] = self.client_address.octets();
        ground.ip(&[
            format!("addr add {} peer {} dev {name}", Ipv4Addr::new(a, b, c, 2), self.satellite_address),
            satellite_up(&name),
            format!("route add {}/24 dev {name}", Ipv4Addr::new(d, e, f, 0)),
        ])?;
        Ok(device)
    }

    /// Where its user's machine is.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    /// Where its remote end runs.
    pub fn remote(&self) -> &Namespace {
        &self.remote
    }

    /// Starts `command` at its user's machine, as [`crate::Testbed::spawn_in`] does.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn_client(&self, command: Command) -> Result<Running, Error> {
        spawn(&self.client, "client", command)
    }

    /// Starts `command` where its remote end is.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn_remote(&self, command: Command) -> Result<Running, Error> {
        spawn(&self.remote, "remote", command)
    }
}
