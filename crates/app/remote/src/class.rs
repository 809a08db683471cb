//! The class of what crosses, as the link manager's classifier sees it (`core/diffserv`): by the operator's rules, else by the operator's
//! lists of ports, else by the standard rules. It crosses to ground with the opening of each stream, so that both directions have
//! it. What a flow shows later (`shown`) is judged in the same way, and crosses too. No I/O.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_consent::Host;
use farhop_diffserv::Service;
use farhop_diffserv::classify::{Flow, Protocol, Rule, Verdict, classify, standard, standard_beside};
use farhop_dns::{Answer, Names};
use farhop_htotp::frame::Class;
use farhop_packets::Ends;
use farhop_settings::RemoteSettings;
use farhop_settings::rule::RuleSettings;
use farhop_settings::transparent::TransparentSettings;
use http::HeaderMap;

static STANDARD: LazyLock<Vec<Rule>> = LazyLock::new(standard);
/// Who began a flow is of no matter to these rules.
const ANYONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The class that the operator's lists give to connections to this port, if one has it.
pub(crate) fn listed(port: u16, settings: &TransparentSettings) -> Option<Class> {
    let lists = [
        (Class::Interactive, &settings.interactive_ports),
        (Class::Streaming, &settings.streaming_ports),
        (Class::Bulk, &settings.bulk_ports),
        (Class::Background, &settings.background_ports),
    ];
    let listed = lists.into_iter().find(|(_, ports)| ports.iter().any(|range| range.contains(port)));
    listed.map(|(class, _)| match self::class(&classify(&STANDARD, &to("", port))) {
        // What nobody waits for is told apart where the port says what it is.
        told if class == Class::Background && told > class => told,
        _ => class,
    })
}

/// The operator's own rules, and the names that they may go by where nobody says one.
pub(crate) struct Rules {
    own: Vec<Rule>,
    /// Those of the standard ones that stand beside them.
    standard: Vec<Rule>,
    /// As the DNS component has answered them.
    names: Mutex<Names>,
    /// As they have passed, from name servers of the clients' own choice: each counts for who was told it.
    passed: Mutex<Names>,
}

impl Rules {
    pub(crate) fn new(settings: &RemoteSettings) -> Rules {
        let own: Vec<Rule> = settings.rule.iter().map(RuleSettings::rule).collect();
        Rules { standard: standard_beside(&own), own, names: Mutex::default(), passed: Mutex::default() }
    }

    /// A client is told this answer to a question for `name`.
    pub(crate) fn tell(&self, now: Duration, name: &str, answer: &Answer) {
        lock(&self.names).tell(now, None, name, answer);
    }

    /// This answer to a question of this client's for `name` has passed.
    pub(crate) fn overhear(&self, now: Duration, client: IpAddr, name: &str, answer: &Answer) {
        lock(&self.passed).tell(now, Some(client), name, answer);
    }

    /// The flow with the names that its destination was told for, where it is known by its address alone and does not say itself for whom
    /// it is.
    fn named(&self, now: Duration, mut flow: Flow) -> Flow {
        if flow.sni.is_none() && flow.names.iter().all(|name| matches!(name, Host::Address(_))) {
            let (client, to) = (flow.from.ip(), flow.to.ip());
            let names = &mut flow.names;
            let mut add = |book: &Mutex<Names>, client| {
                names.extend(lock(book).of(now, client, to).filter_map(|name| name.parse().ok()));
            };
            add(&self.passed, Some(client));
            add(&self.names, None);
        }
        flow
    }

    /// The class of a connection; `listed` is what the operator's lists of ports say. What no rule knows counts as a page, until it shows
    /// by what it sends that it is none (`core/htotp`).
    pub(crate) fn of_connection(&self, now: Duration, flow: Flow, listed: Option<Class>) -> Class {
        let flow = self.named(now, flow);
        self.own(&flow).or(listed).unwrap_or_else(|| self.judged(&flow))
    }

    /// The class of a flow of datagrams: where no rule of the operator's holds, calls' media have ports of their own, others the class of
    /// the operator's lists, and else what the classifier sees in it.
    pub(crate) fn of_flow(&self, now: Duration, flow: Flow, settings: &RemoteSettings) -> Class {
        let flow = self.named(now, flow);
        let port = flow.to.port();
        let is_voice = || settings.udp.voice_ports.iter().any(|range| range.contains(port));
        self.own(&flow)
            .or_else(|| is_voice().then_some(Class::Expedited))
            .or_else(|| listed(port, &settings.transparent))
            .unwrap_or_else(|| self.judged(&flow))
    }

    /// The class of a request: media with a play rate say so themselves (Fetch Metadata §2.1), and all else is a page's unless its
    /// host is known for what nobody waits for.
    pub(crate) fn of_request(&self, client: IpAddr, authority: &str, port: u16, fields: &HeaderMap) -> Class {
        // `host:port`, where the port may be left out, and an IPv6 address has colons within brackets.
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let parts = authority.rsplit_once(':').filter(|(_, port)| is_port(port));
        let (host, own_port) = parts.map_or((authority, None), |(host, port)| (host, port.parse().ok()));
        let flow = connection(client, host, own_port.unwrap_or(port));
        let is_media = || fields.get("sec-fetch-dest").is_some_and(|it| it == "video" || it == "audio");
        let media = || is_media().then_some(Class::Streaming);
        self.own(&flow).or_else(media).unwrap_or_else(|| self.judged(&to(host, port)))
    }

    fn own(&self, flow: &Flow) -> Option<Class> {
        let verdict = classify(&self.own, flow);
        verdict.by.as_ref()?;
        // A stream is no speech: it would hold up that of others.
        let least = if flow.protocol == Protocol::Udp { Class::Expedited } else { Class::Interactive };
        Some(class(&verdict).max(least))
    }

    fn judged(&self, flow: &Flow) -> Class {
        class(&classify(&self.standard, flow))
    }
}

/// A flow of datagrams that begins with `first`.
pub(crate) fn datagrams(ends: Ends, first: &[u8]) -> Flow {
    let mut flow = Flow::new(Protocol::Udp, ends.client, ends.to);
    flow.names = vec![Host::Address(ends.to.ip())];
    flow.first_bytes = first.to_vec();
    flow
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection of a client's to `host`.
pub(crate) fn connection(client: IpAddr, host: &str, port: u16) -> Flow {
    let mut flow = to(host, port);
    flow.from.set_ip(client);
    flow
}

fn to(host: &str, port: u16) -> Flow {
    let named: Option<Host> = host.parse().ok();
    let at = match &named {
        Some(Host::Address(address)) => *address,
        _ => ANYONE.ip(),
    };
    let mut flow = Flow::new(Protocol::Tcp, ANYONE, SocketAddr::new(at, port));
    flow.names = named.into_iter().collect();
    flow
}

fn class(verdict: &Verdict) -> Class {
    if let Some(patient) = verdict.patient {
        return farhop_component::class(patient);
    }
    match verdict.service {
        Service::Voice => Class::Expedited,
        Service::Interactive => Class::Interactive,
        _ => Class::Web,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_diffserv::classify::Seen;
    use farhop_dns::Query;
    use farhop_settings::{LocalSettings, parse};
    use farhop_units::Bytes;
    use http::HeaderValue;

    const NOW: Duration = Duration::ZERO;

    impl Rules {
        fn of_datagrams(&self, now: Duration, ends: Ends, first: &[u8], settings: &RemoteSettings) -> Class {
            self.of_flow(now, datagrams(ends, first), settings)
        }
    }

    fn no_rules() -> Rules {
        let settings: LocalSettings = parse("", "".as_ref(), &[]).unwrap();
        Rules::new(&settings.remote)
    }

    #[test]
    fn ports_have_the_class_of_their_list() {
        let sets = ["remote.transparent.interactive_ports=22,6000-6009".to_owned()];
        let settings: LocalSettings = parse("", "".as_ref(), &sets).unwrap();
        for (port, class) in [
            (22, Some(Class::Interactive)),
            (6005, Some(Class::Interactive)),
            (23, None),
            (443, None),
            (1935, Some(Class::Streaming)),
            (25, Some(Class::Bulk)),
            (6881, Some(Class::PeerToPeer)),
            (873, Some(Class::Backups)),
        ] {
            assert_eq!(listed(port, &settings.remote.transparent), class, "{port}");
        }
    }

    #[test]
    fn connections_are_judged_by_port_name_and_first_bytes() {
        for (host, port, bytes, class) in [
            ("site.test", 443, &b""[..], Class::Web),
            ("192.0.2.1", 4711, b"", Class::Web),
            ("[2001:db8::1]", 25, b"", Class::Bulk),
            ("site.test", 853, b"", Class::Interactive),
            ("site.test", 443, b"\x13BitTorrent protocol", Class::PeerToPeer),
            ("download.windowsupdate.com", 443, b"", Class::Background),
            ("no host", 443, b"", Class::Web),
        ] {
            let mut flow = connection(ANYONE.ip(), host, port);
            flow.first_bytes = bytes.to_vec();
            assert_eq!(no_rules().of_connection(NOW, flow, None), class, "{host}:{port}");
        }
    }

    /// The order is: own rules, lists of ports, standard rules.
    #[test]
    fn the_operators_rules_go_before_all_else() {
        let text = "[[remote.rule]]\nname = 'pbx'\nservice = 'voice'\naddresses = ['10.0.5.0/24']\nports = ['16384-16389']\n\
            [[remote.rule]]\nname = 'mirror'\nservice = 'bulk'\nhosts = ['.mirror.test']\n\
            [[remote.rule]]\nname = 'sync'\nservice = 'background'\nprotocol = 'udp'\nports = ['53']\n\
            [[remote.rule]]\nname = 'shells'\nservice = 'interactive'\nbegins = ['ssh']\n";
        let sets = ["remote.transparent.streaming_ports=16384,8443,22".to_owned()];
        let settings: LocalSettings = parse(text, "".as_ref(), &sets).unwrap();
        let rules = Rules::new(&settings.remote);
        let ends = |client: &str, to: &str| Ends { client: client.parse().unwrap(), to: to.parse().unwrap() };
        for (client, to, class) in [
            ("10.0.5.7:4000", "192.0.2.1:16384", Class::Expedited),
            ("10.0.6.7:4000", "192.0.2.1:16384", Class::Streaming),
            ("10.0.6.7:4000", "192.0.2.1:53", Class::Background),
            ("10.0.6.7:4000", "192.0.2.1:40000", Class::Web),
        ] {
            let ends = ends(client, to);
            assert_eq!(rules.of_datagrams(NOW, ends, b"", &settings.remote), class, "{client} {to}");
        }
        let of = |client: &str, host: &str, port: u16, first: &[u8]| {
            let mut flow = connection(client.parse().unwrap(), host, port);
            flow.first_bytes = first.to_vec();
            rules.of_connection(NOW, flow, listed(port, &settings.remote.transparent))
        };
        assert_eq!(of("10.0.5.7", "site.test", 16384, b""), Class::Interactive, "no stream is voice");
        assert_eq!(of("10.0.6.7", "site.test", 16384, b""), Class::Streaming);
        assert_eq!(of("10.0.6.7", "eu.mirror.test", 8443, b""), Class::Bulk);
        assert_eq!(of("10.0.6.7", "site.test", 53, b""), Class::Interactive, "the standard rule");
        assert_eq!(of("10.0.6.7", "site.test", 22, b"SSH-2.0-OpenSSH_10"), Class::Interactive);
        assert_eq!(of("10.0.6.7", "site.test", 22, b""), Class::Streaming);
        let none = HeaderMap::new();
        let request = |authority: &str| rules.of_request(ANYONE.ip(), authority, 443, &none);
        assert_eq!((request("mirror.test"), request("site.test:443")), (Class::Bulk, Class::Web));
    }

    #[test]
    fn a_rule_that_has_the_name_of_a_standard_one_stands_for_it() {
        let text = "[[remote.rule]]\nname = 'telnet'\nservice = 'bulk'\nbegins = ['bittorrent']\n";
        let settings: LocalSettings = parse(text, "".as_ref(), &[]).unwrap();
        let telnet = || connection(ANYONE.ip(), "site.test", 23);
        assert_eq!(no_rules().of_connection(NOW, telnet(), None), Class::Interactive);
        assert_eq!(Rules::new(&settings.remote).of_connection(NOW, telnet(), None), Class::Web);
    }

    /// An answer with one address, as a name server writes it.
    fn answer(question: &[u8], address: [u8; 4]) -> Answer {
        let wanted = Query::read(question).unwrap().wanted;
        let mut message = question.to_vec();
        (message[2], message[7]) = (0x81, 1);
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        message.extend(address);
        Answer::read(&message, 0, &wanted).unwrap()
    }

    #[test]
    fn rules_by_host_hold_for_addresses_that_answers_had_for_it() {
        let text = "[[remote.rule]]\nname = 'mirror'\nservice = 'bulk'\nhosts = ['.mirror.test']\n";
        let settings: LocalSettings = parse(text, "".as_ref(), &[]).unwrap();
        let rules = Rules::new(&settings.remote);
        let ends = Ends { client: ANYONE, to: "192.0.2.1:40000".parse().unwrap() };
        let datagrams = |now| rules.of_datagrams(Duration::from_secs(now), ends, b"", &settings.remote);
        let to = |host: &str| rules.of_connection(NOW, connection(ANYONE.ip(), host, 443), None);
        assert_eq!((datagrams(0), to("192.0.2.1")), (Class::Web, Class::Web));
        let question =
            [&[0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x02eu\x06mirror\x04test\0\0\x01\0\x01"].concat();
        rules.tell(NOW, "eu.mirror.test", &answer(&question, [192, 0, 2, 1]));
        assert_eq!((datagrams(0), to("192.0.2.1")), (Class::Bulk, Class::Bulk));
        assert_eq!((to("192.0.2.2"), to("site.test")), (Class::Web, Class::Web));
        let mut caught = connection(ANYONE.ip(), "site.test", 443);
        caught.to.set_ip("192.0.2.1".parse().unwrap());
        assert_eq!(rules.of_connection(NOW, caught, None), Class::Web, "its own name is known");
        assert_eq!(datagrams(4_000), Class::Web, "by now it may be another's");
        let mut says_itself = connection(ANYONE.ip(), "192.0.2.1", 443);
        says_itself.sni = "site.test".parse().ok();
        assert_eq!(rules.of_connection(NOW, says_itself, None), Class::Web, "an address is many names'");
    }

    #[test]
    fn what_a_client_was_told_by_a_name_server_of_its_choice_counts_for_it_alone() {
        let text = "[[remote.rule]]\nname = 'mirror'\nservice = 'bulk'\nhosts = ['.mirror.test']\n";
        let settings: LocalSettings = parse(text, "".as_ref(), &[]).unwrap();
        let rules = Rules::new(&settings.remote);
        let question =
            [&[0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x02eu\x06mirror\x04test\0\0\x01\0\x01"].concat();
        let clients: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        rules.overhear(NOW, clients[0], "eu.mirror.test", &answer(&question, [192, 0, 2, 1]));
        let of = |client| rules.of_connection(NOW, connection(client, "192.0.2.1", 443), None);
        assert_eq!(clients.map(of), [Class::Bulk, Class::Web]);
    }

    #[test]
    fn what_a_flow_shows_later_is_judged_by_the_same_rules() {
        let text = "[[remote.rule]]\nname = 'chat'\nservice = 'interactive'\nalpn = ['xmpp-client']\n\
            [[remote.rule]]\nname = 'game'\nservice = 'interactive'\nprotocol = 'udp'\npacket_at_most = '200 B'\ntime_at_least = '5 s'\n";
        let settings: LocalSettings = parse(text, "".as_ref(), &[]).unwrap();
        let rules = Rules::new(&settings.remote);
        let mut chat = connection(ANYONE.ip(), "192.0.2.1", 443);
        assert_eq!(rules.of_connection(NOW, chat.clone(), None), Class::Web);
        chat.alpn = vec!["xmpp-client".into()];
        assert_eq!(rules.of_connection(NOW, chat, None), Class::Interactive);
        let mut update = connection(ANYONE.ip(), "192.0.2.1", 443);
        update.sni = "download.windowsupdate.com".parse().ok();
        assert_eq!(rules.of_connection(NOW, update, None), Class::Background);
        let ends = Ends { client: ANYONE, to: "192.0.2.1:40000".parse().unwrap() };
        let mut game = datagrams(ends, b"x");
        let mut seen = |packets: u64, size: u64, seconds| {
            let over = Duration::from_secs(seconds);
            game.seen = Some(Seen { packets, bytes: Bytes(packets * size), over });
            rules.of_flow(NOW, game.clone(), &settings.remote)
        };
        assert_eq!(
            (seen(100, 90, 2), seen(500, 90, 10), seen(500, 900, 10)),
            (Class::Web, Class::Interactive, Class::Web)
        );
        assert_eq!(seen(10_000, 1_200, 10), Class::Bulk);
    }

    #[test]
    fn datagrams_are_judged_by_voice_ports_lists_and_what_they_begin_with() {
        let sets = ["remote.udp.voice_ports=16384-16389", "remote.transparent.bulk_ports=16389,5000"]
            .map(str::to_owned);
        let settings: LocalSettings = parse("", "".as_ref(), &sets).unwrap();
        // RFC 8489 §5: a binding request, with the magic cookie.
        let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
        for (to, first, class) in [
            ("192.0.2.1:16384", &b""[..], Class::Expedited),
            ("[2001:db8::1]:16389", b"", Class::Expedited),
            ("192.0.2.1:5000", &stun, Class::Bulk),
            ("192.0.2.1:53", b"", Class::Interactive),
            ("192.0.2.1:40000", &stun, Class::Interactive),
            ("192.0.2.1:40000", b"anything", Class::Web),
        ] {
            let ends = Ends { client: ANYONE, to: to.parse().unwrap() };
            assert_eq!(no_rules().of_datagrams(NOW, ends, first, &settings.remote), class, "{to}");
        }
    }

    #[test]
    fn requests_are_pages_unless_they_or_their_host_say_otherwise() {
        let none = HeaderMap::new();
        let of = |authority: &str| no_rules().of_request(ANYONE.ip(), authority, 443, &none);
        assert_eq!(
            (of("site.test"), of("site.test:8443"), of("[2001:db8::1]:80")),
            (Class::Web, Class::Web, Class::Web)
        );
        assert_eq!(of("download.windowsupdate.com:443"), Class::Background);
        for (dest, class) in [
            ("video", Class::Streaming),
            ("audio", Class::Streaming),
            ("image", Class::Web),
            ("empty", Class::Web),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert("sec-fetch-dest", HeaderValue::from_static(dest));
            let of = no_rules().of_request(ANYONE.ip(), "site.test", 443, &fields);
            assert_eq!(of, class, "{dest}");
        }
    }
}
