//! Any command behind the link, as mahimahi's shells do: its network is this machine's, seen over a satellite.
//!
//! ```text
//!   command in namespace client ── sat0 ══(link)══ fhsat… ── NAT ── this machine and its networks
//! ```

use farhop_emulator::{Hop, Link};
use farhop_netdev::{
    Janitor, Namespace, Nat, Tun, host_addresses, host_ip, ignore_interrupt, require_privileges,
};
use farhop_orbit::Profile;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use crate::testbed::satellite_up;
use crate::{Error, fit};

/// Runs `command` (without words: `$SHELL`) behind a link of `profile` and gives its exit code, 128 + N if
/// signal N ended it. `seed` decides which packets a lossy link loses.
///
/// The command finds this machine at `$FARHOP_HOST`, every server on it included, the rest of the network
/// where it always was, and the profile's name in `$FARHOP_LINK`. Everything is taken down afterwards.
///
/// # Errors
/// No privileges, a missing tool, or the command cannot be started.
pub fn shell(profile: &Profile, seed: u64, command: &[OsString]) -> Result<i32, Error> {
    require_privileges("farhop lab shell")?;
    let janitor = Janitor::start()?;
    let mut client = Namespace::create(&janitor, "client")?;
    let device = format!("fhsat{}", std::process::id());
    let terminal = Tun::create(Some(&client), "sat0")?;
    let gateway = Tun::create(None, &device)?;

    let (host, address) = free_pair()?;
    host_ip(&[format!("addr add {host} peer {address} dev {device}"), satellite_up(&device)])?;
    client.ip(&[
        format!("addr add {address} peer {host} dev sat0"),
        satellite_up("sat0"),
        format!("route add default via {host} dev sat0"),
    ])?;
    let dns = name_server();
    Nat { device: &device, client: address, host, dns }.start(&janitor)?;
    client.resolver(host.into())?;
    let link = Link::start(vec![Hop { gateway, terminal }], profile, seed)?;

    eprintln!("behind the link {}: this machine is {host} ($FARHOP_HOST)", profile.name);
    if dns.is_none() {
        eprintln!("names will not resolve: this machine has no name server with an IPv4 address");
    }
    let status =
        run(&client, command, &[("FARHOP_HOST", host.to_string()), ("FARHOP_LINK", profile.name.clone())])?;
    if let crate::Fitness::Unfit(reason) = fit(&link.handle().record()) {
        eprintln!("the link was not what its profile says: {reason}");
    }
    Ok(status)
}

/// Runs the command to its end.
fn run(client: &Namespace, command: &[OsString], env: &[(&str, String)]) -> Result<i32, Error> {
    let default = || std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or("/bin/sh".into());
    let program = command.first().cloned().unwrap_or_else(default);
    let mut process = Command::new(&program);
    process.args(command.iter().skip(1)).envs(env.iter().cloned());
    client.prepare(&mut process);
    // At a terminal the interrupt key is the command's affair; elsewhere a signal to us means the end.
    let _ignored = std::io::stdin().is_terminal().then(ignore_interrupt);
    let failed =
        |source| Error::Spawn { program: program.to_string_lossy().into_owned(), place: "client", source };
    let status = process.spawn().and_then(|mut child| child.wait()).map_err(failed)?;
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1))
}

/// Two neighbouring addresses that nobody on this machine uses, from the range for carriers' own use
/// (RFC 6598), which is where mahimahi's shells live as well.
fn free_pair() -> Result<(Ipv4Addr, Ipv4Addr), Error> {
    const RANGE: u32 = Ipv4Addr::new(100, 64, 0, 0).to_bits();
    const PAIRS: u32 = 1 << 20; // /30 networks in a /10
    let taken = host_addresses()?;
    let free = |base: u32| {
        taken.iter().filter(|(_, length)| *length > 0).all(|(address, length)| {
            let mask = u32::MAX.checked_shl(32 - u32::from(*length.min(&30))).unwrap_or(0);
            (address.to_bits() ^ base) & mask != 0
        })
    };
    // Start at a place of our own, so that two shells that start at once do not meet.
    let first = std::process::id().wrapping_mul(0x9E37) % PAIRS;
    let base = (0..PAIRS).map(|step| RANGE + (first + step) % PAIRS * 4).find(|base| free(*base));
    let base = base.ok_or(Error::NoAddress)?;
    Ok((Ipv4Addr::from_bits(base + 1), Ipv4Addr::from_bits(base + 2)))
}

/// The first IPv4 name server of this machine that answers packets from outside.
fn name_server() -> Option<Ipv4Addr> {
    // systemd-resolved's own address answers the loopback device alone; its list of upstreams stands next.
    ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        first_server(&text)
    })
}

fn first_server(resolv_conf: &str) -> Option<Ipv4Addr> {
    const STUBS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 53), Ipv4Addr::new(127, 0, 0, 54)];
    let servers = resolv_conf.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())??.parse().ok()
    });
    servers.into_iter().find(|server| !STUBS.contains(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_server_is_one_that_answers_from_outside() {
        let text = "# comment\nsearch example\nnameserver 127.0.0.53\nnameserver ::1\nnameserver 192.0.2.1\n";
        assert_eq!(first_server(text), Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(first_server("nameserver 127.0.0.53\noptions edns0\n"), None);
    }
}
