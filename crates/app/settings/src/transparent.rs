//! Settings of connections that are caught on their way through the remote.

use std::time::Duration;

use crate::error::SettingsError;
use crate::kinds::{Cidr, PortRange, is_device_name};
use crate::load::conflict;
use crate::section::settings;
use crate::source::Source;

settings! {
    /// Which connections are caught, and how each is served.
    pub struct TransparentSettings {
        values {
            /// Whether connections that pass this machine are caught and carried over the long hop, with nothing to be set at
            /// clients (Linux, TPROXY). `--transparent` switches it on. Needs CAP_NET_ADMIN, which a process of its own keeps.
            enabled: bool, default "false";
            /// Network devices on which connections come in that may be caught. "": any.
            interfaces: Vec<String>, default "", live true;
            /// Destinations whose connections go their own way. This machine's own addresses always do, and so do
            /// connections of all who are not in `clients`.
            except: Vec<Cidr>, default "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/4, 240.0.0.0/4, ::1/128, fc00::/7, fe80::/10, ff00::/8", live true;
            /// Ports to which connections are caught. With the application role alone only those of them that it serves.
            ports: Vec<PortRange>, default "1-65535", live true;
            /// Ports at which plain HTTP is served by the application role. What is no HTTP there is carried as it is.
            http_ports: Vec<PortRange>, default "80", live true;
            /// Ports at which someone waits for each small answer: ahead of all else. A remote shell may carry a large file,
            /// and would hold up every page meanwhile, so 22 is none of them.
            interactive_ports: Vec<PortRange>, default "23, 53, 853", live true;
            /// Ports of media with a play rate: behind pages.
            streaming_ports: Vec<PortRange>, default "554, 1935, 8554", live true;
            /// Ports of downloads, mail and the like: behind pages and media.
            bulk_ports: Vec<PortRange>, default "20, 25, 110, 143, 465, 587, 989, 993, 995", live true;
            /// Ports of what nobody waits for: behind all else.
            background_ports: Vec<PortRange>, default "873, 6881-6999", live true;
            /// Most connections at a time over IPv4, and as many over IPv6; further ones wait to be accepted. A carrier has room for
            /// 65,536 streams, and pages need some of them.
            connections: u32, default "16384", range "1" to "28000";
            /// Most of them from one client address; a further one is reset.
            connections_per_client: u32, default "4096", range "1" to "1000000", live true;
            /// Whether ground is told a client's address with each connection that is carried as it is, and connects in its name
            /// where its own settings let it (`client_addresses` of a `[[remote]]`).
            client_addresses: bool, default "false", live true;
            /// How long a connection may carry nothing in either direction (RFC 5382 REQ-5: no less than 2 h 4 min).
            idle: Duration, default "124 min", range "10 s" to "168 h", live true;
            /// The mark of their packets, and the routing table that delivers those here: no other program's.
            mark: u32, default "51900", range "256" to "4294967295";
            /// A TUN device of this name by which connections and datagrams are caught in place of TPROXY, which not every kernel has; `--tun` names it
            /// `farhop0`. All that comes in on `interfaces` is routed there, and what is not caught goes on its way. "": none.
            tun: String, default "";
            /// Networks of that device, one of each family at most, with two addresses each: nobody else's.
            tun_networks: Vec<Cidr>, default "198.18.255.0/30, fdfa:1840:255::/126";
        }
    }
}

impl TransparentSettings {
    /// Rules beyond the range of each value; `at` is the full name of a key.
    pub(crate) fn check(&self, source: &Source, at: impl Fn(&str) -> String) -> Result<(), SettingsError> {
        if let Some(name) = self.interfaces.iter().find(|name| !is_device_name(name)) {
            let reason = format!(
                "'transparent.interfaces' has '{name}', which is no name of a network device; `ip link` shows them"
            );
            return Err(conflict(source, &at("transparent.interfaces"), reason));
        }
        self.check_tun(source, at)
    }

    fn check_tun(&self, source: &Source, at: impl Fn(&str) -> String) -> Result<(), SettingsError> {
        if self.tun.is_empty() {
            return Ok(());
        }
        if !is_device_name(&self.tun) {
            let reason =
                format!("'transparent.tun' is '{}', which can be no name of a network device", self.tun);
            return Err(conflict(source, &at("transparent.tun"), reason));
        }
        if self.interfaces.is_empty() {
            let reason = "'transparent.tun' needs 'transparent.interfaces': the devices on which the users' packets come in (`ip link` shows them)";
            return Err(conflict(source, &at("transparent.tun"), reason));
        }
        let is_small = |range: &Cidr| range.prefix > if range.network.is_ipv4() { 30 } else { 126 };
        let of_v4 = self.tun_networks.iter().filter(|range| range.network.is_ipv4()).count();
        if self.tun_networks.is_empty() || of_v4 > 1 || self.tun_networks.len() - of_v4 > 1 {
            let reason = "'transparent.tun_networks' has to have one network of IPv4, one of IPv6, or both";
            return Err(conflict(source, &at("transparent.tun_networks"), reason));
        }
        if let Some(range) = self.tun_networks.iter().find(|range| is_small(range)) {
            let reason = format!(
                "'transparent.tun_networks' has {}/{}, which has no room for two addresses",
                range.network, range.prefix
            );
            return Err(conflict(source, &at("transparent.tun_networks"), reason));
        }
        Ok(())
    }
}
