//! Calls over the control socket: admitted, refused, released, lapsed, and taken up by the next manager.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhop_control::{Client, Socket, Told};
use farhop_diffserv::calls::Hop;
use farhop_diffserv::classify::standard;
use farhop_diffserv::{Share, Shares};
use farhop_events::{Bus, Event};
use farhop_link::{CallTerms, Config, Device, Manager, run};
use farhop_netdev::{Applied, Error, LeafKind, Shaping};
use farhop_units::BitRate;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A device of which a test says what it does.
#[derive(Default)]
struct Fake {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_gone: bool,
    is_foreign: bool,
    stands: bool,
    applied: usize,
    media: Vec<SocketAddr>,
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
        state.stands = true;
        state.media.clone_from(&shaping.media);
        Ok(Applied { kind: LeafKind::Fifo, new: true })
    }

    fn set_media(&self, _interface: &str, media: &[SocketAddr]) -> Result<(), Error> {
        self.state.lock().unwrap().media = media.to_vec();
        Ok(())
    }

    fn is_there(&self, _interface: &str) -> bool {
        !self.state.lock().unwrap().is_gone
    }

    fn stands(&self, _interface: &str) -> Result<bool, Error> {
        Ok(self.state.lock().unwrap().stands)
    }
}

/// 512 kbit/s without a margin, of which 47 % are 240.64 kbit/s: ten calls of G.729.
fn config(folder: &Path) -> Config {
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
    }
}

struct Scene {
    device: Arc<Fake>,
    bus: Bus,
    running: JoinHandle<()>,
    client: Client,
    socket: std::path::PathBuf,
}

impl Scene {
    async fn start(folder: &Path) -> Scene {
        let (device, bus) = (Arc::new(Fake::default()), Bus::new());
        let manager = Arc::new(Manager::start(config(folder), bus.clone()).unwrap());
        let socket = folder.join("link.sock");
        let opened = Socket::open(&socket).unwrap();
        let its = Arc::clone(&device);
        let running = tokio::spawn(async move {
            run(manager, its, opened, std::future::pending()).await.unwrap();
        });
        let client = Client::connect(&socket).await.unwrap();
        Scene { device, bus, running, client, socket }
    }

    async fn call(&mut self, name: &str) -> Result<Value, String> {
        let args = json!({"call": name, "codec": "G.729", "packet_time": "20 ms", "media": [media(name)]});
        self.client.call("new_voice_call", args).await.map_err(|error| error.to_string())
    }

    async fn names(&mut self) -> Vec<String> {
        let calls = self.client.call("calls", Value::Null).await.unwrap();
        calls.as_array().unwrap().iter().map(|call| call["call"].as_str().unwrap().into()).collect()
    }

    fn media(&self) -> Vec<SocketAddr> {
        self.device.state.lock().unwrap().media.clone()
    }
}

fn media(name: &str) -> SocketAddr {
    let port = 16384 + 2 * u16::from(name.as_bytes()[0] - b'a');
    SocketAddr::new("10.0.0.5".parse().unwrap(), port)
}

/// Waits for what another task does; the clock of the test goes on meanwhile.
async fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it does not come to hold");
}

const TEN: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

#[tokio::test(start_paused = true)]
async fn the_eleventh_call_is_refused_with_a_reason_and_the_ten_are_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    for name in TEN {
        let answer = scene.call(name).await.unwrap();
        assert_eq!((&answer["admitted"], &answer["rate_bps"]), (&json!("new"), &json!(24_000)));
    }
    let reason = scene.call("k").await.unwrap_err();
    assert!(reason.starts_with("no room for it: it needs 24 kbit/s, and of the 240.64 kbit/s"), "{reason}");
    assert_eq!(scene.names().await, TEN);
    scene.client.call("voice_call_release", json!({"call": "c"})).await.unwrap();
    scene.call("k").await.unwrap();
    let counters = scene.bus.counters().snapshot();
    assert_eq!((&counters["calls_admitted"], &counters["calls_refused"]), (&json!(11), &json!(1)));
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_killed_leaves_its_calls_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    for name in TEN {
        scene.call(name).await.unwrap();
    }
    // What it would do at its end it does not come to do.
    scene.running.abort();
    let _ = (&mut scene.running).await;
    let mut scene = Scene::start(folder.path()).await;
    assert_eq!(scene.names().await, TEN);
    assert!(scene.call("k").await.is_err(), "they hold what they held");
    assert_eq!(scene.media(), TEN.map(media), "and the kernel knows where their packets go");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_lapses_when_nobody_speaks_for_it_and_listeners_hear_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let mut events = Client::connect(&scene.socket).await.unwrap().subscribe().await.unwrap();
    scene.call("a").await.unwrap();
    scene.call("b").await.unwrap();
    let device = Arc::clone(&scene.device);
    eventually(|| device.state.lock().unwrap().media.len() == 2).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    scene.client.call("voice_call_renew", json!({"call": "b"})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(scene.names().await, ["b"]);
    eventually(|| device.state.lock().unwrap().media == [media("b")]).await;
    let mut heard = Vec::new();
    while heard.len() < 3 {
        if let Some(Told::Event(stamped)) = events.next().await.unwrap() {
            heard.push(stamped.event);
        }
    }
    assert!(
        matches!(&heard[0], Event::NewVoiceCall { call, held_bps: 24_000, .. } if call == "a"),
        "{heard:?}"
    );
    assert!(
        matches!(&heard[2], Event::VoiceCallRelease { call, lapsed: true, held_bps: 24_000, .. } if call == "a"),
        "{heard:?}"
    );
    let error = scene.client.call("voice_call_release", json!({"call": "a"})).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no call 'a'; it was released, or has lapsed");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_device_that_vanishes_is_told_once_and_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let (device, bus) = (Arc::clone(&scene.device), scene.bus.clone());
    let number = |name: &str| bus.counters().snapshot()[name].as_u64().unwrap();
    eventually(|| number("links_in_force") == 1).await;
    device.state.lock().unwrap().is_gone = true;
    eventually(|| number("links_lost") == 1).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(number("links_lost"), 1);
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!(status["in_force"], false);
    assert!(status["trouble"].as_str().unwrap().starts_with("there is no network device 'sat0'"));
    scene.call("a").await.unwrap();
    device.state.lock().unwrap().is_gone = false;
    eventually(|| number("links_in_force") == 2).await;
    assert_eq!(scene.media(), [media("a")], "what came meanwhile is part of it");
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn what_somebody_took_away_is_put_back_and_what_stands_in_its_place_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path()).await;
    let (device, bus) = (Arc::clone(&scene.device), scene.bus.clone());
    let number = |name: &str| bus.counters().snapshot()[name].as_u64().unwrap();
    eventually(|| number("links_in_force") == 1).await;
    device.state.lock().unwrap().stands = false;
    eventually(|| number("links_in_force") == 2).await;
    {
        let mut state = device.state.lock().unwrap();
        (state.stands, state.is_foreign) = (false, true);
    }
    eventually(|| number("links_lost") == 1).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((number("links_lost"), number("links_in_force")), (1, 2));
    device.state.lock().unwrap().is_foreign = false;
    eventually(|| number("links_in_force") == 3).await;
    scene.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_written_down_is_not_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    // A folder where the file would be written: not even root writes that.
    std::fs::create_dir(folder.path().join("calls.next")).unwrap();
    let reason = scene.call("a").await.unwrap_err();
    assert!(reason.starts_with("calls cannot be written down in "), "{reason}");
    assert!(scene.names().await.is_empty());
    std::fs::remove_dir(folder.path().join("calls.next")).unwrap();
    scene.call("a").await.unwrap();
    scene.running.abort();
}
