//! Address translation between a device of ours in the first namespace and the networks of this machine.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::host::{feed, host_sysctl};
use crate::janitor::Undo;
use crate::{Error, Janitor};

/// What stands behind a device, and what it may reach.
#[derive(Debug, Clone, Copy)]
pub struct Nat<'a> {
    /// The device in the first namespace.
    pub device: &'a str,
    /// The one address behind it; elsewhere its packets bear this machine's own address.
    pub client: Ipv4Addr,
    /// This machine as the client sees it. Every server here is reached at this address, over TCP also those that
    /// listen on localhost only. (Datagrams aren't translated: Linux 6.18 spoils the checksums of segments that it makes of
    /// them when they leave for a device without offloads.)
    pub host: Ipv4Addr,
    /// The name server that answers at port 53 of `host`.
    pub dns: Option<Ipv4Addr>,
}

impl Nat<'_> {
    /// Puts the translation in force until the janitor goes.
    ///
    /// # Errors
    /// `nft` is missing or refuses, or a sysctl cannot be set.
    pub fn start(&self, janitor: &Arc<Janitor>) -> Result<(), Error> {
        let Nat { device, client, host, dns } = self;
        let table = janitor.owner().table();
        host_sysctl(janitor, "net/ipv4/ip_forward", "1")?;
        // Lets packets from the device reach 127.0.0.1; the setting goes with the device.
        let local = format!("/proc/sys/net/ipv4/conf/{device}/route_localnet");
        fs::write(&local, "1").map_err(Error::system(format!("set {local}")))?;
        let dns = dns.map_or(String::new(), |server| {
            format!("iifname \"{device}\" ip daddr {host} meta l4proto {{ tcp, udp }} th dport 53 dnat to {server}")
        });
        janitor.promise(&Undo::NftTable(&table))?;
        let rules = format!(
            "table ip {table} {{
                chain inwards {{
                    type nat hook prerouting priority dstnat;
                    {dns}
                    iifname \"{device}\" ip daddr {host} meta l4proto tcp dnat to 127.0.0.1
                }}
                chain outwards {{
                    type nat hook postrouting priority srcnat;
                    ip saddr {client} masquerade
                }}
            }}"
        );
        feed("nft", &["-f", "-"], &rules)
    }
}
