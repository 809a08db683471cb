//! Settings of `farhop link`: one device, its classes, its calls and its rules.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use farhop_diffserv::{Ceiling, Patient, Service};
use farhop_orbit::Profile;
use farhop_units::{BitRate, Bytes};

use crate::choices::{Direction, LogLevel};
use crate::common::check_ceilings;
use crate::end::End;
use crate::error::{SettingsError, one_line};
use crate::kinds::{Cidr, HostPort, Hours, Percent, PortRange, is_device_name};
use crate::load::{Checked, conflict};
use crate::rule::RuleSettings;
use crate::section::settings;
use crate::source::Source;

/// The filter in the kernel takes no more.
const MOST_SIP_PORTS: usize = 16;

settings! {
    /// Settings of `farhop link`, the link manager.
    pub struct LinkManagerSettings {
        values {
            /// The network device that the link is behind; what leaves by it is shaped.
            interface: String;
            /// The rate of the link in the direction that the device sends in; auto takes the profile's. One that is given goes before that.
            rate: Option<BitRate>, default "auto", range "64 kbit/s" to "100 Gbit/s";
            /// The link whose rate that is where none is given above: one of those that `[link] profile` of an end knows; auto: the rate above is
            /// given.
            profile: Option<Profile>, default "auto";
            /// Which direction of that profile the device sends in: return at the users' side, forward at the gateway's.
            direction: Direction, default "return";
            /// What is left of the rate, so that packets wait here, where the classes are, and not in the modem.
            margin: Percent, default "5 %", range "0 %" to "50 %", chosen "geo-hylas2: its modem's own headers and clock";
            /// The round trip of connections that cross the link; queues that measure themselves need it.
            round_trip: Duration, default "650 ms", range "1 ms" to "10 s", chosen "geo-hylas2";
            /// Whether the rules that Farhop comes with follow those below; `farhop link classify` shows them at work.
            standard_rules: bool, default "true";
            /// The control socket of `farhop link run`.
            control: PathBuf, default "link.sock";
            /// A socket on which the same is asked over HTTP, with JSON; auto: none. Its file is for its owner alone.
            rest: Option<PathBuf>, default "auto";
            /// The file in which calls are written down, for the next `farhop link run`; auto: link.INTERFACE.calls. Each device has its own.
            calls_file: Option<PathBuf>, default "auto";
            /// How much `farhop link run` writes to standard error: error, warn, info (one line for each call), debug or trace.
            log_level: LogLevel, default "info";
        }
        tables {
            /// What each class has of the rate, whatever the others do; together 100 % at most. What one leaves unused the others
            /// have, in this order.
            shares: ShareSettings;
            /// What a class never exceeds. EF never exceeds its share.
            ceilings: CeilingSettings;
            /// What a call takes of EF, and how long it is kept.
            calls: CallSettings;
            /// A link whose rate changes, by rain or since it is granted on demand.
            follow: FollowSettings;
            /// What the network control centre grants, as the modem tells it.
            capacity: GrantSettings;
            /// Calls that announce themselves: SIP is overheard at the device. Needs CAP_NET_RAW.
            sip: SipSettings;
            /// Farhop's own carrier, where an end of it sends by this device.
            carrier: CarrierSettings;
        }
        lists {
            /// A rule of the classifier: all that is given has to hold, and the first rule that holds decides.
            rule: RuleSettings;
            /// Hours of the day outside of which a class may use less than its ceiling: downloads, updates and backups at night.
            window: WindowSettings;
            /// What some of what can wait never exceeds, and when: updates, backups and peer to peer each by itself within LE.
            ceiling: KindCeilingSettings;
        }
    }
}

settings! {
    /// What each class has of the rate.
    pub struct ShareSettings {
        values {
            /// EF (RFC 3246): the media of calls.
            ef: Percent, default "62 %", range "1 %" to "100 %", chosen "geo-hylas2: ten calls of G.729 on its return link of 512 kbit/s";
            /// AF4 (RFC 2597): what someone waits for with each keystroke.
            af4: Percent, default "6 %", range "1 %" to "100 %";
            /// AF3: pages.
            af3: Percent, default "14 %", range "1 %" to "100 %";
            /// AF2: media with a play rate.
            af2: Percent, default "6 %", range "1 %" to "100 %";
            /// AF1: downloads, uploads, mail.
            af1: Percent, default "5 %", range "1 %" to "100 %";
            /// DE (RFC 2474): what no rule knows.
            de: Percent, default "5 %", range "1 %" to "100 %";
            /// LE (RFC 8622): updates, backups, peer to peer.
            le: Percent, default "2 %", range "1 %" to "100 %";
        }
    }
}

settings! {
    /// What a class never exceeds.
    pub struct CeilingSettings {
        values {
            /// AF4.
            af4: Percent, default "100 %", range "1 %" to "100 %";
            /// AF3.
            af3: Percent, default "100 %", range "1 %" to "100 %";
            /// AF2.
            af2: Percent, default "100 %", range "1 %" to "100 %";
            /// AF1.
            af1: Percent, default "100 %", range "1 %" to "100 %";
            /// DE.
            de: Percent, default "100 %", range "1 %" to "100 %";
            /// LE.
            le: Percent, default "100 %", range "1 %" to "100 %";
        }
    }
}

settings! {
    /// What a call takes, and how long it is kept.
    pub struct CallSettings {
        values {
            /// What every call takes in each direction, whatever its codec; auto counts it from codec and packet time.
            rate: Option<BitRate>, default "auto", range "1 kbit/s" to "10 Mbit/s";
            /// Whether calls cross over IPv6, whose header is longer. Those of whose media one address is of IPv6 always count so.
            ipv6: bool, default "false";
            /// Bytes that carry a packet over the link besides its own headers: a tunnel's, or layer 2's, as far as the rate above
            /// includes it.
            overhead: Bytes, default "14 B", range "0 B" to "200 B", chosen "an Ethernet to the modem, whose headers HTB counts";
            /// Bytes that are left of a packet's RTP, UDP and IP headers where something compresses them on this link; auto: nothing
            /// does.
            compressed_headers: Option<Bytes>, default "auto", range "1 B" to "60 B";
            /// How long a call is kept for which nobody speaks, so that a release that was lost does not hold its rate for ever.
            lease: Duration, default "5 min", range "10 s" to "24 h";
        }
    }
}

settings! {
    /// How the rate of a link is followed.
    pub struct FollowSettings {
        values {
            /// The nearest machine beyond the link that answers echoes (ICMP), whose round trip shows whether a queue builds in the modem; auto: the
            /// rate is not followed. Needs CAP_NET_RAW.
            echo: Option<IpAddr>, default "auto";
            /// What is always sent at, of the rate less its margin.
            least: Percent, default "25 %", range "1 %" to "100 %";
            /// Round trip beyond the least of the last ten minutes that counts as a queue. A return link that is granted on demand needs a
            /// superframe or two.
            queue: Duration, default "40 ms", range "5 ms" to "5 s", chosen "geo-hylas2: what voice may wait";
        }
    }
}

settings! {
    /// How the capacity that is granted on demand is followed.
    pub struct GrantSettings {
        values {
            /// The modem, or the network control centre, that is asked for what it grants and told what waits here (UDP, docs/capacity.md); auto:
            /// nobody is, and who knows may tell (`capacity_granted`).
            modem: Option<HostPort>, default "auto";
            /// The number of the terminal, where it is a centre that is asked; auto: a modem tells of itself.
            terminal: Option<u32>, default "auto", range "0" to "65535";
            /// Most bytes that it is told of at a time; what cannot be sent so soon is taken from others.
            ahead: Bytes, default "32 KB", range "1 KB" to "100 MB", chosen "geo-hylas2: half a second of the return link";
            /// What is always sent at, of the rate less its margin, so that there is something to ask capacity for.
            least: Percent, default "5 %", range "1 %" to "100 %";
        }
    }
}

settings! {
    /// Which SIP is heard.
    pub struct SipSettings {
        values {
            /// Whether `farhop link run` derives calls from the SIP that passes the device.
            observe: bool, default "true";
            /// Ports of SIP, over UDP and TCP: 16 ranges at most.
            ports: Vec<PortRange>, default "5060";
            /// Calls count only where one of the two ends of their messages is in one of these networks, such as that of the
            /// phones or of the exchange; empty: anywhere. What announces calls sets bandwidth aside.
            from: Vec<Cidr>, default "";
        }
    }
}

settings! {
    /// Which packets are a carrier's, and what they are for.
    pub struct CarrierSettings {
        values {
            /// Ports that ground takes carriers at, over UDP and TCP: `listen` in its settings. Empty: its packets are judged as others are.
            ports: Vec<PortRange>, default "4433";
            /// What all that it carries counts as here: interactive, web, streaming, bulk, other or background. Inside it has its own classes.
            service: Service, default "web";
        }
    }
}

settings! {
    /// Hours of a class.
    pub struct WindowSettings {
        values {
            /// Whose class: interactive, web, streaming, bulk, other or background.
            service: Service, default "background";
            /// When the class may use up to its ceiling; in UTC.
            hours: Hours, default "22:00-06:00";
            /// What it never exceeds at other times. Less than its share is all that it has then.
            outside: Percent, default "100 %", range "1 %" to "100 %";
        }
    }
}

settings! {
    /// What a kind of what can wait never exceeds.
    pub struct KindCeilingSettings {
        values {
            /// Of what: updates (and what else nobody waits for), backups or peer-to-peer, within LE; streaming or bulk, of which these are AF2's
            /// and AF1's.
            of: Patient;
            /// The most that all of it together is sent at within the hours below; auto: what its class has.
            rate: Option<BitRate>, default "auto", range "1 kbit/s" to "100 Gbit/s";
            /// When that holds; in UTC. auto: all day.
            hours: Option<Hours>, default "auto";
            /// The most at other times. Never nothing, so that connections do not give up.
            outside: BitRate, default "8 kbit/s", range "1 kbit/s" to "100 Gbit/s";
        }
    }
}

impl KindCeilingSettings {
    /// The same for who keeps to it.
    pub fn ceiling(&self) -> Ceiling {
        let hours = self.hours.map(|hours| (hours.from, hours.to));
        Ceiling { of: self.of, rate: self.rate, hours, outside: self.outside }
    }
}

impl ShareSettings {
    /// In the order of the classes, from EF to LE.
    pub fn in_order(&self) -> [Percent; 7] {
        [self.ef, self.af4, self.af3, self.af2, self.af1, self.de, self.le]
    }
}

impl CeilingSettings {
    /// In the order of the classes, from AF4 to LE.
    pub fn in_order(&self) -> [Percent; 6] {
        [self.af4, self.af3, self.af2, self.af1, self.de, self.le]
    }
}

impl LinkManagerSettings {
    /// The file in which calls are written down.
    pub fn calls_file(&self) -> PathBuf {
        self.calls_file.clone().unwrap_or_else(|| format!("link.{}.calls", self.interface).into())
    }

    /// The rate of the link in the direction that the device sends in, before any margin is left. Settings that were read
    /// have one.
    pub fn known_rate(&self) -> Option<BitRate> {
        let leg = |profile: &Profile| match self.direction {
            Direction::Return => profile.return_.rate,
            Direction::Forward => profile.forward.rate,
        };
        self.rate.or_else(|| self.profile.as_ref().and_then(leg))
    }
}

impl Checked for LinkManagerSettings {
    const END: End = End::LinkManager;

    fn check(&self, source: &Source) -> Result<(), SettingsError> {
        if !is_device_name(&self.interface) {
            let reason = format!(
                "'{}' is no name of a network device; `ip link` shows them",
                one_line(&self.interface)
            );
            return Err(conflict(source, "interface", reason));
        }
        let sum: u32 = self.shares.in_order().iter().map(|share| share.0).sum();
        if sum > 100 {
            let reason =
                format!("the shares in [shares] make {sum} % together, and a link has 100 %; lower some");
            return Err(conflict(source, "shares.ef", reason));
        }
        let names = ["af4", "af3", "af2", "af1", "de", "le"];
        for ((name, ceiling), share) in
            names.iter().zip(self.ceilings.in_order()).zip(&self.shares.in_order()[1..])
        {
            if ceiling < *share {
                let reason =
                    format!("'ceilings.{name}' of {ceiling} is below the share of {share}; raise it");
                return Err(conflict(source, &format!("ceilings.{name}"), reason));
            }
        }
        crate::rule::check(&self.rule, source, "")?;
        let ceilings: Vec<_> = self.ceiling.iter().map(KindCeilingSettings::ceiling).collect();
        check_ceilings(&ceilings, source, "")?;
        if self.follow.echo.is_some() && self.capacity.modem.is_some() {
            let reason =
                "the rate is either measured ('follow.echo') or granted ('capacity.modem'); leave one out";
            return Err(conflict(source, "capacity.modem", reason));
        }
        if self.sip.ports.len() > MOST_SIP_PORTS {
            let reason =
                format!("'sip.ports' names {} ranges, and 16 are the most; join some", self.sip.ports.len());
            return Err(conflict(source, "sip.ports", reason));
        }
        if self.carrier.service == Service::Voice {
            let reason = "a carrier is no call, and more than EF's share would be lost; 'interactive' goes before all else";
            return Err(conflict(source, "carrier.service", reason));
        }
        for (at, window) in self.window.iter().enumerate() {
            let is_double = self.window[..at].iter().any(|other| other.service == window.service);
            if window.service == Service::Voice || is_double {
                let what = if is_double {
                    "has two windows; join them"
                } else {
                    "has no window: calls are refused or have their rate; take this window away"
                };
                let reason = format!("'{}' {what}", window.service);
                return Err(conflict(source, &format!("window.{at}.service"), reason));
            }
        }
        if self.known_rate().is_none() {
            let reason = match &self.profile {
                Some(Profile { name, .. }) => {
                    format!(
                        "the link '{name}' has no rate of its own; set 'rate', or a 'profile' that has one"
                    )
                }
                None => "the rate of the link is not known; set 'rate', or a 'profile' that has one".into(),
            };
            return Err(conflict(source, "profile", reason));
        }
        Ok(())
    }
}
