//! The class of what crosses, as the link manager's classifier sees it (`core/diffserv`). It crosses to ground with the opening
//! of each stream, so that both directions have it. No I/O.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use farhop_consent::Host;
use farhop_diffserv::classify::{Flow, Protocol, Rule, classify, standard};
use farhop_diffserv::{Patient, Service};
use farhop_htotp::frame::Class;
use farhop_settings::RemoteSettings;
use farhop_settings::transparent::TransparentSettings;
use http::HeaderMap;

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(standard);
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
    listed.map(|(class, _)| match judged(&to("", port)) {
        // What nobody waits for is told apart where the port says what it is.
        told if class == Class::Background && told > class => told,
        _ => class,
    })
}

/// The class of a connection to `host`, of which the client has said `first_bytes` so far. What no rule knows counts as a page,
/// until it shows by what it sends that it is none (`core/htotp`).
pub(crate) fn of_connection(host: &str, port: u16, first_bytes: &[u8]) -> Class {
    let mut flow = to(host, port);
    flow.first_bytes = first_bytes.to_vec();
    judged(&flow)
}

/// The class of a flow of datagrams, which begins with `first`: calls' media have ports of their own, others the class of the
/// operator's lists, and else what the classifier sees in it.
pub(crate) fn of_datagrams(to: SocketAddr, first: &[u8], settings: &RemoteSettings) -> Class {
    if settings.udp.voice_ports.iter().any(|range| range.contains(to.port())) {
        return Class::Expedited;
    }
    listed(to.port(), &settings.transparent).unwrap_or_else(|| {
        let mut flow = Flow::new(Protocol::Udp, ANYONE, to);
        flow.names = vec![Host::Address(to.ip())];
        flow.first_bytes = first.to_vec();
        judged(&flow)
    })
}

/// The class of a request: media with a play rate say so themselves (Fetch Metadata §2.1), and all else is a page's unless its
/// host is known for what nobody waits for.
pub(crate) fn of_request(authority: &str, port: u16, fields: &HeaderMap) -> Class {
    let is_media = fields.get("sec-fetch-dest").is_some_and(|it| it == "video" || it == "audio");
    if is_media {
        return Class::Streaming;
    }
    // `host:port`, where the port may be left out, and an IPv6 address has colons within brackets.
    let bare = authority.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    judged(&to(bare.map_or(authority, |(host, _)| host), port))
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

fn judged(flow: &Flow) -> Class {
    let verdict = classify(&RULES, flow);
    if let Some(patient) = Patient::of(&verdict) {
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
    use farhop_settings::{LocalSettings, parse};
    use http::HeaderValue;

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
            assert_eq!(of_connection(host, port, bytes), class, "{host}:{port}");
        }
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
            assert_eq!(of_datagrams(to.parse().unwrap(), first, &settings.remote), class, "{to}");
        }
    }

    #[test]
    fn requests_are_pages_unless_they_or_their_host_say_otherwise() {
        let none = HeaderMap::new();
        let of = |authority: &str| of_request(authority, 443, &none);
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
            assert_eq!(of_request("site.test", 443, &fields), class, "{dest}");
        }
    }
}
