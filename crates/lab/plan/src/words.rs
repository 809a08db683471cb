//! Links and variants of a plan in words, for terminals and reports: all in which two of them may differ. Pure.

use std::time::Duration;

use farhop_compare::Stand;
use farhop_loader::{Handshake, Persistence, Protocol, Push};
use farhop_orbit::{Entitlement, Leg, Loss, Segment, Supply, Volume};
use farhop_units::{BitRate, Bytes, format_duration};

use crate::plan::{Client, LinkSpec, SPLIT, Through, VariantSpec};

/// `1 connection`, `6 connections`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `8 Mbit/s down, 512 kbit/s up, 650 ms round trip`, and what else there is of either way.
pub(crate) fn link(spec: &LinkSpec) -> String {
    let profile = &spec.profile;
    let rate = |rate: Option<BitRate>| rate.map_or("no limit".to_owned(), |rate| rate.to_string());
    let mut words = format!(
        "{} down, {} up, {} round trip",
        rate(profile.forward.rate),
        rate(profile.return_.rate),
        milliseconds(profile.rtt())
    );
    if spec.terminals > 1 {
        words.push_str(&format!(", shared by {}", counted(spec.terminals.into(), "terminal")));
    }
    let (down, up) = (leg(&profile.forward), leg(&profile.return_));
    let mut add = |told: &[String], way: &str| {
        for it in told {
            words.push_str(&format!(", {it}{way}"));
        }
    };
    if down == up {
        add(&down, "");
    } else {
        add(&down, " down");
        add(&up, " up");
    }
    words
}

/// What a way has besides rate and delay.
fn leg(leg: &Leg) -> Vec<String> {
    let mut told = Vec::new();
    match &leg.supply {
        Supply::Steady => {}
        Supply::Steps(_) => told.push("in steps".to_owned()),
        Supply::Trace(_) => told.push("as recorded".to_owned()),
        Supply::OnDemand(demand) => told.push(format!(
            "on demand ({}; superframes of {})",
            entitlement(&demand.entitlement),
            milliseconds(demand.superframe)
        )),
    }
    told.extend(loss(&leg.loss));
    if !leg.jitter.is_zero() {
        told.push(format!("jitter to {}", milliseconds(leg.jitter)));
    }
    if let Some(reordering) = &leg.reordering {
        told.push(format!("{} reordered by {}", percent(reordering.share), milliseconds(reordering.by)));
    }
    if let Some(policer) = &leg.policer {
        told.push(format!("a policer at {}", policer.rate));
    }
    if !leg.schedule.outages.is_empty() {
        told.push("outages".to_owned());
    }
    if leg.schedule.handovers.is_some() {
        told.push("handovers".to_owned());
    }
    for segment in [&leg.before, &leg.after] {
        told.extend(on_ground(segment).into_iter().map(|it| format!("{it} on the ground")));
    }
    told
}

fn on_ground(segment: &Segment) -> Vec<String> {
    let mut told: Vec<String> = loss(&segment.loss).into_iter().collect();
    if !segment.jitter.is_zero() {
        told.push(format!("jitter to {}", milliseconds(segment.jitter)));
    }
    if let Some(wifi) = &segment.wifi {
        told.push(format!("a wireless LAN of {}", wifi.rate));
    }
    told
}

fn loss(loss: &Loss) -> Option<String> {
    match loss {
        loss if *loss == Loss::NONE => None,
        Loss::Independent(share) => Some(format!("{} lost", percent(*share))),
        Loss::Bursts(bursts) => {
            Some(format!("{} lost in bursts", percent(Loss::Bursts(*bursts).share(Bytes(1)))))
        }
        Loss::Bits(wrong) => Some(format!("bits wrong at {wrong:e}")),
    }
}

/// The categories of capacity (EN 301 790 §6.6.1) that there are.
fn entitlement(it: &Entitlement) -> String {
    let some = |name: &str, rate: BitRate| (rate.0 > 0).then(|| format!("{name} {rate}"));
    let volume = match it.volume {
        Volume::None => None,
        Volume::Added => Some("VBDC".to_owned()),
        Volume::Absolute => Some("A-VBDC".to_owned()),
    };
    let all = [some("CRA", it.cra), some("RBDC", it.rbdc), volume, it.fca.then(|| "FCA".to_owned())];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `26.5 ms`.
fn milliseconds(time: Duration) -> String {
    format!("{} ms", (time.as_secs_f64() * 1e6).round() / 1e3)
}

/// `1 %`, `0.05 %`.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// What a variant is: what stands in between, what the client speaks, and what is set besides.
pub(crate) fn variant(variant: &VariantSpec) -> String {
    let settings = &variant.settings;
    let mut words = match &variant.through {
        Through::Direct => "direct".to_owned(),
        Through::Peer(peer) => format!("through {}", peer.name()),
        Through::Farhop { variant: through, link, remote, stand, caught } => {
            let name = if *caught { SPLIT } else { through.name() };
            let place = match stand {
                Stand::Both => "",
                Stand::Terminal => " at the terminal alone",
                Stand::Gateway => " at the gateway alone",
            };
            let lines = [link, remote].into_iter().flat_map(|text| text.lines());
            let mut told: Vec<String> = lines.map(str::to_owned).collect();
            let controller = variant.dressing.carrier_congestion.as_ref();
            told.extend(controller.map(|name| format!("tcp_congestion = {name:?}")));
            let told = if told.is_empty() { String::new() } else { format!(" with {}", told.join(", ")) };
            format!("through {name}{place}{told}")
        }
    };
    words.push_str(": ");
    words.push_str(&spoken(variant));
    let mut add = |text: String| {
        words.push_str(", ");
        words.push_str(&text);
    };
    if let Some(retry) = settings.retry {
        add(format!("retry timer {}", format_duration(retry)));
    }
    if let Some(bytes) = settings.receive_buffer {
        add(format!("receive buffer {bytes} B"));
    }
    if settings.fast_open {
        add("TCP Fast Open".into());
    }
    if let Some(idle) = settings.idle {
        add(format!("idle timeout {}", format_duration(idle)));
    }
    if variant.users > 1 {
        add(counted(variant.users.into(), "user") + " at once");
    }
    if variant.own {
        add("a server of the lab's own".into());
    }
    if let Some(share) = variant.push {
        add(format!("{} pushed", percent(share)));
    }
    if settings.protocol == Protocol::Http2(Push::Refused) {
        add("pushes refused".into());
    }
    let dressing = &variant.dressing;
    for (what, segments) in [
        ("origins' initial window", dressing.initial_window),
        ("carrier's initial window", dressing.carrier_window),
    ] {
        if let Some(segments) = segments {
            add(format!("{what} {}", counted(segments.into(), "segment")));
        }
    }
    // Ground's own was told above.
    if let Some(name) = &dressing.server_congestion {
        add(format!("origins with {name}"));
    }
    if dressing.vpn {
        add("through a tunnel that hides transport headers (VXLAN)".into());
    }
    words
}

/// The protocol of the client, with connections and streams where they are set.
fn spoken(variant: &VariantSpec) -> String {
    let settings = &variant.settings;
    let (protocol, multiplexed) = match settings.protocol {
        Protocol::Http1(Persistence::NonPersistent) => ("HTTP/1.0".to_owned(), false),
        Protocol::Http1(Persistence::Persistent) => ("HTTP/1.1".to_owned(), false),
        Protocol::Http1(Persistence::Pipelined(depth)) => (format!("HTTP/1.1 pipelined {depth} deep"), false),
        Protocol::Http2(_) => ("HTTP/2".to_owned(), true),
        Protocol::Http3 => ("HTTP/3".to_owned(), true),
    };
    let secure = match settings.handshake {
        Handshake::Plain => "in the clear",
        Handshake::Full => "TLS with full handshakes",
        Handshake::Resumed => "TLS with sessions resumed",
        Handshake::ZeroRtt => "TLS with 0-RTT",
    };
    if let Client::Browser(engine, _) = variant.client {
        return format!("{protocol} in {}, {secure}", engine.name());
    }
    let connections = counted(settings.connections as u64, "connection");
    let streams = if multiplexed {
        format!(", {} at once", counted(settings.streams as u64, "stream"))
    } else {
        String::new()
    };
    format!("{protocol}, {secure}, {connections} to an origin{streams}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::shipped::{SHIPPED, shipped_link};
    use std::collections::HashSet;
    use std::path::Path;

    fn plan(name: &str, text: &str) -> Plan {
        Plan::from_toml(text, name, &mut |path: &Path| shipped_link(path).map(str::to_owned)).unwrap()
    }

    #[test]
    fn what_differs_in_a_plan_differs_in_its_words() {
        for (name, text) in SHIPPED {
            let plan = plan(name, text);
            let links: HashSet<String> = plan.links.iter().map(link).collect();
            assert_eq!(links.len(), plan.links.len(), "{name}: {links:?}");
            let variants: HashSet<String> = plan.variants.iter().map(variant).collect();
            assert_eq!(variants.len(), plan.variants.len(), "{name}: {variants:?}");
        }
    }

    #[test]
    fn links_and_variants_are_told_in_the_words_of_the_field() {
        let plan = plan(
            "mine",
            r#"
title = "x"
[[page]]
name = "few"
objects = 1
object = "2 KB"
[[link]]
name = "lossy"
like = "geo-isti-1m"
delay = "260 ms"
terrestrial_loss = "1 %"
[[link]]
name = "bod-cra-vbdc"
file = "../links/bod-cra-vbdc.toml"
[[variant]]
name = "old"
protocol = "http/1.0"
connections = 1
[[variant]]
name = "refused"
protocol = "http/2"
push = "12.5 %"
pushes = "refused"
[[variant]]
name = "three"
protocol = "http/3"
streams = 6
[[variant]]
name = "browser"
client = "chromium"
protocol = "http/3"
[[variant]]
name = "farhop"
through = "farhop-identity"
carrier = "tcp"
tcp_connections = 2
carrier_window = 3
tcp_congestion = "reno"
[[variant]]
name = "pep"
through = "farhop-split"
pep = "gateway"
"#,
        );
        let links: Vec<String> = plan.links.iter().map(link).collect();
        assert_eq!(links, LINKS);
        let variants: Vec<String> = plan.variants.iter().map(variant).collect();
        assert_eq!(variants, VARIANTS);
    }

    const LINKS: [&str; 2] = [
        "1 Mbit/s down, 1 Mbit/s up, 520 ms round trip, 1 % lost on the ground",
        "8 Mbit/s down, 512 kbit/s up, 600 ms round trip, on demand (CRA 64 kbit/s, VBDC; superframes of 26.5 ms) up",
    ];
    const VARIANTS: [&str; 6] = [
        "direct: HTTP/1.0, in the clear, 1 connection to an origin",
        "direct: HTTP/2, TLS with full handshakes, 1 connection to an origin, 100 streams at once, a server of the lab's own, 12.5 % pushed, pushes refused",
        "direct: HTTP/3, TLS with full handshakes, 1 connection to an origin, 6 streams at once",
        "direct: HTTP/3 in Chromium, TLS with full handshakes",
        "through farhop-identity with carrier = \"tcp\", tcp_connections = 2, tcp_congestion = \"reno\": HTTP/1.1, in the clear, 6 connections to an origin, carrier's initial window 3 segments",
        "through farhop-split at the gateway alone: HTTP/1.1, in the clear, 6 connections to an origin",
    ];
}
