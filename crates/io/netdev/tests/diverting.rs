//! Connections diverted in the real kernel, by a helper process of its own. Needs root; without it each test says so and
//! passes.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use farhop_netdev::{Catch, Divert, Janitor, Namespace, Privileged, require_privileges, serve_privileged};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const MARK: u32 = 4711;
/// The server, and another address of its.
const SERVER: [&str; 2] = ["10.78.2.2", "fd78:2::2"];
const SPARED: [&str; 2] = ["10.78.2.3", "fd78:2::3"];
const PORT: u16 = 7000;

/// A client and a server with a router between them, on which connections are diverted.
struct Scene {
    client: Namespace,
    router: Namespace,
    server: Namespace,
    _janitor: Arc<Janitor>,
}

impl Scene {
    /// `None` where this process may not make it; says why.
    fn new() -> Option<Scene> {
        if let Err(reason) = require_privileges("this test") {
            println!("skipped: {reason}");
            return None;
        }
        let janitor = Janitor::start().unwrap();
        let of = |role: &str| {
            let namespace = Namespace::create(&janitor, role).unwrap();
            for scope in ["all", "default"] {
                namespace.sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "0").unwrap();
            }
            namespace
        };
        let (client, router, server) = (of("client"), of("router"), of("server"));
        for (end, device, net) in [(&client, "lan0", 1), (&server, "wan0", 2)] {
            end.ip(&[format!("link add {device} type veth peer name {device} netns {}", router.name())])
                .unwrap();
            for (namespace, host) in [(end, 2), (&router, 1)] {
                namespace
                    .ip(&[
                        format!("addr add 10.78.{net}.{host}/24 dev {device}"),
                        format!("addr add fd78:{net}::{host}/64 dev {device} nodad"),
                        format!("link set {device} up"),
                    ])
                    .unwrap();
            }
            end.ip(&[
                format!("route add default via 10.78.{net}.1"),
                format!("route add ::/0 via fd78:{net}::1"),
            ])
            .unwrap();
        }
        server.ip(&["addr add 10.78.2.3/24 dev wan0", "addr add fd78:2::3/64 dev wan0 nodad"]).unwrap();
        router.sysctl("net/ipv4/ip_forward", "1").unwrap();
        router.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
        Some(Scene { client, router, server, _janitor: janitor })
    }

    /// A helper on the router.
    fn helper(&self) -> Privileged {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--ignored", "--exact", "helper", "--nocapture"]).stderr(Stdio::inherit());
        self.router.prepare(&mut program);
        // In a thread of its own, since it gives up rights.
        self.router.run(|| Privileged::start(program, "this test").unwrap()).unwrap()
    }

    /// Listeners of both families, and what is to be caught for them.
    fn caught(&self, helper: &Privileged) -> ([TcpListener; 2], Divert) {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let listeners = loopback.map(|address| helper.listen(address).unwrap());
        for listener in &listeners {
            listener.set_nonblocking(false).unwrap();
        }
        let catch = Catch {
            to: listeners.iter().map(|listener| listener.local_addr().unwrap()).collect(),
            interfaces: vec!["lan0".into()],
            clients: vec!["0.0.0.0/0".parse().unwrap(), "fd78:1::/64".parse().unwrap()],
            except: SPARED
                .iter()
                .map(|it| format!("{it}/{}", if it.contains(':') { 128 } else { 32 }).parse().unwrap())
                .collect(),
            ports: vec![(1, 65535)],
            datagrams_to: Vec::new(),
            datagram_ports: Vec::new(),
        };
        (listeners, Divert { mark: MARK, catch: Some(catch) })
    }

    /// A server that answers at `address` until the listener goes.
    fn listener(&self, address: &str) -> TcpListener {
        let address = SocketAddr::new(address.parse().unwrap(), PORT);
        self.server.run(|| TcpListener::bind(address).unwrap()).unwrap()
    }

    fn ruleset(&self) -> String {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "nft list ruleset; ip rule; ip -6 rule; ip route show table 4711; ip -6 route show table 4711",
        ]);
        self.router.prepare(&mut command);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn is_clean(&self) -> bool {
        let ruleset = self.ruleset();
        !ruleset.contains("farhop") && !ruleset.contains("4711") && !ruleset.contains("local default")
    }
}

fn connect(from: &Namespace, to: &str) -> TcpStream {
    let address = SocketAddr::new(to.parse().unwrap(), PORT);
    let stream = from.run(|| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Whether a byte crosses from one to the other.
fn joined(mut near: &TcpStream, mut far: &TcpStream) -> bool {
    near.write_all(b"x").unwrap();
    let mut byte = [0];
    far.read_exact(&mut byte).is_ok() && byte == *b"x"
}

/// Not a test of its own: the helper that the others start.
#[test]
#[ignore = "run by the other tests"]
fn helper() {
    serve_privileged().unwrap();
    std::process::exit(0);
}

#[test]
fn what_is_forwarded_is_caught_with_its_destination_and_all_else_is_left_alone() {
    let Some(scene) = Scene::new() else { return };
    let helper = scene.helper();
    let ([four, six], divert) = scene.caught(&helper);
    helper.divert(&divert).unwrap();
    for (listener, to) in [(&four, SERVER[0]), (&six, SERVER[1])] {
        // Nobody listens there: it is the router that answers.
        let client = connect(&scene.client, to);
        let (caught, from) = listener.accept().unwrap();
        assert_eq!(caught.local_addr().unwrap(), SocketAddr::new(to.parse().unwrap(), PORT));
        assert_eq!(from, client.local_addr().unwrap());
        assert!(joined(&client, &caught) && joined(&caught, &client));
    }
    // An exception, and the router's own.
    for (from, to) in [(&scene.client, SPARED[0]), (&scene.client, SPARED[1]), (&scene.router, SERVER[0])] {
        let server = scene.listener(to);
        let client = connect(from, to);
        assert!(joined(&client, &server.accept().unwrap().0), "{to}");
    }
}

#[test]
fn a_client_that_was_answered_by_a_cookie_is_caught_all_the_same() {
    let Some(scene) = Scene::new() else { return };
    let helper = scene.helper();
    let ([four, six], divert) = scene.caught(&helper);
    helper.divert(&divert).unwrap();
    // As under a flood: no connection is remembered before its client has answered.
    scene.router.sysctl("net/ipv4/tcp_syncookies", "2").unwrap();
    for (listener, to) in [(&four, SERVER[0]), (&six, SERVER[1])] {
        let client = connect(&scene.client, to);
        // What the client says tells that it stands at both sides.
        let (caught, from) = listener.accept().unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert!(joined(&client, &caught) && joined(&caught, &client), "{to}");
    }
    let seen = scene.router.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap());
    let seen = seen.unwrap();
    let rows: Vec<Vec<&str>> = seen.lines().take(2).map(|line| line.split(' ').collect()).collect();
    let place = rows[0].iter().position(|name| *name == "SyncookiesRecv").unwrap();
    assert_eq!(rows[1][place], "2", "cookies that came back");
}

#[test]
fn what_was_caught_goes_on_when_no_more_is_and_nothing_is_left_at_the_end() {
    let Some(scene) = Scene::new() else { return };
    let helper = scene.helper();
    let ([four, _six], divert) = scene.caught(&helper);
    helper.divert(&divert).unwrap();
    let client = connect(&scene.client, SERVER[0]);
    let (caught, _) = four.accept().unwrap();
    helper.divert(&Divert { mark: MARK, catch: None }).unwrap();
    let server = scene.listener(SERVER[0]);
    let direct = connect(&scene.client, SERVER[0]);
    assert!(joined(&direct, &server.accept().unwrap().0), "a new one goes its own way");
    assert!(joined(&client, &caught) && joined(&caught, &client), "the old one stays");
    drop(helper);
    assert!(scene.is_clean(), "{}", scene.ruleset());
}

#[test]
fn the_end_of_a_helper_is_told_unless_its_owner_wants_it_and_what_is_asked_of_it_then_fails() {
    let Some(scene) = Scene::new() else { return };
    let watched = |helper: &Privileged| {
        let (tell, told) = std::sync::mpsc::channel();
        helper.watch(move |how| tell.send(how.to_owned()).unwrap()).unwrap();
        told
    };
    let helper = scene.helper();
    let told = watched(&helper);
    helper.speak("10.78.1.9".parse().unwrap()).unwrap();
    assert!(Command::new("kill").args(["-9", &helper.id().to_string()]).status().unwrap().success());
    assert_eq!(told.recv().unwrap(), "ended by SIGKILL");
    let refused = helper.speak("10.78.1.9".parse().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("helper"), "{refused}");

    let helper = scene.helper();
    let told = watched(&helper);
    drop(helper);
    assert!(told.recv().is_err(), "what its owner has wanted is no news");
}

#[test]
fn rules_of_a_helper_that_was_killed_are_replaced_and_those_of_one_that_lives_are_not() {
    let Some(scene) = Scene::new() else { return };
    let killed = scene.helper();
    let (_, divert) = scene.caught(&killed);
    killed.divert(&divert).unwrap();
    let pid = killed.id();
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    drop(killed);
    assert!(scene.ruleset().contains(&format!("farhop_{pid}_")), "nobody could remove them");

    let helper = scene.helper();
    let ([four, _six], divert) = scene.caught(&helper);
    helper.divert(&divert).unwrap();
    let ruleset = scene.ruleset();
    assert!(!ruleset.contains(&format!("farhop_{pid}_")), "{ruleset}");
    assert_eq!(ruleset.matches("fwmark").count(), 2, "one rule of each family\n{ruleset}");
    let client = connect(&scene.client, SERVER[0]);
    assert!(joined(&client, &four.accept().unwrap().0));

    let refused = scene.helper().divert(&divert).unwrap_err().to_string();
    assert!(refused.contains(&format!("process {} diverts", helper.id())), "{refused}");
    assert!(joined(&connect(&scene.client, SERVER[0]), &four.accept().unwrap().0), "the first one's stand");
}
