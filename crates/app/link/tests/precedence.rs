//! An overloaded class: what has the highest drop precedence is lost first. By a device of which the test says what it does, and by the
//! kernel's own (which needs root; without it that test says so and passes).

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use farhop_control::Socket;
use farhop_diffserv::{Share, Shares};
use farhop_events::Bus;
use farhop_link::{Config, Linux, Manager, run};
use farhop_netdev::{Hold, Janitor, Losing, Namespace, shaped};
use farhop_units::BitRate;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Ipv4Tos;
use serde_json::{Value, json};

use support::{Scene, config, eventually};

#[tokio::test(start_paused = true)]
async fn what_is_lost_of_an_overloaded_class_is_said_again_until_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::start(folder.path()).await;
    let device = Arc::clone(&scene.device);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(device.state.lock().unwrap().losing.is_empty(), "nothing has a higher precedence");
    device.state.lock().unwrap().too_much = 20_000;
    let of = |losing: &[Losing]| losing.iter().find(|it| it.minor == 0x20).unwrap().higher;
    let last = || device.state.lock().unwrap().losing.last().map(|it| of(it));
    eventually(|| last().is_some_and(|[_, high]| high == 100)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["losing"][0]["class"], &status["losing"][0]["high"]), (&json!("AF4"), &json!(100)));
    // The device forgets what is not said again.
    let before = device.state.lock().unwrap().losing.len();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(device.state.lock().unwrap().losing.len() >= before + 8);
    device.state.lock().unwrap().too_much = 0;
    eventually(|| last() == Some([0, 0])).await;
    // Rules that are gone are put back, and told as that.
    device.state.lock().unwrap().has_no_rules = true;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let status = scene.client.call("status", Value::Null).await.unwrap();
    assert_eq!((&status["losing"], &status["early"]), (&json!([]), &Value::Null));
    scene.running.abort();
}

const DEVICE: &str = "sat0";
const PORT: u16 = 9000;
const PACKET: usize = 500;

/// A speaker whose packets bear a mark and a number of it, at so many a second.
struct Speaker {
    socket: UdpSocket,
    mark: u8,
    pause: Duration,
}

#[test]
fn the_kernel_loses_precedence_three_before_one_when_a_class_is_overloaded() {
    if let Err(reason) = farhop_netdev::require_privileges("this test") {
        println!("skipped: {reason}");
        return;
    }
    let janitor = Janitor::start().unwrap();
    let [sender, receiver] = ["sender", "receiver"].map(|role| Namespace::create(&janitor, role).unwrap());
    sender
        .ip(&[format!("link add {DEVICE} type veth peer name {DEVICE} netns {}", receiver.name())])
        .unwrap();
    for (namespace, host) in [(&sender, 1), (&receiver, 2)] {
        namespace
            .ip(&[format!("addr add 10.79.0.{host}/24 dev {DEVICE}"), format!("link set {DEVICE} up")])
            .unwrap();
    }
    let heard = receiver.run(|| UdpSocket::bind(("10.79.0.2", PORT)).unwrap()).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let to: SocketAddr = heard.local_addr().unwrap();

    let folder = tempfile::tempdir().unwrap();
    // Bulk has 1 Mbit/s at the most, however idle the link is.
    let shares = [10, 5, 5, 5, 5, 5, 5].map(|guaranteed| Share { guaranteed, ceiling: 100 });
    let rule = farhop_diffserv::classify::Rule {
        name: "all".into(),
        service: farhop_diffserv::Service::Bulk,
        precedence: farhop_diffserv::DropPrecedence::Low,
        kind: None,
        conditions: Vec::new(),
    };
    let config = Config {
        rate: BitRate::mbit(4),
        shares: Shares::new(shares).unwrap().with_ceiling(farhop_diffserv::Queue::Af1, 25),
        rules: vec![rule],
        sip: None,
        ..config(folder.path())
    };
    let manager = Arc::new(Manager::start(config, Bus::new()).unwrap());
    let socket = folder.path().join("link.sock");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let sends = AtomicBool::new(true);
    thread::scope(|scope| {
        let (its, sender, sends) = (Arc::clone(&manager), &sender, &sends);
        let runs = scope.spawn(move || {
            let work = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let device = Arc::new(Linux::new(Hold::take(DEVICE).unwrap().keep("here").unwrap()));
                    let stop = async { stopped.await.unwrap() };
                    run(its, device, Socket::open(&socket).unwrap(), None, stop).await.unwrap();
                });
            };
            sender.run(work).unwrap();
        });
        while !manager.status().in_force {
            thread::sleep(Duration::from_millis(20));
        }
        // 0.5 Mbit/s of precedence 1, 0.3 of 2, and 1.2 of 3.
        for (mark, kbit) in [(10u8, 500u32), (12, 300), (14, 1200)] {
            let socket = sender.run(|| UdpSocket::bind("10.79.0.1:0").unwrap()).unwrap();
            setsockopt(&socket, Ipv4Tos, &(i32::from(mark) << 2)).unwrap();
            let pause = Duration::from_secs(1) * (PACKET as u32 + 42) * 8 / (kbit * 1000);
            let speaker = Speaker { socket, mark, pause };
            scope.spawn(move || speaker.speak(to, sends));
        }
        let (sent, lost) = listen(&heard, Duration::from_secs(8));
        sends.store(false, Ordering::Relaxed);
        println!("sent {sent:?}, lost {lost:?}, {:?}", manager.status().losing);
        let share = |of: usize| f64::from(lost[of]) / f64::from(sent[of].max(1));
        assert!(sent.iter().all(|sent| *sent > 100), "{sent:?}");
        assert!(share(0) < 0.03, "precedence 1 loses {lost:?} of {sent:?}");
        assert!(share(1) < 0.15, "precedence 2 loses {lost:?} of {sent:?}");
        assert!(share(2) > 0.5, "precedence 3 loses {lost:?} of {sent:?}");
        let standing = sender.run(|| shaped(DEVICE).unwrap().unwrap()).unwrap();
        assert!(standing.leaves.iter().all(|leaf| leaf.minor < 0xf0), "what is lost is nobody's class");
        stop.send(()).unwrap();
        runs.join().unwrap();
    });
}

impl Speaker {
    fn speak(&self, to: SocketAddr, sends: &AtomicBool) {
        let (mut number, mut due) = (0u32, Instant::now());
        while sends.load(Ordering::Relaxed) {
            let mut packet = [0; PACKET];
            packet[0] = self.mark;
            packet[1..5].copy_from_slice(&number.to_be_bytes());
            self.socket.send_to(&packet, to).unwrap();
            number += 1;
            due += self.pause;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

/// Of each precedence, how many packets were sent in the time after it has settled, and how many of these have not come.
fn listen(heard: &UdpSocket, time: Duration) -> ([u32; 3], [u32; 3]) {
    const SETTLES: Duration = Duration::from_secs(2);
    let (began, mut packet) = (Instant::now(), [0; PACKET]);
    let (mut first, mut last, mut came) = ([None; 3], [0; 3], [0; 3]);
    while began.elapsed() < SETTLES + time {
        if heard.recv(&mut packet).is_err() || began.elapsed() < SETTLES {
            continue;
        }
        let of = usize::from((packet[0] - 10) / 2);
        let number = u32::from_be_bytes([packet[1], packet[2], packet[3], packet[4]]);
        first[of].get_or_insert(number);
        last[of] = number;
        came[of] += 1;
    }
    let sent = [0, 1, 2].map(|of| first[of].map_or(0, |first| last[of] + 1 - first));
    (sent, [0, 1, 2].map(|of| sent[of] - came[of]))
}
