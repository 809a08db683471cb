//! Settings of the end beside the users.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use farhop_consent::{Category, HostPattern};
use farhop_units::Bytes;

use crate::choices::{CarrierKind, Role, Spreading};
use crate::common::{
    CapacitySettings, CarrierCeilingSettings, LinkSettings, LogSettings, ProbeSettings, check_ceilings,
};
use crate::end::End;
use crate::error::SettingsError;
use crate::kinds::{Cidr, HostPort, PeerName, Percent, PortRange, UserWeight};
use crate::load::{Checked, check_peers, conflict};
use crate::rule::{RuleSettings, check_within};
use crate::section::settings;
use crate::source::Source;
use crate::transparent::TransparentSettings;
use crate::udp::UdpSettings;

settings! {
    /// Settings of `farhop remote`.
    pub struct RemoteSettings {
        values {
            /// What this end does: transport carries connections that are caught (`[transparent]`) as they are, application serves
            /// HTTP, to browsers that know of the proxy and to those whose connections are caught; both does each for what it is for.
            role: Role, default "both";
            /// Addresses on which browsers find the proxy (TCP). Listening sockets that a service manager passes (systemd's
            /// `LISTEN_FDS`) take their place.
            listen: Vec<SocketAddr>, default "127.0.0.1:3128";
            /// Unix socket for status, counters, events and commands. Only its owner may use it.
            control: PathBuf, default "remote.sock";
            /// File with this end's secret key, made by `farhop keygen`.
            identity: PathBuf, default "remote.key";
            /// File in which the measured capacity of each path outlives the process, so that a connection over a path without
            /// a known rate starts with half of it (RFC 9959), and the share of packets that got lost on it, so that the next one repairs
            /// from the first on. The capacity counts for less as it ages, both for nothing after a day.
            paths: PathBuf, default "remote.paths";
            /// What the long hop is crossed with: quic, tcp, or auto, which takes QUIC, and TCP for as long as QUIC does not pass.
            carrier: CarrierKind, default "auto";
            /// How long a carrier rides on TCP before QUIC is tried again, if carrier is auto; ever longer while it does not pass.
            quic_again: Duration, default "30 s", range "1 s" to "1 h", chosen "any satellite link: a call in vain is some 6 KB";
            /// TCP connections of a carrier over TCP. A lost packet holds up only what is on its own.
            tcp_connections: u32, default "4", range "1" to "8", chosen "any satellite link: four slow starts at once, and a lost packet holds up a quarter";
            /// By what requests go to the TCP connections of a carrier, and with them their answers: round-robin uses all alike; priority
            /// keeps one for what is urgent (of pages, what has an urgency below 3), so that no download's loss or backlog holds that up.
            /// What ground sends unasked goes by its own setting.
            tcp_streams: Spreading, default "round-robin";
            /// TCP congestion control by the kernel's name for it, such as hybla or bbr; auto leaves it to the system. It drives the
            /// return link; ground's own setting drives the forward link.
            tcp_congestion: Option<String>, default "auto";
            /// Segments (of some 1,440 bytes) that connections of a carrier over TCP send before they hear anything; auto leaves it to the system,
            /// which has ten. They are for what this end sends. Needs CAP_NET_ADMIN: a helper puts a route to the other end's address into
            /// the kernel, renewed with each call, and takes it away at the end.
            tcp_initial_window: Option<u32>, default "auto", range "2" to "1000";
            /// Addresses from which clients are served; others are answered 403.
            clients: Vec<Cidr>, default "127.0.0.0/8, ::1/128, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7, fe80::/10", live true;
            /// Ports to which CONNECT is allowed. Mail ports left out keep the proxy from relaying spam. Which of them are looked
            /// into, `interception.ports` says.
            connect_ports: Vec<PortRange>, default "80, 443, 563, 8080, 8443", live true;
            /// Users whose share of the link is not everyone's, in hundredths of what each of the others has: "anna=200" has twice as
            /// much of each class while both want something, "10.0.0.7=50" half. Users are names, or addresses of clients that need none.
            weights: Vec<UserWeight>, default "";
            /// How long SIGTERM waits for exchanges under way before it ends them.
            drain: Duration, default "10 s", range "0 s" to "1 h", live true;
        }
        tables {
            /// The long hop that windows, limits and timers are sized for.
            link: LinkSettings;
            /// Return-link capacity for bodies that clients send, asked of the modem as soon as their length is known.
            capacity: CapacitySettings;
            /// How a lost ground is noticed and found again.
            probe: ProbeSettings;
            /// Responses held in memory.
            repository: RepositorySettings;
            /// Responses held on disk, too, so that they outlive the process.
            store: StoreSettings;
            /// Whether what is fetched unasked makes pages quicker, found out site by site.
            evidence: EvidenceSettings;
            /// How long to wait, and for what.
            timeouts: RemoteTimeouts;
            /// How much one client may ask for.
            limits: RemoteLimits;
            /// Who may use the proxy, by name and password.
            auth: AuthSettings;
            /// Looking into TLS with a CA of one's own, so that HTTPS becomes as quick as HTTP. Whether that is allowed is for
            /// the users of this remote to say; each can switch it off at `http://farhop.internal/`.
            interception: InterceptionSettings;
            /// Connections that pass this machine and are caught, so that nothing has to be set at clients.
            transparent: TransparentSettings;
            /// Datagrams that are caught beside them.
            udp: UdpSettings;
            /// What the files that configure browsers say: `/proxy.pac` and `/wpad.dat` of this proxy.
            pac: PacSettings;
            /// Names answered from what was answered before.
            dns: DnsSettings;
            /// What is written to standard error.
            log: LogSettings;
        }
        lists {
            /// A ground to which requests may go; the first that is connected takes them.
            ground: GroundPeer;
            /// What some of what can wait is never sent faster than, and when: media, downloads, updates, backups, peer to peer.
            ceiling: CarrierCeilingSettings;
            /// A rule of the classifier, before the lists of ports in `[udp]` and `[transparent]` and before those rules that Farhop comes with: all that is
            /// given has to hold, and the first rule that holds decides. What begins goes by it, in both directions. Only datagrams are
            /// voice; where such a rule holds for a connection, that is interactive. Marks (`dscp`) are not known here and are refused;
            /// what shows later (`alpn`, behaviour) counts once it does.
            rule: RuleSettings;
        }
    }
}

settings! {
    /// The repository of the remote.
    pub struct RepositorySettings {
        values {
            /// Memory for responses held, promised ones included. The oldest unused go first.
            size: Bytes, default "32 MB", range "0 B" to "64 GB", chosen "geo-hylas2: 32 s of the forward link, and the process stays below 100 MB while clients read what they ask for";
            /// Largest response that is held in memory; a larger one only passes through, to disk where there is one (`store.entry`).
            entry: Bytes, default "4 MB", range "0 B" to "16 GB", chosen "geo-hylas2: 4 s of the forward link";
        }
    }
}

settings! {
    /// The store on disk.
    pub struct StoreSettings {
        values {
            /// Folder of the store, for this process alone. "auto": none, responses are held in memory only.
            directory: Option<PathBuf>, default "auto";
            /// Disk space for responses. What the link would bring again most cheaply goes first.
            size: Bytes, default "4 GB", range "16 MB" to "64000 GB", chosen "geo-hylas2: 67 min of the forward link";
            /// Largest response that is kept on disk; one that is too long for memory (`repository.entry`) is written there while it passes. An eighth of `size` at the most.
            entry: Bytes, default "256 MB", range "0 B" to "64 GB", chosen "geo-hylas2: 4 min of the forward link";
            /// File with the key that seals what is kept, made if it is not there. Without it nothing can be read: keep it on
            /// another disk where the folder could get lost.
            key: PathBuf, default "store.key";
        }
    }
}

settings! {
    /// Whether what is fetched unasked makes pages quicker.
    pub struct EvidenceSettings {
        values {
            /// Whether a few loads of each site's pages are done with less of it and compared with the others, and what makes a site's pages slower is given up for that site.
            enabled: bool, default "true", live true;
            /// How many of a site's loads are done with less, once there is something to compare them with: one in so many as the share says.
            holdouts: Percent, default "4 %", range "1 %" to "50 %", chosen "any satellite link: costs one load in 25 some round trips, and tells a fifth from chance after some 250 loads of a site", live true;
        }
    }
}

settings! {
    /// How long the remote waits, and for what.
    pub struct RemoteTimeouts {
        values {
            /// How long a request waits for a lost carrier to come back before it is answered 504; auto takes a cut of 2 min and
            /// five calls over the path as measured, 150 s at the least.
            outage: Option<Duration>, default "auto", range "0 s" to "1 h", chosen "any satellite link: rides out a cut of 2 min and the reconnection", live true;
            /// How long a request waits for a lost carrier before it is answered with what is held, though that is stale and its origin has said nothing of when the link is down.
            stale: Duration, default "5 s", range "0 s" to "1 h", chosen "any satellite link: a short cut is waited out, and what has changed is better new", live true;
            /// How long a client may take to send a request head once it has begun, and for a TLS handshake; auto takes six long
            /// round trips to clients, as measured, and 30 s at the least.
            head: Option<Duration>, default "auto", range "1 s" to "10 min", live true;
            /// How long a client connection may stay open without a request.
            idle: Duration, default "2 min", range "1 s" to "24 h", live true;
            /// How long a client may neither send nor take a byte of a body before it is cut off.
            stall: Duration, default "2 min", range "1 s" to "24 h", live true;
            /// How long a client that has closed its side of an HTTP/1.1 connection, as one that leaves does and one that awaits an answer may, is
            /// believed to be there while nothing is written to it; 5 s at most where that is an event stream.
            half_close: Duration, default "30 s", range "0 s" to "1 h", live true;
            /// How long a CONNECT tunnel may carry nothing in either direction.
            tunnel_idle: Duration, default "1 h", range "10 s" to "168 h", live true;
        }
    }
}

settings! {
    /// What one client, and all together, may take up.
    pub struct RemoteLimits {
        values {
            /// Largest request head; a longer one is answered 431.
            head: Bytes, default "64 KB", range "4 KB" to "1 MB";
            /// Longest request target, the head's largest size apart; a longer one is answered 414. More than 63 KB can be told to no
            /// origin.
            target: Bytes, default "60 KB", range "1 KB" to "63 KB";
            /// Most fields in a request head or trailer section.
            fields: u32, default "128", range "16" to "1000";
            /// Most client connections at a time; further ones wait to be accepted.
            connections: u32, default "4096", range "1" to "1000000";
            /// Most connections at a time from one client address; a request on a further one is answered 503.
            connections_per_client: u32, default "256", range "1" to "1000000";
        }
    }
}

settings! {
    /// Who may use the proxy, by name and password (RFC 7617).
    pub struct AuthSettings {
        values {
            /// Whether each client has to give a name and a password; else a user is a client address. Both cross the network
            /// between client and remote unencrypted.
            required: bool, default "false", live true;
            /// File of names and password hashes, one `name:hash` a line, written by `farhop user`. It is read anew on SIGHUP.
            file: PathBuf, default "remote.users", live true;
            /// What the browser's question for name and password calls this proxy.
            realm: String, default "Farhop", live true;
        }
    }
}

settings! {
    /// Which TLS connections are looked into.
    pub struct InterceptionSettings {
        values {
            /// Whether any is. Without, they go through untouched.
            enabled: bool, default "false";
            /// Whether users are asked first: it is off for each who has not switched it on at `http://farhop.internal/`. Else it
            /// is on for each who has not switched it off.
            ask: bool, default "false", live true;
            /// Folder of the CA, made by `farhop ca init`.
            ca: PathBuf, default "ca";
            /// File in which users' switches and learned hosts outlive the process; `farhop local` reads and keeps none.
            state: PathBuf, default "consent.json";
            /// Ports on which TLS carries HTTP; a CONNECT to any other goes through untouched. On others than 443 speak, beside a
            /// few web sites, programs and devices that trust no CA but their own: add 8443 and the like where browsers go there.
            ports: Vec<PortRange>, default "443", live true;
            /// Hosts that go through untouched: `example.org` (this one), `.example.org` (this one and all below it),
            /// `*.example.org` (all below it), `*` (all). After `!` an exception, which stands over everything here and in
            /// the categories.
            bypass: Vec<HostPattern>, default "", live true;
            /// Built-in lists of hosts that go through untouched: what is nobody else's business, and what breaks if it is
            /// looked into.
            categories: Vec<Category>, default "banking, health, government, app-stores, updates, messaging, attestation", live true;
            /// How long a host goes through untouched the first time that a client distrusts it or it proves to be none for
            /// interception. Four times as long each further time.
            learned: Duration, default "24 h", range "1 min" to "8760 h", live true;
            /// How long at most, however often.
            learned_most: Duration, default "720 h", range "1 min" to "8760 h", live true;
        }
    }
}

settings! {
    /// Which requests browsers bring to the proxy, where the proxy configures them.
    pub struct PacSettings {
        values {
            /// The proxy as browsers reach it. "auto": as the one who asks for the file has reached it.
            proxy: Option<HostPort>, default "auto", live true;
            /// Hosts that browsers reach without the proxy, written as in `interception.bypass`, besides plain names and those
            /// under `local`, `localhost`, `internal` and `home.arpa`. An exception (`!`) goes through the proxy all the same.
            bypass: Vec<HostPattern>, default "", live true;
            /// Addresses that browsers reach without the proxy, where a URL has one in place of a name, besides the private ranges.
            ranges: Vec<Cidr>, default "", live true;
            /// Whether browsers may go without the proxy while it does not answer.
            direct: bool, default "true", live true;
        }
    }
}

settings! {
    /// The DNS component beside the users.
    pub struct DnsSettings {
        values {
            /// Addresses on which users' machines find a name server (UDP and TCP), such as `192.168.1.1:53`; none, and there is none.
            /// On a machine with several addresses name each: what is asked at `0.0.0.0` may be answered from another one.
            listen: Vec<SocketAddr>, default "";
            /// Memory for answers. Those unused for the longest go first.
            cache: Bytes, default "4 MB", range "64 KB" to "1 GB", chosen "any link: some five thousand names";
            /// Whether what is asked for often is asked anew before it runs out.
            prefetch: bool, default "true", live true;
        }
    }
}

settings! {
    /// A ground as its remote knows it.
    pub struct GroundPeer {
        values {
            /// What this ground is called in logs, events and commands.
            name: PeerName;
            /// Where it listens (UDP, and TCP on the same port), by name or address.
            address: HostPort;
            /// Its public keys, as `farhop keygen` printed them. Several are accepted, so that keys can be changed without a break.
            keys: Vec<String>;
        }
    }
}

impl RemoteSettings {
    /// Rules that hold also where the other end is in the same process and no peer is configured.
    pub(crate) fn check_alone(&self, source: &Source, prefix: &str) -> Result<(), SettingsError> {
        let ceilings: Vec<_> = self.ceiling.iter().map(CarrierCeilingSettings::ceiling).collect();
        check_ceilings(&ceilings, source, prefix)?;
        check_within(&self.rule, source, prefix)?;
        self.link.check(source, &format!("{prefix}link."), End::Remote)?;
        let at = |key: &str| format!("{prefix}{key}");
        if self.listen.is_empty() {
            return Err(conflict(source, &at("listen"), "'listen' names no address; name at least one"));
        }
        if self.repository.entry > self.repository.size {
            let reason = format!(
                "'repository.entry' ({}) is larger than 'repository.size' ({}); lower the one or raise the other",
                self.repository.entry, self.repository.size
            );
            return Err(conflict(source, &at("repository.entry"), reason));
        }
        let is_allowed = |range: &&PortRange| self.connect_ports.iter().any(|other| other.overlaps(**range));
        if self.interception.enabled
            && let Some(range) = self.interception.ports.iter().find(|range| !is_allowed(range))
        {
            let reason = format!(
                "'interception.ports' has {range}, to which 'connect_ports' allows no CONNECT; add it there too, or take it out"
            );
            return Err(conflict(source, &at("interception.ports"), reason));
        }
        if self.interception.learned > self.interception.learned_most {
            let reason = "'interception.learned' is longer than 'interception.learned_most'; lower the one or raise the other";
            return Err(conflict(source, &at("interception.learned"), reason));
        }
        self.transparent.check(source, at)?;
        if self.transparent.enabled && self.auth.required {
            let reason = "'auth.required' and 'transparent.enabled' exclude each other, since nobody can be asked for a password on a connection that was caught; switch one of them off";
            return Err(conflict(source, &at("transparent.enabled"), reason));
        }
        if !self.transparent.enabled && !self.role.serves_http() {
            let reason = "'role' is transport, but no connection is caught; switch on 'transparent.enabled' (--transparent) or choose another role";
            return Err(conflict(source, &at("role"), reason));
        }
        // RFC 9110 §5.6.4: what a quoted string in a field can hold, and every client shows.
        if !self.auth.realm.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            let reason = "'auth.realm' has other characters than those of ASCII; leave them out";
            return Err(conflict(source, &at("auth.realm"), reason));
        }
        Ok(())
    }
}

impl Checked for RemoteSettings {
    const END: End = End::Remote;

    fn check(&self, source: &Source) -> Result<(), SettingsError> {
        self.check_alone(source, "")?;
        check_peers(source, "ground", self.ground.iter().map(|peer| &peer.name))?;
        if self.ground.is_empty() {
            return Err(conflict(
                source,
                "ground",
                "there is no [[ground]]; add one with name, address and keys",
            ));
        }
        if let Some((index, peer)) = self.ground.iter().enumerate().find(|(_, peer)| peer.keys.is_empty()) {
            let reason =
                format!("ground {} has no key; add the line that its `farhop keygen` printed", peer.name);
            return Err(conflict(source, &format!("ground.{index}.keys"), reason));
        }
        Ok(())
    }
}
