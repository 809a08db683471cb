//! Connections that are not for this machine, diverted to sockets of ours (TPROXY): an nftables table of our own, which
//! marks their packets, and a route by that mark which delivers them here. The kernel's Documentation/networking/tproxy.rst
//! has the whole of it.
//!
//! Only what is forwarded is caught: connections that this machine begins itself never pass the hook, so that what
//! serves the caught ones can't catch its own.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::host::{feed, run};
use crate::owner::{self, Owner};
use crate::{Error, host};

/// Before the rules of the main table, behind those of local addresses.
const PREFERENCE: u32 = 100;
/// Rules of a mark that are removed at most: each start of a crashed owner has left one.
const MOST_LEFT: usize = 64;
/// How long a helper whose owner was killed may take to undo what it did, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The first address.
    pub address: IpAddr,
    /// How many leading bits count.
    pub prefix: u8,
}

impl Network {
    /// Whether `address` lies in it. An IPv4 address written inside IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let cut =
            |bits: u128, width: u32| bits.checked_shr(width.saturating_sub(self.prefix.into())).unwrap_or(0);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                cut(network.to_bits().into(), 32) == cut(address.to_bits().into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                cut(network.to_bits(), 128) == cut(address.to_bits(), 128)
            }
            _ => false,
        }
    }
}

/// Which new connections are caught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catch {
    /// Where they go: transparent listeners at loopback addresses, at most one of each family.
    pub to: Vec<SocketAddr>,
    /// Devices that they come in on; all where this is empty.
    pub interfaces: Vec<String>,
    /// Whose they are.
    pub clients: Vec<Network>,
    /// Where they do not lead. This machine's own addresses are left out anyway.
    pub except: Vec<Network>,
    /// Ports that they lead to, first and last.
    pub ports: Vec<(u16, u16)>,
    /// Where datagrams go: sockets of [`crate::Privileged::take`], at most one of each family; none, and none is caught.
    pub datagrams_to: Vec<SocketAddr>,
    /// Ports that datagrams lead to.
    pub datagram_ports: Vec<(u16, u16)>,
}

/// What is diverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divert {
    /// Marks the packets, and is the number of the routing table that delivers them.
    pub mark: u32,
    /// New connections. Without it none is caught, and those that were go on.
    pub catch: Option<Catch>,
}

/// A diversion in force.
#[derive(Debug)]
pub(crate) struct Diversion {
    mark: u32,
    table: String,
}

impl Diversion {
    /// Puts `divert` into force, in place of what a crashed owner left.
    pub(crate) fn start(divert: &Divert) -> Result<Diversion, Error> {
        clear_away(divert.mark)?;
        let table = format!("{}_{}", Owner::this_process().table(), divert.mark);
        let diversion = Diversion { mark: divert.mark, table };
        let started = diversion.route().and_then(|()| diversion.set(divert));
        if started.is_err() {
            diversion.end();
        }
        started.map(|()| diversion)
    }

    /// Puts other rules for the same mark into force, in one step.
    pub(crate) fn set(&self, divert: &Divert) -> Result<(), Error> {
        if divert.mark != self.mark {
            let source = std::io::Error::other("another one is in use");
            return Err(Error::System { what: format!("divert by mark {}", divert.mark), source });
        }
        // A kernel without NFT_REJECT_INET refuses the whole, and can do without.
        feed("nft", &["-f", "-"], &rules(&self.table, divert, true))
            .or_else(|_| feed("nft", &["-f", "-"], &rules(&self.table, divert, false)))
            .map_err(|error| if has_tproxy() { error } else { Error::NoTproxy })
    }

    /// Answers what `client` sends to `to` within the next seconds that nobody listens there, as ICMP does.
    pub(crate) fn refuse(&self, to: SocketAddr, client: SocketAddr) -> Result<(), Error> {
        let family = if to.is_ipv4() { "ip" } else { "ip6" };
        let flow = format!("{} . {} . {} . {}", client.ip(), client.port(), to.ip(), to.port());
        run("nft", &["add", "element", "inet", &self.table, &format!("refused_{family}"), "{", &flow, "}"])
            .map(drop)
    }

    fn route(&self) -> Result<(), Error> {
        let mark = self.mark;
        let lines = [
            format!("rule add pref {PREFERENCE} fwmark {mark} lookup {mark}"),
            format!("route add local default dev lo table {mark}"),
        ];
        families().try_for_each(|family| host::ip_batch(&[family], &lines))
    }

    /// Takes everything back.
    pub(crate) fn end(&self) {
        remove(&self.table, self.mark);
    }
}

/// IPv6 may be switched off.
fn families() -> impl Iterator<Item = &'static str> {
    let both = std::fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
    ["-4", "-6"].into_iter().take(if both { 2 } else { 1 })
}

/// Whether the kernel takes a rule that diverts, which is not put into force.
fn has_tproxy() -> bool {
    let chain =
        "chain divert { type filter hook prerouting priority mangle; meta l4proto tcp tproxy ip to :1; }";
    feed("nft", &["-c", "-f", "-"], &format!("table inet farhop_none {{ {chain} }}")).is_ok()
}

/// Best effort: what is not there need not be removed. The table goes last: while it stands, nobody else takes the mark ([`in_use`]),
/// and what is removed here is not a successor's.
fn remove(table: &str, mark: u32) {
    let (preference, mark) = (PREFERENCE.to_string(), mark.to_string());
    for family in families() {
        let rule = [family, "rule", "del", "pref", &preference, "fwmark", &mark, "lookup", &mark];
        for _ in 0..MOST_LEFT {
            if run("ip", &rule).is_err() {
                break;
            }
        }
        let _ = run("ip", &[family, "route", "del", "local", "default", "dev", "lo", "table", &mark]);
    }
    let _ = run("nft", &["delete", "table", "inet", table]);
}

/// Removes what owners left that were killed outright. One that lives keeps its own, and its mark.
fn clear_away(mark: u32) -> Result<(), Error> {
    let mut patience = PATIENCE;
    loop {
        match in_use(mark)? {
            None => return Ok(()),
            // Its owner may just have been killed, and this one be taking its place.
            Some(_) if !patience.is_zero() => {
                std::thread::sleep(LOOK);
                patience = patience.saturating_sub(LOOK);
            }
            Some(pid) => return Err(Error::Diverted { pid, mark }),
        }
    }
}

/// Removes what is stale. Gives the process that diverts by this mark and lives.
fn in_use(mark: u32) -> Result<Option<u32>, Error> {
    let output = Command::new("nft").args(["list", "tables", "inet"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| host::unstarted("nft", error))?;
    if !output.status.success() {
        let command = "nft list tables inet".into();
        return Err(Error::Command { command, reason: host::complaint(&output) });
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(table) = line.strip_prefix("table inet ").map(str::trim) else { continue };
        let Some((pid, theirs)) = owned(table) else { continue };
        if owner::is_stale(table) {
            remove(table, theirs);
        } else if theirs == mark {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

/// The process and the mark of a table that a [`Diversion`] made.
fn owned(table: &str) -> Option<(u32, u32)> {
    let rest = table.strip_prefix(owner::PREFIX)?.strip_prefix('_')?;
    let numbers: Vec<&str> = rest.split('_').collect();
    let [pid, _start, _number, mark] = numbers[..] else { return None };
    Some((pid.parse().ok()?, mark.parse().ok()?))
}

/// The table as `nft -f` reads it, in place of the one of this name.
fn rules(table: &str, divert: &Divert, refuses: bool) -> String {
    let mark = divert.mark;
    let mut text = format!("table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n");
    // Flows of datagrams that were caught have sockets of their own, as connections have.
    let mut chain = format!("meta l4proto {{ tcp, udp }} socket transparent 1 meta mark set {mark} accept\n");
    if let Some(catch) = &divert.catch {
        put_catch(&mut text, &mut chain, catch, mark, refuses);
    }
    let _ = write!(
        text,
        "chain divert {{\ntype filter hook prerouting priority mangle; policy accept;\n{chain}}}\n}}\n"
    );
    text
}

/// What tells a connection.
const FLOW: &str = "{family} saddr . tcp sport . {family} daddr . tcp dport";
/// Connections that are remembered from their first packet on, in each family, and for how long: until the client's answer to ours.
const BEGUN: &str = "flags dynamic,timeout; size 65536; timeout 10s;";

/// Only what opens a connection is judged: one that began before the rules goes on as it did. What answers a SYN cookie has
/// no socket here yet and looks like the middle of any connection, so those that were caught are remembered for a while.
fn put_catch(sets: &mut String, chain: &mut String, catch: &Catch, mark: u32, refuses: bool) {
    for (family, kind, is_v4) in [("ip", "ipv4_addr", true), ("ip6", "ipv6_addr", false)] {
        for (name, networks) in [("clients", &catch.clients), ("except", &catch.except)] {
            let mine = networks.iter().filter(|network| network.address.is_ipv4() == is_v4);
            let elements = list(mine.map(|network| format!("{}/{}", network.address, network.prefix)));
            let elements = elements.map_or(String::new(), |list| format!(" elements = {{ {list} }};"));
            let _ = writeln!(
                sets,
                "set {name}_{family} {{ type {kind}; flags interval; auto-merge;{elements} }}"
            );
        }
        let _ = writeln!(
            sets,
            "set begun_{family} {{ type {kind} . inet_service . {kind} . inet_service; {BEGUN} }}"
        );
    }
    if !catch.datagrams_to.is_empty() {
        put_datagrams(sets, catch, mark, refuses);
        chain.push_str("meta l4proto udp jump datagrams\n");
    }
    chain.push_str("meta l4proto != tcp accept\n");
    for to in &catch.to {
        let (family, flow, go) = flow(to, mark);
        let _ = writeln!(chain, "tcp flags & (syn | ack | rst) == ack {flow} @begun_{family} {go}");
    }
    chain.push_str("tcp flags & (syn | ack | rst | fin) != syn accept\n");
    put_left_alone(chain, catch);
    let ports = list(catch.ports.iter().map(|(first, last)| format!("{first}-{last}")));
    for to in &catch.to {
        let (family, flow, go) = flow(to, mark);
        let ports = ports.as_ref().map_or(String::new(), |ports| format!("tcp dport {{ {ports} }} "));
        let is_caught = format!("{family} saddr @clients_{family} {ports}");
        // A rule of its own: where there is no room, only this one fails.
        let _ = writeln!(chain, "{is_caught}update @begun_{family} {{ {flow} }}");
        let _ = writeln!(chain, "{is_caught}{go}");
    }
}

/// What is on no way that is caught.
fn put_left_alone(chain: &mut String, catch: &Catch) {
    if let Some(devices) = list(catch.interfaces.iter().map(|name| format!("\"{name}\""))) {
        let _ = writeln!(chain, "iifname != {{ {devices} }} accept");
    }
    chain.push_str("fib daddr type { local, broadcast, anycast, multicast } accept\n");
    for family in ["ip", "ip6"] {
        let _ = writeln!(chain, "{family} daddr @except_{family} accept");
    }
}

/// Flows whose client is to hear that nobody listens: so many, for so long.
const REFUSED: &str = "flags timeout; size 4096; timeout 3s;";

/// The first datagram of each flow goes to a socket of ours, which then makes one for the flow.
fn put_datagrams(chains: &mut String, catch: &Catch, mark: u32, refuses: bool) {
    let mut chain = String::new();
    put_left_alone(&mut chain, catch);
    for (family, kind, icmp) in [("ip", "ipv4_addr", "icmp"), ("ip6", "ipv6_addr", "icmpv6")] {
        let _ = writeln!(
            chains,
            "set refused_{family} {{ type {kind} . inet_service . {kind} . inet_service; {REFUSED} }}"
        );
        if refuses {
            let flow = FLOW.replace("{family}", family).replace("tcp", "udp");
            let _ = writeln!(chain, "{flow} @refused_{family} reject with {icmp} type port-unreachable");
        }
    }
    let ports = list(catch.datagram_ports.iter().map(|(first, last)| format!("{first}-{last}")));
    let ports = ports.map_or(String::new(), |ports| format!("udp dport {{ {ports} }} "));
    for to in &catch.datagrams_to {
        let (family, _, go) = flow(to, mark);
        let _ = writeln!(chain, "meta l4proto udp {family} saddr @clients_{family} {ports}{go}");
    }
    let _ = write!(chains, "chain datagrams {{\n{chain}}}\n");
}

/// The family of a listener, what tells a connection there, and what takes a packet to the listener.
fn flow(to: &SocketAddr, mark: u32) -> (&'static str, String, String) {
    let family = if to.is_ipv4() { "ip" } else { "ip6" };
    (family, FLOW.replace("{family}", family), format!("tproxy {family} to {to} meta mark set {mark} accept"))
}

/// Joined by commas; nothing of nothing.
fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str, prefix: u8) -> Network {
        Network { address: text.parse().unwrap(), prefix }
    }

    #[test]
    fn rules_name_what_is_caught_and_what_is_left_alone() {
        let catch = Catch {
            to: vec!["127.0.0.1:5000".parse().unwrap(), "[::1]:5001".parse().unwrap()],
            interfaces: vec!["lan0".into()],
            clients: vec![network("10.0.0.0", 8), network("fd00::", 8)],
            except: vec![network("192.168.0.0", 16)],
            ports: vec![(1, 79), (443, 443)],
            datagrams_to: vec!["127.0.0.1:6000".parse().unwrap()],
            datagram_ports: vec![(1, 442)],
        };
        let text = rules("farhop_1_2_3_7", &Divert { mark: 7, catch: Some(catch) }, true);
        for line in [
            "set clients_ip { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/8 }; }",
            "set except_ip6 { type ipv6_addr; flags interval; auto-merge; }",
            "iifname != { \"lan0\" } accept",
            "meta l4proto udp jump datagrams",
            "ip saddr . udp sport . ip daddr . udp dport @refused_ip reject with icmp type port-unreachable",
            "meta l4proto udp ip saddr @clients_ip udp dport { 1-442 } tproxy ip to 127.0.0.1:6000 meta mark set 7 accept",
            "ip saddr @clients_ip tcp dport { 1-79, 443-443 } tproxy ip to 127.0.0.1:5000 meta mark set 7 accept",
            "ip6 saddr @clients_ip6 tcp dport { 1-79, 443-443 } tproxy ip6 to [::1]:5001 meta mark set 7 accept",
            "ip saddr @clients_ip tcp dport { 1-79, 443-443 } update @begun_ip { ip saddr . tcp sport . ip daddr . tcp dport }",
            "tcp flags & (syn | ack | rst) == ack ip6 saddr . tcp sport . ip6 daddr . tcp dport @begun_ip6 tproxy ip6 to [::1]:5001 meta mark set 7 accept",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        let holds =
            |range: &str, address: &str| range.parse::<Network>().unwrap().contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "192.0.2.1") && !holds("0.0.0.0/0", "::1") && holds("::/0", "::1"));
        assert!(holds("10.0.0.1/32", "::ffff:10.0.0.1") && !holds("10.0.0.1/32", "10.0.0.2"));
        assert!(holds("2001:db8::/33", "2001:db8:7fff::1") && !holds("2001:db8::/33", "2001:db8:8000::1"));
    }

    #[test]
    fn without_a_catch_only_what_was_caught_is_delivered() {
        let text = rules("t", &Divert { mark: 7, catch: None }, true);
        assert!(text.contains("socket transparent 1 meta mark set 7 accept") && !text.contains("tproxy"));
    }

    #[test]
    fn tables_of_others_are_nobodys_diversion() {
        assert_eq!(owned("farhop_12_34_0_51900"), Some((12, 51900)));
        for name in ["farhop_12_34_0", "farhop_a_34_0_1", "filter", "farhop_1_2_3_4_5", "xfarhop_1_2_3_4"] {
            assert_eq!(owned(name), None, "{name}");
        }
    }
}
