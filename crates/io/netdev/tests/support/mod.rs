//! A sender whose device is shaped, and what it is shaped to.

#![allow(dead_code, clippy::unwrap_used)] // each test takes what it needs of it; helpers of tests count as tests

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use farhop_netdev::{
    Hold, Janitor, Leaf, Listed, MarkRule, Metered, Namespace, Shaping, require_privileges, shaped, unshape,
};

pub(crate) const DEVICE: &str = "sat0";
pub(crate) const BULK: u16 = 9000;
pub(crate) const VOICE: u16 = 9001;
pub(crate) const MEDIA: u16 = 9002;
pub(crate) const OTHER: u16 = 9003;

/// A sender whose device is shaped, and a receiver behind it.
pub(crate) struct Scene {
    pub(crate) sender: Namespace,
    pub(crate) receiver: Namespace,
    _janitor: Arc<Janitor>,
}

impl Scene {
    /// `None` where this process may not make it; says why.
    pub(crate) fn new() -> Option<Scene> {
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
        let (sender, receiver) = (of("sender"), of("receiver"));
        sender
            .ip(&[format!("link add {DEVICE} type veth peer name {DEVICE} netns {}", receiver.name())])
            .unwrap();
        for (namespace, host) in [(&sender, 1), (&receiver, 2)] {
            namespace
                .ip(&[
                    format!("addr add 10.79.0.{host}/24 dev {DEVICE}"),
                    format!("addr add fd79::{host}/64 dev {DEVICE} nodad"),
                    format!("link set {DEVICE} up"),
                ])
                .unwrap();
        }
        Some(Scene { sender, receiver, _janitor: janitor })
    }

    pub(crate) fn tool(&self, namespace: &Namespace, line: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        namespace.prepare(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn apply(&self, shaping: &Shaping) -> Result<farhop_netdev::Applied, String> {
        let apply = || Hold::take(&shaping.interface).and_then(|hold| shaping.apply(&hold));
        self.sender.run(apply).unwrap().map_err(|error| error.to_string())
    }

    /// In place of those that `shaping` names.
    pub(crate) fn name_media(&self, shaping: &Shaping, media: &[Metered]) -> Listed {
        self.sender.run(|| shaping.set_media(&Hold::take(DEVICE).unwrap(), media).unwrap()).unwrap()
    }

    /// Whether there was something.
    pub(crate) fn take_away(&self) -> bool {
        self.sender.run(|| unshape(&Hold::take(DEVICE).unwrap()).unwrap()).unwrap()
    }

    /// All that traffic control and nftables have at the sender.
    pub(crate) fn rules(&self) -> String {
        self.tool(&self.sender, "tc qdisc show; tc class show dev sat0; nft list ruleset")
    }

    /// A socket at the receiver.
    pub(crate) fn listen(&self, address: &str, port: u16) -> UdpSocket {
        let address = SocketAddr::new(address.parse().unwrap(), port);
        self.receiver.run(|| UdpSocket::bind(address).unwrap()).unwrap()
    }

    /// A socket at the sender.
    pub(crate) fn speak(&self, address: &str) -> UdpSocket {
        let address = SocketAddr::new(address.parse().unwrap(), 0);
        self.sender.run(|| UdpSocket::bind(address).unwrap()).unwrap()
    }

    pub(crate) fn packets(&self, minor: u16) -> u64 {
        let shaped = self.sender.run(|| shaped(DEVICE).unwrap().unwrap()).unwrap();
        shaped.leaves.iter().find(|leaf| leaf.minor == minor).unwrap().packets
    }
}

pub(crate) fn leaf(minor: u16, priority: u8, rate: u64, codepoint: u8) -> Leaf {
    Leaf {
        minor,
        within: None,
        priority,
        rate,
        ceiling: if minor == 0x10 { rate } else { 1_000_000 },
        burst: 250,
        quantum: 1514,
        room: 400_000,
        fair: minor != 0x10,
        codepoint,
        higher: (minor == 0x50).then_some([12, 14]),
    }
}

/// A call with these media, of which so many packets go first at once, and then one in a second.
pub(crate) fn call(media: &[&str], at_once: u64) -> Metered {
    let media = media.iter().map(|it| it.parse().unwrap()).collect();
    Metered { media, packets: 1, packets_at_once: at_once, bytes: 100_000, bytes_at_once: 1 }
}

/// 1 Mbit/s: EF for voice and media, AF1 for bulk, DE for the rest.
pub(crate) fn shaping() -> Shaping {
    let rule = |port: u16, minor| MarkRule {
        protocol: Some("udp"),
        ports: vec![(port, port)],
        minor,
        ..MarkRule::default()
    };
    Shaping {
        interface: DEVICE.into(),
        rate: 1_000_000,
        burst: 250,
        groups: Vec::new(),
        leaves: vec![leaf(0x10, 0, 300_000, 46), leaf(0x50, 4, 200_000, 10), leaf(0x60, 5, 100_000, 0)],
        round_trip: Duration::from_millis(650),
        rules: vec![rule(VOICE, 0x10), rule(BULK, 0x50)],
        media_leaf: 0x10,
        media: Vec::new(),
        otherwise: 0x60,
        neighbours: 0x60,
        echo: None,
        splits: true,
        longest: None,
    }
}
