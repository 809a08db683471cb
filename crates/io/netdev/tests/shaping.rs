//! Classes of a device in the real kernel, with real HTB. Needs root; without it each test says so and passes.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::sys::socket::sockopt::{Ipv4Tos, TcpMaxSeg};
use nix::sys::socket::{getsockopt, setsockopt};

use farhop_netdev::{
    Crowd, Group, Hold, Leaf, LeafKind, Losing, MarkRule, Metered, Ping, Shaping, crowds, left_by,
    media_passed, set_losing,
};

use support::{BULK, DEVICE, MEDIA, OTHER, Scene, VOICE, call, leaf, shaping};

#[test]
fn packets_wait_in_the_class_of_their_rule_and_bear_its_mark() {
    let Some(scene) = Scene::new() else { return };
    let applied = scene.apply(&shaping()).unwrap();
    assert!(applied.new);
    println!("leaves are {}", applied.kind.as_str());
    scene.tool(
        &scene.receiver,
        "nft 'add table inet seen; add chain inet seen in { type filter hook input priority 0; };
          add rule inet seen in ip dscp ef counter; add rule inet seen in ip6 dscp ef counter;
          add rule inet seen in ip dscp af11 counter; add rule inet seen in ip dscp af13 counter'",
    );
    for (to, from) in [("10.79.0.2", "10.79.0.1"), ("fd79::2", "fd79::1")] {
        let (heard, speaker) = (scene.listen(to, VOICE), scene.speak(from));
        let before = scene.packets(0x10);
        for _ in 0..3 {
            speaker.send_to(b"speech", SocketAddr::new(to.parse().unwrap(), VOICE)).unwrap();
            heard.recv(&mut [0; 99]).unwrap();
        }
        assert_eq!(scene.packets(0x10) - before, 3, "{to}");
    }
    let speaker = scene.speak("10.79.0.1");
    for (port, minor) in [(BULK, 0x50), (OTHER, 0x60), (MEDIA, 0x60)] {
        let heard = scene.listen("10.79.0.2", port);
        let before = scene.packets(minor);
        speaker.send_to(b"x", ("10.79.0.2", port)).unwrap();
        heard.recv(&mut [0; 99]).unwrap();
        // What the kernel itself sends, to find neighbours, is of no rule either.
        let others = if minor == 0x60 { 8 } else { 0 };
        assert!((1..=1 + others).contains(&(scene.packets(minor) - before)), "{port}");
    }
    let seen = scene.tool(&scene.receiver, "nft list table inet seen");
    let counted = |mark: &str| {
        let line = seen.lines().find(|line| line.contains(mark)).unwrap();
        line.split_whitespace().skip_while(|it| *it != "packets").nth(1).unwrap().to_owned()
    };
    assert_eq!((counted("ip dscp ef"), counted("ip6 dscp ef")), ("3".into(), "3".into()), "{seen}");
    assert_eq!((counted("ip dscp af11"), counted("ip dscp af13")), ("1".into(), "0".into()), "{seen}");
}

#[test]
fn what_finds_neighbours_has_a_leaf_of_its_own_and_nothing_else_that_bears_no_class() {
    let Some(scene) = Scene::new() else { return };
    let shaping = Shaping { neighbours: 0x50, ..shaping() };
    scene.apply(&shaping).unwrap();
    assert!(!scene.apply(&shaping).unwrap().new, "the same again");
    let asked = |to: &str, from: &str| {
        scene.tool(&scene.sender, "ip neigh flush all");
        let (heard, before) = (scene.listen(to, OTHER), scene.packets(0x50));
        scene.speak(from).send_to(b"x", SocketAddr::new(to.parse().unwrap(), OTHER)).unwrap();
        heard.recv(&mut [0; 99]).unwrap();
        scene.packets(0x50) - before
    };
    assert!(asked("10.79.0.2", "10.79.0.1") >= 1, "ARP");
    assert!(asked("fd79::2", "fd79::1") >= 1, "neighbour discovery");
    // What a bridge above the device sends has passed no rules of it.
    scene.tool(
        &scene.sender,
        "ip link add br0 type bridge; ip link set sat0 master br0; ip addr add 10.80.0.1/24 dev br0; ip link set br0 up;
          ip neigh add 10.80.0.2 lladdr 02:00:00:00:00:02 dev br0",
    );
    let (speaker, before) = (scene.speak("10.80.0.1"), scene.packets(0x60));
    for _ in 0..5 {
        speaker.send_to(b"x", ("10.80.0.2", OTHER)).unwrap();
    }
    assert!(scene.packets(0x60) - before >= 5);
    let missing = farhop_netdev::Error::NoRules { interface: DEVICE.into() }.to_string();
    scene.tool(&scene.sender, "nft delete table inet farhop_link_sat0");
    assert_eq!(scene.sender.run(|| crowds(DEVICE).unwrap_err().to_string()).unwrap(), missing);
    let losing = [Losing { minor: 0x50, higher: [1, 1] }];
    let said =
        scene.sender.run(|| set_losing(&Hold::take(DEVICE).unwrap(), &losing).unwrap_err().to_string());
    assert_eq!(said.unwrap(), missing);
}

#[test]
fn what_has_a_higher_drop_precedence_keeps_it_and_some_of_it_is_lost_before_it_waits() {
    let Some(scene) = Scene::new() else { return };
    let mut shaping = shaping();
    // What comes by this port has the medium one at the least.
    shaping.rules[1].precedence = 1;
    scene.apply(&shaping).unwrap();
    let heard = scene.listen("10.79.0.2", BULK);
    // Longer than ten packets can be under way.
    heard.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    // What arrives of ten packets of each precedence, and how it is counted.
    let counted = || scene.sender.run(|| crowds(DEVICE).unwrap()).unwrap();
    let arrive = |mark: u8| {
        let speaker = scene.speak("10.79.0.1");
        setsockopt(&speaker, Ipv4Tos, &(i32::from(mark) << 2)).unwrap();
        for _ in 0..10 {
            // Who sends is told of no error.
            speaker.send_to(b"x", ("10.79.0.2", BULK)).unwrap();
        }
        std::iter::from_fn(|| heard.recv(&mut [0; 9]).ok()).count()
    };
    assert_eq!([10, 12, 14].map(arrive), [10, 10, 10]);
    let crowd = |higher| Crowd { minor: 0x50, left: counted()[0].left, waiting: 0, higher };
    assert_eq!(counted(), [crowd([20 * 29, 10 * 29])]);
    let losing = |higher| {
        let hold =
            || Hold::take(DEVICE).and_then(|hold| set_losing(&hold, &[Losing { minor: 0x50, higher }]));
        scene.sender.run(|| hold().unwrap()).unwrap();
    };
    losing([0, 100]);
    assert_eq!([10, 12, 14].map(arrive), [10, 10, 0]);
    losing([100, 100]);
    assert_eq!([10, 14].map(arrive), [0, 0]);
    let applied = scene.apply(&shaping).unwrap();
    assert_eq!([10, 14].map(arrive), [10, 10], "what is put into force anew loses nothing");
    losing([30, 50]);
    let changed = scene.sender.run(|| shaping.changed(&applied).unwrap()).unwrap();
    assert_eq!(changed, None, "nobody else has changed anything");
}

#[test]
fn media_of_calls_go_first_from_when_they_are_named_until_they_are_not() {
    let Some(scene) = Scene::new() else { return };
    scene.apply(&shaping()).unwrap();
    let (heard, speaker) = (scene.listen("10.79.0.2", MEDIA), scene.speak("10.79.0.1"));
    let media = format!("10.79.0.2:{MEDIA}");
    let mut named = shaping();
    let mut counted = |media: &[Metered]| {
        scene.name_media(&named, media);
        named.media = media.to_vec();
        let before = scene.packets(0x10);
        speaker.send_to(b"speech", ("10.79.0.2", MEDIA)).unwrap();
        heard.recv(&mut [0; 99]).unwrap();
        scene.packets(0x10) - before
    };
    let (ours, idle) = (call(&[&media, "10.79.0.9:1"], 9), call(&["[fd79::2]:1"], 9));
    assert_eq!(counted(&[]), 0);
    assert_eq!(counted(&[idle.clone(), ours.clone()]), 1);
    assert_eq!(counted(&[]), 0);
    assert_eq!(counted(std::slice::from_ref(&idle)), 0);
    assert_eq!(counted(&[ours, idle]), 1);
    let mut passed = scene.sender.run(|| media_passed(DEVICE).unwrap()).unwrap();
    passed.sort_unstable();
    let of = |media: &str, packets| (media.parse::<SocketAddr>().unwrap(), packets);
    assert_eq!(
        passed,
        [of(&media, 1), of("10.79.0.9:1", 1), of("[fd79::2]:1", 0)],
        "who still speaks is seen"
    );
}

#[test]
fn a_call_that_pours_goes_first_as_far_as_it_was_admitted_and_takes_nothing_of_another() {
    let Some(scene) = Scene::new() else { return };
    let mut shaping = shaping();
    // What a rule holds for goes by it beyond.
    shaping.rules.push(MarkRule { ports: vec![(MEDIA, MEDIA)], minor: 0x50, ..MarkRule::default() });
    // The speaker's own address is the call's as well: it has one meter, whichever of them a packet shows.
    let own = scene.speak("10.79.0.1");
    let from = own.local_addr().unwrap().to_string();
    shaping.media = vec![call(&["10.79.0.2:9002", &from], 10), call(&["[fd79::2]:9003"], 10)];
    scene.apply(&shaping).unwrap();
    let counts = || (scene.packets(0x10), scene.packets(0x50));
    let (heard, others) = (scene.listen("10.79.0.2", MEDIA), scene.listen("fd79::2", OTHER));
    let other = scene.speak("fd79::1");
    let before = counts();
    let all = 200;
    for _ in 0..all {
        own.send_to(&[0; 32], ("10.79.0.2", MEDIA)).unwrap();
    }
    for _ in 0..10 {
        other.send_to(&[0; 32], ("fd79::2", OTHER)).unwrap();
        others.recv(&mut [0; 99]).unwrap();
    }
    for _ in 0..all {
        heard.recv(&mut [0; 99]).unwrap();
    }
    let after = counts();
    let (first, beyond) = (after.0 - before.0, after.1 - before.1);
    println!("{first} of {all} and 10 went first, {beyond} by the rule");
    // Ten of each call, and one in each second that this took.
    assert!((20..all / 2).contains(&first), "{first}");
    assert_eq!(first + beyond, all + 10);
    // Who pours is heard of as long as it does.
    let passed = scene.sender.run(|| media_passed(DEVICE).unwrap()).unwrap();
    assert!(passed.contains(&("10.79.0.2:9002".parse().unwrap(), all)), "{passed:?}");
}

#[test]
fn voice_does_not_wait_for_what_is_queued_before_it() {
    let Some(scene) = Scene::new() else { return };
    scene.apply(&shaping()).unwrap();
    // One socket hears both, in the order of their arrival.
    let heard = scene.listen("10.79.0.2", BULK);
    let bulk = scene.speak("10.79.0.1");
    // It is voice by the port that it comes from.
    let voice: SocketAddr = format!("10.79.0.1:{VOICE}").parse().unwrap();
    let voice = scene.sender.run(|| UdpSocket::bind(voice).unwrap()).unwrap();
    for _ in 0..60 {
        bulk.send_to(&[0; 1200], ("10.79.0.2", BULK)).unwrap();
    }
    voice.send_to(b"speech", ("10.79.0.2", BULK)).unwrap();
    let mut buffer = [0; 2000];
    let before = (0..61).position(|_| heard.recv(&mut buffer).unwrap() < 100).unwrap();
    // 60 packets of 1,242 bytes take 600 ms at this rate; those that had left before the last was sent are few.
    assert!(before < 20, "{before} of 60 packets went before it");
}

#[test]
fn connections_make_no_longer_packets_than_voice_can_wait_for() {
    let Some(scene) = Scene::new() else { return };
    let with = |longest| Shaping { longest, ..shaping() };
    for (to, headers) in [("10.79.0.2:0", 40), ("[fd79::2]:0", 60)] {
        let to: SocketAddr = to.parse().unwrap();
        let listener = scene.receiver.run(|| TcpListener::bind(to).unwrap()).unwrap();
        let at = listener.local_addr().unwrap();
        // From either end: what counts is what leaves here.
        let own = scene.sender.run(|| TcpListener::bind((source(to), 0)).unwrap()).unwrap();
        let own_at = own.local_addr().unwrap();
        for longest in [None, Some(1_000)] {
            scene.apply(&with(longest)).unwrap();
            let calls = scene.sender.run(|| TcpStream::connect(at).unwrap()).unwrap();
            let called = scene.receiver.run(|| TcpStream::connect(own_at).unwrap()).unwrap();
            let (answers, answered) = (own.accept().unwrap().0, listener.accept().unwrap().0);
            let most = longest.unwrap_or(1_500) - headers;
            for ours in [&calls, &answers] {
                let segment = getsockopt(ours, TcpMaxSeg).unwrap();
                assert!((most - 20..=most).contains(&(segment as u16)), "{to} {longest:?}: {segment}");
            }
            for theirs in [&called, &answered] {
                let segment = getsockopt(theirs, TcpMaxSeg).unwrap();
                assert!(segment > 1_400, "{to} {longest:?}: the other way has packets as ever, {segment}");
            }
        }
    }
}

#[test]
fn packets_become_longer_and_shorter_while_all_else_stays() {
    let Some(scene) = Scene::new() else { return };
    let listener = scene.receiver.run(|| TcpListener::bind("10.79.0.2:0").unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    let mut applied = scene.apply(&shaping()).unwrap();
    for longest in [Some(1_000), Some(600), None, Some(1_000)] {
        let shaping = Shaping { longest, ..shaping() };
        let put = || shaping.apply_longest(&Hold::take(DEVICE).unwrap()).unwrap();
        applied.rules = scene.sender.run(put).unwrap();
        let calls = scene.sender.run(|| TcpStream::connect(at).unwrap()).unwrap();
        let segment = getsockopt(&calls, TcpMaxSeg).unwrap() as u16;
        let most = longest.unwrap_or(1_500) - 40;
        assert!((most - 20..=most).contains(&segment), "{longest:?}: {segment}");
        assert_eq!(scene.sender.run(|| shaping.changed(&applied).unwrap()).unwrap(), None);
    }
}

/// The sender's address beside this one of the receiver's.
fn source(to: SocketAddr) -> std::net::IpAddr {
    if to.is_ipv4() { [10, 79, 0, 1].into() } else { "fd79::1".parse().unwrap() }
}

#[test]
fn a_class_becomes_a_group_whose_leaves_have_ceilings_of_their_own() {
    let Some(scene) = Scene::new() else { return };
    scene.apply(&shaping()).unwrap();
    let mut grouped = shaping();
    grouped.groups = vec![Group { minor: 0x60, rate: 100_000, ceiling: 900_000, burst: 250, quantum: 1514 }];
    let within = |minor, ceiling| Leaf { within: Some(0x60), ceiling, ..leaf(minor, 6, 30_000, 0) };
    grouped.leaves.pop();
    grouped.leaves.extend([within(0x61, 900_000), within(0x62, 50_000)]);
    (grouped.otherwise, grouped.neighbours) = (0x61, 0x61);
    grouped.rules.push(MarkRule { ports: vec![(OTHER, OTHER)], minor: 0x62, ..MarkRule::default() });
    // What was a leaf becomes a group while it stands.
    let applied = scene.apply(&grouped).unwrap();
    assert_eq!(scene.sender.run(|| grouped.changed(&applied).unwrap()).unwrap(), None);
    let (heard, speaker) = (scene.listen("10.79.0.2", OTHER), scene.speak("10.79.0.1"));
    let before = (scene.packets(0x62), scene.packets(0x60));
    speaker.send_to(b"x", ("10.79.0.2", OTHER)).unwrap();
    heard.recv(&mut [0; 9]).unwrap();
    assert_eq!(scene.packets(0x62) - before.0, 1);
    assert!(scene.packets(0x60) > before.1, "its group counts it, too");
    assert!(scene.rules().contains("ceil 50Kbit"), "{}", scene.rules());
    assert!(scene.take_away());
}

#[test]
fn segments_of_many_packets_are_split_before_they_wait() {
    let Some(scene) = Scene::new() else { return };
    let applied = scene.apply(&shaping()).unwrap();
    if applied.whole.is_none() {
        println!("skipped: this kernel has no tbf");
        return;
    }
    let listener = scene.receiver.run(|| std::net::TcpListener::bind(("10.79.0.2", OTHER)).unwrap()).unwrap();
    let mut speaker =
        scene.sender.run(|| std::net::TcpStream::connect(("10.79.0.2", OTHER)).unwrap()).unwrap();
    let mut heard = listener.accept().unwrap().0;
    let before = scene.packets(0x60);
    let bytes = 200_000;
    let reader = std::thread::spawn(move || std::io::copy(&mut heard, &mut std::io::sink()).unwrap());
    std::io::Write::write_all(&mut speaker, &vec![0; bytes]).unwrap();
    drop(speaker);
    assert_eq!(reader.join().unwrap(), bytes as u64);
    let packets = scene.packets(0x60) - before;
    assert!(packets >= bytes as u64 / 1448, "{packets} packets of at most 1,448 bytes of TCP each");
}

#[test]
fn rates_change_while_what_waits_stays_and_echoes_go_before_it() {
    let Some(scene) = Scene::new() else { return };
    let mut shaping = shaping();
    shaping.echo = Some(("10.79.0.2".parse().unwrap(), 0x10));
    scene.apply(&shaping).unwrap();
    // Half a second of it waits.
    let (heard, bulk) = (scene.listen("10.79.0.2", BULK), scene.speak("10.79.0.1"));
    for _ in 0..60 {
        bulk.send_to(&[0; 1200], ("10.79.0.2", BULK)).unwrap();
    }
    let echo = || {
        let ping = Ping::open(DEVICE, "10.79.0.2".parse().unwrap()).unwrap();
        (ping.round_trip(Duration::from_secs(30)).unwrap().unwrap(), left_by(DEVICE).unwrap())
    };
    let (_, left) = scene.sender.run(echo).unwrap();
    let waits = |scene: &Scene| {
        let shaped = scene.sender.run(|| farhop_netdev::shaped(DEVICE).unwrap().unwrap()).unwrap();
        shaped.leaves.iter().map(|leaf| leaf.waiting).sum::<u64>()
    };
    assert!(waits(&scene) > 20_000, "an echo did not wait for it");
    let mut faster = shaping.clone();
    faster.rate = 50_000_000;
    for leaf in &mut faster.leaves {
        leaf.ceiling = 50_000_000;
    }
    scene.sender.run(|| faster.apply_rates(&Hold::take(DEVICE).unwrap()).unwrap()).unwrap();
    let mut buffer = [0; 2000];
    // All of it comes: nothing that waited was lost.
    for _ in 0..60 {
        heard.recv(&mut buffer).unwrap();
    }
    let (_, later) = scene.sender.run(echo).unwrap();
    assert!(later - left > 20_000, "{left} and {later} bytes");
}

/// Not a test: what the one above runs with other tools.
#[test]
fn a_plan_is_told_as_the_commands_that_would_be_run() {
    let text = shaping().in_words(LeafKind::FqCodel);
    for line in [
        "tc qdisc add dev sat0 root handle fa40: htb default 60",
        "tc class replace dev sat0 parent fa40:1 classid fa40:10 htb prio 0 rate 300000bit ceil 300000bit burst 250b cburst 250b quantum 1514",
        "tc qdisc replace dev sat0 parent fa40:10 handle fb10: tbf rate 32gbit burst 1564b limit 400000",
        "tc qdisc replace dev sat0 parent fa40:50 handle fb50: tbf rate 32gbit burst 1564b limit 400000",
        "tc qdisc replace dev sat0 parent fb50:1 fq_codel target 32ms interval 650ms quantum 1514",
        "meta l4proto udp th dport { 9001 } goto leaf_10",
        "tc filter replace dev sat0 parent fa40: protocol arp prio 64064 handle 800::1 u32 match u32 0 0 classid fa40:60",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
    }
}
