//! What comes in on some devices routed into a TUN device, by `ip` alone: for kernels that divert nothing (TPROXY), and for whole
//! subnets. What its owner writes back goes the way that it would have gone.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use nix::net::if_::if_nametoindex;

use crate::divert::Network;
use crate::host::{self, run};
use crate::{Error, Tun, transparent};

/// Before the rule of [`crate::Divert`].
const PREFERENCE: u32 = 99;
/// As local networks have it. Clients say themselves if theirs takes less (the segment size of TCP's opening).
const MTU: u32 = 1500;
/// Rules that are removed at most: each start of a crashed owner may have left some.
const MOST_LEFT: usize = 64;

/// What is routed into a TUN device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intake {
    /// The device, which is made, and must not be there before.
    pub device: String,
    /// The number of the routing table that leads there.
    pub table: u32,
    /// Addresses of this machine on it with their networks, one of each family at most; a family without one is not routed there.
    pub addresses: Vec<Network>,
    /// Devices on which comes in what is routed there.
    pub interfaces: Vec<String>,
    /// Where it does not lead. This machine's own addresses are left out anyway.
    pub except: Vec<Network>,
}

/// A TUN device with what leads there, until it is ended.
#[derive(Debug)]
pub(crate) struct Routed(Intake);

impl Routed {
    /// Makes the device, to which nothing is routed before [`Routed::set`]. It goes with its last descriptor.
    pub(crate) fn start(intake: &Intake) -> Result<(Routed, OwnedFd), Error> {
        let name = &intake.device;
        if if_nametoindex(name.as_str()).is_ok() {
            return Err(Error::Taken { device: name.clone() });
        }
        if let Some(device) = routes(intake.table)?.iter().find_map(|(_, route)| leads_to(route)) {
            return Err(Error::Routed { table: intake.table, device });
        }
        for interface in &intake.interfaces {
            if if_nametoindex(interface.as_str()).is_err() {
                return Err(Error::NoInterface { interface: interface.clone() });
            }
        }
        let tun = Tun::create(None, name)?;
        let mut intake = intake.clone();
        host::ip_batch(&[], &[format!("link set {name} mtu {MTU} txqueuelen 1000 up")])?;
        let add = |own: &Network| host::ip_batch(&[], &[format!("addr add {own} dev {name}{}", nodad(own))]);
        let (four, mut six): (Vec<_>, Vec<_>) =
            intake.addresses.iter().partition(|own| own.address.is_ipv4());
        four.iter().try_for_each(&add)?;
        // IPv6 may be switched off: nothing of it comes then.
        six.retain(|own| add(own).is_ok());
        intake.addresses = [four, six].concat();
        // Answers come from anywhere. Where the machine's own setting is no stricter this changes nothing.
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "2");
        Ok((Routed(intake), tun.into()))
    }

    /// Has these packets routed there; what is routed there before and after is so at every moment.
    pub(crate) fn set(&mut self, intake: &Intake) -> Result<(), Error> {
        if (&intake.device, intake.table) != (&self.0.device, self.0.table) {
            let source = std::io::Error::other("another one is in use");
            return Err(Error::System { what: format!("route packets into {}", intake.device), source });
        }
        let addresses = std::mem::take(&mut self.0.addresses);
        self.0 = Intake { addresses, ..intake.clone() };
        self.put()
    }

    fn put(&self) -> Result<(), Error> {
        let Intake { device, table, addresses, interfaces, except } = &self.0;
        let there = routes(*table)?;
        for (family, is_v4) in [("-4", true), ("-6", false)] {
            if !addresses.iter().any(|own| own.address.is_ipv4() == is_v4) {
                continue;
            }
            let spared: Vec<_> = except.iter().filter(|it| it.address.is_ipv4() == is_v4).collect();
            let mut lines: Vec<_> =
                spared.iter().map(|it| format!("route replace throw {it} table {table}")).collect();
            lines.push(format!("route replace default dev {device} table {table}"));
            // A route to all would be this very one.
            lines.retain(|line| !line.contains("throw") || !line.contains("/0 "));
            let wanted: BTreeSet<String> = spared.iter().map(|it| shown(it)).collect();
            for (_, route) in there.iter().filter(|(of, _)| *of == family) {
                let old = route.strip_prefix("throw ").and_then(|route| route.split(' ').next());
                if let Some(old) = old.filter(|old| !wanted.contains(*old)) {
                    lines.push(format!("route del throw {old} table {table}"));
                }
            }
            let led = rules(family, *table)?;
            let new = interfaces.iter().filter(|name| !led.contains(*name));
            lines.extend(new.map(|name| rule("add", name, *table)));
            let old = led.iter().filter(|name| !interfaces.contains(name));
            lines.extend(old.map(|name| rule("del", name, *table)));
            host::ip_batch(&[family], &lines)?;
        }
        Ok(())
    }

    /// Takes back what leads there. Best effort: what is not there need not be removed.
    pub(crate) fn end(&self) {
        let table = self.0.table.to_string();
        for family in ["-4", "-6"] {
            for name in rules(family, self.0.table).unwrap_or_default().iter().take(MOST_LEFT) {
                let line = rule("del", name, self.0.table);
                let words: Vec<&str> = std::iter::once(family).chain(line.split(' ')).collect();
                let _ = run("ip", &words);
            }
            let _ = run("ip", &[family, "route", "flush", "table", &table]);
        }
    }
}

fn rule(verb: &str, interface: &str, table: u32) -> String {
    format!("rule {verb} pref {PREFERENCE} iif {interface} lookup {table}")
}

/// Another machine on this link there is not.
fn nodad(network: &Network) -> &'static str {
    if network.address.is_ipv4() { "" } else { " nodad" }
}

/// A network as `ip` shows it.
fn shown(network: &Network) -> String {
    let width = if network.address.is_ipv4() { 32 } else { 128 };
    if network.prefix == width { network.address.to_string() } else { network.to_string() }
}

/// The routes of a table, with their families. A table that nobody has written to has none.
fn routes(table: u32) -> Result<Vec<(&'static str, String)>, Error> {
    let mut all = Vec::new();
    for family in ["-4", "-6"] {
        match run("ip", &[family, "route", "show", "table", &table.to_string()]) {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                all.extend(text.lines().map(|line| (family, line.trim().to_owned())));
            }
            Err(error @ Error::MissingProgram { .. }) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(all)
}

/// The device that a default route leads to.
fn leads_to(route: &str) -> Option<String> {
    let words: Vec<&str> = route.split(' ').collect();
    let place = words.iter().position(|word| *word == "dev")?;
    (words.first() == Some(&"default")).then(|| words.get(place + 1).map(|name| (*name).to_owned())).flatten()
}

/// The devices whose packets our rules lead to a table.
fn rules(family: &str, table: u32) -> Result<Vec<String>, Error> {
    let output = run("ip", &[family, "rule", "show", "pref", &PREFERENCE.to_string()])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| read_rule(line, table)).collect())
}

/// `99: from all iif lan0 lookup 51900`, with what the kernel says of a device that is not there.
fn read_rule(line: &str, table: u32) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word: &str| words.iter().position(|it| *it == word).and_then(|place| words.get(place + 1));
    (after("lookup").copied() == Some(&*table.to_string()))
        .then(|| after("iif").map(|name| (*name).to_owned()))
        .flatten()
}

/// A listener for connections that come by a TUN device: at an address of this machine, with what [`crate::Privileged::listen`] sets.
///
/// # Errors
/// There is no such address, or the system refuses.
pub fn listen_on(address: IpAddr) -> Result<TcpListener, Error> {
    transparent::listen_at(SocketAddr::new(address, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_routes_are_read_as_ip_shows_them() {
        let line = "99:\tfrom all iif lan0 [detached] lookup 51900 ";
        assert_eq!(read_rule(line, 51900).as_deref(), Some("lan0"));
        assert_eq!(read_rule(line, 51901), None);
        assert_eq!(read_rule("99:\tfrom all fwmark 0x7 lookup 51900", 51900), None);
        assert_eq!(leads_to("default dev farhop0 scope link ").as_deref(), Some("farhop0"));
        assert_eq!(leads_to("throw 10.0.0.0/8"), None);
        let network: Network = "fd00::1/128".parse().unwrap();
        assert_eq!(shown(&network), "fd00::1");
    }
}
