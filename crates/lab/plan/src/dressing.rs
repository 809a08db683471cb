//! What of the testbed is different for one variant: initial windows, congestion controls, a tunnel past everything. Put on
//! before its load and taken off after it.

use farhop_testbed::{Error, Place, Testbed};

use crate::plan::Dressing;

/// The ends of the tunnel, in a network that nothing else of the testbed uses, and their link-layer addresses: with these
/// known, no question for an address crosses the link.
const CLIENT: (&str, &str) = ("10.79.0.1", "02:00:00:79:00:01");
const ORIGINS: (&str, &str) = ("10.79.0.2", "02:00:00:79:00:02");
const INSIDE: &str = "10.79.0.0/24";
/// RFC 7348 §8.1: the port of VXLAN.
const PORT: u16 = 4789;

/// Why it cannot be put on.
pub(crate) enum Refused {
    /// This machine lacks something: no reason to end the others' runs.
    Lacks(String),
    /// The testbed is broken.
    Broken(Error),
}

/// The same with what this machine calls the congestion controls, and what a reader must be told of these.
///
/// # Errors
/// It has none of that name, nor can one be made; in words.
pub(crate) fn fitted(testbed: &Testbed, dressing: &Dressing) -> Result<(Dressing, Vec<String>), String> {
    let mut notes = Vec::new();
    let mut name = |wanted: &Option<String>| -> Result<Option<String>, String> {
        let Some(algorithm) = wanted else { return Ok(None) };
        let name = testbed.congestion_control(algorithm).map_err(|error| error.to_string())?;
        if name != *algorithm {
            let note = "this kernel has none, so it is the lab's own in BPF, from the equations of its paper";
            notes.push(format!("the congestion control {algorithm}: {note}"));
        }
        Ok(Some(name))
    };
    let fitted = Dressing {
        server_congestion: name(&dressing.server_congestion)?,
        carrier_congestion: name(&dressing.carrier_congestion)?,
        ..dressing.clone()
    };
    Ok((fitted, notes))
}

/// Puts it on.
///
/// # Errors
/// The kernel has no tunnels, or the testbed is broken.
pub(crate) fn put_on(testbed: &Testbed, dressing: &Dressing) -> Result<(), Refused> {
    let lines = routes(testbed, dressing);
    change(testbed, &lines).map_err(Refused::Broken)?;
    if dressing.vpn {
        let [client, origins] = tunnel(testbed, dressing);
        let made = testbed
            .namespace(Place::Client)
            .ip(&client)
            .and_then(|()| testbed.namespace(Place::Origins).ip(&origins));
        made.map_err(|error| Refused::Lacks(format!("no tunnel can be made: {error}")))?;
    }
    Ok(())
}

/// Takes it off.
///
/// # Errors
/// The testbed is broken.
pub(crate) fn take_off(testbed: &Testbed, dressing: &Dressing) -> Result<(), Error> {
    if dressing.vpn {
        for place in [Place::Client, Place::Origins] {
            // One that was never made is gone, too.
            let _ = testbed.namespace(place).ip(&["link del vpn0"]);
        }
    }
    if *dressing == Dressing::default() {
        Ok(())
    } else {
        change(testbed, &routes(testbed, &Dressing::default()))
    }
}

fn change(testbed: &Testbed, lines: &[(Place, String)]) -> Result<(), Error> {
    lines.iter().try_for_each(|(place, line)| Ok(testbed.namespace(*place).ip(&[line])?))
}

/// Routes carry what connections over them begin with (ip-route(8): `initcwnd`, `congctl`).
fn routes(testbed: &Testbed, dressing: &Dressing) -> Vec<(Place, String)> {
    let at = &testbed.addresses;
    let origins = format!("route change default via {}{}", at.ground, servers_begin(dressing));
    let ground = format!(
        "route replace {} dev sat0 src {}{}",
        at.remote_satellite,
        at.ground_satellite,
        window(dressing.carrier_window)
    );
    vec![(Place::Origins, origins), (Place::Ground, ground)]
}

/// What a route says of connections that servers answer over it.
fn servers_begin(dressing: &Dressing) -> String {
    let congestion = dressing.server_congestion.as_ref().map(|name| format!(" congctl {name}"));
    window(dressing.initial_window) + &congestion.unwrap_or_default()
}

fn window(segments: Option<u32>) -> String {
    segments.map_or_else(String::new, |it| format!(" initcwnd {it}"))
}

/// A VXLAN tunnel from the client to the origins: what crosses the link is UDP between these two, whatever is inside.
///
/// The origins answer the client inside it over the route to its network: that one says what connections begin with.
fn tunnel(testbed: &Testbed, dressing: &Dressing) -> [Vec<String>; 2] {
    let at = &testbed.addresses;
    let end = |own: (&str, &str),
               other: (&str, &str),
               here: std::net::Ipv4Addr,
               there: std::net::Ipv4Addr,
               begin: &str| {
        vec![
            format!(
                "link add vpn0 address {} mtu 1450 type vxlan id 79 local {here} remote {there} dstport {PORT} srcport {PORT} {} nolearning",
                own.1,
                PORT + 1
            ),
            // Not the kernel's own route to the network: that one says nothing of connections.
            format!("addr add {}/24 dev vpn0 noprefixroute", own.0),
            "link set vpn0 up".to_owned(),
            format!("route add {INSIDE} dev vpn0 src {}{begin}", own.0),
            format!("neigh replace {} lladdr {} dev vpn0 nud permanent", other.0, other.1),
        ]
    };
    let (range, length) = at.origin_range;
    let mut client = end(CLIENT, ORIGINS, at.client, at.origins, "");
    for inside in [format!("{range}/{length}"), at.dns.to_string()] {
        client.push(format!("route add {inside} via {} dev vpn0", ORIGINS.0));
    }
    [client, end(ORIGINS, CLIENT, at.origins, at.client, &servers_begin(dressing))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_orbit::Profile;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    /// What the origins' kernel knows of the route back to whoever has connected to `origin` from the client's machine.
    fn way_back(testbed: &Testbed, origin: Ipv4Addr) -> String {
        let listen = || TcpListener::bind((origin, 8_080)).unwrap();
        let listener = testbed.namespace(Place::Origins).run(listen).unwrap();
        let near = testbed.namespace(Place::Client).run(|| TcpStream::connect((origin, 8_080)).unwrap());
        let (far, peer) = listener.accept().unwrap();
        drop((near, far));
        let line = format!("route get {}", peer.ip());
        let shown = || std::process::Command::new("ip").args(line.split(' ')).output().unwrap();
        let shown = testbed.namespace(Place::Origins).run(shown).unwrap();
        String::from_utf8(shown.stdout).unwrap()
    }

    #[test]
    fn servers_begin_with_what_the_variant_says_within_the_tunnel_and_without() {
        if let Err(reason) = farhop_testbed::require_privileges() {
            println!("skipped: {reason}");
            return;
        }
        let testbed = Testbed::up(&Profile::named("none").unwrap(), 1).unwrap();
        let origin = testbed.addresses.origin(3);
        for vpn in [false, true] {
            let dressing = Dressing {
                initial_window: Some(3),
                server_congestion: Some("reno".into()),
                vpn,
                ..Dressing::default()
            };
            match put_on(&testbed, &dressing) {
                Ok(()) => {}
                Err(Refused::Lacks(reason)) => return println!("skipped: {reason}"),
                Err(Refused::Broken(error)) => panic!("{error}"),
            }
            let route = way_back(&testbed, origin);
            assert_eq!(route.contains("vpn0"), vpn, "{route}");
            assert!(route.contains("initcwnd 3") && route.contains("congctl reno"), "{route}");
            take_off(&testbed, &dressing).unwrap();
            let route = way_back(&testbed, origin);
            assert!(!route.contains("initcwnd") && !route.contains("vpn0"), "{route}");
        }
    }
}
