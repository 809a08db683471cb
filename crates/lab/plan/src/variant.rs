//! From the table of a variant to what the loader does and what stands in between.

use std::time::Duration;

use clap::ValueEnum as _;
use farhop_compare::{Peer, Stand, Variant};
use farhop_congestion::Choice;
use farhop_loader::{Handshake, Persistence, Protocol, Push, Settings};
use farhop_units::Bytes;
use farhop_workload::browser::Engine;

use crate::form;
use crate::plan::{Client, Dressing, SPLIT, Through, VariantSpec};
use crate::read::{Wrong, quantity, word, wrong};

/// As what Farhop is started where it is a PEP alone: HTTPS passes untouched.
const SPLIT_AS: Variant = Variant::FarhopTunnel;

/// The variant that a table says.
pub(crate) fn variant(form: &form::Variant, patience: Duration) -> Result<VariantSpec, Wrong> {
    let at = form.name.span();
    let defaults = Settings::default();
    let clients =
        [("loader", None), ("chromium", Some(Engine::Chromium)), ("firefox", Some(Engine::Firefox))];
    if let Some(engine) = form.client.as_ref().map_or(Ok(None), |text| word(text, &clients))? {
        return browser(form, engine, patience);
    }
    let protocols = [
        ("http/1.0", Protocol::Http1(Persistence::NonPersistent)),
        ("http/1.1", Protocol::Http1(Persistence::Persistent)),
        ("http/2", Protocol::Http2(Push::Off)),
        ("http/3", Protocol::Http3),
    ];
    let mut protocol = form.protocol.as_ref().map_or(Ok(defaults.protocol), |text| word(text, &protocols))?;
    if let Some(depth) = form.pipeline {
        if protocol != Protocol::Http1(Persistence::Persistent) || depth == 0 {
            return Err(wrong(
                at,
                "'pipeline' is how many requests http/1.1 has ahead of their answers, 1 or more",
            ));
        }
        protocol = Protocol::Http1(Persistence::Pipelined(depth));
    }
    if form.push.is_some() || form.pushes.is_some() {
        if protocol != Protocol::Http2(Push::Off) {
            return Err(wrong(at, "'push' and 'pushes' are http/2's"));
        }
        let pushes = [("accepted", Push::Accepted), ("refused", Push::Refused), ("off", Push::Off)];
        let pushes = form.pushes.as_ref().map_or(Ok(Push::Accepted), |text| word(text, &pushes))?;
        protocol = Protocol::Http2(pushes);
    }
    let handshakes = [
        ("plain", Handshake::Plain),
        ("full", Handshake::Full),
        ("resumed", Handshake::Resumed),
        ("0-rtt", Handshake::ZeroRtt),
    ];
    let is_quic = protocol == Protocol::Http3;
    let secure_by_itself = is_quic || matches!(protocol, Protocol::Http2(_));
    let handshake = match &form.handshake {
        Some(text) => word(text, &handshakes)?,
        None if secure_by_itself => Handshake::Full,
        None => Handshake::Plain,
    };
    if secure_by_itself && handshake == Handshake::Plain {
        return Err(wrong(
            at,
            "origins speak http/2 and http/3 over TLS alone: handshake = 'full' or 'resumed'",
        ));
    }
    if !secure_by_itself && form.streams.is_some() {
        return Err(wrong(at, "'streams' are those of http/2 and http/3"));
    }
    let of_tcp = [form.retry.is_some(), form.receive_buffer.is_some(), handshake != Handshake::Full];
    if is_quic && of_tcp.contains(&true) {
        let reason = "the loader's http/3 has full handshakes, and neither 'retry' nor 'receive_buffer'";
        return Err(wrong(at, reason));
    }
    let connections = form.connections.unwrap_or(if secure_by_itself { 1 } else { defaults.connections });
    if connections == 0 || connections > 256 || form.streams == Some(0) {
        return Err(wrong(at, "'connections' are 1 to 256, 'streams' 1 or more"));
    }
    if secure_by_itself && connections != 1 {
        return Err(wrong(at, "http/2 and http/3 have one connection to each origin"));
    }
    let through = through(form)?;
    if is_quic && (through != Through::Direct || form.own_server == Some(true)) {
        return Err(wrong(
            at,
            "http/3 is asked directly, of Caddy: neither through a proxy nor of the lab's own server",
        ));
    }
    let push = quantity(&form.push, farhop_units::parse_share)?;
    let needs_own = push.is_some() || handshake == Handshake::ZeroRtt;
    if form.own_server == Some(false) && needs_own {
        return Err(wrong(
            at,
            "stock servers neither push nor answer 0-RTT in their first flight: own_server = true",
        ));
    }
    let own = form.own_server.unwrap_or(needs_own);
    if own && through != Through::Direct {
        return Err(wrong(
            at,
            "the lab's own server is asked directly: neither through Farhop nor through a tunnel",
        ));
    }
    let users = form.users.unwrap_or(1);
    if !(1..=2).contains(&users) {
        return Err(wrong(at, "a terminal has one user or two: 'users' is 1 or 2"));
    }
    let fast_open = form.fast_open.unwrap_or(false);
    let splits = matches!(through, Through::Direct | Through::Peer(Peer::Split(_)));
    if fast_open && (is_quic || !splits) {
        return Err(wrong(
            at,
            "'fast_open' is between client and origins, over TCP: neither http/3 nor through a proxy",
        ));
    }
    let buffer = quantity(&form.receive_buffer, str::parse::<Bytes>)?;
    Ok(VariantSpec {
        name: form.name.get_ref().clone(),
        client: Client::Loader,
        dressing: dressing(form, &through)?,
        settings: Settings {
            protocol,
            handshake,
            connections,
            retry: quantity(&form.retry, farhop_units::parse_duration)?,
            receive_buffer: buffer.map(|buffer| usize::try_from(buffer.0).unwrap_or(usize::MAX)),
            fast_open,
            streams: form.streams.unwrap_or(defaults.streams),
            idle: quantity(&form.idle, farhop_units::parse_duration)?,
            patience,
            ..defaults
        },
        own,
        users,
        push,
        through,
        at: form.at,
        line: form.line.clone(),
    })
}

/// A variant in a browser: it alone decides what the loader lets one set.
fn browser(form: &form::Variant, engine: Engine, patience: Duration) -> Result<VariantSpec, Wrong> {
    let at = form.name.span();
    let set = [
        form.connections.is_some(),
        form.pipeline.is_some(),
        form.retry.is_some(),
        form.receive_buffer.is_some(),
        form.fast_open.is_some(),
        form.streams.is_some(),
        form.idle.is_some(),
        form.users.is_some(),
        form.push.is_some() || form.pushes.is_some() || form.own_server.is_some(),
    ];
    if set.contains(&true) {
        return Err(wrong(
            at,
            "a browser lets none of its connections, timers, buffers and pushes be set, and has one user",
        ));
    }
    let handshakes = [("plain", Handshake::Plain), ("full", Handshake::Full)];
    let handshake = form.handshake.as_ref().map(|text| word(text, &handshakes)).transpose()?;
    let protocols = [("http/1.1", 1), ("http/2", 2), ("http/3", 3)];
    let version = form.protocol.as_ref().map_or(Ok(1), |text| word(text, &protocols))?;
    if version == 3 && engine == Engine::Firefox {
        return Err(wrong(
            at,
            "Firefox takes http/3 from no server that only the lab vouches for: 'http/1.1' or 'http/2'",
        ));
    }
    let handshake = handshake.unwrap_or(if version == 1 { Handshake::Plain } else { Handshake::Full });
    let through = through(form)?;
    if let Through::Peer(peer) = through
        && handshake != Handshake::Plain
        && !peer.tunnels()
    {
        let reason =
            format!("to browsers {} is a proxy for plain HTTP alone: handshake = 'plain'", peer.name());
        return Err(wrong(at, reason));
    }
    let variant = match (&through, version, handshake) {
        (Through::Farhop { variant, .. }, 1 | 2, _) => *variant,
        (Through::Direct | Through::Peer(_), 1, Handshake::Plain) => Variant::DirectH1,
        (Through::Direct | Through::Peer(_), 1, _) => Variant::DirectH1s,
        (Through::Direct | Through::Peer(_), 2, Handshake::Full) => Variant::DirectH2,
        (Through::Direct, 3, Handshake::Full) => Variant::DirectH3,
        (Through::Farhop { .. } | Through::Peer(_), ..) if version == 3 => {
            return Err(wrong(at, "no browser speaks http/3 to a proxy: 'http/1.1' or 'http/2'"));
        }
        _ => return Err(wrong(at, "browsers speak http/2 and http/3 over TLS alone: handshake = 'full'")),
    };
    let protocol = match version {
        1 => Protocol::Http1(Persistence::Persistent),
        2 => Protocol::Http2(Push::Off),
        _ => Protocol::Http3,
    };
    Ok(VariantSpec {
        name: form.name.get_ref().clone(),
        client: Client::Browser(engine, variant),
        dressing: dressing(form, &through)?,
        settings: Settings { protocol, handshake, patience, ..Settings::default() },
        own: false,
        users: 1,
        push: None,
        through,
        at: form.at,
        line: form.line.clone(),
    })
}

/// What of the testbed is different for it.
fn dressing(form: &form::Variant, through: &Through) -> Result<Dressing, Wrong> {
    let at = form.name.span();
    let tcp = form.carrier.as_ref().is_some_and(|carrier| carrier.get_ref() == "tcp");
    if !tcp && (form.tcp_congestion.is_some() || form.carrier_window.is_some()) {
        let reason =
            "'tcp_congestion' and 'carrier_window' are those of Farhop's connections: carrier = 'tcp'";
        return Err(wrong(at, reason));
    }
    let vpn = form.vpn.unwrap_or(false);
    if vpn && *through != Through::Direct {
        return Err(wrong(at, "a VPN leaves nothing between client and origins: no 'through' beside 'vpn'"));
    }
    for window in [form.initial_window, form.carrier_window].into_iter().flatten() {
        if !(1..=1_000).contains(&window) {
            return Err(wrong(at, "an initial window is 1 to 1000 segments"));
        }
    }
    let kernels = |text: &form::Text| {
        let name = text.get_ref();
        let plain = !name.is_empty() && name.len() < 16 && name.bytes().all(|byte| byte.is_ascii_lowercase());
        if plain { Ok(name.clone()) } else { Err(wrong(text.span(), "no congestion control is called so")) }
    };
    Ok(Dressing {
        initial_window: form.initial_window,
        server_congestion: form.server_congestion.as_ref().map(kernels).transpose()?,
        carrier_window: form.carrier_window,
        carrier_congestion: form.tcp_congestion.as_ref().map(kernels).transpose()?,
        vpn,
    })
}

fn through(form: &form::Variant) -> Result<Through, Wrong> {
    let name = form.through.as_ref().map_or("direct", |through| through.get_ref().as_str());
    let at = form.through.as_ref().map_or(form.name.span(), |through| through.span());
    let peer = Peer::ALL.into_iter().find(|peer| peer.name() == name);
    let of_farhop = [
        form.carrier.is_some(),
        form.tcp_connections.is_some(),
        form.congestion.is_some(),
        form.tcp_congestion.is_some(),
        form.carrier_window.is_some(),
    ];
    if name == "direct" || peer.is_some() {
        if of_farhop.contains(&true) || form.pep.is_some() {
            return Err(wrong(
                at,
                "'carrier', 'tcp_connections', 'congestion' and 'pep' are Farhop's: say through which",
            ));
        }
        return Ok(peer.map_or(Through::Direct, Through::Peer));
    }
    let known = || Variant::value_variants().iter().filter(|variant| variant.is_farhop());
    let caught = name == SPLIT;
    let named = known().copied().find(|variant| variant.name() == name);
    let Some(variant) = named.or(caught.then_some(SPLIT_AS)) else {
        let peers = [SPLIT].into_iter().chain(Peer::ALL.into_iter().map(Peer::name));
        let known = known().map(|variant| variant.name()).chain(peers).collect::<Vec<_>>().join(", ");
        return Err(wrong(at, format!("'{name}' is none of direct, {known}")));
    };
    let mut remote = String::new();
    let stands = [("both", Stand::Both), ("terminal", Stand::Terminal), ("gateway", Stand::Gateway)];
    let stand = form.pep.as_ref().map_or(Ok(Stand::Both), |text| word(text, &stands))?;
    if !caught && form.pep.is_some() {
        return Err(wrong(at, format!("'pep' says where connections are split: through = '{SPLIT}'")));
    }
    if stand != Stand::Both && of_farhop.contains(&true) {
        return Err(wrong(
            at,
            "a PEP at one end alone has no carrier across the link: nothing of that can be set",
        ));
    }
    if let Some(carrier) = &form.carrier {
        let carrier = word(carrier, &[("auto", "auto"), ("quic", "quic"), ("tcp", "tcp")])?;
        remote.push_str(&format!("carrier = \"{carrier}\"\n"));
    }
    if let Some(connections) = form.tcp_connections {
        if !(1..=8).contains(&connections) {
            return Err(wrong(at, "'tcp_connections' are 1 to 8"));
        }
        remote.push_str(&format!("tcp_connections = {connections}\n"));
    }
    let controllers: Vec<(&str, &str)> =
        std::iter::once("auto").chain(Choice::ALL.map(Choice::name)).map(|name| (name, name)).collect();
    let congestion = form.congestion.as_ref().map(|text| word(text, &controllers)).transpose()?;
    let link = congestion.map(|name| format!("congestion = \"{name}\"\n")).unwrap_or_default();
    Ok(Through::Farhop { variant, link, remote, stand, caught })
}
