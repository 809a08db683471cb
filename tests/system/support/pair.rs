//! `farhop remote` and `farhop ground` as two processes over UDP on loopback, at an address that no other test has.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{Program, Relay, ask, farhop, until};

/// Where the remote calls ground.
const PORT: u16 = 4433;

/// Both ends and what they were started with.
pub(crate) struct Pair {
    pub(crate) ground: Program,
    pub(crate) remote: Program,
    pub(crate) proxy: SocketAddr,
    folder: tempfile::TempDir,
}

/// Which keys the ends are told to accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Each,
    GroundExpectsAnother,
    RemoteExpectsAnother,
}

impl Pair {
    /// Both ends with each other's keys; waits until their carrier is up.
    pub(crate) async fn start() -> Pair {
        Pair::start_with(&[]).await
    }

    /// As [`Pair::start`], with these settings of the remote (`key=value`) over what it needs.
    pub(crate) async fn start_with(sets: &[&str]) -> Pair {
        let mut pair = Pair::with(Trust::Each, sets, PORT, "none");
        pair.await_carrier().await;
        pair
    }

    /// As [`Pair::start_with`], with a way between the ends that can be broken.
    pub(crate) async fn relayed(sets: &[&str]) -> (Pair, Relay) {
        Pair::relayed_as("none", sets).await
    }

    /// As [`Pair::relayed`], both ends being told that the link is this one.
    pub(crate) async fn relayed_as(link: &str, sets: &[&str]) -> (Pair, Relay) {
        let mut pair = Pair::with(Trust::Each, sets, PORT + 1, link);
        let at = |port| SocketAddr::new(pair.proxy.ip(), port);
        let relay = Relay::start(at(PORT), at(PORT + 1)).await;
        pair.await_carrier().await;
        (pair, relay)
    }

    /// Two ends of which one does not know the other; a request waits a moment for the carrier that never comes.
    pub(crate) fn estranged(trust: Trust) -> Pair {
        Pair::with(trust, &["timeouts.outage=2 s"], PORT, "none")
    }

    /// Ground listens on `port`; the remote calls [`PORT`].
    fn with(trust: Trust, sets: &[&str], port: u16, link: &str) -> Pair {
        static PAIRS: AtomicU8 = AtomicU8::new(1);
        let number = PAIRS.fetch_add(1, Ordering::Relaxed);
        // All of 127/8 is this machine: by process and pair, nobody else is met there.
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let host = Ipv4Addr::new(127, high.max(1), low, number);
        let folder = tempfile::tempdir().unwrap();
        let keys = |name: &str| keygen(&folder.path().join(name));
        let (ground_key, remote_key, other) = (keys("ground.key"), keys("remote.key"), keys("other.key"));
        let known = |right: &str, wrong: bool| if wrong { other.clone() } else { right.to_owned() };
        let remote_key = known(&remote_key, trust == Trust::GroundExpectsAnother);
        let ground_key = known(&ground_key, trust == Trust::RemoteExpectsAnother);
        let proxy = SocketAddr::from((host, 3128));
        let ground = format!(
            "listen = '{host}:{port}'\nallow = ['127.0.0.0/8']\nlink.profile = '{link}'\n\
             [[remote]]\nname = 'ship'\nkeys = ['{remote_key}']\n"
        );
        let remote = format!(
            "listen = ['{proxy}']\nlink.profile = '{link}'\n\
             [[ground]]\nname = 'home'\naddress = '{host}:{PORT}'\nkeys = ['{ground_key}']\n"
        );
        std::fs::write(folder.path().join("ground.toml"), ground).unwrap();
        std::fs::write(folder.path().join("remote.toml"), remote).unwrap();
        let (ground, remote) = (end(folder.path(), "ground", &[]), end(folder.path(), "remote", sets));
        Pair { ground, remote, proxy, folder }
    }

    /// Starts ground again after it was killed.
    pub(crate) fn restart_ground(&mut self) {
        self.ground = end(self.folder.path(), "ground", &[]);
    }

    /// Has ground, while it runs, expect this key of the remote; which one it expected.
    pub(crate) fn expect_of_remote(&self, key: &str) -> String {
        let file = self.folder.path().join("ground.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let earlier = text.rsplit('\'').nth(1).unwrap().to_owned();
        std::fs::write(&file, text.replace(&earlier, key)).unwrap();
        let pid = self.ground.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        earlier
    }

    /// Waits until the remote has a carrier.
    pub(crate) async fn await_carrier(&mut self) {
        let control = self.folder.path().join("remote.sock");
        until("the carrier is up", async || {
            self.ground.assert_runs();
            self.remote.assert_runs();
            ask(&control, "status").await.filter(|status| !status["carrier"].is_null())
        })
        .await;
    }

    /// What an end has counted.
    pub(crate) async fn counters(&self, end: &str) -> serde_json::Value {
        ask(&self.control(end), "counters").await.unwrap()
    }

    /// What an end remembers of paths.
    pub(crate) fn paths(&self, end: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{end}.paths"))).unwrap()
    }

    /// The control socket of an end.
    pub(crate) fn control(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("{end}.sock"))
    }

    /// Fails the test if either end is gone.
    pub(crate) fn assert_both_run(&mut self) {
        self.ground.assert_runs();
        self.remote.assert_runs();
    }
}

fn end(folder: &Path, name: &str, sets: &[&str]) -> Program {
    let mut command = farhop();
    command.arg(name).arg("--config").arg(folder.join(format!("{name}.toml")));
    for set in sets {
        command.args(["--set", set]);
    }
    Program::start(command, folder, name)
}

/// Makes an identity and gives its public line.
pub(crate) fn keygen(file: &Path) -> String {
    let made = farhop().arg("keygen").arg(file).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}
