//! A manager over a device of which a test says what it does.

#![allow(dead_code, clippy::unwrap_used)] // each test takes what it needs of it; helpers of tests count as tests

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhop_control::{Client, Socket};
use farhop_diffserv::calls::Hop;
use farhop_diffserv::classify::standard;
use farhop_diffserv::{Share, Shares};
use farhop_events::Bus;
use farhop_link::{CallTerms, Config, Device, Echo, FollowTerms, GrantTerms, Manager, SipTerms, run};
use farhop_netdev::{Applied, Crowd, Error, LeafKind, Listed, Losing, Metered, Shaping};
use farhop_units::BitRate;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

/// A device of which a test says what it does.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) is_gone: bool,
    pub(crate) is_foreign: bool,
    /// Somebody has taken away the rules.
    pub(crate) has_no_rules: bool,
    /// What somebody has changed since it was put into force.
    pub(crate) changed: Option<&'static str>,
    pub(crate) applied: usize,
    pub(crate) media: Vec<SocketAddr>,
    /// And how many of their packets go first.
    pub(crate) metered: Vec<Metered>,
    /// Bytes of the longest packets that connections make.
    pub(crate) longest: Option<u16>,
    /// Packets of media so far.
    pub(crate) passed: Vec<(SocketAddr, u64)>,
    /// The rate that was put into force first.
    pub(crate) at_first: u64,
    /// Rates that were put into force after it.
    pub(crate) rates: Vec<u64>,
    /// What the link carries; beyond it a queue builds.
    pub(crate) carries: u64,
    pub(crate) left: u64,
    /// Since midnight.
    pub(crate) time: Duration,
    /// Ceilings of LE that were put into force.
    pub(crate) ceilings: Vec<u64>,
    /// What comes in each second with high drop precedence for the class of interactive traffic, beyond what it has.
    pub(crate) too_much: u64,
    /// How often it was counted.
    pub(crate) counted: u64,
    /// Bytes that wait in the classes.
    pub(crate) waiting: u64,
    /// What was said to be lost.
    pub(crate) losing: Vec<Vec<Losing>>,
    /// Ceilings of the kinds within LE, as they are in force.
    pub(crate) kinds: Vec<u64>,
    /// Where packets are put that pass the device.
    pub(crate) passes: Option<Sender<Vec<u8>>>,
}

impl State {
    fn name(&mut self, media: &[Metered]) {
        self.metered = media.to_vec();
        self.media = media.iter().flat_map(|it| it.media.iter().copied()).collect();
    }
}

impl Device for Fake {
    fn apply(&self, shaping: &Shaping) -> Result<Applied, Error> {
        let mut state = self.state.lock().unwrap();
        let interface = shaping.interface.clone();
        if state.is_gone {
            return Err(Error::NoInterface { interface });
        }
        if state.is_foreign {
            return Err(Error::ForeignQueue { interface, what: "cake 8001:".into() });
        }
        state.applied += 1;
        state.changed = None;
        state.name(&shaping.media);
        state.longest = shaping.longest;
        if state.applied == 1 {
            state.at_first = shaping.rate;
        } else if !state.rates.is_empty() {
            state.rates.push(shaping.rate);
        }
        state.ceilings.extend(shaping.groups.last().map(|le| le.ceiling));
        state.kinds =
            shaping.leaves.iter().filter(|leaf| leaf.within.is_some()).map(|leaf| leaf.ceiling).collect();
        Ok(Applied {
            kind: LeafKind::Fifo,
            new: true,
            whole: None,
            rules: Listed::default(),
            neighbours: String::new(),
        })
    }

    fn set_media(&self, _shaping: &Shaping, media: &[Metered]) -> Result<Listed, Error> {
        self.state.lock().unwrap().name(media);
        Ok(Listed::default())
    }

    fn media_passed(&self, _interface: &str) -> Result<Vec<(SocketAddr, u64)>, Error> {
        Ok(self.state.lock().unwrap().passed.clone())
    }

    fn overhear(&self, interface: &str, _ports: &[(u16, u16)]) -> Result<Receiver<Vec<u8>>, Error> {
        let mut state = self.state.lock().unwrap();
        if state.is_gone {
            return Err(Error::NoInterface { interface: interface.into() });
        }
        let (sender, receiver) = channel(99);
        state.passes = Some(sender);
        Ok(receiver)
    }

    fn apply_rates(&self, shaping: &Shaping) -> Result<(), Error> {
        self.state.lock().unwrap().rates.push(shaping.rate);
        Ok(())
    }

    fn apply_longest(&self, shaping: &Shaping) -> Result<Listed, Error> {
        self.state.lock().unwrap().longest = shaping.longest;
        Ok(Listed::default())
    }

    fn echo(&self, _interface: &str, _address: IpAddr) -> Result<Echo, Error> {
        let mut state = self.state.lock().unwrap();
        // A quarter of a second at the rate that is in force, as long as there is plenty to send.
        let rate = state.rates.last().copied().unwrap_or(state.at_first);
        state.left += rate / 8 / 4;
        let round_trip = Duration::from_millis(if rate > state.carries { 800 } else { 600 });
        Ok(Echo { round_trip: Some(round_trip), left: state.left })
    }

    fn crowds(&self, interface: &str) -> Result<Vec<Crowd>, Error> {
        let mut state = self.state.lock().unwrap();
        if state.has_no_rules {
            return Err(Error::NoRules { interface: interface.into() });
        }
        state.counted += 1;
        // All that comes is of high precedence, and a queue stands.
        let high = state.counted * state.too_much;
        let waiting = if state.too_much > 0 { 50_000 } else { 0 };
        Ok(vec![Crowd { minor: 0x20, left: high / 2, waiting, higher: [0, high] }])
    }

    fn waiting(&self, _interface: &str) -> Result<u64, Error> {
        Ok(self.state.lock().unwrap().waiting)
    }

    fn set_losing(&self, losing: &[Losing]) -> Result<(), Error> {
        self.state.lock().unwrap().losing.push(losing.to_vec());
        Ok(())
    }

    fn time_of_day(&self) -> Duration {
        self.state.lock().unwrap().time
    }

    fn is_there(&self, _interface: &str) -> bool {
        !self.state.lock().unwrap().is_gone
    }

    fn changed(&self, shaping: &Shaping, _applied: &Applied) -> Result<Option<&'static str>, Error> {
        let state = self.state.lock().unwrap();
        let are_others = shaping.media.iter().flat_map(|it| &it.media).ne(&state.media)
            || state.rates.last().is_some_and(|it| *it != shaping.rate)
            || state.longest != shaping.longest;
        Ok(state.changed.or(are_others.then_some("what it was given")))
    }
}

/// 512 kbit/s without a margin, of which 47 % are 240.64 kbit/s: ten calls of G.729.
pub(crate) fn config(folder: &Path) -> Config {
    let shares = [47, 10, 15, 10, 10, 6, 2].map(|guaranteed| Share { guaranteed, ceiling: 100 });
    Config {
        interface: "sat0".into(),
        rate: BitRate::kbit(512),
        margin: 0,
        shares: Shares::new(shares).unwrap(),
        round_trip: Duration::from_millis(650),
        rules: standard(),
        calls: CallTerms { hop: Hop::PLAIN, plain: None, lease: Duration::from_secs(60) },
        state: folder.join("calls.json"),
        windows: Vec::new(),
        ceilings: Vec::new(),
        follow: None,
        profile: Some("geo-hylas2".into()),
        grants: GrantTerms { modem: None, terminal: None, ahead: 32_000, least: 5 },
        sip: Some(SipTerms { ports: vec![(5060, 5060)], from: Vec::new() }),
    }
}

pub(crate) struct Scene {
    pub(crate) device: Arc<Fake>,
    pub(crate) bus: Bus,
    pub(crate) running: JoinHandle<()>,
    pub(crate) client: Client,
    pub(crate) socket: std::path::PathBuf,
}

impl Scene {
    pub(crate) async fn start(folder: &Path) -> Scene {
        Scene::start_with(folder, config(folder)).await
    }

    /// With as many calls as it has room for.
    pub(crate) async fn full(folder: &Path) -> Scene {
        let mut scene = Scene::start(folder).await;
        for name in TEN {
            scene.call(name).await.unwrap();
        }
        scene
    }

    /// Where the link's rate is followed.
    pub(crate) async fn start_following(folder: &Path) -> Scene {
        Scene::start_following_with(folder, config(folder)).await
    }

    /// The same for another link.
    pub(crate) async fn start_following_with(folder: &Path, config: Config) -> Scene {
        let echo = "192.0.2.1".parse().unwrap();
        let follow = Some(FollowTerms { echo, least: 25, queue: Duration::from_millis(40) });
        Scene::start_with(folder, Config { follow, ..config }).await
    }

    pub(crate) async fn start_with(folder: &Path, config: Config) -> Scene {
        let state = Mutex::new(State { carries: 512_000, ..State::default() });
        let (device, bus) = (Arc::new(Fake { state }), Bus::new());
        let manager = Arc::new(Manager::start(config, bus.clone()).unwrap());
        let socket = folder.join("link.sock");
        let opened = Socket::open(&socket).unwrap();
        let rest = Socket::open(&folder.join("link.http")).unwrap();
        let its = Arc::clone(&device);
        let running = tokio::spawn(async move {
            run(manager, its, opened, Some(rest), std::future::pending()).await.unwrap();
        });
        let client = Client::connect(&socket).await.unwrap();
        Scene { device, bus, running, client, socket }
    }

    pub(crate) async fn call(&mut self, name: &str) -> Result<Value, String> {
        let args = json!({"call": name, "codec": "G.729", "packet_time": "20 ms", "media": [media(name)]});
        self.client.call("new_voice_call", args).await.map_err(|error| error.to_string())
    }

    pub(crate) async fn names(&mut self) -> Vec<String> {
        let calls = self.client.call("calls", Value::Null).await.unwrap();
        calls.as_array().unwrap().iter().map(|call| call["call"].as_str().unwrap().into()).collect()
    }

    pub(crate) fn media(&self) -> Vec<SocketAddr> {
        self.device.state.lock().unwrap().media.clone()
    }
}

pub(crate) fn media(name: &str) -> SocketAddr {
    let port = 16384 + 2 * u16::from(name.as_bytes()[0] - b'a');
    SocketAddr::new("10.0.0.5".parse().unwrap(), port)
}

/// Waits for what another task does; the clock of the test goes on meanwhile.
pub(crate) async fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it does not come to hold");
}

pub(crate) const TEN: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
