//! Two ends in namespaces of their own, with a client behind the remote that knows nothing of it: the remote is its router.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use farhop_netdev::{Janitor, Namespace, require_privileges};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::{Program, ask, farhop, keygen, until};

/// Servers on the internet, as ground reaches them.
pub(crate) const SERVER: [&str; 2] = ["198.51.100.7", "2001:db8:100::7"];
/// Where no host is, and where no large packet gets ([`Routed::troubled`]).
pub(crate) const NOBODY: [&str; 2] = ["198.51.100.8", "2001:db8:100::8"];
pub(crate) const NARROW: [&str; 2] = ["198.51.100.9", "2001:db8:100::9"];
/// Where the remote listens for browsers.
pub(crate) const PROXY: &str = "10.79.1.1:3128";

/// Addresses of clients.
const CLIENTS: &str = "client_addresses = ['10.79.1.0/24', 'fd79:1::/64']\n";

/// The client, its router, ground at the internet's edge, and the servers behind it.
pub(crate) struct Routed {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) internet: Namespace,
    servers: Namespace,
    folder: tempfile::TempDir,
    // Ends first, then what they live in.
    _janitor: Arc<Janitor>,
}

impl Routed {
    /// `None` where this process may not make it; says why.
    pub(crate) fn new() -> Option<Routed> {
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
        let (client, router, mut internet, servers) =
            (of("user"), of("router"), of("internet"), of("servers"));
        let wires = [
            (&client, "lan0", 1, &router),
            (&internet, "sat0", 2, &router),
            (&servers, "wan0", 3, &internet),
        ];
        for (end, device, net, near) in wires {
            end.ip(&[format!("link add {device} type veth peer name {device} netns {}", near.name())])
                .unwrap();
            for (namespace, host) in [(end, 2), (near, 1)] {
                namespace
                    .ip(&[
                        format!("addr add 10.79.{net}.{host}/24 dev {device}"),
                        format!("addr add fd79:{net}::{host}/64 dev {device} nodad"),
                        format!("link set {device} up"),
                    ])
                    .unwrap();
            }
            end.ip(&[
                format!("route add default via 10.79.{net}.1"),
                format!("route add ::/0 via fd79:{net}::1"),
            ])
            .unwrap();
        }
        router.ip(&["route add default via 10.79.2.2", "route add ::/0 via fd79:2::2"]).unwrap();
        for between in [&router, &internet] {
            between.sysctl("net/ipv4/ip_forward", "1").unwrap();
            between.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
        }
        servers.ip(&SERVER.map(|address| format!("addr add {address} dev lo"))).unwrap();
        let ways = ["10.79.3.2", "fd79:3::2"];
        internet
            .ip(&[0, 1].map(|family| format!("route add {} via {}", SERVER[family], ways[family])))
            .unwrap();
        // It has no name server, which is told at once.
        internet.resolver(SERVER[0].parse().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (ground_key, remote_key) =
            (keygen(&folder.path().join("ground.key")), keygen(&folder.path().join("remote.key")));
        let ground = format!(
            "listen = '10.79.2.2:4433'\nallow = ['198.51.100.0/24', '2001:db8:100::/48']\nlink.profile = 'none'\n\
             [[remote]]\nname = 'ship'\nkeys = ['{remote_key}']\n"
        );
        let remote = format!(
            "listen = ['{PROXY}']\nlink.profile = 'none'\n\
             [[ground]]\nname = 'home'\naddress = '10.79.2.2:4433'\nkeys = ['{ground_key}']\n"
        );
        std::fs::write(folder.path().join("ground.toml"), ground).unwrap();
        std::fs::write(folder.path().join("remote.toml"), remote).unwrap();
        Some(Routed { client, router, internet, servers, folder, _janitor: janitor })
    }

    /// Starts ground on the internet.
    pub(crate) fn ground(&self) -> Program {
        self.end(&self.internet, "ground", &[])
    }

    /// Lets ground connect in the names of clients from its next start on.
    pub(crate) fn let_clients_keep_addresses(&self) {
        let file = self.folder.path().join("ground.toml");
        // The table of the remote is its last.
        let settings = std::fs::read_to_string(&file).unwrap() + CLIENTS;
        std::fs::write(file, settings).unwrap();
    }

    /// Starts the remote on the router and waits until it catches connections: it, and not one that has just ended.
    pub(crate) async fn remote(&self, options: &[&str]) -> Program {
        let remote = self.catching(&[&["--transparent"], options].concat()).await;
        assert!(self.rules().contains("tproxy"));
        remote
    }

    /// The same by a TUN device.
    pub(crate) async fn remote_by_tun(&self, options: &[&str]) -> Program {
        let by_tun = ["--tun", "--set", "transparent.interfaces=lan0"];
        let remote = self.catching(&[&by_tun, options].concat()).await;
        assert!(!self.rules().contains("tproxy"));
        remote
    }

    async fn catching(&self, options: &[&str]) -> Program {
        let catches = |said: &str| said.matches("connections that pass are caught").count();
        let before = std::fs::read_to_string(self.folder.path().join("remote.stderr"));
        let before = before.map_or(0, |said| catches(&said));
        let mut remote = self.end(&self.router, "remote", options);
        until("connections are caught", async || {
            remote.assert_runs();
            (catches(&remote.said()) > before).then_some(())
        })
        .await;
        remote
    }

    /// Has the servers' network say of these places: that no host is there, and that no packet of more than 1300 bytes gets there.
    pub(crate) fn troubled(&self) {
        let ways = ["10.79.3.2", "fd79:3::2"];
        for (nobody, narrow) in NOBODY.iter().zip(NARROW) {
            let way = ways[usize::from(nobody.contains(':'))];
            self.internet.ip(&[nobody, &narrow].map(|to| format!("route add {to} via {way}"))).unwrap();
            self.servers.ip(&[format!("route add unreachable {nobody}")]).unwrap();
        }
        self.servers.sysctl("net/ipv4/ip_forward", "1").unwrap();
        self.servers.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
        self.servers
            .ip(&["link add far0 type veth peer name far1", "link set far1 up", "link set far0 mtu 1300 up"])
            .unwrap();
        self.servers.ip(&NARROW.map(|to| format!("route add {to} dev far0"))).unwrap();
    }

    /// Waits until the ends have found each other.
    pub(crate) async fn joined(&self) {
        let control = self.folder.path().join("remote.sock");
        let status = async || ask(&control, "status").await.filter(|status| !status["carrier"].is_null());
        until("the carrier is up", status).await;
    }

    /// What an end says to a command without arguments.
    pub(crate) async fn ask(&self, end: &str, command: &str) -> Option<serde_json::Value> {
        ask(&self.folder.path().join(format!("{end}.sock")), command).await
    }

    /// The settings of an end.
    pub(crate) fn settings_of(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("{end}.toml"))
    }

    fn end(&self, place: &Namespace, name: &str, options: &[&str]) -> Program {
        let folder: &Path = self.folder.path();
        let mut command = farhop();
        command.arg(name).arg("--config").arg(folder.join(format!("{name}.toml"))).args(options);
        place.prepare(&mut command);
        Program::start(command, folder, name)
    }

    /// All rules of the router that catch and deliver.
    pub(crate) fn rules(&self) -> String {
        rules(&self.router, 51900)
    }

    /// All rules of ground that deliver.
    pub(crate) fn ground_rules(&self) -> String {
        rules(&self.internet, 51901)
    }

    /// A server at one of the [`SERVER`] addresses, also where one has just ended: a program that is being started
    /// beside holds the older listener for a moment, from its fork to its exec.
    pub(crate) async fn listen(&self, address: &str, port: u16) -> TcpListener {
        let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
        let bind = async || match self.servers.run(|| std::net::TcpListener::bind(address)).unwrap() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            bound => Some(bound.unwrap()),
        };
        let listener = until("the address is free", bind).await;
        listener.set_nonblocking(true).unwrap();
        TcpListener::from_std(listener).unwrap()
    }

    /// A socket for datagrams at one of the [`SERVER`] addresses.
    pub(crate) fn hear(&self, address: &str, port: u16) -> UdpSocket {
        datagrams(&self.servers, SocketAddr::new(address.parse().unwrap(), port))
    }

    /// A socket for datagrams on the client's machine that speaks with this place alone.
    pub(crate) fn speak_with(&self, address: &str, port: u16) -> UdpSocket {
        let any: IpAddr =
            if address.contains(':') { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let socket = datagrams(&self.client, SocketAddr::new(any, 0));
        let to = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
        SockRef::from(&socket).connect(&to.into()).unwrap();
        socket
    }

    /// Connects from the client's machine.
    pub(crate) fn connect(&self, address: &str, port: u16) -> io::Result<TcpStream> {
        let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
        let stream =
            self.client.run(|| std::net::TcpStream::connect_timeout(&address, super::PATIENCE)).unwrap()?;
        stream.set_nonblocking(true)?;
        TcpStream::from_std(stream)
    }
}

fn datagrams(place: &Namespace, address: SocketAddr) -> UdpSocket {
    let socket = place.run(|| std::net::UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_nonblocking(true).unwrap();
    UdpSocket::from_std(socket).unwrap()
}

fn rules(place: &Namespace, table: u32) -> String {
    let mut command = Command::new("sh");
    let text =
        format!("nft list ruleset; for f in -4 -6; do ip $f rule; ip $f route show table {table}; done");
    command.args(["-c", &text]);
    place.prepare(&mut command);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
