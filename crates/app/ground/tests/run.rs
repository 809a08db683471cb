//! `farhop ground` as a whole: over UDP, with its control socket and its signals. One test, since signals are the
//! process's.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::process::{Command, id};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use farhop_control::Client;
use farhop_events::Bus;
use farhop_ground::Rights;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_settings::GroundSettings;
use farhop_transport::hop::{Hop, Incoming};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::Dialer;
use farhop_transport::socket::udp::UdpSocket;
use farhop_units::Bytes;
use serde_json::Value;
use support::{Origin, Peer, Reply, get};
use tokio::sync::mpsc;

fn signal(name: &str) {
    assert!(Command::new("kill").args([name, &id().to_string()]).status().unwrap().success());
}

fn settings(
    folder: &std::path::Path,
    listen: std::net::SocketAddr,
    key: &str,
    allow: &str,
) -> GroundSettings {
    let text = format!(
        "listen = '{listen}'\ncontrol = 'control.sock'\nidentity = 'ground.key'\nallow = [{allow}]\nlink.profile = 'none'\n\
         [[remote]]\nname = 'ship'\nkeys = ['{key}']\n"
    );
    farhop_settings::parse(&text, &folder.join("ground.toml"), &[]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ground_runs_reloads_and_drains() {
    let (go, going) = mpsc::unbounded_channel::<()>();
    let (told, mut tell) = mpsc::unbounded_channel::<()>();
    let going = Arc::new(tokio::sync::Mutex::new(going));
    let origin = Origin::start(move |mut peer: Peer| {
        let (going, told) = (going.clone(), told.clone());
        async move {
            told.send(()).unwrap();
            going.lock().await.recv().await;
            peer.answer("", "done").await;
            Some(peer)
        }
    })
    .await;

    let folder = tempfile::tempdir().unwrap();
    let (ground, remote) = (Identity::from_seed([2; 32]), Identity::from_seed([1; 32]));
    ground.save(&folder.path().join("ground.key")).unwrap();
    let listen = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let key = remote.public().to_string();
    let start = settings(folder.path(), listen, &key, "");
    let later = settings(folder.path(), listen, &key, "'127.0.0.0/8'");
    let reloaded = Arc::new(AtomicBool::new(false));
    let (seen, bus) = (Arc::clone(&reloaded), Bus::new());
    let running = tokio::spawn(farhop_ground::run(start, 1, bus.clone(), Rights::default(), move || {
        seen.store(true, Relaxed);
        Ok(later.clone())
    }));

    let plan = PathPlan::UNKNOWN;
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), Bytes(1 << 20)).unwrap();
    let dialer = Dialer::new(socket, remote, plan, plan.default_choice(End::Remote)).unwrap();
    let connection = dialer.connect(listen, &[ground.public()]).await.unwrap();
    let hop = Hop::start(connection, Role::Remote, Config::default(), &plan);
    let ask = |exchange| {
        let (mut sender, receiver) = hop.ask(Ask { exchange, user: 7, ..Ask::default() }, &get(&origin, "/"));
        sender.finish(None);
        receiver
    };
    assert_eq!(Reply::take(&mut ask(1)).await.failure().status, 403, "loopback is not allowed at first");

    let mut control = Client::connect(&folder.path().join("control.sock")).await.unwrap();
    let status = control.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["end"], &status["carriers"][0]["remote"]), (&"ground".into(), &"ship".into()));
    let path = &control.call("path", Value::Null).await.unwrap()["carriers"][0];
    assert_eq!((&path["peer"], &path["path"]["set"]["forward_bps"]), (&"ship".into(), &Value::Null));
    let first = &path["path"]["decided"][0];
    assert_eq!((&first["parameter"], &first["unit"]), (&"stream window".into(), &"bytes".into()));
    let counters = control.call("counters", Value::Null).await.unwrap();
    assert_eq!((&counters["destinations_refused"], &counters["failed"]["origin"]), (&1.into(), &1.into()));

    signal("-HUP");
    let mut exchange = 2;
    let mut waiting = loop {
        // Which settings a request meets while the signal is on its way is not told; the next one tries again.
        let mut receiver = ask(exchange);
        exchange += 1;
        tokio::select! {
            reply = Reply::take(&mut receiver) => assert_eq!(reply.failure().status, 403),
            Some(()) = tell.recv() => break receiver,
        }
    };
    assert!(reloaded.load(Relaxed));
    let path = &control.call("path", Value::Null).await.unwrap()["carriers"][0]["path"];
    assert!(path["measured"]["origin_round_trip_ms"].is_number(), "an origin was connected to: {path}");
    let rows = path["decided"].as_array().unwrap();
    let row = rows.iter().find(|row| row["parameter"] == "origin connect timeout").unwrap();
    assert_eq!((&row["value"], &row["from"]), (&10_000.0.into(), &"measured".into()), "loopback is short");

    signal("-TERM");
    while !matches!(hop.accept().await, Some(Incoming::Drain)) {}
    go.send(()).unwrap();
    let reply = Reply::take(&mut waiting).await;
    assert_eq!(reply.body, b"done", "what was under way has ended in order");
    running.await.unwrap().unwrap();
    assert!(!folder.path().join("control.sock").exists());
}
