//! Settings of the end near the internet.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use farhop_squeeze::{Policy, Service, Signal, Users};
use farhop_units::{BitRate, Bytes};

use crate::choices::Spreading;
use crate::common::{CarrierCeilingSettings, LinkSettings, LogSettings, ProbeSettings, check_ceilings};
use crate::end::End;
use crate::error::SettingsError;
use crate::kinds::{Cidr, HostPort, PeerName, Percent, TargetField};
use crate::load::{Checked, check_peers, conflict};
use crate::section::settings;
use crate::source::Source;

settings! {
    /// Settings of `farhop ground`.
    pub struct GroundSettings {
        values {
            /// Address on which remotes find this ground (UDP, and TCP on the same port).
            listen: SocketAddr, default "0.0.0.0:4433";
            /// Whether remotes may come over TCP, as they do where UDP does not pass.
            tcp: bool, default "true";
            /// By what goes unasked to the TCP connections of a carrier: round-robin uses all alike; priority keeps one for what is urgent (of
            /// pages, what has an urgency below 3). Answers go where the remote asked.
            tcp_streams: Spreading, default "round-robin";
            /// TCP congestion control by the kernel's name for it, such as hybla or bbr; auto leaves it to the system. It drives the
            /// forward link of carriers over TCP.
            tcp_congestion: Option<String>, default "auto";
            /// Segments (of some 1,440 bytes) that connections of a carrier over TCP send before they hear anything; auto leaves it to the system,
            /// which has ten. They are for what this end sends. Needs CAP_NET_ADMIN: a helper puts a route to the other end's address into
            /// the kernel, once that has come in: its further connections and later carriers begin so. It takes it away at the end.
            tcp_initial_window: Option<u32>, default "auto", range "2" to "1000";
            /// Unix socket for status, counters, events and commands. Only its owner may use it.
            control: PathBuf, default "ground.sock";
            /// File with this end's secret key, made by `farhop keygen`.
            identity: PathBuf, default "ground.key";
            /// File in which the measured capacity of each path outlives the process, so that a connection over a path without
            /// a known rate starts with half of it (RFC 9959), and the share of packets that got lost on it, so that the next one repairs
            /// from the first on. The capacity counts for less as it ages, both for nothing after a day.
            paths: PathBuf, default "ground.paths";
            /// Destinations that are fetched from although their addresses are private, loopback, link-local or
            /// otherwise not of the public internet. Everything of that kind that is not listed is refused.
            allow: Vec<Cidr>, default "", live true;
            /// The mark of packets to clients in whose names ground connects, and the routing table that delivers those here: no other
            /// program's.
            mark: u32, default "51901", range "256" to "4294967295";
            /// How long SIGTERM waits for exchanges under way before it ends them.
            drain: Duration, default "10 s", range "0 s" to "1 h", live true;
        }
        tables {
            /// The long hop that windows, limits and timers are sized for.
            link: LinkSettings;
            /// Return-link capacity for the acknowledgements of what is sent, asked of the network control centre.
            capacity: CentreSettings;
            /// How a lost remote is noticed.
            probe: ProbeSettings;
            /// Fetching from origins.
            origin: OriginSettings;
            /// What is fetched for a page before anyone asks.
            bundle: BundleSettings;
            /// What is remembered of pages, for the next visit.
            models: ModelsSettings;
            /// How bodies are made small for the long hop.
            squeeze: SqueezeSettings;
            /// Video and audio with a play rate.
            streaming: StreamingSettings;
            /// Bodies that wait for the long hop.
            spool: SpoolSettings;
            /// The store on disk.
            store: GroundStoreSettings;
            /// Names that remotes ask for.
            dns: GroundDnsSettings;
            /// What is written to standard error.
            log: LogSettings;
        }
        lists {
            /// A remote that may connect. Any other is refused.
            remote: RemotePeer;
            /// What some of what can wait is never sent faster than, and when: media, downloads, updates, backups, peer to peer.
            ceiling: CarrierCeilingSettings;
        }
    }
}

settings! {
    /// Return-link capacity that is asked for before the terminal itself does. The centre has to understand it (docs/capacity.md).
    pub struct CentreSettings {
        values {
            /// Where it is asked for (UDP), for each remote whose `terminal` is said. "auto": nowhere.
            centre: Option<HostPort>, default "auto";
            /// Most bytes asked for ahead at a time for each terminal; what is not sent so soon is taken from others.
            ahead: Bytes, default "16 KB", range "1 KB" to "100 MB", chosen "geo-hylas2: a quarter second of the return link";
            /// What comes back on the return link for what is sent, as a share of its bytes.
            share: Percent, default "1 %", range "1 %" to "100 %", chosen "geo-hylas2: acknowledgements of a download take no more";
        }
    }
}

settings! {
    /// How ground talks to origins.
    pub struct OriginSettings {
        values {
            /// Most connections at a time to one origin for one user, four times as many event streams besides; further requests wait for one of them.
            connections: u32, default "6", range "1" to "256", chosen "any link: what browsers open, so that no origin sees more of a user than it would directly", live true;
            /// How long a request waits for one of those connections while nothing comes on them.
            queue: Duration, default "60 s", range "1 s" to "10 min", live true;
            /// How long resolving a name may take, and connecting, and the TLS handshake, each; auto takes six long round trips to
            /// origins, as measured, and 10 s at the least. What name servers answer is kept
            /// as long as they say, at most a day; `/etc/resolv.conf` and `/etc/hosts` are read again when they change.
            connect: Option<Duration>, default "auto", range "100 ms" to "5 min", live true;
            /// How long an origin may take from the end of the request to the first byte of the response. What nobody has asked
            /// for yet is waited for no longer than 60 s.
            first_byte: Duration, default "5 min", range "1 s" to "24 h", chosen "any link: what Firefox allows; long polls are answered within it", live true;
            /// How long a body may stand still; what nobody has asked for yet, no longer than 60 s. Whether the origin is there
            /// still is asked of its TCP: one that is gone is noticed within 2 min.
            stall: Duration, default "1 h", range "1 s" to "24 h", chosen "any link: event streams are quiet until something happens", live true;
            /// How long an unused connection is kept.
            keep: Duration, default "60 s", range "0 s" to "1 h", live true;
            /// Most unused connections kept at a time, of all users together; beyond, the one unused the longest is closed. auto
            /// takes eight for each carrier, and 512 at the least, which take about 20 MB.
            keep_most: Option<u32>, default "auto", range "0" to "100000", live true;
            /// Most connections made ahead when a tunnel goes to a host that others usually follow, 0 for none. Nothing is
            /// said on them before a tunnel takes them, and they are kept for 8 s.
            ahead: u32, default "6", range "0" to "64", chosen "any satellite link: spares each of the busiest hosts of a page one round trip of ground", live true;
            /// Files with root certificates (PEM, or one in DER) by which origins are trusted besides those of this
            /// system. They are read again on SIGHUP.
            roots: Vec<PathBuf>, default "", live true;
            /// Files with certificate revocation lists of version 2 (PEM, or one in DER): what they list is refused. One that is out
            /// of date still counts, and the log tells of it. They are read again on SIGHUP.
            crls: Vec<PathBuf>, default "", live true;
            /// Largest response head.
            head: Bytes, default "128 KB", range "8 KB" to "4 MB", live true;
            /// Most fields in a response head.
            fields: u32, default "200", range "16" to "1000", live true;
            /// Fields with cache directives for chosen caches (RFC 9213) that are obeyed by both ends in place of `Cache-Control` and
            /// `Expires`, the first that is valid: such as `CDN-Cache-Control`, which is for caches that act for the site, where
            /// Farhop is one. Its shared stores then keep for all users what the field lets them.
            targets: Vec<TargetField>, default "", chosen "any link: Farhop acts for its users, and no site can purge it", live true;
            /// Bytes of responses kept in memory that origins name as dictionaries for later ones (RFC 9842), which are then asked for
            /// with `dcb` and `dcz`; 0 B for none.
            dictionaries: Bytes, default "16 MB", range "0 B" to "4 GB", chosen "any link: the scripts of some ten sites", live true;
        }
    }
}

settings! {
    /// Budgets of a page's bundle.
    pub struct BundleSettings {
        values {
            /// Whether anything is fetched before it is asked for.
            enabled: bool, default "true", live true;
            /// Most resources fetched unasked for one page.
            hints: u32, default "2000", range "0" to "10000", chosen "geo-hylas2: galleries of many hundred images, too; heads of 2,000 promises take 120 ms of the link", live true;
            /// Most of them from one origin of another site than the page's.
            foreign_hints: u32, default "1000", range "0" to "10000", chosen "any: galleries have all their images on a host of somebody else's; a page must not have ground ask others for more than that", live true;
            /// Most bytes sent unasked for one page.
            bytes: Bytes, default "16 MB", range "0 B" to "1 GB", chosen "geo-hylas2: 16 s of the forward link", live true;
            /// Most unasked fetches under way at a time for one page.
            concurrent: u32, default "64", range "1" to "1000", chosen "geo-hylas2: keeps the link full from origins 50 ms away", live true;
        }
    }
}

settings! {
    /// What is remembered of pages.
    pub struct ModelsSettings {
        values {
            /// Whether it is remembered what a page was followed by, and begun with at its next visit before the page is there.
            enabled: bool, default "true", live true;
            /// Memory for it. Pages that were not visited for the longest go first.
            size: Bytes, default "16 MB", range "0 B" to "4 GB", chosen "any link: some two thousand pages of a hundred resources", live true;
            /// File in which it outlives the process, as far as three users have shown it: scripts, styles, images and fonts of pages
            /// that they all have visited. "auto": none. What a single user has shown is never written there.
            file: Option<PathBuf>, default "auto";
            /// File in which what each user has shown outlives ground, to serve that user alone. It tells which pages they have
            /// visited: only its owner may read it, and it is not encrypted. "auto": none, it is held in memory only.
            own_file: Option<PathBuf>, default "auto";
        }
    }
}

settings! {
    /// How bodies are made small.
    pub struct SqueezeSettings {
        values {
            /// How far images may differ from what their origin sent: identity (not at all), gentle (not so that it is
            /// seen), httpep (JPEG of quality 50, as in the paper), strong (visibly).
            policy: Policy, default "gentle", live true;
            /// zstd level for text, 0 to send everything as the origin did. auto takes what the rate of the link and
            /// the processor time that is left justify: 19 up to 600 kbit/s, 15 up to 2 Mbit/s, 9 up to 25 Mbit/s.
            zstd_level: Option<u32>, default "auto", range "0" to "19", live true;
            /// Processor time for all of it, as a share of one core; ten seconds' worth are saved up. When little is
            /// left, settings get cheaper; when none is, images cross as they are.
            cpu: Percent, default "50 %", range "0 %" to "6400 %", chosen "geo-hylas2: the two megabytes of photographs of a page take at most half of the 5 s saved up", live true;
            /// Bytes of text already sent that are kept in memory, so that what has changed of it, or is made like it, crosses as
            /// what differs; 0 B for none.
            deltas: Bytes, default "16 MB", range "0 B" to "4 GB", chosen "geo-hylas2: the text of about thirty pages", live true;
            /// Bytes of short text that anyone may have and that are kept in memory, by origin, to train dictionaries on, and of
            /// these dictionaries; 0 B for none.
            dictionaries: Bytes, default "16 MB", range "0 B" to "4 GB", chosen "any link: some thirty sites", live true;
        }
        lists {
            /// While the link or the processor is loaded, users go by another image policy. Without a rule nobody does.
            rule: PolicyRuleSettings;
        }
    }
}

settings! {
    /// Under which load who goes by which image policy.
    pub struct PolicyRuleSettings {
        values {
            /// The policy meanwhile. Where 'squeeze.policy' or another rule changes images further, that counts.
            policy: Policy, live true;
            /// What is looked at: link (the share of its rate in use, over some 5 s) or cpu (the share of what 'squeeze.cpu' has saved up
            /// that is used up).
            when: Signal, default "link", live true;
            /// From which load on it is so.
            above: Percent, default "85 %", range "1 %" to "1000 %", chosen "any link: a page is a burst of a few seconds and stays below", live true;
            /// Under which load it is no more; less than 'above', so that nobody is moved to and fro.
            below: Percent, default "50 %", range "0 %" to "1000 %", live true;
            /// For how long the load has to be so, either way.
            hold: Duration, default "10 s", range "0 s" to "1 h", live true;
            /// Whose images: all, or heavy (of who takes more than an equal share of what is sent, while others are there).
            users: Users, default "all", live true;
            /// Which of them: all, asked (what they ask for) or unasked (what is sent before they ask).
            service: Service, default "all", live true;
        }
    }
}

settings! {
    /// How streaming media is treated over HTTP, as far as that is looked into.
    pub struct StreamingSettings {
        values {
            /// Whether manifests (HLS, DASH) are limited to the renditions that the link carries. Those of users whose image policy is
            /// identity never are.
            limited: bool, default "true", live true;
            /// What a rendition may take of the link at most.
            share: Percent, default "75 %", range "5 %" to "100 %", chosen "geo-hylas2: 6 Mbit/s beside pages; what takes the whole link stutters", live true;
            /// What a rendition may take whatever the link carries; auto: the share above.
            most: Option<BitRate>, default "auto", range "32 kbit/s" to "100 Gbit/s", live true;
            /// Whether what plays is sent as it plays, where its play rate is known from a manifest or from itself.
            paced: bool, default "true", live true;
            /// Play time that is sent as fast as can be, so that players fill their buffers.
            ahead: Duration, default "30 s", range "1 s" to "1 h", chosen "any satellite link: what players of HLS and DASH hold", live true;
            /// How fast the rest is sent, of its play rate.
            speed: Percent, default "125 %", range "101 %" to "10000 %", chosen "any satellite link: a player gets ahead again after a cut", live true;
        }
    }
}

settings! {
    /// The spool between origins, which are quick, and the long hop, which is not.
    pub struct SpoolSettings {
        values {
            /// Bytes of one body that may wait for the long hop; beyond them the origin is made to wait.
            exchange: Bytes, default "1 MB", range "64 KB" to "1 GB", chosen "geo-hylas2: 1 s of the forward link";
            /// Bytes of all bodies together.
            total: Bytes, default "32 MB", range "1 MB" to "64 GB", chosen "geo-hylas2: the process stays below 100 MB while remotes read what they ask for";
            /// How long what was under way on a lost carrier is kept, within the bytes of 'total', for its remote to go on with it.
            keep: Duration, default "2 min", range "0 s" to "1 h", chosen "any satellite link: the remote calls again every 30 s at least", live true;
        }
    }
}

settings! {
    /// Ground's store on disk: what anyone may have of what origins answered (docs/store.md).
    pub struct GroundStoreSettings {
        values {
            /// Folder of the store, for this process alone. "auto": none, origins are asked each time.
            directory: Option<PathBuf>, default "auto";
            /// Disk space for responses. What is quickest to fetch again goes first.
            size: Bytes, default "4 GB", range "16 MB" to "64000 GB", chosen "any link: as much as remotes keep";
            /// Largest response that is kept. An eighth of `size` at the most.
            entry: Bytes, default "256 MB", range "0 B" to "64 GB", chosen "any link: what remotes keep", live true;
            /// Memory for what is read from there.
            memory: Bytes, default "16 MB", range "1 MB" to "64 GB", chosen "any link: reading it again takes milliseconds";
            /// File with the key that seals what is kept, made if it is not there. Without it nothing can be read.
            key: PathBuf, default "ground.store-key";
        }
    }
}

settings! {
    /// The DNS component near the internet.
    pub struct GroundDnsSettings {
        values {
            /// Name servers that users' questions are put to, such as `9.9.9.9:53`, the next where one does not answer, two at most; none:
            /// those of this system (`/etc/resolv.conf`), which what ground fetches itself is looked up by in any case.
            servers: Vec<SocketAddr>, default "", live true;
        }
    }
}

settings! {
    /// A remote as its ground knows it.
    pub struct RemotePeer {
        values {
            /// What this remote is called in logs, events and commands.
            name: PeerName, live true;
            /// Its public keys, as `farhop keygen` printed them. Several are accepted, so that keys can be changed without a break.
            /// A carrier whose key is taken away is closed at once.
            keys: Vec<String>, live true;
            /// Addresses of its clients in whose names ground connects to servers, if the remote says whose a caught connection is
            /// (`transparent.client_addresses`). The network has to route answers to them back through this machine. Needs
            /// CAP_NET_ADMIN, which a process of its own keeps.
            client_addresses: Vec<Cidr>, default "";
            /// The number of its terminal, as the network control centre counts them from 0 on (`capacity.centre`). "auto": not known.
            terminal: Option<u32>, default "auto", range "0" to "65535";
        }
    }
}

impl GroundSettings {
    /// Rules that hold also where the other end is in the same process and no peer is configured.
    pub(crate) fn check_alone(&self, source: &Source, prefix: &str) -> Result<(), SettingsError> {
        if self.spool.exchange > self.spool.total {
            let reason = format!(
                "'spool.exchange' ({}) is larger than 'spool.total' ({}); lower the one or raise the other",
                self.spool.exchange, self.spool.total
            );
            return Err(conflict(source, &format!("{prefix}spool.exchange"), reason));
        }
        self.link.check(source, &format!("{prefix}link."), End::Ground)?;
        for (number, rule) in self.squeeze.rule.iter().enumerate() {
            if rule.below.0 >= rule.above.0 {
                let reason = format!(
                    "'below' ({}) is not less than 'above' ({}); lower the one or raise the other",
                    rule.below, rule.above
                );
                return Err(conflict(source, &format!("{prefix}squeeze.rule.{number}.below"), reason));
            }
        }
        let ceilings: Vec<_> = self.ceiling.iter().map(CarrierCeilingSettings::ceiling).collect();
        check_ceilings(&ceilings, source, prefix)
    }
}

impl Checked for GroundSettings {
    const END: End = End::Ground;

    fn check(&self, source: &Source) -> Result<(), SettingsError> {
        self.check_alone(source, "")?;
        check_peers(source, "remote", self.remote.iter().map(|peer| &peer.name))?;
        if self.remote.is_empty() {
            return Err(conflict(source, "remote", "there is no [[remote]]; add one with name and keys"));
        }
        let mut owners = std::collections::BTreeMap::new();
        for (index, peer) in self.remote.iter().enumerate() {
            let at = format!("remote.{index}.keys");
            if peer.keys.is_empty() {
                let reason =
                    format!("remote {} has no key; add the line that its `farhop keygen` printed", peer.name);
                return Err(conflict(source, &at, reason));
            }
            for key in &peer.keys {
                // The comment at the end of a key line is no part of the key.
                let bare: Vec<_> = key.split_whitespace().take(2).collect();
                if let Some(other) = owners.insert(bare, &peer.name).filter(|other| *other != &peer.name) {
                    let reason =
                        format!("{} and {other} have the same key; a key names one remote", peer.name);
                    return Err(conflict(source, &at, reason));
                }
            }
        }
        Ok(())
    }
}
