//! The testbed in the real kernel. Needs root; without it each test says so and passes. Nothing here asserts
//! how long anything took: that belongs to `measure`.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use farhop_orbit::{Profile, Way};
use farhop_testbed::{Place, Testbed};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// A testbed on `profile`; prints why there is none.
fn testbed(profile: &Profile) -> Option<Testbed> {
    if let Err(reason) = farhop_netdev::require_privileges("this test") {
        println!("skipped: {reason}");
        return None;
    }
    Some(Testbed::up(profile, 1).unwrap())
}

fn none() -> Profile {
    Profile::named("none").unwrap()
}

/// A connection from `from` to a listener at `to`, both ends.
fn connection(
    testbed: &Testbed,
    from: Place,
    to: Place,
    address: std::net::Ipv4Addr,
) -> (TcpStream, TcpStream) {
    let listener = testbed.namespace(to).run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    let target = listener.local_addr().unwrap();
    let near = testbed.namespace(from).run(|| TcpStream::connect(target).unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn the_client_reaches_any_origin_and_every_byte_crosses_the_link() {
    let Some(testbed) = testbed(&none()) else { return };
    let address = testbed.addresses.origin(7);
    let (mut near, mut far) = connection(&testbed, Place::Client, Place::Origins, address);
    assert_eq!(far.peer_addr().unwrap().ip(), testbed.addresses.client);
    let sent = vec![7; 1_000_000];
    std::thread::scope(|scope| {
        scope.spawn(|| far.write_all(&sent).unwrap());
        let mut received = vec![0; sent.len()];
        near.read_exact(&mut received).unwrap();
        assert!(received == sent);
    });
    let record = testbed.link().take_record();
    assert!(record.forward.counters.delivered.bytes.0 > 1_000_000);
    assert!(record.return_.counters.delivered.packets > 2);
    assert_eq!((record.tcp_flows, record.udp_flows), (1, 0));
    assert_eq!(record.failure, None);
    assert_eq!(testbed.link().record().tcp_flows, 0, "taking a record starts the next one");
}

#[test]
fn ground_reaches_origins_without_the_link_and_remote_reaches_ground_over_it() {
    let Some(testbed) = testbed(&none()) else { return };
    let local = connection(&testbed, Place::Ground, Place::Origins, testbed.addresses.origin(0));
    assert_eq!(testbed.link().record().tcp_flows, 0);
    let hop = connection(&testbed, Place::Remote, Place::Ground, testbed.addresses.ground_satellite);
    assert_eq!(testbed.link().record().tcp_flows, 1);
    let proxy = connection(&testbed, Place::Client, Place::Remote, testbed.addresses.remote);
    assert_eq!(testbed.link().record().tcp_flows, 1);
    drop((local, hop, proxy));
}

#[test]
fn two_users_at_one_terminal_have_addresses_of_their_own() {
    let Some(testbed) = testbed(&none()) else { return };
    let at = testbed.addresses;
    for (place, address) in [(Place::Client, at.client), (Place::Neighbour, at.neighbour)] {
        let (_near, proxied) = connection(&testbed, place, Place::Remote, at.remote);
        assert_eq!(proxied.peer_addr().unwrap().ip(), address);
        let (_near, direct) = connection(&testbed, place, Place::Origins, at.origin(0));
        assert_eq!(direct.peer_addr().unwrap().ip(), address);
    }
    assert_eq!(testbed.link().record().tcp_flows, 2, "one of each user, none of those to the remote");
}

#[test]
fn terminals_share_the_link_and_each_has_a_user_of_its_own() {
    if let Err(reason) = farhop_netdev::require_privileges("this test") {
        println!("skipped: {reason}");
        return;
    }
    let testbed = Testbed::with_terminals(&none(), 1, 3).unwrap();
    let target = (testbed.addresses.origin(3), 0);
    let listener = testbed.namespace(Place::Origins).run(|| TcpListener::bind(target).unwrap()).unwrap();
    let target = listener.local_addr().unwrap();
    assert_eq!((testbed.link().terminals(), testbed.terminals().len()), (3, 2));
    for (other, number) in testbed.terminals().iter().zip(1..) {
        assert_eq!(other.number, number);
        let mut near = other.client().run(|| TcpStream::connect(target).unwrap()).unwrap();
        let (mut far, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), other.client_address);
        // Both ways, so that what comes back finds its terminal.
        far.write_all(&[number as u8; 20_000]).unwrap();
        let mut received = vec![0; 20_000];
        near.read_exact(&mut received).unwrap();
        assert!(received.iter().all(|byte| *byte == number as u8));
        let at_ground = (testbed.addresses.ground_satellite, 0);
        let ground = testbed.namespace(Place::Ground).run(|| TcpListener::bind(at_ground).unwrap()).unwrap();
        let ground_at = ground.local_addr().unwrap();
        let _near = other.remote().run(|| TcpStream::connect(ground_at).unwrap()).unwrap();
        assert_eq!(ground.accept().unwrap().1.ip(), other.satellite_address);
    }
    let record = testbed.link().take_record();
    assert_eq!((record.tcp_flows, record.forward.refused, record.return_.refused), (4, 0, 0));
}

#[test]
fn more_terminals_than_a_link_has_capacity_for_are_refused() {
    if let Err(reason) = farhop_netdev::require_privileges("this test") {
        println!("skipped: {reason}");
        return;
    }
    let text = "like = 'geo-2m'\n[return.on_demand]\ncapacity = '2 Mbit/s'\nsuperframe = '45 ms'\nslot = '100 B'\nfca = true\nterminals = 2\n";
    let profile = Profile::from_toml(text, "two.toml", &mut |_| Err("no file".into())).unwrap();
    let refused = Testbed::with_terminals(&profile, 1, 3).unwrap_err().to_string();
    let expected = "the link two gives capacity to 2 of ours, and 3 terminals are to share it; say 'terminals = 3' in its [return.on_demand]";
    assert_eq!(refused, expected);
    assert!(Testbed::with_terminals(&none(), 1, 0).unwrap_err().to_string().contains("1 to 251"));
    let testbed = Testbed::with_terminals(&profile, 1, 2).unwrap();
    let at = testbed.addresses;
    let listener = testbed.namespace(Place::Origins).run(|| TcpListener::bind((at.origins, 0)).unwrap());
    let listener = listener.unwrap();
    let target = listener.local_addr().unwrap();
    let both = [testbed.namespace(Place::Client), testbed.terminals()[0].client()];
    for client in both {
        let _near = client.run(|| TcpStream::connect(target).unwrap()).unwrap();
        listener.accept().unwrap();
    }
    assert!(testbed.link().record().return_.counters.given.0 > 0);
}

#[test]
fn an_idle_testbed_puts_nothing_on_the_link() {
    let Some(testbed) = testbed(&none()) else { return };
    drop(connection(&testbed, Place::Ground, Place::Origins, testbed.addresses.origin(0)));
    let record = testbed.link().record();
    assert_eq!(record.forward.counters.sent.packets + record.return_.counters.sent.packets, 0);
}

#[test]
fn the_named_congestion_control_is_in_force_everywhere() {
    let Some(testbed) = testbed(&none()) else { return };
    for place in Place::ALL {
        let used = testbed.namespace(place).run(|| {
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            farhop_netdev::congestion_control(&socket).unwrap()
        });
        assert_eq!(used.unwrap(), "cubic", "{}", place.name());
    }
}

#[test]
fn a_child_runs_in_its_place_and_resolves_names_there() {
    let Some(testbed) = testbed(&none()) else { return };
    for place in Place::ALL {
        let mut command = Command::new("sh");
        command.args(["-c", "cat /etc/resolv.conf; readlink /proc/self/ns/net"]).stdout(Stdio::piped());
        let mut child = testbed.spawn_in(place, command).unwrap();
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(output.contains(&format!("nameserver {}", testbed.addresses.dns)), "{output}");
        let namespace =
            testbed.namespace(place).run(|| std::fs::read_link("/proc/thread-self/ns/net")).unwrap();
        assert!(output.contains(namespace.unwrap().to_str().unwrap()), "{output}");
    }
}

#[test]
fn a_program_that_does_not_exist_is_named_with_its_place() {
    let Some(testbed) = testbed(&none()) else { return };
    let error = testbed.spawn_in(Place::Ground, Command::new("/nonesuch")).unwrap_err().to_string();
    assert!(error.starts_with("cannot start /nonesuch in the ground namespace: No such file"), "{error}");
}

/// Datagrams of `size` bytes of payload that arrive within patience, of `count` sent at once.
fn arrivals(testbed: &Testbed, way: Way, count: usize, patience: Duration) -> usize {
    let (near, far) = (testbed.addresses.client, testbed.addresses.origins);
    let client = testbed.namespace(Place::Client).run(|| UdpSocket::bind((near, 0)).unwrap()).unwrap();
    let origin = testbed.namespace(Place::Origins).run(|| UdpSocket::bind((far, 0)).unwrap()).unwrap();
    let (from, to) = match way {
        Way::Forward => (origin, client),
        Way::Return => (client, origin),
    };
    to.set_read_timeout(Some(patience)).unwrap();
    let target = to.local_addr().unwrap();
    for _ in 0..count {
        from.send_to(&[0; 972], target).unwrap();
    }
    (0..count).take_while(|_| to.recv(&mut [0; 2000]).is_ok()).count()
}

#[test]
fn a_queue_takes_what_fits_and_counts_what_does_not() {
    let mut profile = Profile::named("geo-2m").unwrap();
    profile.forward.queue = farhop_units::Bytes(20_000);
    let Some(testbed) = testbed(&profile) else { return };
    // So many that the queue fills although a busy machine interrupts who sends them.
    const SENT: u64 = 400;
    let arrived = arrivals(&testbed, Way::Forward, SENT as usize, Duration::from_secs(3)) as u64;
    let counters = testbed.link().record().forward.counters;
    assert!((20..SENT).contains(&arrived), "{arrived} of {SENT} packets of 1000 bytes, queue 20 KB");
    assert_eq!((counters.delivered.packets, counters.queue_drops.packets), (arrived, SENT - arrived));
    assert!((19_000..=20_000).contains(&counters.queue_peak.0), "{:?}", counters.queue_peak);
}

#[test]
fn random_loss_loses_exactly_what_the_model_says() {
    let Some(testbed) = testbed(&none().with_loss(0.2, 0.0)) else { return };
    let arrived = arrivals(&testbed, Way::Forward, 50, Duration::from_secs(3)) as u64;
    let counters = testbed.link().record().forward.counters;
    assert_eq!(counters.loss_drops.packets, 50 - arrived);
    assert!(counters.loss_drops.packets > 0, "seed 1 loses some of fifty at 20 %");
    assert_eq!(arrivals(&testbed, Way::Return, 50, Duration::from_secs(3)), 50);
}

#[test]
fn a_cut_link_carries_nothing_and_a_restored_one_carries_on() {
    let Some(testbed) = testbed(&none()) else { return };
    let (mut near, mut far) =
        connection(&testbed, Place::Client, Place::Origins, testbed.addresses.origin(0));
    testbed.link().cut();
    near.write_all(b"through").unwrap();
    far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(far.read(&mut [0; 16]).is_err());
    assert!(testbed.link().record().return_.counters.cut_drops.packets > 0);
    testbed.link().restore();
    far.set_read_timeout(PATIENCE).unwrap();
    let mut received = [0; 7];
    far.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"through");
}

#[test]
fn the_profile_is_switched_under_a_running_connection() {
    let Some(testbed) = testbed(&none()) else { return };
    let (mut near, mut far) =
        connection(&testbed, Place::Client, Place::Origins, testbed.addresses.origin(0));
    far.set_read_timeout(PATIENCE).unwrap();
    for name in ["geo-20m", "none"] {
        testbed.link().switch(&Profile::named(name).unwrap());
        assert_eq!(testbed.link().profile().name, name);
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn calibration_finds_the_link_that_was_set_and_leaves_a_clean_record() {
    let profile = Profile::named("geo-2m").unwrap();
    let Some(testbed) = testbed(&profile) else { return };
    let calibration = testbed.calibrate().unwrap();
    println!("{calibration}");
    assert_eq!(testbed.link().record().forward.counters, Default::default());
    assert_eq!(calibration.profile, "geo-2m");
    // Neither a busy machine nor a slow one makes a packet early or a link quicker than its rate.
    assert!(calibration.rtt >= profile.rtt());
    assert!(calibration.forward.is_some() && calibration.return_.is_some());
}

#[test]
fn a_cut_link_cannot_be_calibrated_and_says_so() {
    let Some(testbed) = testbed(&none()) else { return };
    testbed.link().cut();
    let error = testbed.calibrate().unwrap_err().to_string();
    assert!(error.starts_with("the link could not be probed, round trip: "), "{error}");
}

#[test]
fn testbeds_stand_beside_each_other_and_leave_nothing_behind() {
    let Some(first) = testbed(&none()) else { return };
    let second = testbed(&none()).unwrap();
    let names: Vec<String> =
        [&first, &second].iter().flat_map(|t| Place::ALL.map(|p| t.namespace(p).name().to_owned())).collect();
    assert_eq!(first.link().record().failure, None);
    drop(connection(&second, Place::Client, Place::Origins, second.addresses.origin(0)));
    assert_eq!((first.link().record().tcp_flows, second.link().record().tcp_flows), (0, 1));
    drop((first, second));
    for name in names {
        assert!(!std::fs::exists(format!("/run/netns/{name}")).unwrap(), "{name}");
    }
}

#[test]
fn capacity_is_given_for_the_asking_at_a_modem_and_at_the_centre() {
    if let Err(reason) = farhop_netdev::require_privileges("this test") {
        println!("skipped: {reason}");
        return;
    }
    let text = "like = 'geo-2m'\n[return.on_demand]\ncapacity = '2 Mbit/s'\nsuperframe = '45 ms'\nslot = '100 B'\nvolume = 'avbdc'\nterminals = 2\n";
    let profile = Profile::from_toml(text, "two.toml", &mut |_| Err("no file".into())).unwrap();
    let testbed = Testbed::with_terminals(&profile, 1, 2).unwrap();
    let at = testbed.addresses;
    let other = &testbed.terminals()[0];
    let ask = |namespace: &farhop_netdev::Namespace, of: std::net::Ipv4Addr, question: &str| {
        let socket = namespace.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        socket.set_read_timeout(PATIENCE).unwrap();
        socket.send_to(question.as_bytes(), (of, farhop_testbed::CAPACITY_PORT)).unwrap();
        let mut answer = [0; 300];
        let length = socket.recv(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    let remote = testbed.namespace(Place::Remote);
    let ground = testbed.namespace(Place::Ground);
    assert_eq!(testbed.link().record().return_.counters.given.0, 0);
    assert_eq!(ask(remote, at.remote_satellite, "CAPACITY/1 EXPECT 1 5000\n"), "CAPACITY/1 NOTED 1\n");
    assert_eq!(
        ask(other.remote(), other.satellite_address, "CAPACITY/1 EXPECT 1 5000 0\n"),
        "CAPACITY/1 REFUSED 1 this is the modem of terminal 1\n"
    );
    assert_eq!(ask(ground, at.ground_satellite, "CAPACITY/1 EXPECT 9 5000 1\n"), "CAPACITY/1 NOTED 9\n");
    assert_eq!(
        ask(ground, at.ground_satellite, "CAPACITY/1 EXPECT 9 5000 2\n"),
        "CAPACITY/1 REFUSED 9 there is no terminal 2, only 2 from 0 on\n"
    );
    // Nobody sends anything, and slots are given all the same, once the requests have got there. Whatever looks at the link plays
    // what has become due.
    let deadline = std::time::Instant::now() + PATIENCE.unwrap();
    // And each is told of by its modem and by the centre, for as long as a control round.
    let granted = |namespace, of, question: &str| {
        let answer = ask(namespace, of, question);
        let rate = answer.trim_end().strip_prefix("CAPACITY/1 GRANTED 3 ").and_then(|rate| rate.parse().ok());
        rate.unwrap_or_else(|| panic!("{question}: {answer}"))
    };
    let mut most = [0u64; 2];
    while testbed.link().record().return_.counters.given.0 < 10_000 || most.contains(&0) {
        let now = [
            granted(remote, at.remote_satellite, "CAPACITY/1 TELL 3\n"),
            granted(ground, at.ground_satellite, "CAPACITY/1 TELL 3 1\n"),
        ];
        most = [most[0].max(now[0]), most[1].max(now[1])];
        assert!(
            std::time::Instant::now() < deadline,
            "{most:?} {:?}",
            testbed.link().record().return_.counters
        );
        testbed.link().foretell(1, farhop_units::Bytes(0));
        std::thread::sleep(Duration::from_millis(50));
    }
    testbed.link().switch(&none());
    assert_eq!(
        ask(remote, at.remote_satellite, "CAPACITY/1 EXPECT 2 5000\n"),
        "CAPACITY/1 REFUSED 2 this link's capacity is not given on demand\n"
    );
}
